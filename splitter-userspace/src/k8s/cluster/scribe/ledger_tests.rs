use super::*;
use crate::model::{Kind, Severity};

fn problem(name: &str, code: &'static str, message: &str) -> Problem {
    Problem {
        severity: Severity::Error,
        object: ObjectRef::new(Kind::Ingress, "shop", name),
        source: String::new(),
        field: "spec.rules[0]".to_owned(),
        code,
        message: message.to_owned(),
        effect: "it answers 503".to_owned(),
    }
}

fn tell(ledger: &mut Ledger, problems: &[Problem], now: Instant) -> Vec<Telling> {
    let plan = ledger.plan(problems, now);
    for telling in &plan.now {
        ledger.told(telling.clone(), true, now);
    }
    plan.now
}

#[test]
fn problems_of_one_kind_with_one_object_are_one_event() {
    let now = Instant::now();
    let mut ledger = Ledger::new(now);
    let problems = [
        problem("a", "service-not-found", "there is no Service shop/x"),
        problem("a", "service-not-found", "there is no Service shop/y"),
        problem("a", "port-not-found", "there is no port 1"),
        problem("b", "service-not-found", "there is no Service shop/x"),
    ];
    let told = tell(&mut ledger, &problems, now);
    let texts: Vec<_> = told
        .iter()
        .map(|it| (&*it.object.name, it.reason()))
        .collect();
    assert_eq!(
        texts,
        [
            ("a", "PortNotFound".to_owned()),
            ("a", "ServiceNotFound".to_owned()),
            ("b", "ServiceNotFound".to_owned()),
        ]
    );
    let message =
        "spec.rules[0]: there is no Service shop/x; it answers 503 (and 1 more like this)";
    assert_eq!(told[1].message, message);
    assert_eq!(told[1].count, 1);
}

#[test]
fn what_lasts_is_told_again_before_it_is_forgotten() {
    let start = Instant::now();
    let mut ledger = Ledger::new(start);
    let problems = [problem("a", "x", "y")];
    assert_eq!(tell(&mut ledger, &problems, start).len(), 1);
    let plan = ledger.plan(&problems, start + AGAIN / 2);
    assert_eq!((plan.now.len(), plan.again), (0, Some(start + AGAIN)));
    let told = tell(&mut ledger, &problems, start + AGAIN);
    assert_eq!(told[0].count, 2);
}

#[test]
fn what_comes_and_goes_is_one_event() {
    let mut now = Instant::now();
    let mut ledger = Ledger::new(now);
    let problems = [problem("a", "x", "y")];
    for count in 1..=3 {
        assert_eq!(tell(&mut ledger, &problems, now)[0].count, count);
        assert!(tell(&mut ledger, &[], now).is_empty());
        now += REMEMBERED / 2;
    }
    tell(&mut ledger, &[], now);
    now += REMEMBERED;
    tell(&mut ledger, &[], now);
    assert_eq!(tell(&mut ledger, &problems, now)[0].count, 1, "forgotten");
}

#[test]
fn another_message_is_told_at_once() {
    let now = Instant::now();
    let mut ledger = Ledger::new(now);
    tell(&mut ledger, &[problem("a", "x", "y")], now);
    assert!(tell(&mut ledger, &[problem("a", "x", "y")], now).is_empty());
    assert_eq!(
        tell(&mut ledger, &[problem("a", "x", "z")], now)[0].count,
        2
    );
}

#[test]
fn a_flood_is_told_at_a_bounded_rate_and_none_is_lost() {
    let mut now = Instant::now();
    let mut ledger = Ledger::new(now);
    let problems: Vec<_> = (0..200)
        .map(|n| problem(&format!("i{n:03}"), "x", "y"))
        .collect();
    assert_eq!(tell(&mut ledger, &problems, now).len(), BURST as usize);
    let mut all = BURST as usize;
    for _ in 0..30 {
        now += Duration::from_secs(1);
        let told = tell(&mut ledger, &problems, now).len();
        assert!(told <= 5, "{told}");
        all += told;
    }
    assert_eq!(all, 200);
}

#[test]
fn a_write_that_failed_is_tried_again_later() {
    let now = Instant::now();
    let mut ledger = Ledger::new(now);
    let problems = [problem("a", "x", "y")];
    let telling = ledger.plan(&problems, now).now.remove(0);
    ledger.told(telling, false, now);
    assert!(ledger.plan(&problems, now).now.is_empty());
    assert_eq!(ledger.plan(&problems, now + RETRY).now.len(), 1);
}

#[test]
fn messages_and_names_fit() {
    let now = Instant::now();
    let mut ledger = Ledger::new(now);
    let long = "é".repeat(2000);
    let name = "n".repeat(253);
    let problems = [problem(&name, "x", &long), problem(&name, "x", &long)];
    let told = tell(&mut ledger, &problems, now);
    assert!(told[0].message.len() <= MAX_MESSAGE);
    assert!(told[0].message.ends_with("… (and 1 more like this)"));
    assert!(told[0].name("uid").len() <= 253);
}
