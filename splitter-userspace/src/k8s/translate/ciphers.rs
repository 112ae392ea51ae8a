//! OpenSSL's cipher strings (ciphers(1)), as nginx takes them, over the suites that there are.

use crate::model::TlsSuite;

/// What a cipher string comes to.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Ciphers {
    /// The suites in their order; empty if there are none.
    pub suites: Vec<TlsSuite>,
    /// The words that name something which is not to be had, or not known.
    pub missing: Vec<String>,
}

/// The longest cipher string that is read, in bytes; lists of browsers' makers have some 1,000.
const LONGEST: usize = 8192;

/// Reads a cipher string. Suites of TLS 1.3 are all left in, as OpenSSL does, unless some of them
/// are named: then only those.
pub(super) fn read(text: &str) -> Ciphers {
    let mut state = State::default();
    if text.len() > LONGEST {
        // A part of it could allow what the rest takes away.
        return Ciphers {
            suites: Vec::new(),
            missing: vec![format!("more than {LONGEST} bytes")],
        };
    }
    let words = text.split(|c: char| matches!(c, ':' | ',') || c.is_whitespace());
    for word in words.filter(|word| !word.is_empty()) {
        state.take(word);
    }
    let named13 = state.suites.iter().any(|suite| suite.is_tls13());
    let mut suites = state.suites;
    if !named13 && !suites.is_empty() {
        let of13 = TlsSuite::ALL.into_iter().filter(|suite| suite.is_tls13());
        let of13 = of13.filter(|suite| !state.banned.contains(suite));
        suites = of13.chain(suites).collect();
    }
    Ciphers {
        suites,
        missing: state.missing,
    }
}

#[derive(Default)]
struct State {
    suites: Vec<TlsSuite>,
    /// Excluded for good (`!`).
    banned: Vec<TlsSuite>,
    missing: Vec<String>,
}

impl State {
    fn take(&mut self, word: &str) {
        let (sign, names) = match word.as_bytes().first() {
            Some(sign @ (b'!' | b'-' | b'+' | b'@')) => (*sign, word.get(1..).unwrap_or_default()),
            _ => (b' ', word),
        };
        if sign == b'@' {
            // All that there are would pass its highest level but for the size of keys.
            if names != "STRENGTH" && !names.starts_with("SECLEVEL=") {
                self.missing.push(word.to_owned());
            }
            return;
        }
        let Some(meant) = meaning(names) else {
            self.missing.push(word.to_owned());
            return;
        };
        match sign {
            b'!' => {
                self.suites.retain(|suite| !meant.contains(suite));
                self.banned.extend(meant);
            }
            b'-' => self.suites.retain(|suite| !meant.contains(suite)),
            b'+' => {
                // To the end, without adding any.
                let (moved, stay): (Vec<_>, Vec<_>) = std::mem::take(&mut self.suites)
                    .into_iter()
                    .partition(|suite| meant.contains(suite));
                self.suites = stay.into_iter().chain(moved).collect();
            }
            _ if meant.is_empty() => self.missing.push(word.to_owned()),
            _ => {
                let new =
                    |suite: &TlsSuite| !self.suites.contains(suite) && !self.banned.contains(suite);
                let new: Vec<_> = meant.into_iter().filter(new).collect();
                self.suites.extend(new);
            }
        }
    }
}

/// The suites that have all that the words between `+` name; none when a word is not known.
fn meaning(names: &str) -> Option<Vec<TlsSuite>> {
    let mut meant = TlsSuite::ALL.to_vec();
    for name in names.split('+') {
        let has = word(name)?;
        meant.retain(|suite| has(*suite));
    }
    Some(meant)
}

type Test = Box<dyn Fn(TlsSuite) -> bool>;

/// What one word tells of a suite. Words of OpenSSL for what is not to be had are known, so that
/// leaving it out is nothing to report.
fn word(name: &str) -> Option<Test> {
    if let Some(exact) = TlsSuite::ALL.into_iter().find(|it| it.name() == name) {
        return Some(Box::new(move |suite| suite == exact));
    }
    let of12 = |test: fn(&str) -> bool| -> Test {
        Box::new(move |suite| !suite.is_tls13() && test(suite.name()))
    };
    Some(match name {
        "ALL"
        | "DEFAULT"
        | "COMPLEMENTOFDEFAULT"
        | "HIGH"
        | "FIPS"
        | "TLSv1.2"
        | "ECDHE"
        | "EECDH"
        | "kECDHE"
        | "kEECDH" => of12(|_| true),
        "ECDSA" | "aECDSA" => of12(|it| it.contains("-ECDSA-")),
        "aRSA" => of12(|it| it.contains("-RSA-")),
        "AES" => of12(|it| it.contains("-AES")),
        "AESGCM" => of12(|it| it.contains("-GCM-")),
        "AES128" => of12(|it| it.contains("AES128")),
        "AES256" => of12(|it| it.contains("AES256")),
        "CHACHA20" => of12(|it| it.contains("CHACHA20")),
        "SHA256" => of12(|it| it.ends_with("SHA256")),
        "SHA384" => of12(|it| it.ends_with("SHA384")),
        _ if ABSENT.contains(&name) || is_absent_suite(name) => Box::new(|_| false),
        _ => return None,
    })
}

