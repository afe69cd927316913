//! The machine: its processors, which of them run the servers and which the load, and what else
//! keeps it busy.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Serialize;
use xtask::command::{command, output};

/// The fewest cores that are shared out.
const ENOUGH: usize = 4;

/// How long the machine is watched before the run.
const WATCHED: Duration = Duration::from_secs(2);

/// The processors of the load, once they are set apart.
static OF_LOAD: OnceLock<String> = OnceLock::new();

/// What a run says of its machine.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Machine {
    /// Processors that this program may use.
    pub(super) processors: usize,
    /// The processors of the servers and those of the load, if they are set apart.
    pub(super) pinned: Option<[String; 2]>,
    /// Processors that other programs used before the run.
    pub(super) busy: f64,
}

/// Sets some cores apart for the load and leaves the others to the servers, if there are enough.
/// All programs that this one starts from now on inherit that.
pub(super) fn divide() -> Result<Machine> {
    let status =
        std::fs::read_to_string("/proc/self/status").context("/proc/self/status cannot be read")?;
    let processors = allowed(&status).context("/proc/self/status does not name processors")?;
    let mut machine = Machine {
        processors: processors.len(),
        pinned: None,
        busy: busy()?,
    };
    let Some([servers, load]) = shares(&processors, siblings) else {
        return Ok(machine);
    };
    let id = std::process::id().to_string();
    let mut pin = command("taskset", Path::new("/"));
    pin.args(["--all-tasks", "--cpu-list", "--pid", &servers, &id]);
    output(&mut pin).context("this program cannot be kept to some processors")?;
    OF_LOAD.get_or_init(|| load.clone());
    machine.pinned = Some([servers, load]);
    Ok(machine)
}

/// A program that causes load, on the load's processors.
pub(super) fn load_command(program: &str) -> Command {
    let Some(processors) = OF_LOAD.get() else {
        return command(program, Path::new("/"));
    };
    let mut pinned = command("taskset", Path::new("/"));
    pinned.args(["--cpu-list", processors, program]);
    pinned
}

impl Machine {
    /// A short sentence below a plot's title.
    pub(super) fn note(&self) -> String {
        let Self {
            processors, busy, ..
        } = self;
        let others = if *busy < 0.1 {
            String::new()
        } else {
            format!("; other programs used {busy:.1} of them before the run")
        };
        format!("{processors} processors{others}")
    }

    /// The sentences above the figures.
    pub(super) fn markdown(&self) -> Vec<String> {
        let processors = self.processors;
        let first = match &self.pinned {
            Some([servers, load]) => {
                format!("{processors} processors: {servers} ran the servers, {load} the load.")
            }
            None => format!(
                "{processors} processors, fewer than {ENOUGH} cores: the servers and the load ran on \
                 the same ones, so no rate here is what a server does alone."
            ),
        };
        let mut lines = vec![first];
        if self.busy >= 0.1 {
            lines.push(format!(
                "Other programs used {:.1} of them before the run began: it was disturbed.",
                self.busy
            ));
        }
        lines.push(String::new());
        lines
    }
}

/// The processors that a `/proc/<pid>/status` allows: `Cpus_allowed_list: 0-3,6`.
fn allowed(status: &str) -> Option<Vec<usize>> {
    let mut lines = status.lines();
    let list = lines.find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    let ranges = list.trim().split(',').map(|range| {
        let (from, to) = range.split_once('-').unwrap_or((range, range));
        Some(from.parse::<usize>().ok()?..=to.parse::<usize>().ok()?)
    });
    let ranges: Option<Vec<_>> = ranges.collect();
    Some(ranges?.into_iter().flatten().collect())
}

/// What all processors of one core have in common.
fn siblings(processor: usize) -> String {
    let file = format!("/sys/devices/system/cpu/cpu{processor}/topology/thread_siblings_list");
    // Where the system does not say, each is a core of its own.
    std::fs::read_to_string(file).unwrap_or_else(|_| processor.to_string())
}

