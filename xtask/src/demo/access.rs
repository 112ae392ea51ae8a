//! Who may call: a location that needs a certificate, one that needs a token, and one for callers from
//! inside only.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use super::backend::Backend;
use super::instance::Instance;
use super::interrupt::Interrupt;
use super::manifests::{STABLE, guarded};
use super::report::Align::{Left, Right};
use super::report::{Report, Row};
use super::token::{self, AUDIENCE, ISSUER};

/// The host whose callers are inside.
const INSIDE: &str = "inside.example";
/// The host whose callers show a certificate.
const VAULT: &str = "vault.example";
/// The host whose callers have a token, and what it must say.
const API: &str = "api.example";
const CLAIMS: &str = "roles=admin";
/// Whom the one with certificates lets in.
const ALLOWED: &str = "spiffe://demo.example/ns/shop/*";
/// Whose certificate a client shows, by the name of its file.
const PEOPLE: [(&str, &str); 2] = [
    ("shop", "URI:spiffe://demo.example/ns/shop/sa/web"),
    ("pay", "URI:spiffe://demo.example/ns/pay/sa/web"),
];
/// How long an answer may take; far more than it does.
const PATIENCE: Duration = Duration::from_secs(10);

/// One request, and the status that it must get.
struct Case {
    host: &'static str,
    /// What is said of the caller.
    caller: &'static str,
    how: How,
    status: u16,
}

