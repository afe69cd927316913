//! The servers of both sides, each with its data in a folder of its own.

use std::time::Duration;

use anyhow::Result;

use super::Both;
use super::subjects::Program;
use super::turns::Side;
use crate::contenders::{self, UNLIMITED};
use crate::process::Process;

/// In this time a server that was asked for nothing does what it still had to do.
const QUIET_PERIOD: Duration = Duration::from_millis(20);

/// A value for the old side and one for the new side.
pub(super) struct Sides<T> {
    old: T,
    new: T,
}

impl<T> Sides<T> {
    /// Makes both.
    pub(super) fn make(mut of: impl FnMut(Side) -> Result<T>) -> Result<Self> {
        Ok(Self {
            old: of(Side::Old)?,
            new: of(Side::New)?,
        })
    }

    /// That of one side.
    pub(super) const fn of(&self, side: Side) -> &T {
        match side {
            Side::Old => &self.old,
            Side::New => &self.new,
        }
    }
}

impl Side {
    /// A short name, for files.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Side::Old => "old",
            Side::New => "new",
        }
    }
}

/// Starts the server of one side without limits per address, with its data in a folder of this name,
/// and with these variables.
pub(super) fn start(
    both: &Both<'_>,
    side: Side,
    name: &str,
    variables: &[(&str, String)],
) -> Result<Process> {
    let data = both.folder.join(format!("{name}-{}", side.name()));
    let program = both.side(side).program(Program::Server);
    let mut server = contenders::serve(both.workspace, &program, &data)?;
    server.envs(UNLIMITED);
    server.envs(variables.iter().map(|(name, value)| (name, value)));
    Process::start(&mut server)
}

/// Waits for what servers do by themselves.
#[expect(
    clippy::disallowed_methods,
    reason = "that a server does nothing more is seen only over real time"
)]
pub(super) fn pause() {
    std::thread::sleep(QUIET_PERIOD);
}
