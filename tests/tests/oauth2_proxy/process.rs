//! oauth2-proxy as a process.

use std::fs::File;
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};

use socket2::{Domain, Socket, Type};
use splitter_tests::{client, eventually};
use tempfile::TempDir;

use super::provider::{CLIENT, Provider, SECRET};

/// Names the program.
const PROGRAM: &str = "SPLITTER_OAUTH2_PROXY";

/// A running one; ends when dropped.
pub struct Proxy {
    child: Child,
    dir: TempDir,
    addr: SocketAddr,
    /// Has the port, so that nobody else is given it before the process listens there.
    _port: Socket,
}

impl Proxy {
    /// Starts one whose sessions last so long. All understand each other's cookies.
    pub fn start(provider: &Provider, expire: &str) -> Self {
        let program = std::env::var_os(PROGRAM)
            .unwrap_or_else(|| panic!("{PROGRAM} is not set: run `cargo xtask test --delivery`"));
        let (port, addr) = port();
        let dir = TempDir::new().unwrap();
        let log = File::create(dir.path().join("log")).unwrap();
        let child = Command::new(program)
            .env_clear()
            .args([
                "--provider=oidc",
                "--code-challenge-method=S256",
                "--cookie-secret=0123456789abcdef0123456789abcdef",
                "--email-domain=*",
                "--insecure-oidc-skip-nonce=false",
                "--reverse-proxy=true",
                "--trusted-proxy-ip=127.0.0.1",
                "--scope=openid email profile",
                "--set-authorization-header=true",
                "--set-xauthrequest=true",
                "--skip-provider-button=true",
                "--upstream=static://404",
            ])
            .arg(format!("--client-id={CLIENT}"))
            .arg(format!("--client-secret={SECRET}"))
            .arg(format!("--cookie-expire={expire}"))
            .arg(format!("--http-address={addr}"))
            .arg(format!("--oidc-issuer-url=http://{}", provider.addr()))
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut proxy = Proxy {
            child,
            dir,
            addr,
            _port: port,
        };
        eventually("oauth2-proxy is ready", || {
            let ended = proxy.child.try_wait().unwrap();
            assert!(ended.is_none(), "it ended: {}", proxy.log());
            TcpStream::connect(addr).is_ok() && client::get(addr, "proxy", "/ping").status == 200
        });
        proxy
    }

    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Ends it.
    pub fn kill(&mut self) {
        // Both fail only for one that has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            println!("what oauth2-proxy said:\n{}", self.log());
        }
    }
}

/// A port of the kernel's choice. Go sets SO_REUSEADDR, so it can listen where a socket with the same
/// option is bound and does not listen.
fn port() -> (Socket, SocketAddr) {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.set_reuse_address(true).unwrap();
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    socket.bind(&any.into()).unwrap();
    let addr = socket.local_addr().unwrap().as_socket().unwrap();
    (socket, addr)
}
