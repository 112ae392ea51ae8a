#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::json;

use super::super::testing::{HEAD, Issuer, NOW, encode, good, policy};
use super::*;
use crate::model::{Algorithms, ClaimPath, ClaimTest};

static ISSUER: LazyLock<Issuer> = LazyLock::new(Issuer::new);

fn check(token: &str, jwt: &Jwt) -> Result<(), TokenError> {
    Verified::check(token, &ISSUER.keys, jwt)?.admit(jwt, NOW)
}

/// What comes of the good token with this head.
fn with_head(head: &str) -> Result<(), TokenError> {
    check(&ISSUER.sign(head, &good().to_string()), &policy())
}

/// What comes of the good token with this claim; without it, if it is null.
fn with_claim(name: &str, value: Value) -> Result<(), TokenError> {
    let mut claims = good();
    let claims_object = claims.as_object_mut().unwrap();
    match value.is_null() {
        true => claims_object.remove(name),
        false => claims_object.insert(name.to_owned(), value),
    };
    check(&ISSUER.sign(HEAD, &claims.to_string()), &policy())
}

#[test]
fn a_good_token_lets_in() {
    assert_eq!(check(&ISSUER.token(), &policy()), Ok(()));
    for typ in [
        "JWT",
        "jwt",
        "at+JWT",
        "application/at+jwt",
        "Application/JWT",
    ] {
        let head = format!(r#"{{"alg":"ES256","kid":"one","typ":"{typ}"}}"#);
        assert_eq!(with_head(&head), Ok(()), "{typ}");
    }
    assert_eq!(
        with_head(r#"{"alg":"ES256"}"#),
        Ok(()),
        "any key may be meant"
    );
}

#[test]
fn what_the_head_says_is_believed_by_nobody() {
    use TokenError::{Algorithm, Extension, Kind, Malformed, UnknownKey};
    for (head, error) in [
        (r#"{"alg":"none"}"#, Algorithm),
        (r#"{"alg":"NONE","kid":"one"}"#, Algorithm),
        (r#"{"alg":"HS256","kid":"one"}"#, Algorithm),
        (r#"{"alg":"es256","kid":"one"}"#, Algorithm),
        (r#"{"alg":"RS256","kid":"one"}"#, TokenError::Signature),
        (r#"{"alg":["ES256"]}"#, Malformed),
        (r#"{"kid":"one"}"#, Malformed),
        (r#"{"alg":"ES256","alg":"none"}"#, Malformed),
        (r#"{"alg":"ES256","kid":"../../etc/passwd"}"#, UnknownKey),
        (r#"{"alg":"ES256","kid":"' OR 1=1 --"}"#, UnknownKey),
        (r#"{"alg":"ES256","kid":1}"#, Malformed),
        (
            r#"{"alg":"ES256","kid":"two","jku":"https://evil.test/"}"#,
            UnknownKey,
        ),
        (
            r#"{"alg":"ES256","kid":"one","crit":["exp"],"exp":1}"#,
            Extension,
        ),
        (r#"{"alg":"ES256","kid":"one","crit":[]}"#, Extension),
        (r#"{"alg":"ES256","kid":"one","b64":false}"#, Extension),
        (r#"{"alg":"ES256","kid":"one","typ":"logout+jwt"}"#, Kind),
        (r#"{"alg":"ES256","kid":"one","typ":5}"#, Malformed),
        ("[]", Malformed),
    ] {
        assert_eq!(with_head(head), Err(error), "{head}");
    }
    let long = format!(r#"{{"alg":"ES256","kid":"{}"}}"#, "k".repeat(10_000));
    assert_eq!(with_head(&long), Err(TokenError::TooLong));
    // A key of the token's own is not even looked at.
    let own =
        r#"{"alg":"ES256","kid":"one","jwk":{"kty":"oct","k":"eA"},"x5u":"http://x","x5c":[""]}"#;
    assert_eq!(with_head(own), Ok(()));
}

#[test]
fn a_type_that_is_asked_for_is_the_only_one() {
    let mut jwt = policy();
    jwt.kind = Some("at+jwt".into());
    let of = |head: &str| check(&ISSUER.sign(head, &good().to_string()), &jwt);
    assert_eq!(of(HEAD), Ok(()));
    for head in [r#"{"alg":"ES256","typ":"JWT"}"#, r#"{"alg":"ES256"}"#] {
        assert_eq!(of(head), Err(TokenError::Kind), "an ID token: {head}");
    }
}

#[test]
fn a_public_key_is_no_shared_secret() {
    let mut jwt = policy();
    jwt.algorithms = Algorithm::ALL.into_iter().collect::<Algorithms>();
    let message = [r#"{"alg":"HS256","kid":"one"}"#, &good().to_string()].map(encode);
    let message = message.join(".");
    let public = aws_lc_rs::signature::KeyPair::public_key(&ISSUER.key).as_ref();
    let key = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, public);
    let signature = encode(aws_lc_rs::hmac::sign(&key, message.as_bytes()));
    let token = format!("{message}.{signature}");
    assert_eq!(check(&token, &jwt), Err(TokenError::Signature));
}

#[test]
fn what_is_no_token_is_malformed() {
    let good = ISSUER.token();
    let parts: Vec<_> = good.split('.').collect();
    let [head, claims, signature] = parts[..] else {
        panic!("{good}");
    };
    for token in [
        String::new(),
        ".".to_owned(),
        "..".to_owned(),
        format!("{head}.{claims}"),
        format!("{good}.."),
        format!("{good}.{signature}.{signature}"),
        format!("{head}=.{claims}.{signature}"),
        format!(" {good}"),
        format!("{}.{claims}.{signature}", encode("{} ")),
    ] {
        assert_eq!(
            check(&token, &policy()),
            Err(TokenError::Malformed),
            "{token}"
        );
    }
    for token in [
        format!("{head}.{claims}."),
        format!("{head}.{claims}.{signature}="),
        format!("{head}.{claims}.{}", encode([0; 64])),
        format!("{head}.{}.{signature}", encode("{}")),
    ] {
        assert_eq!(
            check(&token, &policy()),
            Err(TokenError::Signature),
            "{token}"
        );
    }
    let twice = ISSUER.sign(HEAD, r#"{"exp":1,"iss":"a","aud":"b","exp":2}"#);
    assert_eq!(check(&twice, &policy()), Err(TokenError::Malformed));
}

#[test]
fn times_are_numbers_and_one_is_needed() {
    use TokenError::{Claims, Expired, NotYet};
    for (name, value, result) in [
        ("exp", json!(null), Err(Claims)),
        ("exp", json!("9999999999"), Err(Claims)),
        ("exp", json!(1e300), Err(Claims)),
        ("exp", json!(-1), Err(Claims)),
        ("exp", json!([NOW + 60]), Err(Claims)),
        ("exp", json!(NOW - 9), Ok(())),
        ("exp", json!(NOW - 10), Err(Expired)),
        ("exp", json!(NOW as f64 + 0.5), Ok(())),
        ("nbf", json!(NOW + 10), Ok(())),
        ("nbf", json!(NOW + 11), Err(NotYet)),
        ("nbf", json!("0"), Err(Claims)),
    ] {
        assert_eq!(with_claim(name, value.clone()), result, "{name} {value}");
    }
    let huge = good().to_string().replace(&(NOW + 60).to_string(), "1e400");
    let huge = ISSUER.sign(HEAD, &huge);
    assert_eq!(check(&huge, &policy()), Err(TokenError::Malformed));
}

#[test]
fn it_must_be_the_issuers_and_for_us() {
    use TokenError::{Audience, Claims, Issuer};
    for (name, value, result) in [
        ("iss", json!(null), Err(Claims)),
        ("iss", json!("https://id.test/"), Err(Issuer)),
        ("iss", json!("https://ID.test"), Err(Issuer)),
        ("iss", json!(["https://id.test"]), Err(Claims)),
        ("aud", json!(null), Err(Claims)),
        ("aud", json!("shop"), Ok(())),
        ("aud", json!("shopping"), Err(Audience)),
        ("aud", json!([]), Err(Audience)),
        ("aud", json!(["a", 5, "shop"]), Err(Claims)),
        ("aud", json!({"shop": true}), Err(Claims)),
        ("sub", json!(5), Err(Claims)),
        ("sub", json!(null), Ok(())),
    ] {
        assert_eq!(with_claim(name, value.clone()), result, "{name} {value}");
    }
}

fn path(names: &[&str]) -> ClaimPath {
    ClaimPath {
        text: names.join(".").into(),
        names: names.iter().map(|it| (*it).into()).collect(),
    }
}

#[test]
fn claims_are_compared_whole_wherever_they_are() {
    for (names, values, passes) in [
        (&["sub"][..], &["bob", "ann"][..], true),
        (&["sub"], &["an", "Ann"], false),
        (&["roles"], &["admin"], true),
        (&["roles"], &["adm", "reader,admin"], false),
        (&["realm", "access", "roles"], &["ops"], true),
        (&["realm", "access"], &["ops"], false),
        (&["realm", "roles"], &["ops"], false),
        (&["level"], &["3"], true),
        (&["mail_verified"], &["true"], true),
        (&["scope"], &["write"], true),
        (&["scope"], &["read write"], false),
        (&["missing"], &[""], false),
    ] {
        let mut jwt = policy();
        jwt.claims = [ClaimTest {
            claim: path(names),
            values: values.iter().map(|it| (*it).into()).collect(),
        }]
        .into();
        let result = match passes {
            true => Ok(()),
            false => Err(TokenError::Denied),
        };
        assert_eq!(check(&ISSUER.token(), &jwt), result, "{names:?} {values:?}");
    }
}

#[test]
fn headers_say_what_cannot_be_taken_for_something_else() {
    let token = |claims: Value| {
        let mut all = good();
        let more = claims.as_object().unwrap().clone();
        all.as_object_mut().unwrap().extend(more);
        let token = ISSUER.sign(HEAD, &all.to_string());
        Verified::check(&token, &ISSUER.keys, &policy()).unwrap()
    };
    let odd = json!({"a": ["x,admin"], "b": "x\r\nevil: 1", "c": [["x"]], "d": {}, "e": "é"});
    let verified = token(odd);
    for (names, value) in [
        (&["sub"][..], Some("ann")),
        (&["roles"], Some("reader,admin")),
        (&["level"], Some("3")),
        (&["realm", "access", "roles"], Some("ops")),
        (&["a"], None),
        (&["b"], None),
        (&["c"], None),
        (&["d"], None),
        (&["e"], None),
        (&["f"], None),
    ] {
        let header = verified.header(&path(names));
        let header = header.as_ref().map(|it| it.to_str().unwrap());
        assert_eq!(header, value, "{names:?}");
    }
}

proptest! {
    #[test]
    fn a_token_with_one_byte_changed_lets_nobody_in(at: prop::sample::Index, byte in 0x20_u8..0x7f) {
        let mut token = ISSUER.token().into_bytes();
        let at = at.index(token.len());
        prop_assume!(token[at] != byte);
        token[at] = byte;
        let token = String::from_utf8(token).unwrap();
        prop_assert!(check(&token, &policy()).is_err(), "{}", token);
    }

    #[test]
    fn noise_lets_nobody_in(token in "[a-zA-Z0-9_.=-]{0,200}", head: Vec<u8>, claims: Vec<u8>) {
        prop_assert!(check(&token, &policy()).is_err());
        let token = format!("{}.{}.AAAA", encode(head), encode(claims));
        prop_assert!(check(&token, &policy()).is_err());
    }

    /// Also what the issuer has signed may be anything.
    #[test]
    fn signed_noise_does_not_panic(claims: Vec<u8>) {
        let message = format!("{}.{}", encode(HEAD), encode(claims));
        let signature = ISSUER.key.sign(&aws_lc_rs::rand::SystemRandom::new(), message.as_bytes());
        let token = format!("{message}.{}", encode(signature.unwrap().as_ref()));
        prop_assert!(check(&token, &policy()).is_err());
    }
}
