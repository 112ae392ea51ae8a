use super::{Row, rows};

pub(super) const ROWS: &[Row] = rows! {
    "canary-by-cookie-pattern" Canary Works "a regular expression of linear time, for the value of the cookie `canary-by-cookie`" "always and never" "the rule never matches; reported" "(";
    "canary-by-cookie-value" Canary Works "the value of the cookie `canary-by-cookie`; wins over the pattern" "always and never" "the rule never matches; reported" "a;b";
    "canary-by-query" Canary Works "a query parameter's name" "no rule" "every name is taken" "";
    "canary-by-query-value" Canary Works "the value of the parameter `canary-by-query`" "always and never" "every value is taken" "";
    "canary-by-source-range" Canary Works "addresses and ranges, separated by commas" "no rule" "no rule; reported" "office";
    "canary-hash-by" Canary Works "`header:NAME`, `cookie:NAME`, `query:NAME`, `client-address`: what decides the weight in place of chance; the oldest canary's counts" "chance" "chance; reported" "address";
    "mirror" Canary Works "a percentage from 0 to 100 with at most four decimals: how many requests the canary is sent a copy of" "0" "nothing is copied; reported" "all";
    "canary-response-header" Canary Works "the name of a header that answers do not have anyway; on main Ingresses too, whose one wins" "none" "no header; reported" "content-length";
};
