use std::sync::Arc;

use super::*;
use crate::model::{AffinityMode, Side};

const PLAIN: Visit = Visit {
    encrypted: false,
    misreads_none: false,
};

fn affinity(change: impl FnOnce(&mut SessionCookie)) -> Affinity {
    let mut cookie = SessionCookie {
        name: "route".into(),
        path: None,
        domain: None,
        expires: None,
        max_age: None,
        same_site: None,
        conditional_none: false,
        secure: false,
        change_on_failure: false,
    };
    change(&mut cookie);
    Affinity {
        mode: AffinityMode::Balanced,
        cookie: Arc::new(cookie),
        path: "/shop".into(),
        sides: vec![Side {
            tag: 1,
            sticky: true,
        }],
    }
}

fn written(affinity: &Affinity, visit: Visit) -> String {
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
    text(affinity, "v", visit, now)
}

#[test]
fn the_cookie_has_what_the_annotations_say() {
    assert_eq!(
        written(&affinity(|_| ()), PLAIN),
        "route=v; Path=/shop; HttpOnly"
    );
    let all = affinity(|it| {
        it.domain = Some("a.test".into());
        it.expires = Some(60);
        it.max_age = Some(-1);
        it.same_site = Some(SameSite::None);
        it.conditional_none = true;
        it.secure = true;
    });
    assert_eq!(
        written(&all, PLAIN),
        "route=v; Path=/shop; Domain=a.test; Expires=Sun, 06 Nov 1994 08:50:37 GMT; \
         Max-Age=-1; SameSite=None; Secure; HttpOnly"
    );
    let encrypted = Visit {
        encrypted: true,
        ..PLAIN
    };
    assert_eq!(
        written(&affinity(|_| ()), encrypted),
        "route=v; Path=/shop; Secure; HttpOnly"
    );
}

#[test]
fn none_is_left_out_for_those_who_misread_it() {
    let misreads = Visit {
        misreads_none: true,
        ..PLAIN
    };
    let with = |same_site| affinity(|it| it.same_site = Some(same_site));
    assert!(!written(&with(SameSite::None), misreads).contains("SameSite"));
    assert!(written(&with(SameSite::Lax), misreads).contains("SameSite=Lax"));
    assert!(written(&with(SameSite::None), PLAIN).contains("SameSite=None"));
}

#[test]
fn dates_stay_within_what_can_be_written() {
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(10);
    assert_eq!(after(now, -100), SystemTime::UNIX_EPOCH);
    assert_eq!(after(now, 5), now + Duration::from_secs(5));
}

#[test]
fn browsers_that_misread_none() {
    let chrome = |version| {
        format!(
            "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_14_6) AppleWebKit/537.36 (KHTML, like \
             Gecko) Chrome/{version}.0.1 Safari/537.36"
        )
    };
    for (agent, expected) in [
        (chrome(50).as_str(), false),
        (&chrome(51), true),
        (&chrome(66), true),
        (&chrome(67), false),
        (
            "Mozilla/5.0 (iPhone; CPU iPhone OS 12_4 like Mac OS X) Version/12.1 Safari/604.1",
            true,
        ),
        (
            "Mozilla/5.0 (iPad; CPU OS 12_4 like Mac OS X) CriOS/80 Safari/604.1",
            true,
        ),
        (
            "Mozilla/5.0 (iPhone; CPU iPhone OS 13_1 like Mac OS X) Version/13 Safari/604.1",
            false,
        ),
        (
            "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_14_6) (KHTML, like Gecko) Version/12 Safari/605",
            true,
        ),
        (
            "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_14) AppleWebKit/605.1.15 (KHTML, like Gecko)",
            true,
        ),
        (
            "Mozilla/5.0 (Macintosh; Intel Mac OS X 10.14; rv:70.0) Gecko/20100101 Firefox/70.0",
            false,
        ),
        ("UCBrowser/12.13.1 Chrome/57.0", true),
        ("UCBrowser/12.13.2 Chrome/57.0", false),
        ("curl/8", false),
        ("", false),
    ] {
        assert_eq!(misreads_none(agent), expected, "{agent}");
    }
}
