//! Short texts stored in place.

/// Longest text stored in place, in bytes: what makes an entry of the router fill a cache line.
const INLINE: usize = 30;

/// A text that needs no second memory access while it is short.
#[derive(Debug)]
pub(super) enum Text {
    /// Its length and bytes.
    Inline(u8, [u8; INLINE]),
    /// A longer one.
    Heap(Box<[u8]>),
}

impl Text {
    pub(super) fn new(text: &[u8]) -> Self {
        let mut bytes = [0; INLINE];
        match (u8::try_from(text.len()), bytes.get_mut(..text.len())) {
            (Ok(length), Some(start)) => {
                start.copy_from_slice(text);
                Text::Inline(length, bytes)
            }
            _ => Text::Heap(text.into()),
        }
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        match self {
            Text::Inline(length, bytes) => bytes.get(..usize::from(*length)).unwrap_or_default(),
            Text::Heap(bytes) => bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_every_length_come_back() {
        for length in 0..70 {
            let text: Vec<u8> = (0..length).collect();
            let stored = Text::new(&text);
            assert_eq!(stored.as_bytes(), text);
            assert_eq!(matches!(stored, Text::Inline(..)), text.len() <= INLINE);
        }
        assert_eq!(size_of::<Text>(), 32);
    }
}
