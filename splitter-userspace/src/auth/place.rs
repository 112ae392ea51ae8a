//! Where tokens are in a request.

use http::header::{AUTHORIZATION, COOKIE, HeaderMap, HeaderValue};
use http::request;

use super::{TokenError, scheme};
use crate::model::{Jwt, TokenPlace};

/// The token, from the first place that has one. A place that has two has none: pods and proxies
/// disagree about which of them counts.
///
/// # Errors
/// When there is no telling which it is.
pub fn find_token(parts: &request::Parts, jwt: &Jwt) -> Result<Option<String>, TokenError> {
    for place in jwt.places.iter() {
        let mut found = Vec::new();
        match place {
            TokenPlace::Header(name) => {
                for value in parts.headers.get_all(name) {
                    let bearer = scheme(value.as_bytes(), b"bearer");
                    let bare = Some(value.as_bytes()).filter(|_| *name != AUTHORIZATION);
                    found.push(bearer.or(bare));
                }
            }
            TokenPlace::Cookie(name) => {
                let cookies = cookie_pairs(&parts.headers).filter(|it| is_cookie(it, name));
                found.extend(cookies.map(|it| it.get(name.len() + 1..).map(<[u8]>::trim_ascii)));
            }
            TokenPlace::Query(name) => {
                let query = parts.uri.query().unwrap_or_default().split('&');
                let values = query.filter_map(|it| it.strip_prefix(&**name)?.strip_prefix('='));
                found.extend(values.map(|it| Some(it.as_bytes())));
            }
        }
        match found[..] {
            [] => {}
            // Another scheme, for another guard.
            [None] => {}
            [Some(token)] => {
                let token = std::str::from_utf8(token).map_err(|_| TokenError::Malformed)?;
                return Ok(Some(token.to_owned()));
            }
            _ => return Err(TokenError::Malformed),
        }
    }
    Ok(None)
}

/// The cookies, each with its name.
pub fn cookie_pairs(headers: &HeaderMap) -> impl Iterator<Item = &[u8]> {
    let lines = headers.get_all(COOKIE).iter().map(HeaderValue::as_bytes);
    let pairs = lines.flat_map(|line| line.split(|byte| *byte == b';'));
    pairs.map(<[u8]>::trim_ascii)
}

/// Whether a cookie has this name.
pub fn is_cookie(pair: &[u8], name: &str) -> bool {
    let (start, rest) = pair.split_at_checked(name.len()).unwrap_or_default();
    start == name.as_bytes() && rest.first() == Some(&b'=')
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use http::Request;

    use super::super::testing::policy;
    use super::*;

    fn parts(uri: &str, fields: &[(&str, &str)]) -> request::Parts {
        let mut request = Request::builder().uri(uri);
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    fn everywhere() -> Jwt {
        let mut jwt = policy();
        jwt.places = [
            TokenPlace::Header(AUTHORIZATION),
            TokenPlace::Header("x-token".parse().unwrap()),
            TokenPlace::Cookie("t".into()),
            TokenPlace::Query("t".into()),
        ]
        .into();
        jwt
    }

    #[test]
    fn the_first_place_that_has_one_counts_and_two_are_none() {
        let of =
            |uri: &str, fields: &[(&str, &str)]| find_token(&parts(uri, fields), &everywhere());
        let found = |text: &str| Ok(Some(text.to_owned()));
        let bearer = ("authorization", "bEaReR a.b.c");
        assert_eq!(of("/?t=q", &[bearer, ("x-token", "x")]), found("a.b.c"));
        assert_eq!(of("/?t=q", &[("x-token", "Bearer x")]), found("x"));
        assert_eq!(of("/?t=q", &[("cookie", "s=1; t=c; u=2")]), found("c"));
        assert_eq!(of("/?tt=1&t=q&u", &[("cookie", "tt=1")]), found("q"));
        assert_eq!(of("/", &[("authorization", "Basic x")]), Ok(None));
        for (uri, fields) in [
            ("/", &[bearer, bearer][..]),
            ("/", &[bearer, ("authorization", "Basic x")]),
            ("/", &[("cookie", "t=1; t=2")]),
            ("/", &[("cookie", "t=1"), ("cookie", "t=2")]),
            ("/?t=1&t=2", &[]),
        ] {
            assert_eq!(
                of(uri, fields),
                Err(TokenError::Malformed),
                "{uri} {fields:?}"
            );
        }
    }
}
