//! Which frontend log records are kept, folded, left out and sent, and when.
//!
//! [`Log`] keeps account of records that it never sees: the page holds them, in the same order, and
//! passes a number that is equal for equal records, and a size. Times are milliseconds of one clock
//! that only moves forward.

/// Equal records within this many milliseconds become one.
const FOLD: f64 = 1_000.0;
/// The period of the budget, and how many different records it allows.
const MINUTE: f64 = 60_000.0;
const BUDGET: u32 = 100;
/// The part of the budget that is reserved for errors.
const FOR_ERRORS: u32 = 20;
/// A batch is sent this long after its first record, or once it has this many records or bytes.
const WAIT: f64 = 5_000.0;
const BATCH: usize = 50;
const BATCH_BYTES: u32 = 16 * 1024;
/// How many records are kept at most while nothing can be sent. One more record may report how many
/// were left out, and the server takes a hundred.
const KEPT: usize = 99;
const KEPT_BYTES: u32 = 32 * 1024;
/// For how long nothing is sent after a failure that names no time.
const PAUSE: f64 = 30_000.0;
/// Bytes under way that outlive the page, at most. The browser allows 64 KiB in all; the rest is
/// for the game.
const LASTING_BYTES: i32 = 60_000;

/// What happens to a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// It repeats the record at this index.
    Fold(usize),
    /// It is appended.
    Append,
    /// It is appended, and the batch is to be sent now.
    AppendAndSend,
    /// It is left out, and counted.
    LeaveOut,
}

/// The account of one page's records.
#[derive(Debug, Default)]
pub struct Log {
    /// How many records were put back in front of the others. No record is folded into these.
    again: usize,
    /// The number of each other record and when it was made, oldest first.
    kept: Vec<(u32, f64)>,
    bytes: u32,
    minute: f64,
    spent: u32,
    left_out: u32,
    not_before: f64,
    lasting: i32,
}

