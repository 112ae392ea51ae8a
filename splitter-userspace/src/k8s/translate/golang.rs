//! Values as ingress-nginx's language reads them.

/// What Go's `ParseBool` takes for true and false; nothing else is either.
pub(super) fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(false),
        _ => None,
    }
}

/// What Go's `Atoi` takes: an optional sign and decimal digits that fit into 64 bits.
pub(super) fn atoi(text: &str) -> Option<i64> {
    text.parse().ok()
}
