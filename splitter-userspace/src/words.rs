//! Looks at eight bytes at once: heads and log lines are looked at byte by byte otherwise, which is a
//! tenth of what a request costs.

const LOW: u64 = u64::from_ne_bytes([0x01; 8]);
const HIGH: u64 = u64::from_ne_bytes([0x80; 8]);

/// Eight bytes.
#[derive(Clone, Copy)]
pub(crate) struct Word(u64);

impl Word {
    /// Whether they are all visible ASCII or blanks, and none of them is one of these.
    pub(crate) fn is_printable_without<const N: usize>(self, others: [u8; N]) -> bool {
        let others = others.iter().fold(0, |all, other| all | self.is(*other));
        (self.0 | self.less(b' ') | self.is(0x7f) | others) & HIGH == 0
    }

    /// Whether none of them is a control character of ASCII.
    pub(crate) fn is_without_controls(self) -> bool {
        (self.less(b' ') | self.is(0x7f)) & !self.0 & HIGH == 0
    }

    // The high bit of a byte is set where it is less than `least`, or has it itself. Borrows go up only,
    // from a byte for which it is set already, so that none is missed.
    fn less(self, least: u8) -> u64 {
        self.0.wrapping_sub(LOW * u64::from(least))
    }

    // The high bit of a byte is set where it is `byte`, or one of the two has it.
    fn is(self, byte: u8) -> u64 {
        (self.0 ^ (LOW * u64::from(byte))).wrapping_sub(LOW)
    }
}

/// How many bytes from the start are as wanted: by `word` where it says so, by `byte` else.
pub(crate) fn prefix(
    value: &[u8],
    word: impl Fn(Word) -> bool,
    byte: impl Fn(u8) -> bool,
) -> usize {
    let (words, _) = value.as_chunks();
    let known = words
        .iter()
        .take_while(|it| word(Word(u64::from_ne_bytes(**it))))
        .count()
        * size_of::<u64>();
    let rest = value.get(known..).unwrap_or_default();
    known + rest.iter().take_while(|it| byte(**it)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each byte in each place, among bytes at the borders.
    fn each(check: impl Fn(u8, [u8; 8])) {
        for byte in 0..=u8::MAX {
            for place in 0..8 {
                for around in [b' ', b'!', b'#', b'[', b'~', b'a'] {
                    let mut word = [around; 8];
                    word[place] = byte;
                    check(byte, word);
                }
            }
        }
    }

    #[test]
    fn a_word_is_printable_when_each_of_its_bytes_is() {
        each(|byte, word| {
            let expected = matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\';
            let word = Word(u64::from_ne_bytes(word));
            assert_eq!(word.is_printable_without([b'"', b'\\']), expected);
        });
    }

    #[test]
    fn no_control_character_is_missed() {
        each(|byte, word| {
            let expected = byte >= b' ' && byte != 0x7f;
            let word = Word(u64::from_ne_bytes(word));
            assert_eq!(word.is_without_controls(), expected);
        });
        let word = Word(u64::from_ne_bytes([
            0, 0x80, 0xff, b'a', 0x1f, b' ', b'~', 9,
        ]));
        assert!(!word.is_without_controls());
    }

    #[test]
    fn a_prefix_ends_in_a_word_behind_words_and_in_the_rest() {
        let length = |text: &[u8]| {
            let byte = |byte: u8| byte != b'"' && byte.is_ascii_graphic();
            prefix(text, |word| word.is_printable_without([b'"']), byte)
        };
        assert_eq!(length(b""), 0);
        assert_eq!(length(b"0123456789\"abcdefghij"), 10);
        assert_eq!(length(b"01234567\"9abcdefghij"), 8);
        assert_eq!(length(b"0123456789abcdefghij"), 20);
        assert_eq!(length(b"0123456789abcdefghi\""), 19);
    }
}
