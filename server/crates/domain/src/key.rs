//! The life of a signing key: published, then signing, then only published, then removed. Times are
//! arguments; `keys` has the cryptography.

use crate::clock::Millis;

/// How long a new key is published before it signs. By then it is in every verifier's cached key
/// set, which is at most ten minutes old, and known to every node.
pub const PUBLISH_AHEAD_MILLIS: Millis = 21 * 60 * 1_000;
/// How long an old key stays published after its last token has expired.
pub const LINGER_MILLIS: Millis = 10 * 60 * 1_000;
/// The age at which a signing key is replaced automatically.
pub const ROTATE_AFTER_MILLIS: Millis = 90 * 24 * 60 * 60 * 1_000;

/// The minimum length of the operator's secret that seals keys in the store. It should come from a
/// generator, not from a person's memory.
pub const MIN_SECRET_BYTES: usize = 32;

/// A signing key as the store keeps it.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredKey {
    /// RFC 7638 thumbprint of the public key, base64url.
    pub kid: String,
    /// The private key: PKCS#8 DER, sealed if the operator set a secret.
    pub private: Vec<u8>,
    /// Whether `private` is sealed.
    pub sealed: bool,
    /// When it was made, and so published.
    pub created_at: Millis,
    /// The time from which it signs, until the next key's time.
    pub signs_from: Millis,
    /// The longest life of its tokens. The current setting may be shorter than an earlier one under
    /// which it signed.
    pub token_millis: Millis,
}

impl std::fmt::Debug for StoredKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoredKey")
            .field("kid", &self.kid)
            .field("created_at", &self.created_at)
            .field("signs_from", &self.signs_from)
            .finish_non_exhaustive()
    }
}

/// The state of a key at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyPhase {
    /// In the key set, but not signing yet.
    Published,
    /// Signing.
    Signing,
    /// In the key set, for tokens that it signed before.
    Retiring,
    /// Out of the key set.
    Gone,
}

/// When a key was made and from when it signs. These decide its phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyTimes {
    /// When it was made, and so published.
    pub created_at: Millis,
    /// The time from which it signs, until the next key's time.
    pub signs_from: Millis,
    /// The longest life of its tokens.
    pub token_millis: Millis,
}

/// The result of revoking a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Revocation {
    /// It was removed, and its successor added.
    Done,
    /// There is no such key.
    Missing,
    /// The keys have changed since the revocation was prepared.
    Changed,
}

impl StoredKey {
    /// Only the times.
    #[must_use]
    pub const fn times(&self) -> KeyTimes {
        KeyTimes {
            created_at: self.created_at,
            signs_from: self.signs_from,
            token_millis: self.token_millis,
        }
    }
}

impl KeyTimes {
    /// The times of a key that must sign at once: the first one, or the replacement of a revoked
    /// one.
    #[must_use]
    pub const fn at_once(now: Millis, token_millis: Millis) -> Self {
        Self {
            created_at: now,
            signs_from: now,
            token_millis,
        }
    }

    /// The times of a key made at `now` that follows others.
    #[must_use]
    pub const fn following(now: Millis, token_millis: Millis) -> Self {
        Self {
            created_at: now,
            signs_from: now + PUBLISH_AHEAD_MILLIS,
            token_millis,
        }
    }
}

/// The keys of a platform, in the order in which they were added, as a schedule of which key signs
/// when.
///
/// A key signs from its own time until that of the next key; of two with the same time, the one
/// added later wins. The earliest key also signs before its time: a clock that was set back must
/// not lock out the players.
#[derive(Clone, Debug)]
pub struct KeySchedule {
    times: Vec<KeyTimes>,
    /// Indices into `times`, in the order of signing.
    turns: Vec<usize>,
}

impl KeySchedule {
    /// Makes the schedule of these keys.
    #[must_use]
    pub fn new(times: Vec<KeyTimes>) -> Self {
        let mut turns: Vec<usize> = (0..times.len()).collect();
        // The sort is stable, so keys with the same time keep their order.
        turns.sort_by_key(|&index| times[index].signs_from);
        Self { times, turns }
    }

    /// The index of the key that signs at `now`. `None` if there is no key.
    #[must_use]
    pub fn signing_at(&self, now: Millis) -> Option<usize> {
        let begun = self
            .turns
            .partition_point(|&index| self.times[index].signs_from <= now);
        self.turns.get(begun.saturating_sub(1)).copied()
    }

    /// The state of the key at `index` at `now`.
    #[must_use]
    pub fn phase(&self, index: usize, now: Millis) -> KeyPhase {
        if self.signing_at(now) == Some(index) {
            return KeyPhase::Signing;
        }
        let believed = self.times[index].token_millis.saturating_add(LINGER_MILLIS);
        match self.stops_at(index) {
            Some(stop) if now >= stop.saturating_add(believed) => KeyPhase::Gone,
            Some(stop) if now >= stop => KeyPhase::Retiring,
            _ => KeyPhase::Published,
        }
    }

