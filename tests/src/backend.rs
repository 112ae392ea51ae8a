//! Backends that do as they are told and remember what they were asked.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// One request as a backend saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The request line without its end.
    pub line: String,
    /// Fields in order, names in lower case.
    pub fields: Vec<(String, String)>,
    /// The body, de-chunked.
    pub body: Vec<u8>,
    /// Fields after a chunked body.
    pub trailers: Vec<(String, String)>,
}

impl Seen {
    /// The request's method.
    pub fn method(&self) -> &str {
        self.line.split(' ').next().unwrap_or_default()
    }

    /// The request's target, as it came.
    pub fn target(&self) -> &str {
        self.line.split(' ').nth(1).unwrap_or_default()
    }

    /// The request's version.
    pub fn version(&self) -> &str {
        self.line.split(' ').nth(2).unwrap_or_default()
    }

    /// All values of a field, in order.
    pub fn all(&self, name: &str) -> Vec<&str> {
        let fields = self.fields.iter().filter(|(field, _)| field == name);
        fields.map(|(_, value)| value.as_str()).collect()
    }

    /// The value of a field, if it is there once.
    pub fn field(&self, name: &str) -> Option<&str> {
        let mut values = self.fields.iter().filter(|(field, _)| field == name);
        let value = values.next().map(|(_, value)| value.as_str());
        assert!(values.next().is_none(), "{name} is there more than once");
        value
    }
}

type Script = dyn Fn(&mut Conversation<'_>) + Send + Sync;

/// What a script is given: one connection, from its first byte.
pub struct Conversation<'a> {
    reader: BufReader<TcpStream>,
    seen: &'a Mutex<Vec<Seen>>,
    at_end: Option<Box<dyn FnOnce()>>,
}

impl Conversation<'_> {
    /// Reads one request; none when the peer has closed.
    pub fn request(&mut self) -> Option<Seen> {
        let seen = read_message(&mut self.reader)?;
        self.seen.lock().unwrap().push(seen.clone());
        Some(seen)
    }

    /// Reads only a request's head.
    pub fn head(&mut self) -> Option<Seen> {
        read_head(&mut self.reader)
    }

    /// Sends bytes as they are.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        // The peer may have left on purpose.
        let _ = self.reader.get_mut().write_all(bytes.as_ref());
    }

    /// Reads up to `n` bytes; fewer at the end of the stream.
    pub fn read(&mut self, n: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        let _ = (&mut self.reader).take(n as u64).read_to_end(&mut bytes);
        bytes
    }

    /// Ends only what we send.
    pub fn finish(&mut self) {
        let _ = self.reader.get_mut().shutdown(std::net::Shutdown::Write);
    }

    /// What is still to be read, for whoever reads it himself.
    pub fn reader(&mut self) -> &mut BufReader<TcpStream> {
        &mut self.reader
    }

    /// Has the connection end with a reset when the script ends.
    pub fn end_with_reset(&mut self) {
        let socket = socket2::SockRef::from(self.reader.get_ref());
        socket.set_linger(Some(std::time::Duration::ZERO)).unwrap();
    }

    /// Calls `f` once the connection is closed.
    pub fn at_end(&mut self, f: impl FnOnce() + 'static) {
        self.at_end = Some(Box::new(f));
    }

    /// Lets time pass: the pace of a slow backend, not a wait for anything.
    pub fn pause(&mut self, time: std::time::Duration) {
        let stream = self.reader.get_ref();
        stream.set_read_timeout(Some(time)).unwrap();
        // Nothing comes, so this ends with the time.
        let _ = self.reader.fill_buf();
        self.reader.get_ref().set_read_timeout(None).unwrap();
    }

    /// Waits until the peer has closed the connection, whatever it sends till then.
    pub fn wait_for_close(&mut self) {
        let mut buf = [0; 4096];
        while matches!(self.reader.read(&mut buf), Ok(n) if n > 0) {}
    }

    /// The connection itself.
    pub fn stream(&mut self) -> &mut TcpStream {
        self.reader.get_mut()
    }
}

/// A backend on a loopback port; stops when dropped.
pub struct Backend {
    addr: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    connections: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Backend {
    /// Answers every request with 200 and `name` as body, on kept connections.
    pub fn named(name: &str) -> Self {
        let name = name.to_owned();
        Self::scripted(move |conversation| {
            while let Some(request) = conversation.request() {
                let body = if request.line.starts_with("HEAD") {
                    ""
                } else {
                    &name
                };
                let length = name.len();
                conversation.send(format!(
                    "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}"
                ));
            }
        })
    }

    /// Answers every request with 200 and the request's target as body, on kept connections.
    pub fn reflecting() -> Self {
        Self::scripted(|conversation| {
            while let Some(request) = conversation.request() {
                let body = request.target();
                let length = body.len();
                conversation.send(format!(
                    "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}"
                ));
            }
        })
    }

    /// Answers every request with what it saw of it, as JSON: `method`, `path`, `proto`, `host`,
    /// `headers`, and who it is: `service` and `pod`.
    pub fn echoing(service: &str, pod: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        Self::echoing_on(listener, service, pod)
    }

    /// The same on a port of the test's choice.
    pub fn echoing_on(listener: TcpListener, service: &str, pod: &str) -> Self {
        let (service, pod) = (service.to_owned(), pod.to_owned());
        Self::listening(listener, move |conversation| {
            while let Some(request) = conversation.request() {
                let mut headers = std::collections::BTreeMap::<&str, Vec<&str>>::new();
                for (name, value) in &request.fields {
                    headers.entry(name).or_default().push(value);
                }
                let body = serde_json::json!({
                    "method": request.method(),
                    "path": request.target(),
                    "proto": request.version(),
                    "host": request.field("host"),
                    "headers": headers,
                    "service": service,
                    "pod": pod,
                })
                .to_string();
                let length = body.len();
                conversation.send(format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\
                     Content-Length: {length}\r\n\r\n{body}"
                ));
            }
        })
    }

