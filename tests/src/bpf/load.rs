//! Clients that ask without a pause, and forgive nothing.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use super::Namespace;
use crate::{PATIENCE, eventually};

/// How a client uses its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Habit {
    /// One for each request.
    Close,
    /// One until an answer says that it ends.
    Keep,
}

/// Running clients. What went wrong is told when they are stopped.
pub struct Load {
    stop: Arc<AtomicBool>,
    answered: Arc<AtomicU64>,
    clients: Vec<JoinHandle<Vec<String>>>,
}

impl Load {
    /// Starts no client yet.
    pub fn new() -> Load {
        Load {
            stop: Arc::default(),
            answered: Arc::default(),
            clients: Vec::new(),
        }
    }

    /// One more client in a namespace, which asks `to` for the host.
    pub fn client(&mut self, from: &Namespace, to: &str, host: &'static str, habit: Habit) {
        let to: SocketAddr = to.parse().unwrap();
        let (stop, answered) = (self.stop.clone(), self.answered.clone());
        let enter = from.entry();
        self.clients.push(std::thread::spawn(move || {
            enter();
            let mut failures = Vec::new();
            let mut kept = None;
            while !stop.load(Ordering::Relaxed) && failures.len() < 10 {
                match ask(&mut kept, to, host, habit) {
                    Ok(()) => {
                        answered.fetch_add(1, Ordering::Relaxed);
                    }
                    Err(error) => {
                        kept = None;
                        failures.push(format!("{habit:?} to {to}: {error}"));
                    }
                }
            }
            failures
        }));
    }

    /// Waits until so many more requests have been answered.
    pub fn wait_for(&self, requests: u64) {
        let until = self.answered.load(Ordering::Relaxed) + requests;
        eventually("requests are answered", || {
            let dead = self.clients.iter().any(JoinHandle::is_finished);
            dead || self.answered.load(Ordering::Relaxed) >= until
        });
    }

    /// Stops the clients; gives how many requests were answered, and every failure.
    pub fn stop(mut self) -> (u64, Vec<String>) {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.clients.drain(..).map(|it| it.join().unwrap());
        let failures = ended.flatten().collect();
        (self.answered.load(Ordering::Relaxed), failures)
    }
}

impl Default for Load {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for client in self.clients.drain(..) {
            let _ = client.join();
        }
    }
}

fn ask(
    kept: &mut Option<BufReader<TcpStream>>,
    to: SocketAddr,
    host: &str,
    habit: Habit,
) -> std::io::Result<()> {
    let mut connection = match kept.take() {
        Some(connection) => connection,
        None => {
            let stream = TcpStream::connect_timeout(&to, PATIENCE)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_nodelay(true)?;
            BufReader::new(stream)
        }
    };
    let close = match habit {
        Habit::Close => "Connection: close\r\n",
        Habit::Keep => "",
    };
    let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\n{close}\r\n");
    connection.get_mut().write_all(request.as_bytes())?;
    let mut line = String::new();
    connection.read_line(&mut line)?;
    if !line.starts_with("HTTP/1.1 200 ") {
        return Err(std::io::Error::other(format!("answered {line:?}")));
    }
    let (mut length, mut last) = (0, habit == Habit::Close);
    loop {
        line.clear();
        connection.read_line(&mut line)?;
        let text = line.trim_end().to_ascii_lowercase();
        if text.is_empty() {
            break;
        }
        if let Some(number) = text.strip_prefix("content-length: ") {
            length = number.parse().map_err(std::io::Error::other)?;
        }
        last |= text == "connection: close";
    }
    let mut body = vec![0; length];
    connection.read_exact(&mut body)?;
    if last {
        // Whatever comes but an end is a fault, a reset above all.
        let mut rest = Vec::new();
        connection.read_to_end(&mut rest)?;
        return match rest.is_empty() {
            true => Ok(()),
            false => Err(std::io::Error::other("more than an answer")),
        };
    }
    *kept = Some(connection);
    Ok(())
}
