//! PROXY headers: what is one does not depend on how its bytes come, nor on what follows them.

use splitter::proxy::apart::{NoHeader, proxy_header};

/// The beginning of a connection.
pub fn target(data: &[u8]) {
    let whole = proxy_header(data);
    let Ok(Some((length, addresses))) = whole else {
        // More bytes cannot make a header of what is none.
        if whole.is_err() {
            assert_eq!(proxy_header(&[data, b"\r\n\0"].concat()), Err(NoHeader));
        }
        return;
    };
    assert!((1..=data.len()).contains(&length));
    for end in 0..length {
        assert_eq!(
            proxy_header(&data[..end]),
            Ok(None),
            "of {length} bytes {end}"
        );
    }
    let alone = &data[..length];
    for longer in [alone, &[alone, b"GET / HTTP/1.1\r\n"].concat()] {
        assert_eq!(proxy_header(longer), Ok(Some((length, addresses))));
    }
    if let Some([source, destination]) = addresses {
        assert_eq!(source.is_ipv4(), destination.is_ipv4());
    }
}
