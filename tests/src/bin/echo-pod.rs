//! The program in the pods of the cluster tests: answers every request on port 8080 with the
//! variable `ANSWER`, or the pod's name, after `DELAY_MS` milliseconds. Asked to end, it goes on for a second, as pods do that wait
//! for their endpoint to be forgotten.

#![allow(clippy::unwrap_used, reason = "a pod that cannot serve is to end")]

use std::net::{Ipv4Addr, TcpListener};
use std::time::Duration;

use splitter_tests::backend::Backend;
use tokio::signal::unix::{SignalKind, signal};

/// From the signal to the end.
const LINGER: Duration = Duration::from_secs(1);

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut terminate = signal(SignalKind::terminate()).unwrap();
    let answer = std::env::var("ANSWER").or_else(|_| std::env::var("POD_NAME"));
    let answer = answer.unwrap_or_else(|_| "pod".to_owned());
    let delay = std::env::var("DELAY_MS").ok();
    let delay = Duration::from_millis(delay.map_or(0, |it| it.parse().unwrap()));
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 8080)).unwrap();
    let backend = Backend::listening(listener, move |conversation| {
        while conversation.request().is_some() {
            if !delay.is_zero() {
                conversation.pause(delay);
            }
            let length = answer.len();
            conversation.send(format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{answer}"
            ));
        }
    });
    terminate.recv().await;
    tokio::time::sleep(LINGER).await;
    // Its threads may be reading still.
    std::mem::forget(backend);
    std::process::exit(0);
}
