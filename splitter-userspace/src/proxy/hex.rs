//! Numbers in hexadecimal digits.

/// 32 hexadecimal digits.
pub fn digits(id: u128) -> [u8; 32] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = [b'0'; 32];
    for (index, digit) in text.iter_mut().enumerate() {
        let nibble = (id >> (124 - 4 * index)) & 0xf;
        *digit = DIGITS[nibble as usize];
    }
    text
}
