//! `splitter check`: every Problem of a set of manifests, and how each Ingress fares beside
//! ingress-nginx.

use std::io::{self, IsTerminal as _, Read, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::Context;
use clap::Args;
use serde::Serialize;

use super::class_args::ClassArgs;
use crate::auth::{self, GuardStore};
use crate::config::ClassSettings;
use crate::k8s::{Fared, Fate, MAX_FILE_BYTES, Manifests, Translation, compare, translate};
use crate::model::{Problem, Severity};
use crate::tls::{CertStore, Demand, Handshakes};

mod text;

/// Arguments of `splitter check`.
#[derive(Args, Clone, Debug)]
pub struct CheckArgs {
    /// Directory of manifests.
    #[arg(
        long,
        env = "SPLITTER_MANIFESTS",
        value_name = "DIR",
        required_unless_present = "input"
    )]
    pub manifests: Option<PathBuf>,

    /// A directory or file as well, or - for standard input. Counts before --manifests, which may
    /// come from the environment.
    #[arg(value_name = "DIR|-")]
    pub input: Option<PathBuf>,

    /// Print JSON instead of text.
    #[arg(long)]
    pub json: bool,

    /// Which Ingresses are ours.
    #[command(flatten)]
    pub class: ClassArgs,
}

impl CheckArgs {
    /// Checks what the arguments name and prints to standard output. Gives the exit code.
    ///
    /// # Errors
    /// When the input cannot be read at all, or the output not be written.
    pub fn run(self) -> anyhow::Result<u8> {
        let input = match self.input.or(self.manifests) {
            Some(path) if path == Path::new("-") => Input::Text(read_stdin()?),
            Some(path) => Input::Directory(path),
            None => anyhow::bail!("no manifests given; name a directory, or - for standard input"),
        };
        let mut out = io::stdout().lock();
        let style = match (self.json, is_coloured()) {
            (true, _) => Style::Json,
            (false, colours) => Style::Text { colours },
        };
        check(&input, &self.class.into(), style, &mut out)
    }
}

/// Colours are for terminals, unless somebody wants none (no-color.org).
fn is_coloured() -> bool {
    let unwanted = std::env::var_os("NO_COLOR").is_some_and(|it| !it.is_empty());
    io::stdout().is_terminal() && !unwanted
}

/// How it is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// For people.
    Text {
        /// Whether a terminal shows it.
        colours: bool,
    },
    /// For programs.
    Json,
}

/// What is checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// Every manifest below a directory, or one file.
    Directory(PathBuf),
    /// YAML or JSON text, called `stdin` in sources.
    Text(String),
}

/// The most bytes that are read from standard input: all of a large cluster, in one list.
const STDIN_MAX: u64 = 8 * MAX_FILE_BYTES;

fn read_stdin() -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    let read = io::stdin().take(STDIN_MAX + 1).read_to_end(&mut bytes);
    let read = read.context("cannot read standard input")?;
    if read as u64 > STDIN_MAX {
        anyhow::bail!(
            "standard input has more than {STDIN_MAX} bytes; ask for one namespace at a time"
        );
    }
    text_of(bytes)
}

/// What a shell or an editor may have made of a manifest.
fn text_of(bytes: Vec<u8>) -> anyhow::Result<String> {
    let wide = bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]);
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        match wide {
            true => anyhow::anyhow!("standard input is UTF-16 text; write it as UTF-8"),
            false => anyhow::anyhow!("standard input is no UTF-8 text: byte {at} is none"),
        }
    })
}

/// What `--json` prints.
#[derive(Serialize)]
struct Report<'a> {
    ingresses: usize,
    served: usize,
    locations: usize,
    errors: usize,
    warnings: usize,
    /// Secrets that are taken to be there and good, as none was given.
    supposed_secrets: usize,
    summary: Summary,
    /// Every Ingress of our classes.
    fates: &'a [Fared],
    problems: &'a [Problem],
}

/// How many Ingresses of our classes fare how.
#[derive(Serialize)]
struct Summary {
    unchanged: usize,
    differ: usize,
    need_work: usize,
}

impl Summary {
    fn of(fates: &[Fared]) -> Self {
        let count = |fate| fates.iter().filter(|it| it.fate == fate).count();
        Summary {
            unchanged: count(Fate::Unchanged),
            differ: count(Fate::Differs),
            need_work: count(Fate::NeedsWork),
        }
    }
}

