//! `splitter explain`: who would answer a request, and why.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::IpAddr;
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use clap::builder::ArgPredicate;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, header, request};
use serde::Serialize;

use super::class_args::ClassArgs;
use crate::config::ClassSettings;
use crate::k8s::{Manifests, translate};
use crate::model::{ObjectRef, Problem, SecretData, Snapshot, TrafficClass};
use crate::routing::Router;
use crate::routing::explain::{Explanation, Outcome, Query, explain};

mod connect;
mod guards;
mod text;

/// Arguments of `splitter explain`.
#[derive(Args, Clone, Debug)]
pub struct ExplainArgs {
    /// Directory of manifests.
    #[arg(long, env = "SPLITTER_MANIFESTS", value_name = "DIR")]
    pub manifests: PathBuf,

    /// Host header of the request; may have a port.
    #[arg(long, value_name = "HOST", default_value = "")]
    pub host: String,

    /// Path of the request, with its query if it has one.
    #[arg(long, value_name = "PATH", value_parser = path, required = false, required_unless_present = "connect",
          default_value_if("connect", ArgPredicate::IsPresent, "/"))]
    pub path: PathAndQuery,

    /// A connection in place of a request, where no HTTP is looked at: address and port that are
    /// connected to, such as 192.0.2.1:5432 or 192.0.2.1:53/udp.
    #[arg(long, value_name = "ADDR:PORT[/udp]", value_parser = connect::target, conflicts_with_all = ["path", "host"])]
    pub connect: Option<connect::Target>,

    /// Who connects; with the port it is one certain connection.
    #[arg(long, value_name = "ADDR[:PORT]", value_parser = connect::from, requires = "connect")]
    pub from: Option<connect::From>,

    /// Method of the request.
    #[arg(long, value_name = "METHOD", default_value = "GET")]
    pub method: Method,

    /// Header of the request, 'Name: value'; repeatable.
    #[arg(long, value_name = "NAME: VALUE", value_parser = header)]
    pub header: Vec<(HeaderName, HeaderValue)>,

    /// Cookie of the request, name=value; repeatable.
    #[arg(long, value_name = "NAME=VALUE", value_parser = cookie)]
    pub cookie: Vec<HeaderValue>,

    /// Address that the request is from, for what goes by address.
    #[arg(long, value_name = "IP")]
    pub client: Option<IpAddr>,

    /// Where the caller is, as the proxy would find it: north-south or east-west.
    #[arg(long = "class", value_name = "CLASS", value_parser = caller_class)]
    pub caller: Option<TrafficClass>,

    /// Certificate that the client shows, in PEM, with those behind it that it sends.
    #[arg(long, value_name = "FILE")]
    pub certificate: Option<PathBuf>,

    /// Print JSON instead of text.
    #[arg(long)]
    pub json: bool,

    /// Which Ingresses are ours.
    #[command(flatten)]
    pub class: ClassArgs,
}

impl ExplainArgs {
    /// Explains the request by the manifests and prints to standard output.
    ///
    /// # Errors
    /// When the directory cannot be read, or the output not be written.
    pub fn run(&self) -> anyhow::Result<()> {
        let directory = &self.manifests;
        std::fs::read_dir(directory)
            .with_context(|| format!("cannot read the directory {}", directory.display()))?;
        let (objects, mut problems) = Manifests::new(directory).reload();
        let translation = translate(&objects, &ClassSettings::from(self.class.clone()));
        problems.extend(translation.problems.iter().cloned());
        let mut out = io::stdout().lock();
        if let Some(target) = self.connect {
            let it = connect::explain(&translation.snapshot, &problems, target, self.from);
            return Ok(it.print(self.json, &mut out)?);
        }
        let secrets = &translation.secrets;
        Ok(self.print(&translation.snapshot, secrets, &problems, &mut out)?)
    }

