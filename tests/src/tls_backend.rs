//! Backends that speak TLS, and remember who asked them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};

use crate::tls::{Authority, Pair};

/// One request as such a backend saw it.
#[derive(Clone, Debug)]
pub struct Asked {
    /// On which connection, counted from 1.
    pub connection: usize,
    /// The request line without its end.
    pub line: String,
    /// The name in the handshake.
    pub name: Option<String>,
    /// The certificate that was shown.
    pub certificate: Option<CertificateDer<'static>>,
}

/// See the module's text. Answers with the body that it is sent, else with the target, on kept
/// connections; `/more` is answered with 8 KiB, to which bytes are added that nobody asked for.
pub struct TlsBackend {
    addr: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
    connections: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl TlsBackend {
    /// One that shows this certificate.
    pub fn new(pair: &Pair) -> Self {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth();
        let (chain, key) = parts(pair);
        Self::with(builder.with_single_cert(chain, key).unwrap())
    }

    /// One that speaks this version only.
    pub fn speaking(pair: &Pair, version: rustls::ProtocolVersion) -> Self {
        let versions = rustls::ALL_VERSIONS.iter().copied();
        let versions: Vec<_> = versions.filter(|it| it.version == version).collect();
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&versions)
            .unwrap()
            .with_no_client_auth();
        let (chain, key) = parts(pair);
        Self::with(builder.with_single_cert(chain, key).unwrap())
    }

    /// One that lets in nobody without a certificate of these people.
    pub fn asking(pair: &Pair, people: &Authority) -> Self {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let mut roots = RootCertStore::empty();
        let root = CertificateDer::from_pem_slice(people.pem().as_bytes()).unwrap();
        roots.add(root).unwrap();
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone());
        let builder = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(verifier.build().unwrap());
        let (chain, key) = parts(pair);
        Self::with(builder.with_single_cert(chain, key).unwrap())
    }

    fn with(config: ServerConfig) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let config = Arc::new(config);
        let asked = Arc::<Mutex<Vec<Asked>>>::default();
        let connections = Arc::<AtomicUsize>::default();
        let stop = Arc::<AtomicBool>::default();
        let thread = {
            let (asked, connections, stop) = (asked.clone(), connections.clone(), stop.clone());
            std::thread::spawn(move || {
                for stream in listener.incoming() {
                    if stop.load(Ordering::SeqCst) {
                        return;
                    }
                    let Ok(stream) = stream else { continue };
                    let number = connections.fetch_add(1, Ordering::SeqCst) + 1;
                    stream.set_nodelay(true).unwrap();
                    let (asked, config) = (asked.clone(), config.clone());
                    std::thread::spawn(move || {
                        let tls = ServerConnection::new(config).unwrap();
                        // The peer may leave whenever it likes.
                        let _ = serve(StreamOwned::new(tls, stream), number, &asked);
                    });
                }
            })
        };
        TlsBackend {
            addr,
            asked,
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
    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// The last request.
    pub fn last(&self) -> Asked {
        self.asked().pop().expect("the backend was asked")
    }

    /// How many connections were made to it.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

impl Drop for TlsBackend {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        // Has the accept loop look at the flag.
        let _ = TcpStream::connect(self.addr);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn parts(pair: &Pair) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
    let chain = CertificateDer::pem_slice_iter(pair.chain.as_bytes());
    let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).unwrap();
    (chain.map(Result::unwrap).collect(), key)
}

fn serve(
    stream: StreamOwned<ServerConnection, TcpStream>,
    connection: usize,
    asked: &Mutex<Vec<Asked>>,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let mut length = 0;
        loop {
            let mut field = String::new();
            reader.read_line(&mut field)?;
            if field.trim_end().is_empty() {
                break;
            }
            let (name, value) = field.split_once(':').unwrap();
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse().unwrap();
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let stream = reader.get_mut();
        asked.lock().unwrap().push(Asked {
            connection,
            line: line.trim_end().to_owned(),
            name: stream.conn.server_name().map(str::to_owned),
            certificate: stream.conn.peer_certificates().map(|it| it[0].clone()),
        });
        let target = line.split(' ').nth(1).unwrap();
        if body.is_empty() {
            body = target.as_bytes().to_vec();
        }
        stream.write_all(&answer(target, body))?;
    }
}

fn answer(target: &str, body: Vec<u8>) -> Vec<u8> {
    const WHOLE: usize = 8192;
    if target != "/more" {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
        return [head.into_bytes(), body].concat();
    }
    // A head of this length, whatever the number.
    let length = WHOLE - "HTTP/1.1 200 OK\r\nContent-Length: 8000\r\n\r\n".len();
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
    let more = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged";
    [head.into_bytes(), vec![b'x'; length], more.into()].concat()
}
