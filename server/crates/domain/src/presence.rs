//! Who is playing now: the rules that every place of presence follows.

use platform_protocol::limits::PLAYING_SECONDS;

use crate::clock::Millis;

/// The maximum age of a page's last heartbeat for its player to count as playing.
pub const PLAYING_MILLIS: Millis = PLAYING_SECONDS as Millis * 1_000;

/// The maximum number of pages of one player: another one replaces the one that was silent for
/// longest, so that made-up page ids do not fill the memory.
pub const PAGES: usize = 16;

/// Whether a heartbeat at `at` still counts. A heartbeat from the future was recorded before the
/// clock was set back; it does not count until the clock has caught up.
#[must_use]
pub const fn counts(at: Millis, now: Millis) -> bool {
    now.saturating_sub(at).unsigned_abs() <= PLAYING_MILLIS.unsigned_abs()
}

/// Returns how much of the time between two heartbeats of a player is playing time: all of it, if
/// it is not longer than a player counts as playing after a heartbeat, otherwise nothing.
///
/// `here` is the time since the last heartbeat that this node received, if there was one, `shared`
/// since the last one that any node received, if that is known. The shorter of the two has not been
/// counted yet: after a time in which nodes did not know of each other, the shared one is older than
/// what this node has counted meanwhile.
#[must_use]
pub fn played(here: Option<Millis>, shared: Option<Millis>) -> Millis {
    let is_played = |gap: &Millis| (0..=PLAYING_MILLIS).contains(gap);
    let here = here.filter(|gap| *gap >= 0);
    let gap = match (here, shared) {
        (Some(here), Some(shared)) => Some(here.min(shared)),
        (here, shared) => here.or(shared),
    };
    gap.filter(is_played).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heartbeat_counts_for_75_seconds_by_a_clock_that_may_be_set_back() {
        for (at, is_counted) in [
            (0, true),
            (-75_000, true),
            (-75_001, false),
            (75_001, false),
        ] {
            assert_eq!(counts(1_000_000 + at, 1_000_000), is_counted, "{at}");
        }
    }

    #[test]
    fn the_time_since_the_last_heartbeat_of_any_node_is_played_once() {
        for (here, shared, expected) in [
            (None, None, 0),
            (Some(30_000), None, 30_000),
            (Some(75_000), None, 75_000),
            (Some(75_001), None, 0),
            (Some(-1), None, 0),
            // The previous heartbeat was at another node.
            (None, Some(30_000), 30_000),
            (Some(60_000), Some(30_000), 30_000),
            (Some(90_000), Some(30_000), 30_000),
            // The others did not see those that this node has counted.
            (Some(30_000), Some(60_000), 30_000),
            (Some(30_000), Some(90_000), 30_000),
            // One of the clocks was set back.
            (Some(-5), Some(30_000), 30_000),
            (Some(30_000), Some(-5), 0),
        ] {
            assert_eq!(played(here, shared), expected, "{here:?} {shared:?}");
        }
    }
}
