//! X-Forwarded-For and Forwarded: whoever writes them can name nobody that proxies of ours did not
//! name, and be nobody but an address.

use std::net::IpAddr;

use http::{HeaderMap, HeaderValue};
use splitter::model::AddressSet;
use splitter::proxy::apart::client;

use super::parts;

/// Two lines of each.
pub fn target(data: &[u8]) {
    let [first, second, third, fourth] = parts(data);
    let mut headers = HeaderMap::new();
    for (name, line) in [
        ("x-forwarded-for", first),
        ("x-forwarded-for", second),
        ("forwarded", third),
        ("forwarded", fourth),
    ] {
        if let (Ok(line), false) = (HeaderValue::from_bytes(line), line.is_empty()) {
            headers.append(name, line);
        }
    }
    let peer = IpAddr::from([10, 0, 0, 1]);
    let ours: AddressSet = "10.0.0.0/8, 2001:db8::/32".parse().expect("ranges");
    let found = client(&headers, peer, &ours);
    assert_eq!(found, found.to_canonical());
    // A line in front, which a client may have written, changes nothing once somebody is named who
    // is not ours.
    if !ours.contains(found) {
        let name = match headers.contains_key("x-forwarded-for") {
            true => "x-forwarded-for",
            false => "forwarded",
        };
        let mut longer = HeaderMap::new();
        longer.append(name, HeaderValue::from_static("192.0.2.99"));
        for line in headers.get_all(name) {
            longer.append(name, line.clone());
        }
        assert_eq!(client(&longer, peer, &ours), found);
    }
    // Where nobody is ours, the last word counts and no other.
    let nobody = AddressSet::default();
    let last = client(&headers, peer, &nobody);
    assert!(last == peer || !headers.is_empty());
}
