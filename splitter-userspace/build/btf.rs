//! Rust has no type that its compiler describes as text. Tools print an array as text when its
//! elements are C's `char`; so the object's signed byte, which the maps use for text only, is made
//! one in the type information (BTF).

/// Kinds of types, and what follows the three words that each begins with.
const INT: u32 = 1;

/// `encoding` of an integer: a character.
const CHARACTER: u32 = 2 << 24;

/// Marks the type `i8` of an object as characters. None when the object or its type information is
/// not what it should be.
pub fn mark_text(object: &mut [u8]) -> Option<()> {
    let (start, size) = section(object, b".BTF")?;
    let btf = object.get_mut(start..start.checked_add(size)?)?;
    let header = word(btf, 4)? as usize;
    let types = header + word(btf, 8)? as usize;
    let end = types + word(btf, 12)? as usize;
    let texts = header + word(btf, 16)? as usize;
    let mut at = types;
    while at < end {
        let (name, info) = (word(btf, at)? as usize, word(btf, at + 4)?);
        let (kind, count) = (info >> 24 & 0x1f, info as usize & 0xffff);
        if kind == INT && text(btf, texts + name)? == b"i8" {
            let encoding = word(btf, at + 12)? & 0x00ff_ffff | CHARACTER;
            btf.get_mut(at + 12..at + 16)?
                .copy_from_slice(&encoding.to_le_bytes());
        }
        at += 12 + rest(kind, count)?;
    }
    Some(())
}

/// Bytes that follow the three words of a type of this kind with that many members.
fn rest(kind: u32, count: usize) -> Option<usize> {
    Some(match kind {
        // Integer, variable, declaration tag.
        INT | 14 | 17 => 4,
        // Array.
        3 => 12,
        // Structure, union, section, 64-bit enumeration.
        4 | 5 | 15 | 19 => 12 * count,
        // Enumeration, prototype.
        6 | 13 => 8 * count,
        // Pointer, forward, typedef, qualifiers, function, float, type tag.
        2 | 7..=12 | 16 | 18 => 0,
        _ => return None,
    })
}

/// Where a section of a 64-bit little-endian ELF file lies, and its size.
fn section(object: &[u8], name: &[u8]) -> Option<(usize, usize)> {
    let headers = long(object, 0x28)?;
    let size = usize::from(short(object, 0x3a)?);
    let count = usize::from(short(object, 0x3c)?);
    let names = usize::from(short(object, 0x3e)?);
    let place = |index: usize| {
        let header = headers + index * size;
        Some((long(object, header + 0x18)?, long(object, header + 0x20)?))
    };
    let (names, _) = place(names)?;
    let named = |index: &usize| {
        let offset = word(object, headers + index * size);
        offset.and_then(|offset| text(object, names + offset as usize)) == Some(name)
    };
    place((0..count).find(named)?)
}

fn text(bytes: &[u8], at: usize) -> Option<&[u8]> {
    bytes.get(at..)?.split(|byte| *byte == 0).next()
}

fn short(bytes: &[u8], at: usize) -> Option<u16> {
    bytes
        .get(at..at + 2)?
        .try_into()
        .ok()
        .map(u16::from_le_bytes)
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes
        .get(at..at + 4)?
        .try_into()
        .ok()
        .map(u32::from_le_bytes)
}

fn long(bytes: &[u8], at: usize) -> Option<usize> {
    let value = bytes
        .get(at..at + 8)?
        .try_into()
        .ok()
        .map(u64::from_le_bytes)?;
    usize::try_from(value).ok()
}
