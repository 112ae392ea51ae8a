//! A reader of Prometheus' text format that shares nothing with the writer under test.

use std::collections::{BTreeMap, BTreeSet};

/// One sample line.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Name with suffix.
    pub name: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its value.
    pub value: f64,
}

impl Sample {
    /// A label's value; empty when it has none, as for Prometheus.
    pub fn label(&self, name: &str) -> &str {
        self.labels.get(name).map_or("", String::as_str)
    }
}

/// A whole page.
#[derive(Debug, Default)]
pub struct Page {
    /// Kind of each family, from its `# TYPE` line.
    pub kinds: BTreeMap<String, String>,
    /// In the order of the page.
    pub samples: Vec<Sample>,
}

impl Page {
    /// Reads a page and checks what holds for every page: families are declared before their
    /// samples, once, not mixed; no sample twice; histograms grow and end in their count.
    ///
    /// # Errors
    /// Says the line and what is wrong with it.
    pub fn read(text: &str) -> Result<Self, String> {
        let mut page = Page::default();
        let mut helped = BTreeSet::new();
        let mut current = String::new();
        if !text.ends_with('\n') {
            return Err("the last line has no end".to_owned());
        }
        for line in text.lines() {
            let fault = |what: &str| format!("{what}: {line}");
            if let Some(rest) = line.strip_prefix("# HELP ") {
                let (name, _) = rest.split_once(' ').ok_or_else(|| fault("no help"))?;
                if !helped.insert(name.to_owned()) {
                    return Err(fault("declared twice"));
                }
                current = name.to_owned();
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').ok_or_else(|| fault("no type"))?;
                if name != current {
                    return Err(fault("type without help"));
                }
                page.kinds.insert(name.to_owned(), kind.to_owned());
            } else {
                let sample = sample(line).ok_or_else(|| fault("not a sample"))?;
                let kind = page.kinds.get(&current).map_or("", String::as_str);
                if !belongs(&sample.name, &current, kind) {
                    return Err(fault("outside its family"));
                }
                page.samples.push(sample);
            }
        }
        page.check_unique()?;
        page.check_histograms()?;
        Ok(page)
    }

    /// The samples of a name whose labels are as given.
    pub fn select<'a>(&'a self, name: &str, labels: &[(&str, &str)]) -> Vec<&'a Sample> {
        let fits = |sample: &&Sample| {
            sample.name == name && labels.iter().all(|(k, v)| sample.label(k) == *v)
        };
        self.samples.iter().filter(fits).collect()
    }

    /// Their sum, as PromQL's `sum(name{labels})`.
    pub fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let samples = self.select(name, labels);
        samples.iter().map(|sample| sample.value).sum()
    }

    fn check_unique(&self) -> Result<(), String> {
        let mut seen = BTreeSet::new();
        for sample in &self.samples {
            if !seen.insert((&sample.name, &sample.labels)) {
                return Err(format!("twice: {sample:?}"));
            }
        }
        Ok(())
    }

    fn check_histograms(&self) -> Result<(), String> {
        type Buckets<'a> = BTreeMap<(&'a str, BTreeMap<String, String>), Vec<(f64, f64)>>;
        let mut buckets: Buckets<'_> = BTreeMap::new();
        for sample in &self.samples {
            let Some(name) = sample.name.strip_suffix("_bucket") else {
                continue;
            };
            let mut labels = sample.labels.clone();
            let bound = labels.remove("le").ok_or("a bucket without le")?;
            let bound = number(&bound).ok_or("le is not a number")?;
            let key = (name, labels);
            buckets.entry(key).or_default().push((bound, sample.value));
        }
        for ((name, labels), buckets) in buckets {
            let growing = buckets
                .windows(2)
                .all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1);
            let last = buckets.last().copied().unwrap_or_default();
            let value = |suffix: &str| {
                let name = format!("{name}{suffix}");
                let same = |s: &&Sample| s.name == name && s.labels == labels;
                self.samples.iter().find(same).map(|sample| sample.value)
            };
            let ends = last.0 == f64::INFINITY && value("_count") == Some(last.1);
            if !growing || !ends || value("_sum").is_none() {
                return Err(format!("not a histogram: {name} {labels:?} {buckets:?}"));
            }
        }
        Ok(())
    }
}

/// Waits until the series with these labels come to `expected`.
///
/// # Panics
/// When they do not within the patience of the tests; says what they come to.
#[track_caller]
pub fn expect_sum(page: impl Fn() -> Page, name: &str, labels: &[(&str, &str)], expected: f64) {
    let mut found = f64::NAN;
    let met = crate::within(crate::PATIENCE, || {
        found = page().sum(name, labels);
        found == expected
    });
    assert!(met, "{name}{labels:?} is {found}, not {expected}");
}

fn belongs(name: &str, family: &str, kind: &str) -> bool {
    match name.strip_prefix(family) {
        Some("") => kind == "counter" || kind == "gauge",
        Some("_bucket" | "_sum" | "_count") => kind == "histogram",
        _ => false,
    }
}

/// `name{a="b",c="d"} 1`
fn sample(line: &str) -> Option<Sample> {
    let end = line.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':'))?;
    let (name, mut rest) = line.split_at(end);
    let mut labels = BTreeMap::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        loop {
            let (label, after) = rest.split_once("=\"")?;
            let (value, after) = value(after)?;
            if labels.insert(label.to_owned(), value).is_some() {
                return None;
            }
            match after.strip_prefix(',') {
                Some(more) => rest = more,
                None => {
                    rest = after.strip_prefix('}')?;
                    break;
                }
            }
        }
    }
    Some(Sample {
        name: name.to_owned(),
        labels,
        value: number(rest.strip_prefix(' ')?)?,
    })
}

/// A label's value up to its closing quote, and what follows.
fn value(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => match chars.next()?.1 {
                'n' => value.push('\n'),
                c @ ('\\' | '"') => value.push(c),
                _ => return None,
            },
            c => value.push(c),
        }
    }
    None
}

fn number(text: &str) -> Option<f64> {
    match text {
        "+Inf" => Some(f64::INFINITY),
        text => text.parse().ok(),
    }
}
