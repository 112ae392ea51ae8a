//! The archive that a kernel takes as its first file system ("newc").

use std::collections::BTreeSet;

/// An archive being made.
#[derive(Default)]
pub(super) struct Archive {
    bytes: Vec<u8>,
    entries: u32,
    directories: BTreeSet<String>,
}

impl Archive {
    /// Adds a directory, with those above it.
    pub(super) fn directory(&mut self, path: &str) {
        let ends = path
            .match_indices('/')
            .map(|(end, _)| end)
            .chain([path.len()]);
        for end in ends {
            let above = &path[..end];
            if !above.is_empty() && self.directories.insert(above.to_owned()) {
                self.entry(above, 0o040_755, &[]);
            }
        }
    }

    /// Adds a file, with the directories above it.
    pub(super) fn file(&mut self, path: &str, mode: u32, content: Vec<u8>) {
        if let Some((above, _)) = path.rsplit_once('/') {
            self.directory(above);
        }
        self.entry(path, 0o100_000 | mode, &content);
    }

    /// The finished archive.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, &[]);
        self.bytes
    }

    fn entry(&mut self, path: &str, mode: u32, content: &[u8]) {
        self.entries += 1;
        let (name, size) = (path.len() as u32 + 1, content.len() as u32);
        // Number, mode, owner, group, links, time, size, devices, length of the name, checksum.
        let fields = [self.entries, mode, 0, 0, 1, 0, size, 0, 0, 0, 0, name, 0];
        self.bytes.extend(b"070701");
        for field in fields {
            self.bytes.extend(format!("{field:08x}").bytes());
        }
        self.bytes.extend(path.bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_aligned_and_directories_come_once_and_first() {
        let mut archive = Archive::default();
        archive.file("a/b/c", 0o755, vec![1, 2, 3]);
        archive.file("a/b/d", 0o644, vec![4]);
        let bytes = archive.finish();
        assert_eq!(bytes.len() % 4, 0);
        let text = String::from_utf8_lossy(&bytes);
        let names = text.split("070701").skip(1).map(|entry| {
            entry[104..]
                .split('\0')
                .next()
                .unwrap_or_default()
                .to_owned()
        });
        let names: Vec<String> = names.collect();
        assert_eq!(names, ["a", "a/b", "a/b/c", "a/b/d", "TRAILER!!!"]);
    }
}
