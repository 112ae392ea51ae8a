//! The translation against a slow one that follows the rules word by word, one path at a time.

use proptest::collection::vec;
use proptest::prelude::*;

use super::support::{Ing, canary, main, run, show};

/// host, path, is exact, Service.
type Path = (usize, usize, bool, usize);

/// An Ingress: canary, age (0: none), paths, default backend, weight, names a header.
#[derive(Clone, Debug)]
struct Spec {
    name: String,
    canary: bool,
    age: u32,
    paths: Vec<Path>,
    default: Option<usize>,
    weight: u32,
    header: bool,
}

// In the order of precedence, which is that of the Snapshot.
const HOSTS: [&str; 4] = ["a", "b", "*.a", ""];
const PATHS: [&str; 3] = ["/", "/x", "/x/"];
const SERVICES: [&str; 4] = ["m", "m2", "c", "c2"];

fn spec() -> impl Strategy<Value = Spec> {
    let path = (
        0..HOSTS.len(),
        0..PATHS.len(),
        any::<bool>(),
        0..SERVICES.len(),
    );
    let default = proptest::option::weighted(0.3, 0..SERVICES.len());
    (
        any::<bool>(),
        0u32..3,
        vec(path, 0..5),
        default,
        0u32..=60,
        any::<bool>(),
    )
        .prop_map(|(canary, age, paths, default, weight, header)| Spec {
            name: String::new(),
            canary,
            age,
            // Something must be there.
            default: if paths.is_empty() {
                default.or(Some(0))
            } else {
                default
            },
            paths,
            weight,
            header,
        })
}

impl Spec {
    fn build(&self) -> Ing {
        let mut it = if self.canary {
            canary(&self.name)
        } else {
            main(&self.name)
        };
        if self.canary {
            it = it.weight(&self.weight.to_string());
        }
        if self.canary && self.header {
            it = it.note("canary-by-header", &self.name);
        }
        if self.age > 0 {
            it = it.at(self.age);
        }
        for (host, path, exact, service) in &self.paths {
            let kind = if *exact { "Exact" } else { "Prefix" };
            it = it.path(HOSTS[*host], PATHS[*path], kind, SERVICES[*service]);
        }
        match self.default {
            Some(service) => it.default_to(SERVICES[service]),
            None => it,
        }
    }

    /// Whether this Ingress comes before the other.
    fn key(&self) -> (bool, u32, &str) {
        (self.age == 0, self.age, &self.name)
    }

    /// The first Service that the rules name for a location.
    fn written(&self, host: usize, path: usize, exact: bool) -> Option<usize> {
        let same = |it: &&Path| (it.0, it.1, it.2) == (host, path, exact);
        self.paths.iter().find(same).map(|it| it.3)
    }

    /// The Service that the default backend gives to a host's root, if the Ingress covers it.
    fn implied(&self, host: usize) -> Option<usize> {
        let covers = if self.paths.is_empty() {
            HOSTS[host].is_empty()
        } else {
            self.paths.iter().any(|it| it.0 == host)
        };
        self.default.filter(|_| covers)
    }
}

/// One line of the Snapshot, if the location exists.
fn expected(all: &[Spec], host: usize, path: usize, exact: bool) -> Option<String> {
    let is_root = PATHS[path] == "/" && !exact;
    let mains = || all.iter().filter(|it| !it.canary);
    let written = mains().find_map(|it| it.written(host, path, exact));
    let implied = mains().find_map(|it| it.implied(host).filter(|_| is_root));
    let stable = written.or(implied)?;
    let mut left = 100;
    let (mut variants, mut rules) = (String::new(), String::new());
    for (number, it) in all
        .iter()
        .filter(|it| it.canary)
        .filter_map(|it| {
            let by_rule = it.written(host, path, exact);
            let reaches = written.is_none() || it.paths.is_empty();
            let by_default = it.implied(host).filter(|_| is_root && reaches);
            by_rule.or(by_default).map(|service| (service, it))
        })
        .filter(|(service, _)| *service != stable)
        .take(7)
        .map(|(service, it)| {
            let weight = it.weight.min(left);
            left -= weight;
            variants += &format!(" {}={weight}", SERVICES[service]);
            it
        })
        .collect::<Vec<_>>()
        .into_iter()
        .enumerate()
    {
        if it.header {
            rules += &format!(" | {} header {} always/never", number + 1, it.name);
        }
    }
    let host = if HOSTS[host].is_empty() {
        "*"
    } else {
        HOSTS[host]
    };
    let kind = if exact { "Exact" } else { "Prefix" };
    Some(format!(
        "{host}{} ({kind}): {}={left}{variants}{rules}",
        PATHS[path], SERVICES[stable]
    ))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn the_fast_and_the_slow_translation_agree(mut all in vec(spec(), 1..10)) {
        for (index, it) in all.iter_mut().enumerate() {
            it.name = format!("i{index}");
        }
        let found = show(&run(&all.iter().map(Spec::build).collect::<Vec<_>>()).snapshot);
        all.sort_by(|a, b| a.key().cmp(&b.key()));
        let mut lines = Vec::new();
        for host in 0..HOSTS.len() {
            for path in 0..PATHS.len() {
                for exact in [true, false] {
                    lines.extend(expected(&all, host, path, exact));
                }
            }
        }
        prop_assert_eq!(found, lines);
    }
}
