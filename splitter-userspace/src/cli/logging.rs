//! Log lines of the process, as opposed to the access log.

use std::env;
use std::io;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};

use crate::config::LogFormat;

/// The environment variable that says what is logged.
pub const VARIABLE: &str = "SPLITTER_LOG";

/// Why logging cannot start.
#[derive(Debug, thiserror::Error)]
pub enum LoggingError {
    /// The filter cannot be read.
    #[error(
        "{VARIABLE}={text:?} is not a log filter: {error}; write a level (error, warn, info, debug) or module=level pairs separated by commas"
    )]
    Filter {
        /// What was given.
        text: String,
        /// What is wrong with it.
        error: ParseError,
    },
    /// Logging was started before.
    #[error("cannot start logging: {0}")]
    Started(#[from] TryInitError),
}

/// Sends log lines to standard error: level `info`, or what the environment variable
/// `SPLITTER_LOG` says.
///
/// # Errors
/// When the variable cannot be read, or logging was started before.
pub fn init(format: LogFormat) -> Result<(), LoggingError> {
    let text = env::var(VARIABLE).unwrap_or_default();
    let filter = filter(&text)?;
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr);
    match format {
        LogFormat::Json => lines.json().flatten_event(true).finish().try_init()?,
        LogFormat::Text => lines.finish().try_init()?,
    }
    Ok(())
}

fn filter(text: &str) -> Result<EnvFilter, LoggingError> {
    let text = if text.trim().is_empty() { "info" } else { text };
    EnvFilter::builder()
        .parse(text)
        .map_err(|error| LoggingError::Filter {
            text: text.to_owned(),
            error,
        })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn nothing_said_is_info() {
        assert_eq!(filter("").unwrap().to_string(), "info");
        assert_eq!(filter(" ").unwrap().to_string(), "info");
    }

    #[test]
    fn modules_have_levels_of_their_own() {
        let both = filter("warn,splitter::k8s=debug").unwrap().to_string();
        assert!(both.contains("splitter::k8s=debug"), "{both}");
        assert!(both.contains("warn"), "{both}");
    }

    #[test]
    fn a_wrong_filter_says_what_is_allowed() {
        let error = filter("splitter=loud").unwrap_err().to_string();
        assert!(error.contains("splitter=loud"), "{error}");
        assert!(error.contains("debug"), "{error}");
    }
}
