use super::{Row, rows};

pub(super) const ROWS: &[Row] = rows! {
    "ssl-protocols" Host Works "`TLSv1.2`, `TLSv1.3`, separated by spaces; for all hosts in the ConfigMap; the oldest Ingress of a host that says something decides" "both" "both; reported, as what is not to be had is" "TLSv1.1";
};