/// Half of the cores for the servers and half for the load: never two threads of one core for
/// both.
fn shares(processors: &[usize], core_of: impl Fn(usize) -> String) -> Option<[String; 2]> {
    let mut cores: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for processor in processors {
        cores
            .entry(core_of(*processor))
            .or_default()
            .push(*processor);
    }
    if cores.len() < ENOUGH {
        return None;
    }
    let mut cores: Vec<Vec<usize>> = cores.into_values().collect();
    cores.sort();
    let load = cores.split_off(cores.len().div_ceil(2));
    let list = |cores: &[Vec<usize>]| {
        let processors = cores.iter().flatten().map(usize::to_string);
        processors.collect::<Vec<_>>().join(",")
    };
    Some([list(&cores), list(&load)])
}

/// How many processors are in use while this program does nothing.
fn busy() -> Result<f64> {
    let read = || {
        let text = std::fs::read_to_string("/proc/stat").context("/proc/stat cannot be read")?;
        times(&text).context("/proc/stat does not tell the processors' times")
    };
    let before = read()?;
    wait();
    let after = read()?;
    let (used, all) = (after.0 - before.0, after.1 - before.1);
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    Ok(used / all.max(1.0) * processors as f64)
}

#[expect(
    clippy::disallowed_methods,
    reason = "what others do is seen only over real time"
)]
fn wait() {
    std::thread::sleep(WATCHED);
}

/// The used and all ticks of all processors in a `/proc/stat`.
fn times(stat: &str) -> Option<(f64, f64)> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<f64> = line
        .split_whitespace()
        // What a virtual machine's guests use is counted in the first two already.
        .take(8)
        .map_while(|text| text.parse().ok())
        .collect();
    let all: f64 = ticks.iter().sum();
    // The fourth is idle, the fifth waits for a disk.
    Some((all - ticks.get(3)? - ticks.get(4)?, all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_allowed_processors_are_read() {
        let status = "Name:\tx\nCpus_allowed:\tff\nCpus_allowed_list:\t0-2,5,7-8\n";
        assert_eq!(allowed(status), Some(vec![0, 1, 2, 5, 7, 8]));
        assert_eq!(allowed("Name:\tx\n"), None);
        assert_eq!(allowed("Cpus_allowed_list:\tall\n"), None);
    }

    #[test]
    fn few_cores_are_not_shared_out() {
        assert_eq!(shares(&[0, 1, 2], |core| core.to_string()), None);
        // Four threads of two cores.
        assert_eq!(shares(&[0, 1, 2, 3], |core| (core % 2).to_string()), None);
    }

    #[test]
    fn no_core_has_a_server_and_the_load() {
        let all: Vec<usize> = (0..8).collect();
        let halves = |[servers, load]: [&str; 2]| Some([servers.to_owned(), load.to_owned()]);
        let alone = shares(&all, |core| core.to_string());
        assert_eq!(alone, halves(["0,1,2,3", "4,5,6,7"]));
        let threads = shares(&all, |core| format!("{},{}", core % 4, core % 4 + 4));
        assert_eq!(threads, halves(["0,4,1,5", "2,6,3,7"]));
    }

    #[test]
    fn idle_time_is_not_used() {
        let stat = "cpu  10 0 5 80 3 1 1 0 7 7\ncpu0 1 1 1 1 1 1 1 1 1 1\n";
        assert_eq!(times(stat), Some((17.0, 100.0)));
        assert_eq!(times("intr 1\n"), None);
    }

    #[test]
    fn what_limits_the_figures_is_said() {
        let mut machine = Machine {
            processors: 2,
            ..Machine::default()
        };
        assert!(machine.markdown()[0].contains("fewer than 4 cores"));
        assert_eq!(machine.markdown().len(), 2);
        assert_eq!(machine.note(), "2 processors");
        machine.busy = 1.23;
        assert!(machine.note().ends_with("used 1.2 of them before the run"));
        assert!(machine.markdown()[1].starts_with("Other programs used 1.2"));
        machine.pinned = Some(["0,1".into(), "2,3".into()]);
        assert!(machine.markdown()[0].contains("0,1 ran the servers"));
    }
}
