//! One TCP connection: whose it is, which Endpoint it has, and how it ends.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use tokio::net::TcpStream;

use super::super::proxy_header::{self, Claim};
use super::relay::{Ended, Relay, reset};
use super::serve::L4Worker;
use super::tracked::Tracked;
use crate::model::{L4Listener, Transport};
use crate::routing::{L4Live, L4Reason, L4Taken, l4_flow};
use crate::telemetry::{L4Counts, L4Cut, L4Guard, L4Refusal};

/// One connection on its way to an Endpoint.
pub struct Connection<'a> {
    /// Whose it is.
    pub worker: &'a Rc<L4Worker>,
    /// Where it came in.
    pub listener: L4Listener,
    /// Where that leads.
    pub live: Arc<L4Live>,
    /// Where it is counted.
    pub counts: &'a L4Counts,
}

/// Whose connection it is, and what it was for.
#[derive(Clone, Copy)]
struct Ends {
    client: SocketAddr,
    asked: SocketAddr,
}

impl Connection<'_> {
    /// Serves it until it ends. What goes wrong before it has an Endpoint resets it.
    pub async fn serve(
        &self,
        stream: std::net::TcpStream,
        peer: SocketAddr,
    ) -> Result<(), L4Refusal> {
        let local = stream.local_addr().map_err(|_| L4Refusal::ClientGone)?;
        let own = Ends {
            client: canonical(peer),
            asked: canonical(local),
        };
        let (stream, ends) = self.identified(stream, own).await?;
        let client = TcpStream::from_std(stream).map_err(|_| L4Refusal::ClientGone)?;
        // The address that the client has reached, whatever a balancer in front was asked for.
        let flow = l4_flow(Transport::Tcp, ends.client, own.asked);
        let weights = self.worker.weights_of(self.live.slot);
        let connected = match self.live.choose(&flow, &weights, L4Taken::NorthSouth) {
            Some(choice) => {
                if choice.reason == L4Reason::Fallback {
                    self.counts.fall_back();
                }
                let offered = self.live.endpoints(choice.variant, &flow);
                let connected = self.connect(&offered, ends).await;
                connected.map(|(endpoint, addr)| (choice.variant, endpoint, addr))
            }
            None => Err(L4Refusal::NoEndpoint),
        };
        let (variant, endpoint, addr) = match connected {
            Ok(connected) => connected,
            Err(why) => {
                reset(&client);
                return Err(why);
            }
        };
        self.worker.count(self.live.slot, variant);
        let name = self.live.service.variants.get(variant).map(|it| &it.name);
        let guard = self
            .counts
            .begin(name.unwrap_or(&self.live.service.key.service));
        self.carry(Relay::new(client, endpoint), addr, &guard).await;
        Ok(())
    }

    async fn carry(&self, mut relay: Relay, endpoint: SocketAddr, guard: &L4Guard) {
        let track = self.worker.track(&self.live, endpoint);
        // The state may have changed while it was connected.
        let present = self.worker.live.borrow().clone();
        if Tracked::is_gone(&present.l4, &self.live.service.key, endpoint) {
            track.gone.notify_one();
        }
        let idle = self.worker.config.limits.idle;
        // Dropped with its task, when the time of the instance is over.
        let mut unfinished = Unfinished(Some(self.counts));
        let ended = tokio::select! {
            ended = relay.run(&self.worker.pipes, idle, guard) => Some(ended),
            () = track.gone.notified() => None,
        };
        unfinished.0 = None;
        match ended {
            Some(Ended::Both) => {}
            Some(Ended::Reset) => self.counts.cut(L4Cut::Reset),
            Some(Ended::Idle) => self.counts.cut(L4Cut::Idle),
            None => self.counts.cut(L4Cut::EndpointGone),
        }
    }

    /// Reads the PROXY header that the connection begins with, where one was agreed on.
    async fn identified(
        &self,
        stream: std::net::TcpStream,
        own: Ends,
    ) -> Result<(std::net::TcpStream, Ends), L4Refusal> {
        if !self.listener.accept_proxy {
            return Ok((stream, own));
        }
        let stopping = || self.worker.stopping.get();
        let read = proxy_header::read(stream, self.worker.header_timeout, stopping);
        let (stream, claim) = read.await.map_err(|why| match why {
            proxy_header::NoHeader::Gone => L4Refusal::ClientGone,
            _ => L4Refusal::BadProxyHeader,
        })?;
        let trusted = self.worker.real_ip.trusted.contains(own.client.ip());
        let ends = match claim {
            Claim::Proxied {
                source,
                destination,
            } if trusted => Ends {
                client: canonical(source),
                asked: canonical(destination),
            },
            _ => own,
        };
        Ok((stream, ends))
    }

    /// Connects to the first Endpoint that accepts. Nothing is lost with one that does not.
    async fn connect(
        &self,
        offered: &[SocketAddr],
        ends: Ends,
    ) -> Result<(TcpStream, SocketAddr), L4Refusal> {
        for addr in offered {
            let connect =
                tokio::time::timeout(self.worker.connect_timeout, TcpStream::connect(addr));
            let connected = connect
                .await
                .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
            let connected = match connected {
                Ok(stream) => self.introduced(stream, ends).await,
                Err(error) => Err(error),
            };
            match connected {
                Ok(stream) => return Ok((stream, *addr)),
                Err(error) => tracing::debug!(%addr, %error, "an endpoint did not accept"),
            }
        }
        Err(L4Refusal::NotAccepted)
    }

    /// Tells the Endpoint whose connection it is, where that was agreed on.
    async fn introduced(&self, mut stream: TcpStream, ends: Ends) -> io::Result<TcpStream> {
        if self.listener.send_proxy {
            let line = line(ends);
            tokio::io::AsyncWriteExt::write_all(&mut stream, line.as_bytes()).await?;
        }
        Ok(stream)
    }
}

