//! Which frontend log records are kept, folded, left out and sent, and when.
//!
//! [`Log`] keeps account of records that it never sees: the page holds them,
//! in the same order, and hands in a number that is equal for equal records,
//! and a size. Times are milliseconds of one clock that only moves forward.

/// Equal records within so many milliseconds become one.
const FOLD: f64 = 1_000.0;
/// The span of the budget, and different records in it.
const MINUTE: f64 = 60_000.0;
const BUDGET: u32 = 100;
/// A batch is sent so long after its first record, or once it has so many
/// records or bytes.
const WAIT: f64 = 5_000.0;
const BATCH: usize = 50;
const BATCH_BYTES: u32 = 16 * 1024;
/// What is kept at most while nothing can be sent.
const KEPT: usize = 100;
const KEPT_BYTES: u32 = 32 * 1024;
/// How long nothing is sent after a failure that names no time.
const PAUSE: f64 = 30_000.0;
/// Bytes that may be on their way from a page that goes away, at most. The
/// browser takes 64 KiB in all; the rest is the game's.
const FAREWELL_BYTES: u32 = 60_000;

/// What becomes of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// It is one more of the record at this place.
    Fold(usize),
    /// It comes last.
    Append,
    /// It comes last, and the batch is to be sent now.
    AppendAndSend,
    /// It is left out, and counted.
    LeaveOut,
}

/// A batch that is on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
    /// How many records it has.
    pub records: usize,
    /// Their size in bytes.
    pub bytes: u32,
    /// Whether it may outlive the page.
    pub keepalive: bool,
}

/// The account of one page's records.
#[derive(Debug, Default)]
pub struct Log {
    /// The number of each record and when it was made, oldest first.
    kept: Vec<(u32, f64)>,
    bytes: u32,
    minute: f64,
    spent: u32,
    left_out: u32,
    not_before: f64,
    leaving: u32,
}

