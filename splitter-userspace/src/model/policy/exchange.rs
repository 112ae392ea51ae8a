//! How a Location speaks to its pods.

use std::time::Duration;

use serde::{Serialize, Serializer};

/// How a Location's requests are exchanged with its pods, where it differs from the process's
/// settings. The same for every Variant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Exchange {
    /// What is spoken (`backend-protocol`, `proxy-http-version`).
    #[serde(skip_serializing_if = "Protocol::is_default")]
    pub protocol: Protocol,
    /// To connect (`proxy-connect-timeout`).
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "seconds")]
    pub connect_timeout: Option<Duration>,
    /// Between two reads (`proxy-read-timeout`).
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "seconds")]
    pub read_timeout: Option<Duration>,
    /// Between two writes (`proxy-send-timeout`).
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "seconds")]
    pub send_timeout: Option<Duration>,
    /// What is tried again (`proxy-next-upstream` and its two siblings).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
}

impl Exchange {
    /// Whether it says nothing.
    pub fn is_default(&self) -> bool {
        *self == Exchange::default()
    }
}

/// The protocol towards pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum Protocol {
    /// HTTP/1.1.
    #[default]
    #[serde(rename = "HTTP/1.1")]
    Http11,
    /// HTTP/1.0: one request a connection, no chunked request bodies.
    #[serde(rename = "HTTP/1.0")]
    Http10,
    /// HTTP/2: in cleartext with prior knowledge (RFC 9113 3.3), or over TLS.
    #[serde(rename = "GRPC")]
    Grpc,
}

impl Protocol {
    fn is_default(&self) -> bool {
        *self == Protocol::Http11
    }
}

/// When a request is given to another Endpoint of the same Backend. Never to another Variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Retry {
    /// After which failures.
    pub on: Failures,
    /// How many Endpoints are tried, the first among them; at least 1.
    pub tries: u32,
    /// How long after the first try another may begin; none: however long.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "seconds")]
    pub timeout: Option<Duration>,
}

impl Retry {
    /// ingress-nginx's: three tries, without a limit of time. What is tried again is
    /// [`Failures::DEFAULT`].
    pub const DEFAULT: Retry = Retry {
        on: Failures::DEFAULT,
        tries: 3,
        timeout: None,
    };
}

/// A set of failures of one try, as the words of `proxy-next-upstream` name them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Failures(u16);

impl Failures {
    /// `off`: nothing is tried again.
    pub const NONE: Failures = Failures(0);
    /// The connection is refused, or breaks before an answer.
    pub const ERROR: Failures = Failures(1);
    /// The connection is not made in time. Nothing of the request has been sent.
    pub const CONNECT_TIMEOUT: Failures = Failures(1 << 1);
    /// No answer in time.
    pub const TIMEOUT: Failures = Failures(1 << 2);
    /// The answer is no HTTP.
    pub const INVALID_HEADER: Failures = Failures(1 << 3);
    /// A request may be sent again although it may have been done already.
    pub const NON_IDEMPOTENT: Failures = Failures(1 << 4);
    /// Refused and broken connections, and those not made in time.
    pub const DEFAULT: Failures = Failures(Self::ERROR.0 | Self::CONNECT_TIMEOUT.0);

    /// The words of the annotation. `timeout` stands for both timeouts.
    pub const WORDS: [(&str, Failures); 11] = [
        ("error", Failures::ERROR),
        (
            "timeout",
            Failures(Self::CONNECT_TIMEOUT.0 | Self::TIMEOUT.0),
        ),
        ("invalid_header", Failures::INVALID_HEADER),
        ("non_idempotent", Failures::NON_IDEMPOTENT),
        ("http_403", Failures(1 << 5)),
        ("http_404", Failures(1 << 6)),
        ("http_429", Failures(1 << 7)),
        ("http_500", Failures(1 << 8)),
        ("http_502", Failures(1 << 9)),
        ("http_503", Failures(1 << 10)),
        ("http_504", Failures(1 << 11)),
    ];

    /// The failure that a status is, if any.
    pub fn status(status: u16) -> Failures {
        match status {
            403 => Failures(1 << 5),
            404 => Failures(1 << 6),
            429 => Failures(1 << 7),
            500 => Failures(1 << 8),
            502 => Failures(1 << 9),
            503 => Failures(1 << 10),
            504 => Failures(1 << 11),
            _ => Failures::NONE,
        }
    }

    /// Both sets.
    #[must_use]
    pub const fn and(self, other: Failures) -> Failures {
        Failures(self.0 | other.0)
    }

    /// Whether any of `other` is in it.
    pub const fn has(self, other: Failures) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether an answer can be a failure.
    pub const fn has_status(self) -> bool {
        self.0 >> 5 != 0
    }

    /// Its words. Only what connects is called `connect_timeout`, which is no word of the
    /// annotation.
    pub fn words(self) -> Vec<&'static str> {
        let mut words: Vec<_> = Self::WORDS
            .iter()
            .filter(|(_, failure)| self.0 & failure.0 == failure.0)
            .map(|(word, _)| *word)
            .collect();
        if self.has(Self::CONNECT_TIMEOUT) && !self.has(Self::TIMEOUT) {
            words.push("connect_timeout");
        }
        words
    }
}

impl std::fmt::Debug for Failures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.words()).finish()
    }
}

impl Serialize for Failures {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.words())
    }
}

/// As a number of seconds.
fn seconds<S: Serializer>(time: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    time.map(|time| time.as_secs()).serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_the_failure_of_its_word() {
        for (word, failure) in Failures::WORDS {
            if let Some(status) = word.strip_prefix("http_") {
                let status = status.parse().unwrap_or(0);
                assert_eq!(Failures::status(status), failure, "{word}");
                assert!(failure.has_status(), "{word}");
            } else {
                assert!(!failure.has_status(), "{word}");
            }
            assert_eq!(failure.words(), [word]);
        }
        assert_eq!(Failures::status(501), Failures::NONE);
        assert_eq!(Failures::DEFAULT.words(), ["error", "connect_timeout"]);
    }
}
