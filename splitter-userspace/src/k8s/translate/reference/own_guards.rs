use super::{Row, rows};

pub(super) const ROWS: &[Row] = rows! {
    "auth-tls-allowed-identities" Location Works "DNS names and URIs (SPIFFE ids) of client certificates, separated by commas or spaces, exact or with a `*` at the end; beside `auth-tls-secret`" "every certificate of the authorities" "503; reported" "spiffe://td*";
    "traffic-class" Location Works "`all`, `north-south` (from outside only), `east-west` (from pods and the node itself only)" "`all`" "503; reported" "internal";
};
