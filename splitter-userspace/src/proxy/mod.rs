//! The HTTP proxy.
