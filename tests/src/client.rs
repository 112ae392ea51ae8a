//! A client that speaks raw bytes.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};

use socket2::{Domain, Socket, Type};

use crate::PATIENCE;

/// One answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The status line without its end.
    pub line: String,
    /// Fields in order, names in lower case.
    pub fields: Vec<(String, String)>,
    /// The body, de-chunked.
    pub body: Vec<u8>,
    /// Fields after a chunked body.
    pub trailers: Vec<(String, String)>,
}

impl Answer {
    /// The value of a field, if it is there once.
    pub fn field(&self, name: &str) -> Option<&str> {
        let mut values = self.fields.iter().filter(|(field, _)| field == name);
        let value = values.next().map(|(_, value)| value.as_str());
        assert!(values.next().is_none(), "{name} is there more than once");
        value
    }

    /// All values of a field, in order.
    pub fn all(&self, name: &str) -> Vec<&str> {
        let fields = self.fields.iter().filter(|(field, _)| field == name);
        fields.map(|(_, value)| value.as_str()).collect()
    }

    /// Checks that the proxy gave this answer by itself, as it gives all of its own: named, dated,
    /// short, and of a length that is told.
    #[track_caller]
    pub fn assert_own(&self, status: u16) {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(self.field("server"), Some("splitter"), "{self:?}");
        assert!(self.field("date").is_some(), "{self:?}");
        let length = self.field("content-length").expect("a length");
        assert_eq!(length, self.body.len().to_string(), "{self:?}");
        assert!((1..200).contains(&self.body.len()), "{self:?}");
        assert_eq!(
            self.field("content-type"),
            Some("text/plain; charset=utf-8"),
            "{self:?}"
        );
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// One connection, in clear unless it says otherwise.
pub struct Client<S = TcpStream> {
    reader: BufReader<S>,
}

impl Client {
    /// Connects.
    pub fn connect(addr: SocketAddr) -> Self {
        let stream = TcpStream::connect(addr).expect("the splitter accepts");
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Client {
            reader: BufReader::new(stream),
        }
    }

    /// Connects from this address of ours, such as another one of the loopback's.
    pub fn connect_from(source: IpAddr, addr: SocketAddr) -> Self {
        let socket = Socket::new(Domain::for_address(addr), Type::STREAM, None).unwrap();
        socket.bind(&SocketAddr::new(source, 0).into()).unwrap();
        socket.connect(&addr.into()).expect("the splitter accepts");
        let stream = TcpStream::from(socket);
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Client {
            reader: BufReader::new(stream),
        }
    }

    /// Ends only what we send.
    pub fn finish(&mut self) {
        self.reader
            .get_mut()
            .shutdown(std::net::Shutdown::Write)
            .unwrap();
    }

    /// Whether bytes (or the end) come within `time`.
    pub fn hears_within(&mut self, time: std::time::Duration) -> bool {
        self.stream().set_read_timeout(Some(time)).unwrap();
        let heard = self.reader.fill_buf().is_ok();
        self.stream().set_read_timeout(Some(PATIENCE)).unwrap();
        heard
    }
}

impl<S: Read + Write> Client<S> {
    /// A connection that stands already.
    pub fn over(stream: S) -> Self {
        Client {
            reader: BufReader::new(stream),
        }
    }

    /// Sends bytes as they are. The peer may have closed already: what it answered is what counts.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = self.reader.get_mut().write_all(bytes.as_ref());
    }

    /// Sends a GET and reads the answer.
    pub fn get(&mut self, host: &str, path: &str) -> Answer {
        self.get_with(host, path, "")
    }

    /// Sends a GET with more fields (each ended by CRLF) and reads the answer.
    pub fn get_with(&mut self, host: &str, path: &str, fields: &str) -> Answer {
        self.send(format!(
            "GET {path} HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n"
        ));
        self.answer("GET")
    }

    /// Reads one answer to a request of `method`.
    #[track_caller]
    pub fn answer(&mut self, method: &str) -> Answer {
        self.try_answer(method).expect("the splitter answers")
    }

    /// Reads one answer; none when the connection ends first.
    pub fn try_answer(&mut self, method: &str) -> Option<Answer> {
        let mut answer = self.try_head()?;
        if method == "HEAD" || matches!(answer.status, 100..=199 | 204 | 304) {
            return Some(answer);
        }
        if answer.field("transfer-encoding") == Some("chunked") {
            self.chunks(&mut answer)?;
        } else if let Some(length) = answer.field("content-length") {
            answer.body = vec![0; length.parse().expect("Content-Length is a number")];
            self.reader.read_exact(&mut answer.body).ok()?;
        } else {
            self.reader.read_to_end(&mut answer.body).ok()?;
        }
        Some(answer)
    }

    /// Reads the head of an answer and leaves its body.
    #[track_caller]
    pub fn head(&mut self) -> Answer {
        self.try_head().expect("the splitter answers")
    }

    fn try_head(&mut self) -> Option<Answer> {
        let line = self.line()?;
        let status = line
            .split(' ')
            .nth(1)?
            .parse()
            .expect("a status is a number");
        Some(Answer {
            status,
            line,
            fields: self.fields()?,
            body: Vec::new(),
            trailers: Vec::new(),
        })
    }

    /// Reads one chunk; empty for the last one, behind which trailers may follow.
    pub fn chunk(&mut self) -> Option<Vec<u8>> {
        let size = usize::from_str_radix(&self.line()?, 16).expect("a chunk has a size");
        let mut chunk = vec![0; size];
        if size > 0 {
            self.reader.read_exact(&mut chunk).ok()?;
            assert_eq!(self.line().as_deref(), Some(""), "a chunk ends with CRLF");
        }
        Some(chunk)
    }

    fn chunks(&mut self, answer: &mut Answer) -> Option<()> {
        loop {
            let chunk = self.chunk()?;
            if chunk.is_empty() {
                answer.trailers = self.fields()?;
                return Some(());
            }
            answer.body.extend(chunk);
        }
    }

    fn line(&mut self) -> Option<String> {
        let mut line = Vec::new();
        self.reader.read_until(b'\n', &mut line).ok()?;
        let line = line.strip_suffix(b"\r\n")?;
        Some(String::from_utf8_lossy(line).into_owned())
    }

    fn fields(&mut self) -> Option<Vec<(String, String)>> {
        let mut fields = Vec::new();
        loop {
            let line = self.line()?;
            if line.is_empty() {
                return Some(fields);
            }
            let (name, value) = line.split_once(':').expect("a field has a colon");
            fields.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
    }

    /// Reads `n` bytes, or fewer at the end of the stream.
    pub fn read(&mut self, n: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        let _ = (&mut self.reader).take(n as u64).read_to_end(&mut bytes);
        bytes
    }

    /// Whether the peer closes now without sending anything more. A reset counts as an error.
    pub fn is_closed(&mut self) -> bool {
        let mut byte = [0];
        matches!(self.reader.read(&mut byte), Ok(0))
    }

    /// Whether the peer ends the connection now, by a close or by a reset, without sending more.
    pub fn is_cut(&mut self) -> bool {
        let mut byte = [0];
        match self.reader.read(&mut byte) {
            Ok(n) => n == 0,
            Err(e) => matches!(
                e.kind(),
                std::io::ErrorKind::ConnectionReset | std::io::ErrorKind::BrokenPipe
            ),
        }
    }

    /// What is still to be read, for whoever reads it himself.
    pub fn reader(&mut self) -> &mut BufReader<S> {
        &mut self.reader
    }

    /// The connection itself.
    pub fn stream(&mut self) -> &mut S {
        self.reader.get_mut()
    }
}

/// A GET on a connection of its own.
pub fn get(addr: SocketAddr, host: &str, path: &str) -> Answer {
    Client::connect(addr).get(host, path)
}

/// A GET with more fields on a connection of its own.
pub fn get_with(addr: SocketAddr, host: &str, path: &str, fields: &str) -> Answer {
    Client::connect(addr).get_with(host, path, fields)
}