/// Counts a connection that is dropped before it has ended.
struct Unfinished<'c>(Option<&'c L4Counts>);

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if let Some(counts) = self.0 {
            counts.cut(L4Cut::Stopped);
        }
    }
}

/// A PROXY header of version 1 (HAProxy's doc/proxy-protocol.txt, 2.1). Where the families of both
/// addresses differ there is no way to write them.
fn line(ends: Ends) -> String {
    let Ends { client, asked } = ends;
    let family = match (client, asked) {
        (SocketAddr::V4(_), SocketAddr::V4(_)) => "TCP4",
        (SocketAddr::V6(_), SocketAddr::V6(_)) => "TCP6",
        _ => return "PROXY UNKNOWN\r\n".to_owned(),
    };
    let (from, to) = (client.ip(), asked.ip());
    format!(
        "PROXY {family} {from} {to} {} {}\r\n",
        client.port(),
        asked.port()
    )
}

fn canonical(addr: SocketAddr) -> SocketAddr {
    SocketAddr::new(addr.ip().to_canonical(), addr.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_names_both_ends_in_one_family() {
        let of = |client: &str, asked: &str| {
            let parse = |text: &str| {
                text.parse()
                    .unwrap_or_else(|_| SocketAddr::from(([0, 0, 0, 0], 0)))
            };
            line(Ends {
                client: parse(client),
                asked: parse(asked),
            })
        };
        assert_eq!(
            of("192.0.2.1:9", "192.0.2.2:80"),
            "PROXY TCP4 192.0.2.1 192.0.2.2 9 80\r\n"
        );
        assert_eq!(
            of("[2001:db8::1]:9", "[::1]:80"),
            "PROXY TCP6 2001:db8::1 ::1 9 80\r\n"
        );
        assert_eq!(of("192.0.2.1:9", "[::1]:80"), "PROXY UNKNOWN\r\n");
    }
}