    /// Answers every request with exactly these bytes, on kept connections.
    pub fn answering(bytes: impl Into<Vec<u8>>) -> Self {
        let bytes = bytes.into();
        Self::scripted(move |conversation| {
            while conversation.request().is_some() {
                conversation.send(&bytes);
            }
        })
    }

    /// Runs `script` for each connection, each on a thread of its own.
    pub fn scripted(script: impl Fn(&mut Conversation<'_>) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        Self::on(listener, Arc::new(script))
    }

    /// The same on a port of the test's choice.
    pub fn listening(
        listener: TcpListener,
        script: impl Fn(&mut Conversation<'_>) + Send + Sync + 'static,
    ) -> Self {
        Self::on(listener, Arc::new(script))
    }

    fn on(listener: TcpListener, script: Arc<Script>) -> Self {
        let addr = listener.local_addr().unwrap();
        let seen = Arc::<Mutex<Vec<Seen>>>::default();
        let connections = Arc::<AtomicUsize>::default();
        let stop = Arc::<AtomicBool>::default();
        let thread = {
            let (seen, connections, stop) = (seen.clone(), connections.clone(), stop.clone());
            std::thread::spawn(move || {
                for stream in listener.incoming() {
                    if stop.load(Ordering::SeqCst) {
                        return;
                    }
                    let Ok(stream) = stream else { continue };
                    connections.fetch_add(1, Ordering::SeqCst);
                    stream.set_nodelay(true).unwrap();
                    let (seen, script) = (seen.clone(), script.clone());
                    std::thread::spawn(move || {
                        let mut conversation = Conversation {
                            reader: BufReader::new(stream),
                            seen: &seen,
                            at_end: None,
                        };
                        script(&mut conversation);
                        let Conversation { reader, at_end, .. } = conversation;
                        drop(reader);
                        if let Some(at_end) = at_end {
                            at_end();
                        }
                    });
                }
            })
        };
        Backend {
            addr,
            seen,
            connections,
            stop,
            thread: Some(thread),
        }
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The requests so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// The last request.
    pub fn last(&self) -> Seen {
        self.seen().pop().expect("the backend was asked")
    }

    /// How many connections were made to it.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        // Has the accept loop look at the flag.
        let _ = TcpStream::connect(self.addr);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A loopback address on which nobody listens: a connection to it is refused. Nobody else gets the
/// port while this lives.
pub struct Refusing(socket2::Socket);

impl Refusing {
    /// Takes a port.
    pub fn new() -> Self {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None);
        let socket = socket.unwrap();
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        socket.bind(&any.into()).unwrap();
        Refusing(socket)
    }

    /// Where nobody listens.
    pub fn addr(&self) -> SocketAddr {
        self.0.local_addr().unwrap().as_socket().unwrap()
    }

    /// Listens from now on, with room for `backlog` connections that wait.
    pub fn listen(self, backlog: i32) -> TcpListener {
        self.0.listen(backlog).unwrap();
        self.0.into()
    }
}

impl Default for Refusing {
    fn default() -> Self {
        Self::new()
    }
}

/// The same for as long as the process lives.
pub fn refusing() -> SocketAddr {
    let refusing = Refusing::new();
    let addr = refusing.addr();
    std::mem::forget(refusing);
    addr
}

fn read_line(reader: &mut impl BufRead) -> Option<String> {
    let mut line = Vec::new();
    reader.read_until(b'\n', &mut line).ok()?;
    let line = line.strip_suffix(b"\r\n")?;
    Some(String::from_utf8_lossy(line).into_owned())
}

fn read_fields(reader: &mut impl BufRead) -> Option<Vec<(String, String)>> {
    let mut fields = Vec::new();
    loop {
        let line = read_line(reader)?;
        if line.is_empty() {
            return Some(fields);
        }
        let (name, value) = line.split_once(':').expect("a field has a colon");
        fields.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
}

fn read_head(reader: &mut impl BufRead) -> Option<Seen> {
    let line = read_line(reader)?;
    let fields = read_fields(reader)?;
    Some(Seen {
        line,
        fields,
        body: Vec::new(),
        trailers: Vec::new(),
    })
}

fn read_message(reader: &mut impl BufRead) -> Option<Seen> {
    let mut seen = read_head(reader)?;
    if let Some(length) = seen.field("content-length") {
        let length = length.parse().expect("Content-Length is a number");
        seen.body = vec![0; length];
        reader.read_exact(&mut seen.body).ok()?;
    } else if seen.field("transfer-encoding").is_some() {
        loop {
            let line = read_line(reader)?;
            let size = usize::from_str_radix(&line, 16).expect("a chunk has a size");
            if size == 0 {
                seen.trailers = read_fields(reader)?;
                break;
            }
            let start = seen.body.len();
            seen.body.resize(start + size, 0);
            reader.read_exact(&mut seen.body[start..]).ok()?;
            assert_eq!(
                read_line(reader).as_deref(),
                Some(""),
                "a chunk ends with CRLF"
            );
        }
    }
    Some(seen)
}