/// Words for what the library has not, as it is weak or unusual.
const ABSENT: &[&str] = &[
    "3DES",
    "ADH",
    "AECDH",
    "AESCCM",
    "AESCCM8",
    "ARIA",
    "ARIA128",
    "ARIA256",
    "ARIAGCM",
    "CAMELLIA",
    "CAMELLIA128",
    "CAMELLIA256",
    "CBC",
    "DES",
    "DH",
    "DHE",
    "DSS",
    "EDH",
    "EXP",
    "EXPORT",
    "EXPORT40",
    "EXPORT56",
    "GOST",
    "IDEA",
    "KRB5",
    "LOW",
    "MD5",
    "MEDIUM",
    "NULL",
    "PSK",
    "RC2",
    "RC4",
    "RSA",
    "SEED",
    "SHA",
    "SHA1",
    "SRP",
    "SSLv2",
    "SSLv3",
    "TLSv1",
    "TLSv1.0",
    "TLSv1.1",
    "aDSS",
    "aNULL",
    "aPSK",
    "eNULL",
    "kDH",
    "kDHE",
    "kDHEPSK",
    "kECDHEPSK",
    "kEDH",
    "kPSK",
    "kRSA",
    "kRSAPSK",
    "kSRP",
];

/// A whole suite's name, such as `DHE-RSA-AES256-GCM-SHA384` or `TLS_AES_128_CCM_SHA256`.
fn is_absent_suite(name: &str) -> bool {
    let ends = ["SHA", "SHA256", "SHA384", "MD5", "CCM", "CCM8", "POLY1305"];
    let dashed = name.contains('-') && ends.iter().any(|end| name.ends_with(end));
    let listed = name.starts_with("TLS_") && ends.iter().any(|end| name.ends_with(end));
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (dashed || listed) && name.bytes().all(letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<&'static str> {
        read(text).suites.into_iter().map(TlsSuite::name).collect()
    }

    const OF_13: [&str; 3] = [
        "TLS_AES_256_GCM_SHA384",
        "TLS_AES_128_GCM_SHA256",
        "TLS_CHACHA20_POLY1305_SHA256",
    ];

    /// Those of TLS 1.2 only, where all of TLS 1.3 are there too.
    fn names12(text: &str) -> Vec<&'static str> {
        let names = names(text);
        assert_eq!(names.get(..3), Some(&OF_13[..]), "{text}");
        names.get(3..).unwrap_or_default().to_vec()
    }

    #[test]
    fn names_keep_their_order_and_what_is_not_there_is_told() {
        let list = "ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384:DHE-RSA-AES256-SHA";
        let expected = [
            "ECDHE-RSA-AES128-GCM-SHA256",
            "ECDHE-ECDSA-AES256-GCM-SHA384",
        ];
        assert_eq!(names12(list), expected);
        assert_eq!(read(list).missing, ["DHE-RSA-AES256-SHA"]);
        assert_eq!(names12(&list.replace(':', ", ")), expected);
    }

    #[test]
    fn words_stand_for_many_and_signs_take_away() {
        let ecdsa = [
            "ECDHE-ECDSA-AES256-GCM-SHA384",
            "ECDHE-ECDSA-AES128-GCM-SHA256",
            "ECDHE-ECDSA-CHACHA20-POLY1305",
        ];
        assert_eq!(names12("HIGH:!aNULL:!MD5").len(), 6);
        assert_eq!(names12("EECDH+ECDSA"), ecdsa);
        assert_eq!(names12("HIGH:!aRSA"), ecdsa);
        assert_eq!(
            names12("ECDSA:!AES128:ECDHE-ECDSA-AES128-GCM-SHA256").len(),
            2
        );
        assert_eq!(
            names12("ECDSA:-AES128:ECDHE-ECDSA-AES128-GCM-SHA256").len(),
            3
        );
        assert_eq!(names12("ECDSA:+AES256")[0], ecdsa[1]);
        assert_eq!(names12("ECDHE+AESGCM+aRSA:@STRENGTH").len(), 2);
        assert!(
            read("HIGH:!aNULL:!kRSA:!DHE:@SECLEVEL=2")
                .missing
                .is_empty()
        );
    }

    #[test]
    fn suites_of_tls_1_3_are_those_that_are_named_if_any_are() {
        assert_eq!(names("TLS_AES_256_GCM_SHA384"), ["TLS_AES_256_GCM_SHA384"]);
        let both = names("TLS_AES_128_GCM_SHA256:ECDHE-RSA-AES128-GCM-SHA256");
        assert_eq!(
            both,
            ["TLS_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256"]
        );
        let without = names("HIGH:!TLS_CHACHA20_POLY1305_SHA256");
        assert!(!without.contains(&OF_13[2]) && without.contains(&OF_13[0]));
    }

    #[test]
    fn nothing_to_be_had_is_nothing() {
        for text in [
            "",
            "!aNULL",
            "DHE-RSA-AES256-SHA",
            "NULL",
            "nonsense",
            ":::",
            "AES256+DHE",
        ] {
            assert_eq!(names(text), [""; 0], "{text}");
        }
        assert_eq!(read("nonsense:HIGH:!fancy").missing, ["nonsense", "!fancy"]);
        assert!(read(&"é:".repeat(9000)).suites.is_empty());
    }
}
