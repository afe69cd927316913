//! Which files of the cache were used last, and how much space they take. It knows nothing of disks.

use std::collections::{BTreeMap, HashMap};

use crate::clock::Millis;

/// How long a use is not written to the disk again, in milliseconds.
const NOTED: Millis = 3_600 * 1_000;

/// The files of the cache, least recently used first.
#[derive(Debug, Default)]
pub(super) struct Lru {
    files: HashMap<String, Entry>,
    by_use: BTreeMap<u64, String>,
    uses: u64,
    /// The size of all files, and of those that are being fetched.
    bytes: u64,
}

#[derive(Debug)]
struct Entry {
    size: u64,
    used: u64,
    /// When the disk was told of a use.
    noted: Millis,
}

impl Lru {
    /// Adds a file that was used now. Its size was reserved, or is added by [`Lru::reserve`].
    pub(super) fn add(&mut self, name: &str, size: u64, noted: Millis) {
        if self.files.contains_key(name) {
            // It was fetched twice, and is there once.
            self.release(size);
            return;
        }
        self.uses += 1;
        let used = self.uses;
        self.by_use.insert(used, name.to_owned());
        let entry = Entry { size, used, noted };
        self.files.insert(name.to_owned(), entry);
    }

    /// Records a use. Returns the file's size, and whether the disk is to be told; `None` if there
    /// is no such file.
    pub(super) fn touch(&mut self, name: &str, now: Millis) -> Option<(u64, bool)> {
        let entry = self.files.get_mut(name)?;
        self.by_use.remove(&entry.used);
        self.uses += 1;
        entry.used = self.uses;
        self.by_use.insert(entry.used, name.to_owned());
        let tell = now - entry.noted >= NOTED;
        if tell {
            entry.noted = now;
        }
        Some((entry.size, tell))
    }

    /// Whether there is such a file.
    pub(super) fn has(&self, name: &str) -> bool {
        self.files.contains_key(name)
    }

    /// Counts space for a file that is being fetched.
    pub(super) const fn reserve(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Gives back space that was reserved.
    pub(super) const fn release(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    /// Forgets a file.
    pub(super) fn remove(&mut self, name: &str) {
        if let Some(entry) = self.files.remove(name) {
            self.by_use.remove(&entry.used);
            self.release(entry.size);
        }
    }

    /// Forgets the file that was not used for the longest time, and returns its name.
    pub(super) fn remove_oldest(&mut self) -> Option<String> {
        let (_, name) = self.by_use.pop_first()?;
        if let Some(entry) = self.files.remove(&name) {
            self.release(entry.size);
        }
        Some(name)
    }

    /// Returns the size of all files, and of those that are being fetched.
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(files: &[(&str, u64)]) -> Lru {
        let mut lru = Lru::default();
        for (name, size) in files {
            lru.reserve(*size);
            lru.add(name, *size, 0);
        }
        lru
    }

    #[test]
    fn the_file_that_was_not_used_for_the_longest_time_goes_first() {
        let mut lru = with(&[("a", 1), ("b", 2), ("c", 4)]);
        assert_eq!(lru.touch("a", 0), Some((1, false)));
        assert_eq!(lru.touch("x", 0), None);
        assert_eq!(lru.remove_oldest().as_deref(), Some("b"));
        assert_eq!(lru.bytes(), 5);
        assert_eq!(lru.remove_oldest().as_deref(), Some("c"));
        assert_eq!(lru.remove_oldest().as_deref(), Some("a"));
        assert_eq!((lru.remove_oldest(), lru.bytes()), (None, 0));
    }

    #[test]
    fn a_file_that_is_added_twice_or_forgotten_takes_no_space() {
        let mut lru = with(&[("a", 3), ("a", 3)]);
        assert_eq!(lru.bytes(), 3);
        lru.remove("a");
        lru.remove("a");
        assert_eq!((lru.bytes(), lru.has("a")), (0, false));
        assert_eq!(lru.remove_oldest(), None);
    }

    #[test]
    fn the_disk_is_told_of_a_use_once_an_hour() {
        let mut lru = with(&[("a", 1)]);
        let told: Vec<bool> = [0, NOTED - 1, NOTED, NOTED + 1, NOTED * 2]
            .map(|now| lru.touch("a", now).unwrap().1)
            .to_vec();
        assert_eq!(told, [false, false, true, false, true]);
    }
}
