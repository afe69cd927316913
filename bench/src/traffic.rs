//! What visitors send besides tokens: heartbeats, logs, and requests to a game's backend; and those who
//! read the logs.

use std::path::Path;

use anyhow::Result;
use serde::Serialize;
use xtask::workspace::Workspace;

use super::figures::{Goal, goal, whole};
use super::followers::{self, Followers};
use super::ingest::{self, Ingest};
use super::proxy::{self, Proxy};
use super::statistics::Estimate;

/// What was measured.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Traffic {
    /// Heartbeats and frontend logs.
    ingest: Ingest,
    /// Readers of a log stream.
    followers: Followers,
    /// The cost of forwarding to a backend.
    proxy: Proxy,
}

/// Measures all of it.
pub(super) fn measure(workspace: &Workspace, folder: &Path) -> Result<Traffic> {
    Ok(Traffic {
        ingest: ingest::measure(workspace, folder)?,
        followers: followers::measure(workspace)?,
        proxy: proxy::measure(workspace, folder)?,
    })
}

impl Traffic {
    /// The goals.
    pub(super) fn goals(&self) -> [Goal; 7] {
        use super::statistics::Limit::{AtLeast, AtMost};
        let Followers {
            ratio,
            grown_kilobytes,
            wrong,
            ..
        } = self.followers;
        [
            goal(
                "pages' log requests while 200 follow / nobody does, p99",
                ratio,
                AtMost(2.0),
                "×",
            ),
            goal(
                "memory for 200 who follow",
                grown_kilobytes.times(1.0 / 1_024.0),
                AtMost(64.0),
                "MiB",
            ),
            goal(
                "records that came twice or in the wrong order",
                Estimate::certain(whole(wrong)),
                AtMost(0.0),
                "records",
            ),
            goal(
                "heartbeats / bare handler",
                self.ingest.beats_ratio,
                AtLeast(0.5),
                "×",
            ),
            goal(
                "log records / rows of SQLite alone",
                self.ingest.records_ratio,
                AtLeast(0.5),
                "×",
            ),
            goal(
                "returning guest's p99 under a flood of both / idle",
                self.ingest.token_p99_ratio,
                AtMost(3.0),
                "×",
            ),
            goal(
                "added by the proxy to a backend's median",
                self.proxy.added_p50,
                AtMost(0.5),
                "ms",
            ),
        ]
    }

    /// The figures as a Markdown table.
    pub(super) fn markdown(&self) -> Vec<String> {
        let ingest = &self.ingest;
        let rows = [
            ("heartbeats, one token", ingest.beats),
            ("bare axum handler, last-seen in memory", ingest.bare_beats),
            ("frontend log records, 50 a request", ingest.records),
            (
                "a backend by way of the platform / straight, ×",
                self.proxy.ratio,
            ),
        ];
        let head = ["", "| other work | |", "|---|---:|"].map(str::to_owned);
        let rows = rows.map(|(name, figure)| {
            // A ratio is small, a rate large.
            let decimals = if figure.value < 100.0 { 2 } else { 0 };
            format!("| {name} | {} |", figure.cell(decimals))
        });
        head.into_iter().chain(rows).collect()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    fn certain(value: f64) -> Estimate {
        Estimate::certain(value)
    }

    /// All goals are met.
    pub(crate) fn good() -> Traffic {
        Traffic {
            ingest: Ingest {
                beats_ratio: certain(0.9),
                records_ratio: certain(0.8),
                token_p99_ratio: certain(2.0),
                ..Ingest::default()
            },
            followers: Followers {
                ratio: certain(1.2),
                grown_kilobytes: certain(9_000.0),
                ..Followers::default()
            },
            proxy: Proxy {
                added_p50: certain(0.2),
                ..Proxy::default()
            },
        }
    }

    /// All goals are missed.
    pub(crate) fn bad() -> Traffic {
        Traffic {
            ingest: Ingest {
                beats_ratio: certain(0.4),
                records_ratio: certain(0.4),
                token_p99_ratio: certain(3.1),
                ..Ingest::default()
            },
            followers: Followers {
                ratio: certain(2.1),
                grown_kilobytes: certain(65.0 * 1_024.0),
                wrong: 1,
                ..Followers::default()
            },
            proxy: Proxy {
                added_p50: certain(0.51),
                ..Proxy::default()
            },
        }
    }
}
