//! Values that can be used once, for a short time: requests and codes in memory.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The maximum number of entries; the oldest are removed first. One person on one machine needs
/// only a few.
const MOST: usize = 1_024;

/// Values under secret ids, each of which can be taken once.
pub(super) struct SingleUse<T> {
    life: Duration,
    entries: Mutex<VecDeque<Entry<T>>>,
}

struct Entry<T> {
    id: String,
    since: Duration,
    value: T,
}

impl<T> SingleUse<T> {
    /// Creates an empty collection, whose values can be taken for `life` after they were added.
    pub(super) const fn new(life: Duration) -> Self {
        Self {
            life,
            entries: Mutex::new(VecDeque::new()),
        }
    }

    /// Adds a value under an id that cannot be guessed. `now` is from a monotonic clock.
    pub(super) fn add(&self, id: String, value: T, now: Duration) {
        let mut entries = self.lock();
        self.forget_old(&mut entries, now);
        if entries.len() == MOST {
            entries.pop_front();
        }
        let since = now;
        entries.push_back(Entry { id, since, value });
    }

    /// Removes and returns the value with this id.
    pub(super) fn take(&self, id: &str, now: Duration) -> Option<T> {
        let mut entries = self.lock();
        self.forget_old(&mut entries, now);
        let place = entries.iter().position(|entry| entry.id == id)?;
        entries.remove(place).map(|entry| entry.value)
    }

    /// Whether there is a value with this id.
    pub(super) fn has(&self, id: &str, now: Duration) -> bool {
        let mut entries = self.lock();
        self.forget_old(&mut entries, now);
        entries.iter().any(|entry| entry.id == id)
    }

    fn forget_old(&self, entries: &mut VecDeque<Entry<T>>, now: Duration) {
        while entries
            .front()
            .is_some_and(|entry| now.saturating_sub(entry.since) >= self.life)
        {
            entries.pop_front();
        }
    }

    /// No holder panics, and no partial change is ever visible.
    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<Entry<T>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> fmt::Debug for SingleUse<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SingleUse(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn second(number: u64) -> Duration {
        Duration::from_secs(number)
    }

    #[test]
    fn a_value_is_taken_once() {
        let values = SingleUse::new(second(60));
        values.add("a".to_owned(), 1, second(0));
        assert!(values.has("a", second(1)) && !values.has("b", second(1)));
        assert_eq!(values.take("b", second(1)), None);
        assert_eq!(values.take("a", second(1)), Some(1));
        assert_eq!(values.take("a", second(1)), None);
    }

    #[test]
    fn a_value_does_not_outlive_its_time() {
        let values = SingleUse::new(second(60));
        values.add("a".to_owned(), 1, second(0));
        values.add("b".to_owned(), 2, second(30));
        assert!(values.has("a", second(59)));
        assert!(!values.has("a", second(60)));
        assert_eq!(values.take("a", second(60)), None);
        assert_eq!(values.take("b", second(60)), Some(2));
    }

    #[test]
    fn the_oldest_makes_room() {
        let values = SingleUse::new(second(60));
        for number in 0..=MOST {
            values.add(number.to_string(), number, second(0));
        }
        assert_eq!(values.take("0", second(0)), None);
        assert_eq!(values.take("1", second(0)), Some(1));
        assert_eq!(values.take(&MOST.to_string(), second(0)), Some(MOST));
    }
}
