//! The command that this program starts: it has a process group of its own, which ends with this
//! program as a whole, whatever the command started in turn.

use std::ffi::OsString;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::process::{Child, ChildStdin, Command};

use crate::clock::pause;
use crate::failure::Failure;
use crate::terminal;

/// How long the group may take to end by itself after each signal.
const PATIENCE: Duration = Duration::from_secs(3);
/// How often it is looked at meanwhile.
const LOOK: Duration = Duration::from_millis(20);

/// A running command.
pub(super) struct Program {
    child: Child,
    /// Its standard input, which waiting for the child would close.
    _input: Option<ChildStdin>,
    /// As it was typed.
    shown: String,
    group: Group,
    has_ended: bool,
}

impl Program {
    /// Starts a command. Its output goes to this program's own. Its standard input stays open and
    /// empty: some tools end when it does, and the keys of the terminal belong to this program.
    ///
    /// # Errors
    /// It cannot be started.
    pub(super) fn start(
        command: &[OsString],
        variables: &[(&str, String)],
    ) -> Result<Self, Failure> {
        let shown: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
        let shown = shown.join(" ");
        let (program, arguments) = command
            .split_first()
            .ok_or_else(|| Failure::usage("There is no command after --."))?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .envs(variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .kill_on_drop(true);
        #[cfg(unix)]
        command.process_group(0);
        let mut child = command.spawn().map_err(|error| {
            let program = program.to_string_lossy();
            Failure::failed(if error.kind() == io::ErrorKind::NotFound {
                format!(
                    "There is no program {program}: install it, or name its file. The programs of \
                     npm packages are run with `npx {shown}`."
                )
            } else {
                format!("{program} cannot be started: {error}.")
            })
        })?;
        Ok(Self {
            group: Group::of(&child),
            _input: child.stdin.take(),
            child,
            shown,
            has_ended: false,
        })
    }

    /// The command as it was typed.
    pub(super) fn shown(&self) -> &str {
        &self.shown
    }

    /// Its process group.
    pub(super) const fn group(&self) -> Group {
        self.group
    }

    /// Waits until the command ends by itself.
    ///
    /// # Errors
    /// It failed.
    pub(super) async fn ended(&mut self) -> Result<(), Failure> {
        let shown = &self.shown;
        match self.child.wait().await {
            Ok(status) if status.success() => {
                terminal::note(format_args!("`{shown}` has ended."));
                Ok(())
            }
            Ok(status) => Err(Failure::failed(format!(
                "`{shown}` has ended{}.",
                how(status)
            ))),
            Err(error) => Err(Failure::failed(format!("`{shown}` is lost: {error}."))),
        }
    }

    /// Ends the whole group: first as Ctrl-C would, then more firmly.
    pub(super) async fn end(mut self) {
        for signal in [Signal::Interrupt, Signal::Terminate] {
            self.group.send(signal);
            if self.is_gone_soon().await {
                break;
            }
        }
        self.kill();
        let _ = self.child.wait().await;
    }

    async fn is_gone_soon(&mut self) -> bool {
        let gone = async {
            // An ended process counts as one until it is waited for.
            while !matches!(self.child.try_wait(), Ok(Some(_))) || self.group.has_members() {
                pause(LOOK).await;
            }
        };
        tokio::time::timeout(PATIENCE, gone).await.is_ok()
    }

    fn kill(&mut self) {
        if !self.has_ended {
            self.has_ended = true;
            self.group.send(Signal::Kill);
            let _ = self.child.start_kill();
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.kill();
    }
}

fn how(status: ExitStatus) -> String {
    match status.code() {
        Some(code) => format!(" with the exit status {code}"),
        None => format!(" ({status})"),
    }
}

#[derive(Clone, Copy, Debug)]
enum Signal {
    Interrupt,
    Terminate,
    Kill,
}

/// A process group, where the system has such groups. Elsewhere only the command itself is ended.
#[cfg(unix)]
#[derive(Clone, Copy, Debug)]
pub(super) struct Group(Option<rustix::process::Pid>);

#[cfg(unix)]
impl Group {
    fn of(child: &Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Self(id.and_then(rustix::process::Pid::from_raw))
    }

    /// Its number.
    pub(super) fn number(self) -> Option<i32> {
        self.0.map(|id| id.as_raw_nonzero().get())
    }

    /// Sends a signal to every member. A group without members needs none.
    fn send(self, signal: Signal) {
        use rustix::process::{Signal as Known, kill_process_group};
        let signal = match signal {
            Signal::Interrupt => Known::INT,
            Signal::Terminate => Known::TERM,
            Signal::Kill => Known::KILL,
        };
        let _ = self.0.map(|id| kill_process_group(id, signal));
    }

    fn has_members(self) -> bool {
        self.0
            .is_some_and(|id| rustix::process::test_kill_process_group(id).is_ok())
    }
}

#[cfg(not(unix))]
#[derive(Clone, Copy, Debug)]
pub(super) struct Group;

#[cfg(not(unix))]
impl Group {
    const fn of(_child: &Child) -> Self {
        Self
    }

    const fn send(self, _signal: Signal) {}

    const fn has_members(self) -> bool {
        false
    }
}