    /// Explains the request by a Snapshot and its Secrets and writes the explanation, with the
    /// Problems that could bear on it, as text or JSON. Nothing of what Secrets hold is told.
    ///
    /// # Errors
    /// When the certificate cannot be read, or the output not be written.
    pub fn print(
        &self,
        snapshot: &Snapshot,
        secrets: &BTreeMap<ObjectRef, SecretData>,
        problems: &[Problem],
        out: &mut impl Write,
    ) -> io::Result<()> {
        let headers = self.headers();
        let query = Query {
            method: &self.method,
            host: &self.host,
            path: self.path.path(),
            query: self.path.query(),
            headers: &headers,
            client: self.client,
            class: self.caller,
        };
        let mut explanation = explain(snapshot, &Router::build(snapshot), &query);
        let certificate = self.certificate.as_ref().map(std::fs::read).transpose()?;
        if let Outcome::Location(answer) = &mut explanation.outcome {
            let given = guards::Given {
                snapshot,
                secrets,
                certificate: certificate.as_deref(),
                request: &self.request(&headers),
                query: &query,
            };
            given.judge(answer);
        }
        let (problems, others) = related(&explanation, problems);
        let report = Report {
            explanation: &explanation,
            problems,
            others,
        };
        if self.json {
            serde_json::to_writer_pretty(&mut *out, &report)?;
            writeln!(out)
        } else {
            text::write(&report, out)
        }
    }

    /// The request as the proxy would get it.
    fn request(&self, headers: &HeaderMap) -> request::Parts {
        let (mut parts, ()) = Request::new(()).into_parts();
        parts.method = self.method.clone();
        parts.uri = Uri::from(self.path.clone());
        parts.headers = headers.clone();
        parts
    }

    /// The headers as the proxy would get them: each `--cookie` is a Cookie line of its own, after
    /// those given as `--header`.
    fn headers(&self) -> HeaderMap {
        let cookies = self
            .cookie
            .iter()
            .map(|cookie| (header::COOKIE, cookie.clone()));
        self.header.iter().cloned().chain(cookies).collect()
    }
}

/// What is printed.
#[derive(Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    explanation: &'a Explanation,
    /// Problems that could bear on this request.
    problems: Vec<&'a Problem>,
    /// How many more there are.
    #[serde(rename = "other_problems")]
    others: usize,
}

/// When a Location answers, the Problems in the namespaces of its Ingresses (a canary that did not
/// attach is one of those) and of files; when none does, all: any of them may be why. And the number
/// of the others.
fn related<'a>(explanation: &Explanation, problems: &'a [Problem]) -> (Vec<&'a Problem>, usize) {
    let Outcome::Location(answer) = &explanation.outcome else {
        return (problems.iter().collect(), 0);
    };
    let ingresses = answer.variants.iter().map(|variant| &variant.ingress);
    let involved: Vec<&ObjectRef> = ingresses.chain([&answer.ingress]).collect();
    let bears = |problem: &&Problem| {
        let namespace = &problem.object.namespace;
        namespace.is_empty() || involved.iter().any(|object| object.namespace == *namespace)
    };
    let related: Vec<_> = problems.iter().filter(bears).collect();
    let others = problems.len() - related.len();
    (related, others)
}

fn caller_class(text: &str) -> Result<TrafficClass, String> {
    let all = [TrafficClass::NorthSouth, TrafficClass::EastWest];
    let found = all.into_iter().find(|it| it.name() == text);
    found.ok_or_else(|| "allowed are north-south and east-west".to_owned())
}

fn path(text: &str) -> Result<PathAndQuery, String> {
    let path = text.parse::<PathAndQuery>().ok();
    path.filter(|path| path.as_str().starts_with('/'))
        .ok_or_else(|| {
            "allowed is a path that starts with / and has no spaces, such as /shop/cart".to_owned()
        })
}

fn header(text: &str) -> Result<(HeaderName, HeaderValue), String> {
    let (name, value) = text
        .split_once(':')
        .ok_or("allowed is 'Name: value', such as 'X-Canary: always'")?;
    let name = HeaderName::from_bytes(name.trim().as_bytes())
        .map_err(|_| format!("{:?} cannot be the name of a header", name.trim()))?;
    let value = HeaderValue::from_str(value.trim())
        .map_err(|_| format!("{:?} cannot be the value of a header", value.trim()))?;
    Ok((name, value))
}

fn cookie(text: &str) -> Result<HeaderValue, String> {
    let allowed = || "allowed is name=value, such as canary=always".to_owned();
    let (name, _) = text.split_once('=').ok_or_else(allowed)?;
    if name.trim().is_empty() {
        return Err(allowed());
    }
    HeaderValue::from_str(text).map_err(|_| allowed())
}

#[cfg(test)]
mod tests;
