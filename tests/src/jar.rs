//! A client that keeps its cookies, as a browser does.

use std::collections::BTreeMap;

use crate::client::Answer;
use crate::instance::Splitter;

/// The cookies of one client. Every one is sent to every host and path.
#[derive(Clone, Debug, Default)]
pub struct Jar {
    cookies: BTreeMap<String, String>,
}

impl Jar {
    /// No cookie yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts a cookie in.
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.cookies.insert(name.to_owned(), value.to_owned());
        self
    }

    /// The value of a cookie.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.cookies.get(name).map(String::as_str)
    }

    /// A GET with the cookies and more fields (each ended by CRLF), on a connection of its own; the
    /// cookies of the answer are kept.
    pub fn ask(&mut self, splitter: &Splitter, host: &str, path: &str, fields: &str) -> Answer {
        let cookies: Vec<String> = self
            .cookies
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let line = match cookies.is_empty() {
            true => String::new(),
            false => format!("Cookie: {}\r\n", cookies.join("; ")),
        };
        let answer = splitter.get_with(host, path, &format!("{line}{fields}"));
        for field in answer.all("set-cookie") {
            let pair = field.split(';').next().unwrap_or_default();
            let (name, value) = pair.split_once('=').expect("a cookie has a name");
            self.cookies.insert(name.to_owned(), value.to_owned());
        }
        answer
    }
}