impl Log {
    /// A log without records.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            again: 0,
            kept: Vec::new(),
            bytes: 0,
            minute: 0.0,
            spent: 0,
            left_out: 0,
            not_before: 0.0,
            lasting: 0,
        }
    }

    /// A record was made. `same` is equal for equal records, `bytes` is its size; `urgent` ones may
    /// use the whole budget.
    pub fn record(&mut self, now: f64, same: u32, bytes: u32, urgent: bool) -> Place {
        let equal = |kept: &(u32, f64)| kept.0 == same && now - kept.1 < FOLD;
        if let Some(at) = self.kept.iter().position(equal) {
            return Place::Fold(self.again + at);
        }
        if now - self.minute >= MINUTE {
            self.minute = now;
            self.spent = 0;
        }
        let full = self.count() >= KEPT || self.bytes + bytes > KEPT_BYTES + BATCH_BYTES;
        let budget = if urgent { BUDGET } else { BUDGET - FOR_ERRORS };
        if self.spent >= budget || full {
            self.left_out += 1;
            return Place::LeaveOut;
        }
        self.spent += 1;
        self.kept.push((same, now));
        self.bytes += bytes;
        if (self.count() >= BATCH || self.bytes >= BATCH_BYTES) && now >= self.not_before {
            Place::AppendAndSend
        } else {
            Place::Append
        }
    }

    /// Takes all kept records as a batch, if it is due or `at_once`; a batch may be only the number
    /// of left-out records. Returns its size in bytes, negative if it may not outlive the page, or
    /// 0 if there is none or none may be sent now.
    ///
    /// A batch that does not outlive the page is lost if the page goes away meanwhile.
    pub fn take(&mut self, now: f64, at_once: bool) -> i32 {
        let oldest = match self.kept.first() {
            _ if self.again > 0 => f64::NEG_INFINITY,
            Some((_, made)) => *made,
            // There is only a number to report, and it grows until its minute is over.
            None if self.left_out > 0 => self.minute + MINUTE - WAIT,
            None => return 0,
        };
        if now < self.not_before || (!at_once && now - oldest < WAIT) {
            return 0;
        }
        // Sizes are far below the range of this type.
        let size = core::mem::take(&mut self.bytes).max(1) as i32;
        self.kept.clear();
        self.again = 0;
        if self.lasting + size <= LASTING_BYTES {
            self.lasting += size;
            size
        } else {
            -size
        }
    }

    const fn count(&self) -> usize {
        self.again + self.kept.len()
    }

    /// How many records were left out since the last call.
    pub const fn take_left_out(&mut self) -> u32 {
        core::mem::replace(&mut self.left_out, 0)
    }

    /// A batch of this `size`, as [`Log::take`] returned it, and this number of records ended.
    /// `pause` is 0 if it arrived or was refused for good, else the milliseconds until the next
    /// attempt, or negative if they are unknown. Returns whether its records are put back in front;
    /// without room for them they are left out.
    pub fn end(&mut self, now: f64, size: i32, records: u32, pause: f64) -> bool {
        self.lasting -= size.max(0);
        if pause == 0.0 {
            return false;
        }
        self.not_before = now + if pause > 0.0 { pause } else { PAUSE };
        let (bytes, count) = (self.bytes + size.unsigned_abs(), records as usize);
        let room = self.count() + count <= KEPT && bytes <= KEPT_BYTES;
        if room {
            self.again += count;
            self.bytes = bytes;
        } else {
            self.left_out += records;
        }
        room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_records_within_a_second_are_folded() {
        let mut log = Log::new();
        assert_eq!(log.record(0.0, 7, 100, false), Place::Append);
        assert_eq!(log.record(1.0, 8, 100, false), Place::Append);
        assert_eq!(log.record(999.0, 7, 100, false), Place::Fold(0));
        assert_eq!(log.record(1_000.0, 8, 100, false), Place::Fold(1));
        assert_eq!(log.record(1_000.0, 7, 100, false), Place::Append);
    }

    #[test]
    fn what_was_left_out_is_told_without_another_record() {
        let mut log = Log::new();
        for number in 0..90 {
            log.record(0.0, number, 10, false);
        }
        assert_ne!(log.take(5_000.0, false), 0);
        assert_eq!(log.take_left_out(), 10);
        log.record(10_000.0, 1_000, 10, false);
        assert_eq!(log.take(59_999.0, false), 0, "its minute is not over");
        assert_ne!(log.take(60_000.0, false), 0);
        assert_eq!(log.take_left_out(), 1);
        assert_eq!(log.take(90_000.0, true), 0);
        log.record(10_000.0, 1_001, 10, false);
        assert_ne!(log.take(11_000.0, true), 0);
    }

    #[test]
    fn a_batch_is_due_five_seconds_after_its_first_record() {
        let mut log = Log::new();
        assert_eq!(log.take(9_999.0, true), 0);
        log.record(10_000.0, 1, 10, false);
        log.record(14_000.0, 2, 10, false);
        assert_eq!(log.take(14_999.0, false), 0);
        assert_eq!(log.take(15_000.0, false), 20);
        assert_eq!(log.take(99_000.0, true), 0);
    }

    #[test]
    fn a_batch_is_sent_at_50_records_or_16_kibibytes() {
        let mut log = Log::new();
        for same in 1..50 {
            assert_eq!(log.record(0.0, same, 10, false), Place::Append);
        }
        assert_eq!(log.record(0.0, 50, 10, false), Place::AppendAndSend);
        let mut log = Log::new();
        assert_eq!(log.record(0.0, 1, 16_383, false), Place::Append);
        assert_eq!(log.record(0.0, 2, 1, false), Place::AppendAndSend);
    }

    #[test]
    fn a_hundred_different_records_a_minute_and_the_rest_is_counted() {
        let mut log = Log::new();
        let mut kept = 0;
        for same in 1..=10_000 {
            match log.record(0.0, same, 10, false) {
                Place::Append => kept += 1,
                Place::AppendAndSend => {
                    kept += 1;
                    log.take(0.0, true);
                }
                _ => {}
            }
        }
        assert_eq!(kept, 80, "a talkative game leaves the rest for its errors");
        for error in 1..=20 {
            assert_ne!(log.record(0.0, 20_000 + error, 10, true), Place::LeaveOut);
            log.take(0.0, true);
        }
        assert_eq!(log.record(0.0, 30_000, 10, true), Place::LeaveOut);
        assert_eq!(log.take_left_out(), 9_921);
        assert_eq!(log.take_left_out(), 0);
        assert_eq!(log.record(59_999.0, 1, 10, true), Place::LeaveOut);
        assert_eq!(log.record(60_000.0, 1, 10, true), Place::Append);
    }

    #[test]
    fn after_a_failure_nothing_is_sent_for_a_while_and_nothing_is_lost() {
        let mut log = Log::new();
        log.record(0.0, 1, 10, false);
        let size = log.take(5_000.0, false);
        log.record(5_100.0, 2, 10, false);
        assert!(log.end(5_200.0, size, 1, 7_000.0));
        assert_eq!(log.take(12_199.0, true), 0);
        assert_eq!(
            log.record(12_200.0, 2, 10, false),
            Place::Append,
            "places moved"
        );
        assert_eq!(log.take(12_200.0, false), 30);
    }

    #[test]
    fn what_there_is_no_room_for_is_counted() {
        let mut log = Log::new();
        log.record(0.0, 1, 16_384, false);
        let size = log.take(0.0, true);
        log.record(0.0, 2, 16_385, false);
        assert!(!log.end(0.0, size, 1, -1.0));
        assert_eq!(log.take_left_out(), 1);
        assert_eq!(log.take(29_999.0, true), 0);
        assert_eq!(log.take(30_000.0, true), 16_385);
    }

    #[test]
    fn what_outlives_the_page_stays_within_60_000_bytes_on_their_way() {
        let mut log = Log::new();
        let leave = |log: &mut Log, bytes| {
            log.record(0.0, bytes, bytes, false);
            log.take(0.0, true)
        };
        assert_eq!(leave(&mut log, 30_000), 30_000);
        assert_eq!(leave(&mut log, 29_999), 29_999);
        assert_eq!(leave(&mut log, 2), -2);
        assert_eq!(leave(&mut log, 1), 1);
        assert!(!log.end(0.0, 29_999, 1, 0.0));
        assert_eq!(leave(&mut log, 29_999), 29_999);
    }
}
