//! Annotations that are read here, on purpose, in a narrower way than ingress-nginx reads them. No
//! Problem says so, as nothing is wrong with the Ingress.

use super::View;
use super::compare::Difference;
use super::golang::parse_bool;
use crate::model::ObjectRef;

struct Narrower {
    annotation: &'static str,
    /// Whether a value is one that is read in another way.
    when: fn(&View<'_>, &str) -> bool,
    code: &'static str,
    there: &'static str,
    here: &'static str,
}

const LIMITED: (&str, &str, &str) = (
    "limit-by-network",
    "each IPv6 address is a client of its own",
    "a client is an IPv4 address, or the /64 network of an IPv6 address",
);

const NARROWER: [Narrower; 10] = [
    Narrower {
        annotation: "auth-type",
        when: |_, value| value.trim() == "basic",
        code: "password-hashes",
        there: "DES crypt counts, and a hash may take any time, in which the worker does nothing else",
        here: "neither DES crypt nor a hash of more than about a second counts",
    },
    Narrower {
        annotation: "auth-url",
        when: |_, value| value.trim().starts_with("https:"),
        code: "auth-service-verified",
        there: "nobody looks at the certificate of the service that is asked",
        here: "it must be good (auth-url-ca-secret, auth-url-verify)",
    },
    Narrower {
        annotation: "auth-url",
        when: |_, _| true,
        code: "auth-service-in-time",
        there: "a service that does not answer holds requests for 60 s",
        here: "for 10 s (auth-url-timeout)",
    },
    Narrower {
        annotation: "auth-tls-match-cn",
        when: |_, _| true,
        code: "match-cn-whole",
        there: "the pattern is looked for anywhere in the subject of the certificate",
        here: "it must match the whole common name",
    },
    Narrower {
        annotation: "cors-allow-origin",
        when: names_origins,
        code: "cors-origin-whole",
        there: "an origin is allowed that ends as one of the list does",
        here: "an origin is allowed that is one of the list",
    },
    limited("limit-connections"),
    limited("limit-rpm"),
    limited("limit-rps"),
    Narrower {
        annotation: "proxy-next-upstream",
        when: |_, value| {
            value
                .split_whitespace()
                .any(|word| word == "non_idempotent")
        },
        code: "body-not-repeated",
        there: "requests with a body are sent to a further pod after they were sent to one",
        here: "only those without a body are; one with a body, while nothing of it was sent",
    },
    Narrower {
        annotation: "proxy-redirect-to",
        when: |_, value| value.trim().starts_with('/'),
        code: "redirect-stays-relative",
        there: "a path in Location is made a URL with the client's host",
        here: "it stays a path",
    },
];

const fn limited(annotation: &'static str) -> Narrower {
    Narrower {
        annotation,
        when: |_, value| value.trim() != "0",
        code: LIMITED.0,
        there: LIMITED.1,
        here: LIMITED.2,
    }
}

fn names_origins(view: &View<'_>, value: &str) -> bool {
    let enabled = view.annotations.get("enable-cors");
    let enabled = enabled.and_then(|it| parse_bool(it.value)) == Some(true);
    enabled && value.split(',').any(|origin| origin.trim() != "*")
}

/// What of it each main Ingress meets. Of a canary these annotations are not read.
pub(super) fn add(views: &[View<'_>], add: &mut impl FnMut(&ObjectRef, Difference)) {
    for view in views {
        let given = |name| view.annotations.get(name).map(|it| it.value);
        if given("canary").and_then(parse_bool) == Some(true) {
            continue;
        }
        for it in &NARROWER {
            let value = given(it.annotation).filter(|value| !value.trim().is_empty());
            if value.is_some_and(|value| (it.when)(view, value)) {
                let difference = Difference {
                    code: it.code,
                    there: it.there.to_owned(),
                    here: it.here.to_owned(),
                };
                add(&view.subject.object, difference);
            }
        }
    }
}
