use std::fmt;
use std::sync::Arc;

use http::HeaderName;
use serde::Serialize;

use super::{AddressSet, Affinity, BackendId, ObjectRef, SplitKey, SplitPolicy};

/// How many Variants a Split can have, the stable one among them.
pub const MAX_VARIANTS: usize = 8;

/// The index of the stable Variant.
pub const STABLE: usize = 0;

/// The Variants of a Location with their weights and rules.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Split {
    /// Stable first, then the canaries, oldest first; 1 to [`MAX_VARIANTS`].
    pub variants: Vec<Variant>,
    /// In the order in which they are asked; the first that decides ends it.
    pub rules: Vec<Rule>,
    /// What else holds; none for most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<Arc<SplitPolicy>>,
}

impl Split {
    /// What keeps its clients where they are.
    pub fn affinity(&self) -> Option<&Affinity> {
        self.policy.as_ref()?.affinity.as_ref()
    }

    /// What decides in place of chance.
    pub fn key(&self) -> Option<&SplitKey> {
        self.policy.as_ref()?.key.as_ref()
    }

    /// The weights as the objects give them. The proxy reads the map's slot instead, which starts
    /// with these and can be changed from outside.
    pub fn weights(&self) -> Weights {
        let mut weights = Weights::default();
        for (variant, weight) in self.variants.iter().zip(&mut weights.values) {
            *weight = variant.weight;
        }
        weights.len = self.variants.len().min(MAX_VARIANTS) as u8;
        weights
    }
}

/// One side of a Split.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Variant {
    /// `stable`, or the name of the canary's Service.
    pub name: Arc<str>,
    /// The Ingress that asks for it: the main one for stable, else the canary's.
    pub ingress: ObjectRef,
    /// Who answers.
    pub backend: BackendId,
    /// Its part of the sum of all weights.
    pub weight: u32,
}

/// One test of a request that chooses a Variant without chance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rule {
    /// Index of the canary that it is for.
    pub variant: u8,
    /// What is looked at.
    pub test: Test,
}

/// What a [`Rule`] looks at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Test {
    /// A request header. `-` and `_` in the name are the same; lines of one name are joined
    /// with `, `.
    Header {
        /// Lower case, with `-` for `_`.
        #[serde(serialize_with = "header_name")]
        name: HeaderName,
        /// What its value must be.
        test: ValueTest,
    },
    /// A cookie. The name is compared without regard to case; the first one counts.
    Cookie {
        /// As written.
        name: Arc<str>,
        /// What its value must be.
        test: ValueTest,
    },
    /// A parameter of the query. The name is compared byte for byte; the first one counts.
    Query {
        /// As it reads without percent-encoding.
        name: Arc<str>,
        /// What its value, without percent-encoding, must be.
        test: ValueTest,
    },
    /// The client's address: the canary when it is in the set. Anything else goes on.
    Source(AddressSet),
}

/// What the value of a header, a cookie or a parameter decides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ValueTest {
    /// `always` chooses the canary, `never` chooses stable; both end the decision. Anything else
    /// goes on.
    AlwaysNever,
    /// Equal byte for byte: the canary. Anything else goes on.
    Value(Arc<str>),
    /// Matches, not anchored: the canary. Anything else goes on.
    Pattern(Pattern),
    /// The annotation's value is invalid: never decides (it has a Problem).
    Invalid,
}

/// What a header's value decides.
pub type HeaderTest = ValueTest;

/// What a cookie's value decides.
pub type CookieTest = ValueTest;

fn header_name<S: serde::Serializer>(name: &HeaderName, s: S) -> Result<S::Ok, S::Error> {
    s.serialize_str(name.as_str())
}

/// A compiled regular expression over bytes; equal when the text is.
#[derive(Clone)]
pub struct Pattern(Arc<regex::bytes::Regex>);

impl Pattern {
    /// The most memory that one compiled pattern may take, in bytes.
    pub const SIZE_LIMIT: usize = 256 * 1024;

    /// Compiles `text` as ingress-nginx means it: case-sensitive, byte-wise, unanchored.
    ///
    /// # Errors
    /// When the linear-time engine cannot take it: wrong syntax, look-around, back-references, or
    /// larger than [`Self::SIZE_LIMIT`].
    pub fn new(text: &str) -> Result<Self, regex::Error> {
        regex::bytes::RegexBuilder::new(text)
            .unicode(false)
            .size_limit(Self::SIZE_LIMIT)
            .build()
            .map(|regex| Pattern(Arc::new(regex)))
    }

    /// Whether it matches anywhere in `value`.
    pub fn is_match(&self, value: &[u8]) -> bool {
        self.0.is_match(value)
    }

    /// What its groups matched, if it matches anywhere in `value`.
    pub fn captures<'v>(&self, value: &'v [u8]) -> Option<regex::bytes::Captures<'v>> {
        self.0.captures(value)
    }

    /// The text it was made of.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Pattern {}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pattern({:?})", self.as_str())
    }
}

impl Serialize for Pattern {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// The weights of one Split at one moment, read from its slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Weights {
    /// By Variant; those past `len` are zero.
    pub values: [u32; MAX_VARIANTS],
    /// How many Variants there are.
    pub len: u8,
}

impl Weights {
    /// The sum of all weights. Saturates, as anybody may write a slot.
    pub fn total(&self) -> u32 {
        self.values
            .iter()
            .fold(0u32, |sum, weight| sum.saturating_add(*weight))
    }

    /// The Variant that owns `point`, for a point below [`Self::total`]; stable when there is none.
    pub fn at(&self, point: u32) -> usize {
        // Canaries take the low points, in order of age, so that raising one canary's weight takes
        // from stable and keeps what that canary had.
        let mut end = 0u32;
        for (index, weight) in self.values.iter().enumerate().skip(1) {
            end = end.saturating_add(*weight);
            if point < end {
                return index;
            }
        }
        STABLE
    }
}