/// Prints every Problem with its object, source, field and effect. The exit code is 1 if one of
/// them is an error, or an Ingress needs work, else 0; also when nobody reads what is printed.
///
/// # Errors
/// When the directory does not exist, or the output cannot be written.
pub fn check(
    input: &Input,
    class: &ClassSettings,
    style: Style,
    out: &mut impl Write,
) -> anyhow::Result<u8> {
    let (mut objects, mut problems) = match input {
        Input::Directory(path) => {
            std::fs::metadata(path)
                .with_context(|| format!("cannot read the manifests in {}", path.display()))?;
            Manifests::new(path).reload()
        }
        Input::Text(text) => Manifests::from_text("stdin", text),
    };
    // Few give their Secrets away, and without them nothing is known of them: no fault either.
    let supposed = match objects.secrets.is_empty() {
        true => Some(objects.suppose_secrets()),
        false => None,
    };
    let translation = translate(&objects, class);
    let fates = compare(&objects, class, &translation);
    if supposed.is_none() {
        problems.extend(certificates(&translation)?);
    }
    problems.extend(translation.problems.iter().cloned());
    let errors = problems
        .iter()
        .filter(|it| it.severity == Severity::Error)
        .count();
    let report = Report {
        ingresses: objects.ingresses.len(),
        served: translation.served,
        locations: translation.snapshot.locations.len(),
        errors,
        warnings: problems.len() - errors,
        supposed_secrets: supposed.unwrap_or(0),
        summary: Summary::of(&fates),
        fates: &fates,
        problems: &problems,
    };
    let printed = print(&report, style, out);
    match printed {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error)?,
        _ => Ok(u8::from(errors > 0 || report.summary.need_work > 0)),
    }
}

/// What is wrong with certificates, authorities, passwords and keys.
fn certificates(translation: &Translation) -> anyhow::Result<Vec<Problem>> {
    let (_, faulty) = CertStore::new(SystemTime::now())?.update(Demand {
        hosts: &translation.snapshot.tls_hosts(),
        handshakes: &Handshakes::default(),
        tickets: None,
        authorities: &translation.snapshot.authorities(),
        upstreams: &translation.snapshot.upstream_tls(),
        secrets: &translation.secrets,
        default: None,
        now: SystemTime::now(),
    });
    let mut guards = GuardStore::default();
    let demand = auth::Demand::of(&translation.snapshot);
    guards.update(demand, &translation.secrets);
    Ok(faulty.into_iter().chain(guards.problems()).collect())
}