    /// When the key at `index` stops signing. `None` while no key follows it.
    #[must_use]
    pub fn stops_at(&self, index: usize) -> Option<Millis> {
        let turn = self.turns.iter().position(|&turn| turn == index)?;
        self.turns
            .get(turn + 1)
            .map(|&next| self.times[next].signs_from)
    }

    /// Whether the last key is so old at `now` that it needs a successor. A key that waits for its
    /// time counts as the last, so that only one successor is made.
    #[must_use]
    pub fn is_overdue(&self, now: Millis) -> bool {
        self.turns
            .last()
            .is_none_or(|&last| now - self.times[last].signs_from >= ROTATE_AFTER_MILLIS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Millis = 60 * 1_000;
    const TOKEN: Millis = 15 * MINUTE;

    fn schedule(times: &[(Millis, Millis)]) -> KeySchedule {
        let times = times
            .iter()
            .map(|&(created, signs)| KeyTimes {
                created_at: created * MINUTE,
                signs_from: signs * MINUTE,
                token_millis: TOKEN,
            })
            .collect();
        KeySchedule::new(times)
    }

    fn phases(schedule: &KeySchedule, minute: Millis) -> Vec<KeyPhase> {
        (0..schedule.times.len())
            .map(|index| schedule.phase(index, minute * MINUTE))
            .collect()
    }

    use KeyPhase::{Gone, Published, Retiring, Signing};

    #[test]
    fn a_single_key_signs_at_every_time() {
        let schedule = schedule(&[(0, 0)]);
        for minute in [-1_000_000, -1, 0, 1, 1_000_000] {
            assert_eq!(phases(&schedule, minute), [Signing], "minute {minute}");
        }
        assert_eq!(schedule.stops_at(0), None);
    }

    #[test]
    fn no_key_signs_where_there_is_none() {
        assert_eq!(schedule(&[]).signing_at(0), None);
        assert!(schedule(&[]).is_overdue(0));
    }

    #[test]
    fn a_rotation_publishes_then_signs_then_lingers() {
        let schedule = schedule(&[(0, 0), (100, 121)]);
        for (minute, expected) in [
            (100, [Signing, Published]),
            (120, [Signing, Published]),
            (121, [Retiring, Signing]),
            (145, [Retiring, Signing]),
            (146, [Gone, Signing]),
        ] {
            assert_eq!(phases(&schedule, minute), expected, "minute {minute}");
        }
    }

    #[test]
    fn rotating_twice_quickly_gives_each_key_its_turn() {
        let schedule = schedule(&[(0, 0), (100, 121), (101, 122)]);
        for (minute, expected) in [
            (120, [Signing, Published, Published]),
            (121, [Retiring, Signing, Published]),
            (122, [Retiring, Retiring, Signing]),
            (146, [Gone, Retiring, Signing]),
            (147, [Gone, Gone, Signing]),
        ] {
            assert_eq!(phases(&schedule, minute), expected, "minute {minute}");
        }
    }

    #[test]
    fn of_two_keys_of_one_moment_the_later_one_signs() {
        let schedule = schedule(&[(0, 0), (100, 121), (100, 121)]);
        assert_eq!(phases(&schedule, 121), [Retiring, Retiring, Signing]);
        assert_eq!(phases(&schedule, 146), [Gone, Gone, Signing]);
    }

    #[test]
    fn a_key_made_under_a_clock_set_back_takes_its_own_turn() {
        // Added second, at 100 by the clock; added third after the clock went
        // back by an hour.
        let schedule = schedule(&[(0, 0), (100, 121), (41, 62)]);
        for (minute, expected) in [
            (61, [Signing, Published, Published]),
            (62, [Retiring, Published, Signing]),
            (120, [Gone, Published, Signing]),
            (121, [Gone, Signing, Retiring]),
            (146, [Gone, Signing, Gone]),
        ] {
            assert_eq!(phases(&schedule, minute), expected, "minute {minute}");
        }
    }

    #[test]
    fn a_clock_before_every_key_leaves_the_earliest_signing_and_all_published() {
        let schedule = schedule(&[(100, 100), (200, 221)]);
        assert_eq!(phases(&schedule, -5_000), [Signing, Published]);
    }

    #[test]
    fn a_new_key_is_published_for_more_than_twenty_minutes_before_it_signs() {
        let times = KeyTimes::following(7, TOKEN);
        assert!(times.signs_from - times.created_at >= 20 * MINUTE);
        let first = KeyTimes::at_once(7, TOKEN);
        assert_eq!((first.created_at, first.signs_from), (7, 7));
    }

    #[test]
    fn a_key_is_overdue_after_ninety_days_unless_another_waits() {
        let day = 24 * 60;
        let one = schedule(&[(0, 0)]);
        assert!(!one.is_overdue(90 * day * MINUTE - 1));
        assert!(one.is_overdue(90 * day * MINUTE));
        let two = schedule(&[(0, 0), (90 * day, 90 * day + 21)]);
        assert!(!two.is_overdue(90 * day * MINUTE));
    }
}