/// How a request comes.
enum How {
    /// In clear, with these field lines.
    Clear(&'static str),
    /// Over TLS, with the certificate of one of [`PEOPLE`], or of a stranger, or without any.
    Tls(Option<&'static str>),
    /// In clear, with a token.
    Token(Token),
}

/// A token for a role that holds for so many seconds.
struct Token {
    role: &'static str,
    seconds: i64,
    /// Whether the issuer has signed it.
    issued: bool,
}

const fn token(role: &'static str, seconds: i64, issued: bool) -> How {
    How::Token(Token {
        role,
        seconds,
        issued,
    })
}

const CASES: [Case; 11] = [
    Case {
        host: INSIDE,
        caller: "on the node itself",
        how: How::Clear(""),
        status: 200,
    },
    Case {
        host: INSIDE,
        caller: "outside, by a believed header",
        how: How::Clear("X-Forwarded-For: 203.0.113.7\r\n"),
        status: 403,
    },
    Case {
        host: VAULT,
        caller: "no certificate",
        how: How::Tls(None),
        status: 400,
    },
    Case {
        host: VAULT,
        caller: "ns/shop, by the authority",
        how: How::Tls(Some("shop")),
        status: 200,
    },
    Case {
        host: VAULT,
        caller: "ns/pay, by the authority",
        how: How::Tls(Some("pay")),
        status: 403,
    },
    Case {
        host: VAULT,
        caller: "somebody, by himself",
        how: How::Tls(Some("stranger")),
        status: 400,
    },
    Case {
        host: API,
        caller: "no token",
        how: How::Clear(""),
        status: 401,
    },
    Case {
        host: API,
        caller: "an admin, by the issuer",
        how: token("admin", 600, true),
        status: 200,
    },
    Case {
        host: API,
        caller: "a reader, by the issuer",
        how: token("reader", 600, true),
        status: 403,
    },
    Case {
        host: API,
        caller: "an admin of yesterday",
        how: token("admin", -86_400, true),
        status: 401,
    },
    Case {
        host: API,
        caller: "an admin, by somebody",
        how: token("admin", 600, false),
        status: 401,
    },
];

/// Shows it, or says in one line why not.
pub(super) fn show(report: &mut Report, interrupt: &Interrupt) -> Result<()> {
    report.heading("Access: each location says who may call it")?;
    let dir = tempfile::Builder::new()
        .prefix("splitter-demo-")
        .tempdir()
        .context("cannot make a directory for certificates")?;
    let (keys, objects) = (dir.path().join("keys"), dir.path().join("objects"));
    fs::create_dir(&keys)?;
    fs::create_dir(&objects)?;
    if let Err(error) = make_certificates(&keys) {
        report.line(&format!(
            "left out: no certificates to show it with: {error:#}"
        ))?;
        return Ok(());
    }
    let issuer = token::Key::make(&keys, "issuer")?;
    let somebody = token::Key::make(&keys, "somebody")?;
    let backend = Backend::start(STABLE)?;
    let all = manifests(&keys, &issuer, backend.addr())?;
    fs::write(objects.join("all.yaml"), all)?;
    let splitter = Instance::start_with_https(
        &objects,
        &[
            "--http=127.0.0.1:0",
            "--steering=none",
            "--use-forwarded-headers",
        ],
        interrupt,
    )?;
    let mut rows = Vec::new();
    for case in &CASES {
        interrupt.check()?;
        let status = match &case.how {
            How::Clear(fields) => in_clear(splitter.http(), case.host, fields)?,
            How::Tls(pair) => over_tls(splitter.https()?, case.host, &keys, *pair)?,
            How::Token(token) => {
                let by = if token.issued { &issuer } else { &somebody };
                let token = by.token(token.role, token.seconds)?;
                let fields = format!("Authorization: Bearer {token}\r\n");
                in_clear(splitter.http(), case.host, &fields)?
            }
        };
        rows.push(Row {
            cells: vec![
                format!("{}/", case.host),
                case.caller.to_owned(),
                case.status.to_string(),
                status.to_string(),
            ],
            holds: status == case.status,
        });
    }
    let columns = [
        ("location", Left),
        ("caller", Left),
        ("expected", Right),
        ("observed", Right),
    ];
    report.table(&columns, &rows)?;
    splitter.stop()
}

/// An authority, people and a stranger; the host's certificate is the one that splitter makes.
fn make_certificates(dir: &Path) -> Result<()> {
    let key = [
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
    ];
    let own = |name: &str| {
        let mut command = openssl(dir, &["req", "-x509", "-days", "2"]);
        command.args(key).args(["-subj", &format!("/CN={name}")]);
        command.args([
            "-keyout",
            &format!("{name}.key"),
            "-out",
            &format!("{name}.crt"),
        ]);
        run(command)
    };
    own("authority")?;
    own("stranger")?;
    for (name, san) in PEOPLE {
        let mut request = openssl(dir, &["req", "-new"]);
        request.args(key).args(["-subj", &format!("/CN={name}")]);
        request.args([
            "-keyout",
            &format!("{name}.key"),
            "-out",
            &format!("{name}.csr"),
        ]);
        run(request)?;
        fs::write(dir.join("san"), format!("subjectAltName={san}\n"))?;
        let mut sign = openssl(dir, &["x509", "-req", "-days", "2", "-CA", "authority.crt"]);
        sign.args([
            "-CAkey",
            "authority.key",
            "-CAcreateserial",
            "-extfile",
            "san",
        ]);
        sign.args([
            "-in",
            &format!("{name}.csr"),
            "-out",
            &format!("{name}.crt"),
        ]);
        run(sign)?;
    }
    Ok(())
}

fn openssl(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new("openssl");
    command.current_dir(dir).args(args).stdin(Stdio::null());
    command
}

fn run(mut command: Command) -> Result<()> {
    let output = command.output().context("cannot run openssl")?;
    if !output.status.success() {
        bail!(
            "openssl: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(())
}

fn manifests(keys: &Path, issuer: &token::Key<'_>, backend: SocketAddr) -> Result<String> {
    let authority = fs::read_to_string(keys.join("authority.crt"))?;
    let authority: String = authority
        .lines()
        .map(|line| format!("    {line}\n"))
        .collect();
    let secret = format!(
        "---\napiVersion: v1\nkind: Secret\nmetadata: {{name: people, namespace: demo}}\n\
         stringData:\n  ca.crt: |\n{authority}"
    );
    let set = issuer.set()?;
    let set = format!(
        "---\napiVersion: v1\nkind: Secret\nmetadata: {{name: issuer, namespace: demo}}\n\
         stringData:\n  jwks: '{set}'\n"
    );
    let api = guarded(
        "api",
        API,
        &[
            ("splitter.io/jwt-issuer", ISSUER),
            ("splitter.io/jwt-audiences", AUDIENCE),
            ("splitter.io/jwt-jwks-secret", "issuer"),
            ("splitter.io/jwt-claims", CLAIMS),
        ],
    );
    let inside = guarded(
        "inside",
        INSIDE,
        &[("splitter.io/traffic-class", "east-west")],
    );
    let vault = guarded(
        "vault",
        VAULT,
        &[
            ("nginx.ingress.kubernetes.io/auth-tls-secret", "demo/people"),
            ("splitter.io/auth-tls-allowed-identities", ALLOWED),
        ],
    );
    Ok([
        super::manifests::service(STABLE, backend),
        secret,
        set,
        api,
        inside,
        vault,
    ]
    .concat())
}

fn request(host: &str, fields: &str) -> String {
    format!("GET / HTTP/1.1\r\nHost: {host}\r\n{fields}Connection: close\r\n\r\n")
}

fn in_clear(addr: SocketAddr, host: &str, fields: &str) -> Result<u16> {
    let mut stream = TcpStream::connect(addr)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(request(host, fields).as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    status(&answer)
}

/// By openssl, as nothing here speaks TLS.
fn over_tls(addr: SocketAddr, host: &str, keys: &Path, pair: Option<&str>) -> Result<u16> {
    let mut command = openssl(
        keys,
        &["s_client", "-quiet", "-no_ign_eof", "-servername", host],
    );
    command.arg("-connect").arg(addr.to_string());
    if let Some(name) = pair {
        command.args([
            "-cert",
            &format!("{name}.crt"),
            "-key",
            &format!("{name}.key"),
        ]);
    }
    let mut client = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("cannot run openssl")?;
    let input = client.stdin.take();
    let output = client.stdout.take().context("openssl has no output")?;
    let mut input = input.context("openssl has no input")?;
    input.write_all(request(host, "").as_bytes())?;
    let mut line = String::new();
    let read = BufReader::new(output).read_line(&mut line);
    // Its input must stay open until then.
    drop(input);
    let _ = client.kill();
    let _ = client.wait();
    read?;
    status(&line)
}

fn status(answer: &str) -> Result<u16> {
    let status = answer.split(' ').nth(1);
    let status = status.and_then(|status| status.parse().ok());
    status.with_context(|| format!("no answer but {answer:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_is_read() {
        assert_eq!(status("HTTP/1.1 403 Forbidden\r\n").ok(), Some(403));
        assert!(status("").is_err() && status("nothing").is_err());
    }
}