impl Log {
    /// Nothing was recorded yet.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            kept: Vec::new(),
            bytes: 0,
            minute: 0.0,
            spent: 0,
            left_out: 0,
            not_before: 0.0,
            leaving: 0,
        }
    }

    /// A record was made. `same` is equal for equal records, `bytes` its size.
    pub fn record(&mut self, now: f64, same: u32, bytes: u32) -> Place {
        let equal = |kept: &(u32, f64)| kept.0 == same && now - kept.1 < FOLD;
        if let Some(at) = self.kept.iter().position(equal) {
            return Place::Fold(at);
        }
        if now - self.minute >= MINUTE {
            self.minute = now;
            self.spent = 0;
        }
        let full = self.kept.len() >= KEPT || self.bytes + bytes > KEPT_BYTES + BATCH_BYTES;
        if self.spent >= BUDGET || full {
            self.left_out += 1;
            return Place::LeaveOut;
        }
        self.spent += 1;
        self.kept.push((same, now));
        self.bytes += bytes;
        if (self.kept.len() >= BATCH || self.bytes >= BATCH_BYTES) && now >= self.not_before {
            Place::AppendAndSend
        } else {
            Place::Append
        }
    }

    /// Whether a batch has waited long enough.
    #[must_use]
    pub fn is_due(&self, now: f64) -> bool {
        self.kept.first().is_some_and(|first| now - first.1 >= WAIT) && now >= self.not_before
    }

    /// Takes all that is kept as a batch to send, unless there is none or none
    /// may be sent now. A page that goes away is `leaving`.
    pub fn take(&mut self, now: f64, leaving: bool) -> Option<Batch> {
        if self.kept.is_empty() || now < self.not_before {
            return None;
        }
        let keepalive = leaving && self.leaving + self.bytes <= FAREWELL_BYTES;
        let batch = Batch { records: self.kept.len(), bytes: self.bytes, keepalive };
        self.kept.clear();
        self.bytes = 0;
        if keepalive {
            self.leaving += batch.bytes;
        }
        Some(batch)
    }

    /// How many records were left out since this was last asked.
    pub const fn take_left_out(&mut self) -> u32 {
        core::mem::replace(&mut self.left_out, 0)
    }

    /// A batch arrived, or was refused for good.
    pub const fn settle(&mut self, batch: Batch) {
        if batch.keepalive {
            self.leaving -= batch.bytes;
        }
    }

    /// A batch did not arrive; nothing is sent for `pause` milliseconds, or a
    /// while if that is not known. Answers whether its records come first
    /// again; else they are left out, since there is no room for them.
    pub fn fail(&mut self, now: f64, batch: Batch, pause: Option<f64>) -> bool {
        self.settle(batch);
        self.not_before = now + pause.unwrap_or(PAUSE);
        let room =
            self.kept.len() + batch.records <= KEPT && self.bytes + batch.bytes <= KEPT_BYTES;
        if room {
            // Number 0 at a time long past: nothing is folded into these.
            let past = (0, f64::NEG_INFINITY);
            self.kept.splice(0..0, core::iter::repeat_n(past, batch.records));
            self.bytes += batch.bytes;
        } else {
            self.left_out += batch.records as u32;
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
        assert_eq!(log.record(0.0, 7, 100), Place::Append);
        assert_eq!(log.record(1.0, 8, 100), Place::Append);
        assert_eq!(log.record(999.0, 7, 100), Place::Fold(0));
        assert_eq!(log.record(1_000.0, 8, 100), Place::Fold(1));
        assert_eq!(log.record(1_000.0, 7, 100), Place::Append);
    }

    #[test]
    fn a_batch_is_due_five_seconds_after_its_first_record() {
        let mut log = Log::new();
        assert!(!log.is_due(9_999.0));
        log.record(10_000.0, 1, 10);
        log.record(14_000.0, 2, 10);
        assert!(!log.is_due(14_999.0));
        assert!(log.is_due(15_000.0));
        let batch = log.take(15_000.0, false);
        assert_eq!(batch, Some(Batch { records: 2, bytes: 20, keepalive: false }));
        assert!(!log.is_due(99_000.0));
        assert_eq!(log.take(99_000.0, false), None);
    }

    #[test]
    fn a_batch_is_sent_at_50_records_or_16_kibibytes() {
        let mut log = Log::new();
        for same in 1..50 {
            assert_eq!(log.record(0.0, same, 10), Place::Append);
        }
        assert_eq!(log.record(0.0, 50, 10), Place::AppendAndSend);
        let mut log = Log::new();
        assert_eq!(log.record(0.0, 1, 16_383), Place::Append);
        assert_eq!(log.record(0.0, 2, 1), Place::AppendAndSend);
    }

    #[test]
    fn a_hundred_different_records_a_minute_and_the_rest_is_counted() {
        let mut log = Log::new();
        let mut sent = 0;
        for same in 1..=10_000 {
            if log.record(0.0, same, 10) == Place::AppendAndSend {
                sent += log.take(0.0, false).map_or(0, |batch| batch.records);
            }
        }
        assert_eq!(sent, 100);
        assert_eq!(log.take_left_out(), 9_900);
        assert_eq!(log.take_left_out(), 0);
        assert_eq!(log.record(59_999.0, 1, 10), Place::LeaveOut);
        assert_eq!(log.record(60_000.0, 1, 10), Place::Append);
    }

    #[test]
    fn after_a_failure_nothing_is_sent_for_a_while_and_nothing_is_lost() {
        let mut log = Log::new();
        log.record(0.0, 1, 10);
        let batch = log.take(5_000.0, false).expect("a batch");
        log.record(5_100.0, 2, 10);
        assert!(log.fail(5_200.0, batch, Some(7_000.0)));
        assert!(!log.is_due(12_199.0));
        assert_eq!(log.take(12_199.0, true), None);
        assert!(log.is_due(12_200.0));
        assert_eq!(log.record(12_200.0, 2, 10), Place::Append, "places moved");
        assert_eq!(log.take(12_200.0, false).map(|batch| batch.records), Some(3));
    }

    #[test]
    fn what_there_is_no_room_for_is_counted() {
        let mut log = Log::new();
        log.record(0.0, 1, 16_384);
        let batch = log.take(0.0, false).expect("a batch");
        log.record(0.0, 2, 16_385);
        assert!(!log.fail(0.0, batch, None));
        assert_eq!(log.take_left_out(), 1);
        assert!(!log.is_due(29_999.0));
        assert!(log.is_due(30_000.0));
    }

    #[test]
    fn a_farewell_stays_within_60_000_bytes_on_their_way() {
        let mut log = Log::new();
        let mut leave = |bytes| {
            log.record(0.0, bytes, bytes);
            (log.take(0.0, true).expect("a batch"), log.leaving)
        };
        assert!(leave(30_000).0.keepalive);
        assert!(leave(29_999).0.keepalive);
        assert!(!leave(2).0.keepalive);
        let (last, leaving) = leave(1);
        assert!(last.keepalive);
        assert_eq!(leaving, 60_000);
        log.settle(last);
        assert_eq!(log.leaving, 59_999);
    }
}
