/// Where a peer is. Its code is what lies in maps and what indexes the per-class counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
pub enum Class {
    /// Cannot be told: gets the least trusted pool.
    Unknown = 0,
    /// Outside of the cluster.
    NorthSouth = 1,
    /// A pod.
    EastWest = 2,
    /// Another node. Not the same as a pod: masquerading hides others behind node addresses.
    Node = 3,
    /// This node itself.
    Local = 4,
}

impl Class {
    /// How many classes there are.
    pub const COUNT: usize = 5;

    /// Every class, in the order of the codes.
    pub const ALL: [Class; Class::COUNT] = [
        Class::Unknown,
        Class::NorthSouth,
        Class::EastWest,
        Class::Node,
        Class::Local,
    ];

    /// The number in maps.
    #[inline(always)]
    pub const fn code(self) -> u32 {
        self as u32
    }

    /// The class of a number in a map; a number that means nothing is [`Class::Unknown`].
    pub const fn from_code(code: u32) -> Class {
        if (code as usize) < Class::COUNT {
            Class::ALL[code as usize]
        } else {
            Class::Unknown
        }
    }

    /// The name in logs, metrics and options.
    pub const fn name(self) -> &'static str {
        match self {
            Class::Unknown => "unknown",
            Class::NorthSouth => "north-south",
            Class::EastWest => "east-west",
            Class::Node => "node",
            Class::Local => "local",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_positions() {
        for (index, class) in Class::ALL.iter().enumerate() {
            assert_eq!(class.code() as usize, index);
            assert_eq!(Class::from_code(class.code()), *class);
        }
        assert_eq!(Class::from_code(5), Class::Unknown);
        assert_eq!(Class::from_code(u32::MAX), Class::Unknown);
    }
}
