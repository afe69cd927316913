//! Whether the time of day can be believed when data is removed because of its age.
//!
//! A clock that is set a year ahead by mistake makes everything old at once: frontend logs, devices,
//! deletions that players may still take back. What is removed then does not come back when the clock
//! is set right. So after a jump ahead nothing is removed because of its age, until the clock is set
//! back, or has kept its time for a day.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::clock::{Clock, Millis};

/// How far the time of day may get ahead of the time that has passed.
const JUMP: Millis = 24 * 60 * 60 * 1_000;
/// How long after a jump nothing is removed.
const WAIT: Duration = Duration::from_secs(24 * 60 * 60);
/// If the store was last written longer ago than this, the clock may be wrong since before the start.
const LONG_AGO: Millis = 30 * JUMP;

/// Compares the time of day with the time that has passed.
#[derive(Debug)]
pub struct Calendar {
    clock: Arc<dyn Clock>,
    known: Mutex<Known>,
}

#[derive(Debug)]
struct Known {
    /// A time of day that was believed.
    day: Millis,
    /// The clock that nobody sets, at that moment.
    moment: Duration,
    /// When the time of day began to be doubtful, by the clock that nobody sets.
    doubted: Option<Duration>,
}

impl Calendar {
    /// Believes the time of day now.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let known = Known {
            day: clock.now(),
            moment: clock.elapsed(),
            doubted: None,
        };
        Self {
            known: Mutex::new(known),
            clock,
        }
    }

    /// Doubts the time of day if the store was last written at `day`, and that is very long ago: the
    /// clock may have been wrong since before the start.
    pub fn compare_with_last_write(&self, day: Millis) {
        if self.clock.now().saturating_sub(day) > LONG_AGO {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            known.day = day;
        }
    }

    /// Whether the time of day has jumped ahead within the last day, so that nothing may be removed
    /// because of its age.
    #[must_use]
    pub fn is_doubtful(&self) -> bool {
        let (now, moment) = (self.clock.now(), self.clock.elapsed());
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let passed = moment.saturating_sub(known.moment).as_millis();
        let passed = Millis::try_from(passed).unwrap_or(Millis::MAX);
        let ahead = now.saturating_sub(known.day.saturating_add(passed));
        let is_doubtful = ahead > JUMP
            && known
                .doubted
                .is_none_or(|since| moment.saturating_sub(since) < WAIT);
        match (is_doubtful, known.doubted) {
            (true, None) => tracing::error!(
                hours = ahead / (60 * 60 * 1_000),
                "the time of day is ahead of what was expected: if the clock is wrong, let NTP set it; \
                 for a day, nothing is removed because of its age"
            ),
            (false, Some(_)) => tracing::info!("the time of day is believed again"),
            _ => {}
        }
        if is_doubtful {
            known.doubted = known.doubted.or(Some(moment));
        } else {
            *known = Known {
                day: now,
                moment,
                doubted: None,
            };
        }
        is_doubtful
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;

    const HOUR: Millis = 60 * 60 * 1_000;
    const DAY: Millis = 24 * HOUR;
    const YEAR: Millis = 365 * DAY;
    const NOW: Millis = 1_800_000_000_000;

    fn calendar() -> (Arc<ManualClock>, Calendar) {
        let clock = Arc::new(ManualClock::new(NOW));
        (clock.clone(), Calendar::new(clock))
    }

    #[test]
    fn time_that_passes_is_believed_and_so_are_small_corrections() {
        let (clock, calendar) = calendar();
        for _ in 0..10 {
            clock.advance(YEAR);
            assert!(!calendar.is_doubtful());
            clock.jump(HOUR);
            assert!(!calendar.is_doubtful());
            clock.jump(-HOUR);
            assert!(!calendar.is_doubtful());
        }
    }

    #[test]
    fn after_a_jump_the_time_is_doubtful_for_a_day_or_until_the_clock_is_right() {
        let (clock, calendar) = calendar();
        clock.jump(YEAR);
        assert!(calendar.is_doubtful());
        clock.advance(DAY - 1);
        assert!(calendar.is_doubtful());
        clock.jump(-YEAR);
        assert!(!calendar.is_doubtful(), "it was set right");
        clock.jump(YEAR);
        assert!(calendar.is_doubtful(), "another jump, and another day");
        clock.advance(DAY);
        assert!(!calendar.is_doubtful());
        clock.advance(DAY);
        assert!(!calendar.is_doubtful(), "it is the time from now on");
    }

    #[test]
    fn a_server_that_was_stopped_for_very_long_waits_for_a_day() {
        let (clock, calendar) = calendar();
        calendar.compare_with_last_write(NOW - 30 * DAY);
        assert!(!calendar.is_doubtful());
        calendar.compare_with_last_write(NOW - YEAR);
        assert!(calendar.is_doubtful());
        clock.advance(DAY);
        assert!(!calendar.is_doubtful());
        calendar.compare_with_last_write(NOW + YEAR);
        assert!(!calendar.is_doubtful(), "written by a clock that was ahead");
    }
}
