use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use super::interrupt::Interrupt;

/// How long an answer may take; far more than it does.
const PATIENCE: Duration = Duration::from_secs(10);

/// One connection, kept for every request. It is never opened a second time, so a request that is
/// answered shows that nothing has closed it.
pub(super) struct Client {
    reader: BufReader<TcpStream>,
    interrupt: Interrupt,
}

/// One answer with status 200.
pub(super) type Body = String;

impl Client {
    pub(super) fn connect(addr: SocketAddr, interrupt: &Interrupt) -> Result<Self> {
        let stream =
            TcpStream::connect(addr).with_context(|| format!("cannot connect to {addr}"))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Client {
            reader: BufReader::new(stream),
            interrupt: interrupt.clone(),
        })
    }

    /// Asks for `host` and `path` with further `fields`; an error for any status but 200.
    pub(super) fn get(&mut self, host: &str, path: &str, fields: &[(&str, &str)]) -> Result<Body> {
        self.interrupt.check()?;
        let mut request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n");
        for (name, value) in fields {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        request.push_str("\r\n");
        self.exchange(&request)
            .with_context(|| format!("GET {host}{path}"))
    }

    fn exchange(&mut self, request: &str) -> Result<Body> {
        self.reader.get_mut().write_all(request.as_bytes())?;
        let status = self.line()?;
        let mut length = None;
        loop {
            let line = self.line()?;
            if line.is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = Some(value.trim().parse().context("Content-Length")?);
            }
        }
        let length: usize = length.context("the answer has no Content-Length")?;
        let mut body = vec![0; length];
        self.reader.read_exact(&mut body)?;
        let body = String::from_utf8(body).context("the answer is no text")?;
        if status.split(' ').nth(1) != Some("200") {
            bail!("{status}: {}", body.trim());
        }
        Ok(body)
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        if self.reader.read_line(&mut line)? == 0 {
            bail!("the connection was closed");
        }
        Ok(line.trim_end().to_owned())
    }
}
