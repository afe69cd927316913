//! Memory and processor time of processes, from `/proc`.

use std::path::PathBuf;

/// Ticks in a second of the times in `/proc/<id>/stat`: Linux has 100 on every architecture.
const TICKS: f64 = 100.0;

/// What a process and its children have used.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Usage {
    /// Memory that only these processes use, in MiB: pages that they share count in parts.
    pub(super) memory: f64,
    /// Processor time in seconds.
    pub(super) processor: f64,
}

impl Usage {
    /// Reads it for a process and its children; zero if it does not run.
    pub(super) fn of(id: u32) -> Self {
        let family = children(id).into_iter().chain([id]);
        family.fold(Self::default(), |sum, id| Self {
            memory: sum.memory + memory(id).unwrap_or(0.0),
            processor: sum.processor + processor(id).unwrap_or(0.0),
        })
    }
}

fn file(id: u32, name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{id}/{name}"))
}

fn children(id: u32) -> Vec<u32> {
    let text = std::fs::read_to_string(file(id, &format!("task/{id}/children")));
    let text = text.unwrap_or_default();
    text.split_whitespace()
        .filter_map(|id| id.parse().ok())
        .collect()
}

/// The proportional set size in MiB.
fn memory(id: u32) -> Option<f64> {
    let text = std::fs::read_to_string(file(id, "smaps_rollup")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    let kilobytes: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes / 1_024.0)
}

/// The time in user and system mode.
fn processor(id: u32) -> Option<f64> {
    let text = std::fs::read_to_string(file(id, "stat")).ok()?;
    // The name in parentheses may contain anything.
    let (_, rest) = text.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11);
    let user: f64 = fields.next()?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    Some((user + system) / TICKS)
}
