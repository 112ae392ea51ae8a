//! A client's hello: what it says does not depend on how it comes, and where the library reads one,
//! it reads the same name.

use std::net::IpAddr;

use rustls::server::Acceptor;
use splitter::tls::{Peek, Peeked};

/// The beginning of a connection.
pub fn target(data: &[u8]) {
    let mut peek = Peek::default();
    let whole = peek.push(data);
    assert_eq!(peek.into_raw(), data, "what was read is lost");
    let mut peek = Peek::default();
    let mut told = Peeked::More;
    for (index, byte) in data.iter().enumerate() {
        told = peek.push(&[*byte]);
        if told != Peeked::More {
            assert_eq!(
                peek.into_raw(),
                data[..=index],
                "byte by byte, something is lost"
            );
            break;
        }
    }
    assert_eq!(told, whole, "byte by byte it says something else");
    if let Peeked::Named(Some(name)) = &whole {
        let plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.');
        assert!(name.len() <= 253 && name.bytes().all(plain), "{name:?}");
        assert!(name.split('.').all(|label| !label.is_empty()), "{name:?}");
    }
    // Whom the bytes are passed on to must be the one whom the library would have found: nobody gets
    // by on the difference.
    let Some(theirs) = library(data) else {
        return;
    };
    match whole {
        // We are stricter.
        Peeked::Garbage => {}
        Peeked::More => panic!("the library has read a whole hello"),
        Peeked::Named(ours) => {
            // An address is no name for it.
            let ours = ours.filter(|it| it.parse::<IpAddr>().is_err());
            assert_eq!(ours, theirs);
        }
    }
}

/// The name that the library reads, if it takes the bytes for a hello.
fn library(data: &[u8]) -> Option<Option<String>> {
    let mut acceptor = Acceptor::default();
    let mut rest = data;
    loop {
        let read = acceptor.read_tls(&mut rest).ok()?;
        match acceptor.accept() {
            Ok(Some(accepted)) => {
                let name = accepted.client_hello().server_name().map(str::to_owned);
                let name = name.map(|it| it.trim_end_matches('.').to_ascii_lowercase());
                return Some(name);
            }
            Ok(None) if read > 0 => {}
            Ok(None) | Err(_) => return None,
        }
    }
}
