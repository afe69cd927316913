//! The rows that are written, by the store and without it.

use std::time::Instant;

use platform_protocol::log::{LogLevel, LogSource};
use platform_protocol::names::Environment;
use platform_server::clock::{Clock, Millis, SystemClock};
use platform_server::domain::log::{LogEntry, NewLogRecords};
use platform_server::domain::page::PageId;
use platform_server::domain::session::SessionHash;
use platform_server::entropy::{Entropy, SystemEntropy};
use uuid::Uuid;

use super::{now, period};

/// The project of records that are written without the store.
pub(super) const BARE: &str = "bare";
/// The player of all records.
const PLAYER: Uuid = Uuid::from_u128(7);

/// A guest with its session.
pub(super) struct Guest {
    pub(super) id: Uuid,
    pub(super) username: String,
    pub(super) session: SessionHash,
    pub(super) now: Millis,
}

/// The network address of all guests.
pub(super) const ADDRESS: &str = "192.0.2.1";

/// Returns a new guest. Its name is new, and lies anywhere in the index of names, like the generated
/// ones.
pub(super) fn guest() -> Guest {
    let entropy: &dyn Entropy = &SystemEntropy;
    let now = SystemClock.now();
    Guest {
        id: entropy.uuid_v7(now),
        username: format!("guest-{:016x}", u64::from_be_bytes(entropy.bytes())),
        session: SessionHash(entropy.bytes()),
        now,
    }
}

/// Returns the records of one request.
pub(super) fn records(slug: &str, count: usize, now: Millis) -> NewLogRecords {
    let entries = (0..count).map(|number| LogEntry {
        time: now,
        level: LogLevel::Info,
        source: LogSource::Console,
        message: format!("the player picked up coin {number} of level 3 at 12.5, 88.0"),
        stack: None,
        url: None,
        line: None,
        column: None,
        metadata: None,
        count: 1,
    });
    NewLogRecords {
        slug: slug.to_owned(),
        environment: Environment::Prod,
        deployment: None,
        player: Some(PLAYER),
        page: PageId([7; 16]),
        received_at: now,
        entries: entries.collect(),
    }
}

/// Until when a part of a round goes on, for all of its callers: those who never have to wait would
/// otherwise take turns.
#[derive(Clone, Copy)]
pub(super) struct Turn(Instant);

impl Turn {
    pub(super) fn begin() -> Self {
        Self(now())
    }

    pub(super) fn goes_on(&self) -> bool {
        self.0.elapsed() < period()
    }
}