fn print(report: &Report<'_>, style: Style, out: &mut impl Write) -> io::Result<()> {
    match style {
        Style::Json => {
            serde_json::to_writer_pretty(&mut *out, report)?;
            writeln!(out)
        }
        Style::Text { colours } => text::write(report, colours, out),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Command {
        #[command(flatten)]
        check: CheckArgs,
    }

    fn run(text: &str, json: bool) -> (u8, String) {
        let mut out = Vec::new();
        let input = Input::Text(text.to_owned());
        let style = match json {
            true => Style::Json,
            false => Style::Text { colours: false },
        };
        let code = check(&input, &ClassSettings::default(), style, &mut out).unwrap();
        (code, String::from_utf8(out).unwrap())
    }

    const GOOD: &str = "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {ports: [{port: 80}]}\n---\n\
        apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\n\
        metadata: {name: s-1, labels: {kubernetes.io/service-name: s}}\n\
        addressType: IPv4\nports: [{port: 8080}]\nendpoints: [{addresses: [10.0.0.1]}]\n---\n\
        apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: i}\n\
        spec: {defaultBackend: {service: {name: s, port: {number: 80}}}}\n";

    #[test]
    fn without_problems_only_the_sum_is_printed() {
        let sum = "unchanged   default/i\n\
                   1 Ingresses: 1 unchanged, 0 behave differently, 0 need work\n\
                   0 errors, 0 warnings; 1 of 1 Ingresses served, 1 locations\n";
        assert_eq!(run(GOOD, false), (0, sum.to_owned()));
    }

    #[test]
    fn a_warning_is_printed_and_does_not_fail() {
        let text = GOOD.replace("{name: i}", "{name: i, annotations: {splitter.io/x: \"\"}}");
        let (code, out) = run(&text, false);
        assert_eq!(code, 0);
        let expected = "warning[annotation-unknown] Ingress default/i\n  \
             source   stdin#3\n  field    metadata.annotations.splitter.io/x\n  \
             what     there is no annotation x\n  instead  ignored\n\
             unchanged   default/i\n\
             1 Ingresses: 1 unchanged, 0 behave differently, 0 need work\n\
             0 errors, 1 warnings; 1 of 1 Ingresses served, 1 locations\n";
        assert_eq!(out, expected);
    }

    #[test]
    fn errors_of_files_and_of_objects_fail() {
        let (code, out) = run(
            &format!("{}---\n{{\n", GOOD.replace("number: 80", "number: 81")),
            false,
        );
        assert_eq!(code, 1);
        assert!(out.contains("error[yaml-invalid] File stdin\n"), "{out}");
        assert!(
            out.contains("error[port-not-found] Ingress default/i\n"),
            "{out}"
        );
        assert!(out.ends_with("2 errors, 0 warnings; 1 of 1 Ingresses served, 1 locations\n"));
    }

    #[test]
    fn json_says_the_same() {
        let (code, out) = run(&GOOD.replace("number: 80", "number: 81"), true);
        assert_eq!(code, 1);
        let report: serde_json::Value = serde_json::from_str(&out).unwrap();
        assert_eq!(report["errors"], 1);
        assert_eq!(report["served"], 1);
        assert_eq!(report["summary"]["need_work"], 1);
        assert_eq!(report["fates"][0]["fate"], "needs-work");
        assert_eq!(report["fates"][0]["reasons"][0], "port-not-found");
        let problem = &report["problems"][0];
        assert_eq!(problem["code"], "port-not-found");
        assert_eq!(problem["severity"], "error");
        assert_eq!(problem["object"]["name"], "i");
        assert_eq!(problem["source"], "stdin#3");
        assert_eq!(problem["field"], "spec.defaultBackend");
        assert_eq!(problem["effect"], "the path answers 503");
    }

    #[test]
    fn what_ingress_nginx_does_otherwise_is_told_without_failing() {
        let host = |name: &str, path: &str, notes: &str| {
            format!(
                "---\napiVersion: networking.k8s.io/v1\nkind: Ingress\n\
                 metadata: {{name: {name}, annotations: {{{notes}}}}}\n\
                 spec: {{rules: [{{host: a, http: {{paths: [{{path: {path}, pathType: Prefix, \
                 backend: {{service: {{name: s, port: {{number: 80}}}}}}}}]}}}}]}}\n"
            )
        };
        let regex = "nginx.ingress.kubernetes.io/rewrite-target: /x";
        let text = [GOOD, &host("r", "/r", regex), &host("plain", "/p", "")].concat();
        let (_, out) = run(&text, false);
        assert!(
            out.contains("difference[regex-leak] Ingress default/plain\n  there    "),
            "{out}"
        );
        assert!(
            out.contains("\ndiffers     default/plain  regex-leak\n"),
            "{out}"
        );
        assert!(!out.contains('\u{1b}'), "{out}");
        let mut coloured = Vec::new();
        let style = Style::Text { colours: true };
        let input = Input::Text(text);
        check(&input, &ClassSettings::default(), style, &mut coloured).unwrap();
        let coloured = String::from_utf8(coloured).unwrap();
        assert!(
            coloured.contains("\u{1b}[33mdiffers\u{1b}[0m     default/plain"),
            "{coloured}"
        );
    }

    #[test]
    fn what_callers_must_show_is_told() {
        let guards = "{name: i, annotations: {splitter.io/traffic-class: east-west, \
             nginx.ingress.kubernetes.io/allowlist-source-range: 10.0.0.0/8, \
             nginx.ingress.kubernetes.io/auth-tls-secret: default/ca, \
             splitter.io/auth-tls-allowed-identities: 'spiffe://td.test/*', \
             nginx.ingress.kubernetes.io/backend-protocol: HTTPS}}";
        let secret = "---\napiVersion: v1\nkind: Secret\nmetadata: {name: ca}\n\
             data: {ca.crt: eA==}\n";
        let text = GOOD.replace("{name: i}", guards) + secret;
        let (_, out) = run(&text, false);
        for demand in [
            "to be a pod or the node itself",
            "an address of 10.0.0.0/8",
            "a certificate, with one of the names spiffe://td.test/*, by the Secret default/ca",
            "nothing of its pods, whose TLS is taken without a proof (proxy-ssl-verify)",
        ] {
            assert!(
                out.contains(&format!("asks for {demand}\n")),
                "{demand}: {out}"
            );
        }
    }

    #[test]
    fn a_directory_and_a_file_are_read_and_nothing_is_an_error() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("all.yaml");
        std::fs::write(&file, GOOD).unwrap();
        let check = |path: PathBuf| {
            let settings = ClassSettings::default();
            super::check(
                &Input::Directory(path),
                &settings,
                Style::Json,
                &mut Vec::new(),
            )
        };
        assert_eq!(check(root.path().to_owned()).unwrap(), 0);
        assert_eq!(check(file).unwrap(), 0);
        let error = check(root.path().join("none")).unwrap_err().to_string();
        assert!(error.contains("cannot read the manifests in"), "{error}");
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        let text = GOOD.replace("{service: {name: s,", r#"{service: {name: "a\e[31m","#);
        let (code, out) = run(&text, false);
        assert_eq!(code, 1);
        assert!(
            out.contains(r"a\u{1b}[31m") && !out.contains('\u{1b}'),
            "{out}"
        );
    }

    #[test]
    fn arguments() {
        let parse = |arguments: &[&str]| {
            let all = std::iter::once("x").chain(arguments.iter().copied());
            Command::try_parse_from(all).map(|command| command.check)
        };
        let directory = parse(&["--manifests", "d", "--json"]).unwrap();
        assert_eq!(
            (directory.manifests, directory.json),
            (Some(PathBuf::from("d")), true)
        );
        assert_eq!(parse(&["-"]).unwrap().input, Some(PathBuf::from("-")));
        let class = parse(&["d", "--ingress-class", "edge"]).unwrap().class;
        assert_eq!(class.ingress_class, "edge");
        assert!(parse(&[]).is_err());
        assert!(parse(&["d", "--unknown"]).is_err());
    }
}
