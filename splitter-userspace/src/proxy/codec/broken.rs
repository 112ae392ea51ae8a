use std::io;

/// Bytes that are no answer; what is wrong with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the answer is malformed: {0}")]
pub struct Invalid(pub &'static str);

/// Why an exchange with a backend ended early.
#[derive(Debug, thiserror::Error)]
pub enum Broken {
    /// The backend sent what is no answer.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The backend ended the connection before the end of its answer.
    #[error("the connection ended before the answer did")]
    Cut,
    /// The connection broke, or a deadline passed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The client's body broke; why is in what became of the body.
    #[error("the request's body ended early: {0}")]
    Body(Box<dyn std::error::Error + Send + Sync>),
    /// The answer came on an HTTP/2 stream, which ended early.
    #[error("the stream ended before the answer did: {0}")]
    Stream(Box<dyn std::error::Error + Send + Sync>),
}

impl Broken {
    /// Whether the backend spoke, but not HTTP.
    pub fn is_invalid(&self) -> bool {
        matches!(self, Broken::Invalid(_))
    }
}
