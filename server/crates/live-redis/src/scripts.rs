//! The scripts that Redis runs, by its own clock.

use redis::Script;

const CLOCK: &str = include_str!("scripts/clock.lua");
const ROOM: &str = include_str!("scripts/room.lua");
const BEAT: &str = include_str!("scripts/beat.lua");
const LEAVE: &str = include_str!("scripts/leave.lua");
const COUNT: &str = include_str!("scripts/count.lua");
const LIMIT: &str = include_str!("scripts/limit.lua");
const SPEND: &str = include_str!("scripts/spend.lua");
const TAKE: &str = include_str!("scripts/take.lua");

/// The scripts, each with what stands before it.
#[derive(Debug)]
pub(crate) struct Scripts {
    /// Records a heartbeat.
    pub(crate) beat: Script,
    /// Records that a page was closed.
    pub(crate) leave: Script,
    /// Counts current players. It is sent as a whole, because many are sent at once.
    pub(crate) count: String,
    /// Counts events against a rate limit that have happened already, and decides about others.
    pub(crate) spend: Script,
    /// Counts against a rate limit.
    pub(crate) take: Script,
}

impl Scripts {
    /// Returns the scripts that read the clock of Redis.
    pub(crate) fn by_the_clock_of_redis() -> Self {
        Self::with_clock(CLOCK)
    }

    /// Returns the scripts with this clock: Lua that sets `micros` and `now`.
    pub(crate) fn with_clock(clock: &str) -> Self {
        let script = |parts: &[&str]| Script::new(&parts.join("\n"));
        Self {
            beat: script(&[clock, ROOM, BEAT]),
            leave: script(&[clock, ROOM, LEAVE]),
            count: [clock, COUNT].join("\n"),
            spend: script(&[clock, LIMIT, SPEND]),
            take: script(&[clock, LIMIT, TAKE]),
        }
    }
}
