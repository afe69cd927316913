//! Memory and processor time of processes, from `/proc`.

use std::path::PathBuf;

/// Ticks in a second of the times in `/proc/<id>/stat`: Linux has 100 on every architecture.
const TICKS: f64 = 100.0;

/// Returns the memory in MiB that only a process and its children use: pages that they share count
/// in parts. Zero if it does not run.
pub(super) fn memory(id: u32) -> f64 {
    let family = children(id).into_iter().chain([id]);
    family.filter_map(proportional).sum()
}

/// Returns the processor time in seconds that a process, its children and those who have ended have
/// used. Zero if it does not run.
pub(super) fn processor(id: u32) -> f64 {
    let family = children(id).into_iter().chain([id]);
    family.filter_map(time).sum()
}

/// Returns how many files and pipes a process has open. Connections are as many as clients have
/// opened, so sockets are not counted. Zero if it does not run.
pub(super) fn files(id: u32) -> usize {
    let Ok(entries) = std::fs::read_dir(file(id, "fd")) else {
        return 0;
    };
    let targets = entries
        .flatten()
        .flat_map(|entry| std::fs::read_link(entry.path()));
    targets
        .filter(|target| !target.to_string_lossy().starts_with("socket:"))
        .count()
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
fn proportional(id: u32) -> Option<f64> {
    let text = std::fs::read_to_string(file(id, "smaps_rollup")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    let kilobytes: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes / 1_024.0)
}

/// The time in user and system mode, and that of children that were waited for.
fn time(id: u32) -> Option<f64> {
    let text = std::fs::read_to_string(file(id, "stat")).ok()?;
    // The name in parentheses may contain anything.
    let (_, rest) = text.rsplit_once(')')?;
    let fields = rest.split_whitespace().skip(11).take(4);
    let ticks: Vec<f64> = fields.filter_map(|field| field.parse().ok()).collect();
    Some(ticks.iter().sum::<f64>() / TICKS)
}
