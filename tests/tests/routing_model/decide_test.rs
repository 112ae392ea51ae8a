use http::{HeaderMap, HeaderName, HeaderValue};
use proptest::prelude::*;
use splitter::model::{
    BackendId, CookieTest, HeaderTest, Kind, ObjectRef, Pattern, Rule, Split, Test, Variant,
};
use splitter::routing::{Decision, Draw, Shown, decide};

use crate::decide_model::{self, Says};

fn split(weights: &[u32], rules: &[(u8, Says)]) -> Split {
    let variant = |(index, weight): (usize, &u32)| Variant {
        name: format!("v{index}").into(),
        ingress: ObjectRef::new(Kind::Ingress, "shop", "main"),
        backend: BackendId(index as u32),
        weight: *weight,
    };
    let rule = |(variant, says): &(u8, Says)| Rule {
        variant: *variant,
        test: test(says),
    };
    Split {
        variants: weights.iter().enumerate().map(variant).collect(),
        rules: rules.iter().map(rule).collect(),
        policy: None,
    }
}

fn test(says: &Says) -> Test {
    let header = |name, test| Test::Header {
        name: HeaderName::from_static(name),
        test,
    };
    let pattern = |text: &str| HeaderTest::Pattern(Pattern::new(text).unwrap());
    match says {
        Says::HeaderAlwaysNever(name) => header(name, HeaderTest::AlwaysNever),
        Says::HeaderIs(name, value) => header(name, HeaderTest::Value((*value).into())),
        Says::HeaderStartsWith(name, text) => header(name, pattern(&format!("^{text}"))),
        Says::HeaderContains(name, text) => header(name, pattern(text)),
        Says::HeaderInvalid(name) => header(name, HeaderTest::Invalid),
        Says::CookieAlwaysNever(name) => Test::Cookie {
            name: (*name).into(),
            test: CookieTest::AlwaysNever,
        },
    }
}

fn says() -> impl Strategy<Value = Says> {
    let name = || prop::sample::select(vec!["x-one", "x-two"]);
    let text = || prop::sample::select(vec!["always", "never", "do", "a, b"]);
    prop_oneof![
        name().prop_map(Says::HeaderAlwaysNever),
        (name(), text()).prop_map(|(name, text)| Says::HeaderIs(name, text)),
        (name(), text()).prop_map(|(name, text)| Says::HeaderStartsWith(name, text)),
        (name(), text()).prop_map(|(name, text)| Says::HeaderContains(name, text)),
        name().prop_map(Says::HeaderInvalid),
        prop::sample::select(vec!["one", "Two"]).prop_map(Says::CookieAlwaysNever),
    ]
}

fn line() -> impl Strategy<Value = (String, String)> {
    let header = (
        prop::sample::select(vec!["x-one", "X-One", "x-two", "x_one", "x-three"]),
        prop::sample::select(vec![
            "always", "never", "do", "Do", "donever", "", "a", "b", "a, b",
        ]),
    );
    let pair = (
        prop::sample::select(vec!["one", "ONE", "two", "three", " one", ""]),
        prop::sample::select(vec![
            "=always",
            "=never",
            "=",
            "",
            "= never",
            "=\"always\"",
            "=never ",
        ]),
    );
    let cookies = prop::collection::vec(pair, 0..4).prop_map(|pairs| {
        let pairs: Vec<String> = pairs
            .into_iter()
            .map(|(name, value)| format!("{name}{value}"))
            .collect();
        pairs.join("; ")
    });
    prop_oneof![
        header.prop_map(|(name, value)| (name.to_owned(), value.to_owned())),
        cookies.prop_map(|value| ("Cookie".to_owned(), value)),
    ]
}

fn headers(sent: &[(String, String)]) -> HeaderMap {
    let line = |(name, value): &(String, String)| {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        (name, HeaderValue::from_str(value).unwrap())
    };
    sent.iter().map(line).collect()
}

/// A fraction of the total, so that one value serves every total.
struct Fraction {
    of_u32: u32,
    asked: u32,
}

impl Fraction {
    fn of(&self, total: u32) -> u32 {
        ((u64::from(self.of_u32) * u64::from(total)) >> 32) as u32
    }
}

impl Draw for Fraction {
    fn point(&mut self, total: u32) -> u32 {
        self.asked += 1;
        assert!(total > 0);
        self.of(total)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn decisions_are_those_of_the_model(
        weights in prop::collection::vec(prop_oneof![Just(0_u32), 0..50_u32], 1..=8),
        rules in prop::collection::vec((1..8_u8, says()), 0..6),
        sent in prop::collection::vec(line(), 0..6),
        chance in any::<u32>(),
    ) {
        // A rule is for a canary that exists.
        let canaries = weights.len() as u8 - 1;
        let rules: Vec<_> = rules
            .into_iter()
            .filter(|_| canaries > 0)
            .map(|(variant, says)| (1 + (variant - 1) % canaries.max(1), says))
            .collect();
        let split = split(&weights, &rules);
        let mut draw = Fraction { of_u32: chance, asked: 0 };
        let total = weights.iter().sum();
        let by_weight = || decide_model::at(&weights, draw.of(total));
        let (variant, reason) = decide_model::decide(weights.len(), &rules, &sent, by_weight);
        let decision = decide(&split, &Shown::of(&headers(&sent)), &split.weights(), &mut draw);
        prop_assert_eq!(decision, Decision { variant, reason });
        let choice = weights.iter().filter(|weight| **weight > 0).count() > 1;
        let chance_needed = choice && reason == splitter::routing::Reason::Weight;
        prop_assert_eq!(draw.asked, u32::from(chance_needed));
    }
}
