use serde::Serialize;

/// The callers that a Location is for, by where they are (`traffic-class`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TrafficClass {
    /// Those from outside: everybody who is not known to be inside.
    NorthSouth,
    /// Those known to be inside: pods, and the node itself.
    EastWest,
}

impl TrafficClass {
    /// Whether somebody may call who is known to be inside, or is not.
    pub fn admits(self, inside: bool) -> bool {
        (self == TrafficClass::EastWest) == inside
    }

    /// The value of the annotation.
    pub fn name(self) -> &'static str {
        match self {
            TrafficClass::NorthSouth => "north-south",
            TrafficClass::EastWest => "east-west",
        }
    }
}
