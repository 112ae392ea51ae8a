//! What a request should find, by looking at each rule in turn.
//!
//! A path is taken apart into symbols: a slash, or a byte that was written plainly or encoded. All
//! comparing is done on those.

use splitter::model::{HostPattern, LocationKey, PathKind};

/// What should be found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    Rule(LocationKey),
    NoHost,
    NoPath(HostPattern),
    Refused,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symbol {
    Slash,
    Byte(u8),
}

pub fn find(rules: &[LocationKey], host: &str, path: &str) -> Expected {
    let Some(pattern) = host_rule(rules, host) else {
        return Expected::NoHost;
    };
    if !path.starts_with('/') {
        return Expected::NoPath(pattern);
    }
    let (symbols, decodable) = symbols(path);
    if !decodable {
        return Expected::Refused;
    }
    let rules: Vec<&LocationKey> = rules.iter().filter(|rule| rule.host == pattern).collect();
    let here = best(&rules, &symbols);
    for habits in 0..32 {
        match read(&symbols, habits) {
            Some(reading) if best(&rules, &reading) == here => {}
            _ => return Expected::Refused,
        }
    }
    match here {
        Some(rule) => Expected::Rule(rule.clone()),
        None => Expected::NoPath(pattern),
    }
}

fn host_rule(rules: &[LocationKey], host: &str) -> Option<HostPattern> {
    let labels: Vec<&str> = host.split('.').collect();
    let covers = |pattern: &HostPattern| match pattern {
        HostPattern::Exact(name) => **name == *host,
        HostPattern::Wildcard(suffix) => {
            !labels[0].is_empty() && labels[1..].join(".") == **suffix && labels.len() > 1
        }
        HostPattern::Any => true,
    };
    let patterns = rules.iter().map(|rule| rule.host.clone());
    patterns.filter(covers).min()
}

/// The symbols of a path, and whether all of it can be decoded.
pub fn symbols(path: &str) -> (Vec<Symbol>, bool) {
    let (mut symbols, mut decodable) = (Vec::new(), true);
    let mut bytes = path.bytes().collect::<std::collections::VecDeque<u8>>();
    while let Some(byte) = bytes.pop_front() {
        let digit = |at: usize| {
            bytes
                .get(at)
                .and_then(|byte| char::from(*byte).to_digit(16))
        };
        match (byte, digit(0), digit(1)) {
            (b'/', ..) => symbols.push(Symbol::Slash),
            (b'%', Some(high), Some(low)) => {
                let byte = (high * 16 + low) as u8;
                decodable &= byte != 0;
                symbols.push(Symbol::Byte(byte));
                bytes.drain(..2);
            }
            _ => {
                decodable &= byte != b'%' && byte != 0;
                symbols.push(Symbol::Byte(byte));
            }
        }
    }
    (symbols, decodable)
}

fn best<'a>(rules: &[&'a LocationKey], path: &[Symbol]) -> Option<&'a LocationKey> {
    let mut matching: Vec<(Rank, &LocationKey)> = rules
        .iter()
        .filter_map(|rule| rank(rule, path).map(|rank| (rank, *rule)))
        .collect();
    matching.sort();
    matching.first().map(|(_, rule)| *rule)
}

/// The lower the better: how much of the path is not covered; Exact before Prefix; how much the
/// rule's text falls short of the longest.
type Rank = (usize, bool, std::cmp::Reverse<usize>);

fn rank(rule: &LocationKey, path: &[Symbol]) -> Option<Rank> {
    let (text, _) = symbols(&rule.path);
    let length = std::cmp::Reverse(text.len());
    let covered = match rule.kind {
        PathKind::Exact => (text == path).then_some(path.len())?,
        PathKind::Prefix => {
            let mut trimmed = &text[..];
            while let [start @ .., Symbol::Slash] = trimmed {
                trimmed = start;
            }
            let rest = path.strip_prefix(trimmed)?;
            if !matches!(rest, [] | [Symbol::Slash, ..]) {
                return None;
            }
            trimmed.len()
        }
        PathKind::Regex => return None,
    };
    Some((path.len() - covered, rule.kind == PathKind::Prefix, length))
}

/// One reading of a path; none when it leads above the root. The habits are bits: encoded slashes,
/// backslashes, parameters, merging, dots.
fn read(path: &[Symbol], habits: u8) -> Option<Vec<Symbol>> {
    let habit = |bit: u8| habits & (1 << bit) != 0;
    let slashes = path.iter().map(|symbol| match symbol {
        Symbol::Byte(b'/') if habit(0) => Symbol::Slash,
        Symbol::Byte(b'\\') if habit(1) => Symbol::Slash,
        symbol => *symbol,
    });
    let path: Vec<Symbol> = slashes.collect();
    let mut elements: Vec<Vec<Symbol>> = path[1..]
        .split(|symbol| *symbol == Symbol::Slash)
        .map(<[Symbol]>::to_vec)
        .collect();
    if habit(2) {
        for element in &mut elements {
            let semicolon = element
                .iter()
                .position(|symbol| *symbol == Symbol::Byte(b';'));
            element.truncate(semicolon.unwrap_or(element.len()));
        }
    }
    if habit(3) {
        let last = elements.pop()?;
        elements.retain(|element| !element.is_empty());
        elements.push(last);
    }
    if habit(4) {
        elements = without_dots(elements)?;
    }
    Some(
        elements
            .into_iter()
            .flat_map(|element| [vec![Symbol::Slash], element].concat())
            .collect(),
    )
}

fn without_dots(elements: Vec<Vec<Symbol>>) -> Option<Vec<Vec<Symbol>>> {
    const DOT: Symbol = Symbol::Byte(b'.');
    let mut kept = Vec::new();
    let count = elements.len();
    for (index, element) in elements.into_iter().enumerate() {
        match &element[..] {
            [DOT] => {}
            [DOT, DOT] => {
                kept.pop()?;
            }
            _ => {
                kept.push(element);
                continue;
            }
        }
        if index + 1 == count {
            kept.push(Vec::new());
        }
    }
    Some(kept)
}
