//! Whether a player plays: when the page starts to count its player, and when it stops. Times are
//! milliseconds of one clock that only moves forward.

/// A page counts its player first after being visible for this many milliseconds.
const FIRST: f64 = 5_000.0;
/// A page that was not used for this long does not count its player.
const IDLE: f64 = 300_000.0;

/// One page's presence.
#[derive(Debug, Default)]
pub struct Presence {
    /// Since when the page is visible.
    visible: Option<f64>,
    used: f64,
    counted: Option<f64>,
}

impl Presence {
    /// A page that was not visible yet.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            visible: None,
            used: 0.0,
            counted: None,
        }
    }

    /// Notes whether the page is `visible`, and was `used` since the last look. Returns whether the
    /// page counts its player now, at most once in `interval` milliseconds. Opening a page is a use
    /// of it.
    pub fn look(&mut self, now: f64, visible: bool, used: bool, interval: f64) -> bool {
        if !visible {
            self.visible = None;
            return false;
        }
        let since = *self.visible.get_or_insert(now);
        if used || since == now {
            self.used = now;
        }
        let due = now - since >= FIRST
            && now - self.used < IDLE
            && self.counted.is_none_or(|counted| now - counted >= interval);
        if due {
            self.counted = Some(now);
        }
        due
    }

    /// The page goes away. Returns whether its player was counted, so that a last heartbeat is
    /// useful. A page that is restored from the back/forward cache begins anew.
    pub fn leave(&mut self) -> bool {
        self.visible = None;
        self.counted.take().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: f64 = 30_000.0;

    /// The seconds at which a page counts its player, with one look each second.
    fn beats(seconds: u32, page: impl Fn(u32) -> (bool, bool)) -> Vec<u32> {
        let mut presence = Presence::new();
        (0..seconds)
            .filter(|second| {
                let (visible, used) = page(*second);
                presence.look(f64::from(*second) * 1_000.0, visible, used, INTERVAL)
            })
            .collect()
    }

    #[test]
    fn a_visible_page_counts_after_5_seconds_and_then_every_30() {
        assert_eq!(beats(100, |_| (true, true)), [5, 35, 65, 95]);
    }

    #[test]
    fn a_hidden_page_does_not_count() {
        assert_eq!(beats(1_000, |_| (false, true)), [0; 0]);
        assert_eq!(
            beats(200, |second| (!(50..150).contains(&second), true)),
            [5, 35, 155, 185]
        );
    }

    #[test]
    fn a_page_that_nobody_touches_stops_counting_after_5_minutes() {
        let beats = beats(1_000, |second| (true, second == 700));
        assert_eq!(beats.iter().filter(|beat| **beat < 700).count(), 10);
        assert_eq!(beats.get(9), Some(&275));
        assert_eq!(beats.get(10), Some(&700));
    }

    #[test]
    fn only_a_page_that_was_counted_says_farewell_and_a_restored_one_begins_anew() {
        let mut presence = Presence::new();
        assert!(!presence.look(0.0, true, true, INTERVAL));
        assert!(!presence.leave());
        presence.look(1_000.0, true, true, INTERVAL);
        assert!(presence.look(6_000.0, true, true, INTERVAL));
        assert!(presence.leave());
        assert!(!presence.leave());
        assert!(!presence.look(7_000.0, true, true, INTERVAL));
        assert!(presence.look(12_000.0, true, true, INTERVAL));
    }
}
