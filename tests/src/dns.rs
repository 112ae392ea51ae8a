//! A DNS server that knows what a test tells it.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

type Records = Mutex<HashMap<String, Vec<Ipv4Addr>>>;

/// Answers questions for addresses of IPv4 with a time to live of a second, and that there is no
/// such name where it was told none; stops when dropped.
pub struct Dns {
    addr: SocketAddr,
    records: Arc<Records>,
    asked: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Dns {
    /// One that knows nothing yet.
    pub fn start() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let addr = socket.local_addr().unwrap();
        let records = Arc::<Records>::default();
        let asked = Arc::<AtomicUsize>::default();
        let stop = Arc::<AtomicBool>::default();
        let (known, count, stopped) = (records.clone(), asked.clone(), stop.clone());
        let thread = std::thread::spawn(move || {
            let mut packet = [0; 1500];
            while let Ok((n, peer)) = socket.recv_from(&mut packet) {
                if stopped.load(Ordering::SeqCst) {
                    return;
                }
                if let Some(answer) = answer(&packet[..n], &known) {
                    count.fetch_add(1, Ordering::SeqCst);
                    let _ = socket.send_to(&answer, peer);
                }
            }
        });
        Dns {
            addr,
            records,
            asked,
            stop,
            thread: Some(thread),
        }
    }

    /// Where it is asked.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Has `name` lead there; nowhere at all if there are none.
    pub fn set(&self, name: &str, addresses: &[Ipv4Addr]) {
        let mut records = self.records.lock().unwrap();
        match addresses {
            [] => records.remove(name),
            addresses => records.insert(name.to_owned(), addresses.to_vec()),
        };
    }

    /// How many questions were answered.
    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

impl Drop for Dns {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        // Has the loop look at the flag.
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let _ = socket.send_to(&[0], self.addr);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The answer to a question of one name (RFC 1035 4.1); none to what is no question.
fn answer(packet: &[u8], records: &Records) -> Option<Vec<u8>> {
    const HEADER: usize = 12;
    let mut at = HEADER;
    let mut labels = Vec::new();
    while let Some(&length) = packet.get(at).filter(|length| **length != 0) {
        let label = packet.get(at + 1..at + 1 + usize::from(length))?;
        labels.push(String::from_utf8_lossy(label).to_lowercase());
        at += 1 + usize::from(length);
    }
    let question = packet.get(HEADER..at + 5)?;
    let is_ipv4 = question.get(question.len() - 4..)? == [0, 1, 0, 1];
    let records = records.lock().unwrap();
    let known = records.get(&labels.join("."));
    let addresses = known.filter(|_| is_ipv4).map_or(&[][..], Vec::as_slice);
    // An answer, with recursion; "no such name" where nothing is known.
    let code = if known.is_some() { 0x80 } else { 0x83 };
    let mut answer = vec![packet[0], packet[1], 0x81, code, 0, 1];
    answer.extend(u16::try_from(addresses.len()).ok()?.to_be_bytes());
    answer.extend([0, 0, 0, 0]);
    answer.extend(question);
    for address in addresses {
        // The name of the question, an address of the Internet, for one second, four bytes.
        answer.extend([0xc0, 0x0c, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4]);
        answer.extend(address.octets());
    }
    Some(answer)
}
