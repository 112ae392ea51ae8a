//! Health, metrics and dumps over HTTP.
