//! What a browser does: keeps cookies, speaks TLS, goes where it is sent.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use rustls::ClientConfig;
use splitter_tests::client::{self, Answer};
use splitter_tests::tls::connect;

use super::HOST;
use super::provider::Provider;

/// One browser.
pub struct Browser {
    splitter: SocketAddr,
    provider: SocketAddr,
    tls: Arc<ClientConfig>,
    pub cookies: BTreeMap<String, String>,
}

impl Browser {
    pub fn new(splitter: SocketAddr, provider: &Provider, tls: &Arc<ClientConfig>) -> Self {
        Browser {
            splitter,
            provider: provider.addr(),
            tls: tls.clone(),
            cookies: BTreeMap::new(),
        }
    }

    /// Asks for a path of the site.
    pub fn get(&mut self, path: &str, fields: &str) -> Answer {
        let cookies = self.cookies.iter();
        let cookies: Vec<_> = cookies.map(|(name, it)| format!("{name}={it}")).collect();
        let cookies = match cookies.is_empty() {
            true => String::new(),
            false => format!("Cookie: {}\r\n", cookies.join("; ")),
        };
        let mut client = connect(self.splitter, HOST, &self.tls);
        let answer = client.get_with(HOST, path, &format!("{cookies}{fields}"));
        for cookie in answer.all("set-cookie") {
            assert!(cookie.contains("; HttpOnly"), "{cookie}");
            assert!(cookie.contains("; Secure"), "{cookie}");
            let pair = cookie.split(';').next().unwrap_or_default();
            let (name, value) = pair.split_once('=').expect("a cookie has a name");
            match value {
                "" => self.cookies.remove(name),
                value => self.cookies.insert(name.to_owned(), value.to_owned()),
            };
        }
        answer
    }

    /// Goes where an answer sends it to.
    pub fn follow(&mut self, answer: &Answer) -> Answer {
        assert_eq!(answer.status, 302, "{answer:?}");
        let to = answer.field("location").expect("a place");
        let site = format!("https://{HOST}");
        let provider = format!("http://{}", self.provider);
        if let Some(path) = to.strip_prefix(&provider) {
            return client::get(self.provider, &self.provider.to_string(), path);
        }
        let path = to.strip_prefix(&site).unwrap_or(to).to_owned();
        assert!(path.starts_with('/') && !path.starts_with("//"), "{to}");
        self.get(&path, "")
    }

    /// From the first refusal to the page: to the sign-in, the provider, and back.
    pub fn sign_in(&mut self, path: &str) -> Answer {
        let mut answer = self.get(path, "");
        for _ in 0..4 {
            answer = self.follow(&answer);
        }
        answer
    }
}
