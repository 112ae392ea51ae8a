use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use anyhow::{Context as _, Result};

/// The pod of a Service: answers every GET with the Service's name. Stops when dropped.
pub(super) struct Backend {
    addr: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Backend {
    pub(super) fn start(service: &'static str) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").context("cannot start a backend")?;
        let addr = listener.local_addr()?;
        let stop = Arc::<AtomicBool>::default();
        let thread = {
            let stop = stop.clone();
            thread::spawn(move || accept(&listener, service, &stop))
        };
        Ok(Backend {
            addr,
            stop,
            thread: Some(thread),
        })
    }

    pub(super) fn addr(&self) -> SocketAddr {
        self.addr
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // A connection has the accept loop look at the flag.
        if TcpStream::connect(self.addr).is_ok()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
    }
}

fn accept(listener: &TcpListener, service: &'static str, stop: &AtomicBool) {
    for stream in listener.incoming() {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        // A connection that breaks is missed by whoever made it.
        let Ok(stream) = stream else { continue };
        thread::spawn(move || serve(stream, service));
    }
}

/// Answers until the peer closes.
fn serve(stream: TcpStream, service: &str) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let length = service.len();
    let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{service}");
    let mut reader = BufReader::new(stream);
    loop {
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            if line == "\r\n" {
                break;
            }
        }
        reader.get_mut().write_all(answer.as_bytes())?;
    }
}
