//! Compile-time proof of a map type's layout.

/// Asserts size, alignment and the offset of every field of a map type.
macro_rules! layout {
    ($type:ty, size $size:literal, align $align:literal, { $($field:ident: $offset:literal),+ $(,)? }) => {
        const _: () = {
            assert!(::core::mem::size_of::<$type>() == $size);
            assert!(::core::mem::align_of::<$type>() == $align);
            $(assert!(::core::mem::offset_of!($type, $field) == $offset);)+
        };
    };
}

pub(crate) use layout;

/// The bytes of a map value, for golden-byte tests.
#[cfg(test)]
pub(crate) fn bytes_of<T: Copy>(value: &T) -> &[u8] {
    // SAFETY: the map types have no implicit padding (each is asserted to be as large as its
    // fields), so every byte of them is initialised.
    unsafe {
        core::slice::from_raw_parts(core::ptr::from_ref(value).cast(), core::mem::size_of::<T>())
    }
}
