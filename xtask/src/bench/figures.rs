//! The figures of a run, the goals for them, and how both are printed.

use serde_json::{Value, json};

use super::followers::Followers;
use super::hosting::Hosting;
use super::ingest::Ingest;
use super::large::Large;
use super::nodes::Nodes;
use super::proxy::Proxy;
use super::startup::{Startup, WHOLE};
use super::wrk::Sample;

/// The samples of one contender, in the order of the rounds.
#[derive(Clone, Debug, Default)]
pub(super) struct Series(Vec<Sample>);

impl Series {
    pub(super) const fn new() -> Self {
        Self(Vec::new())
    }

    pub(super) fn add(&mut self, sample: Sample) {
        self.0.push(sample);
    }

    /// The median rate, in responses per second.
    fn per_second(&self) -> f64 {
        median(
            &self
                .0
                .iter()
                .map(|sample| sample.per_second)
                .collect::<Vec<_>>(),
        )
    }

    /// The median of the rounds' 99th percentiles, in milliseconds.
    fn p99(&self) -> f64 {
        median(
            &self
                .0
                .iter()
                .map(|sample| sample.p99_milliseconds)
                .collect::<Vec<_>>(),
        )
    }

    /// The median over the rounds of this rate divided by the other.
    fn ratio(&self, other: &Series) -> f64 {
        let rounds = self.0.iter().zip(&other.0);
        median(
            &rounds
                .map(|(one, two)| one.per_second / two.per_second)
                .collect::<Vec<_>>(),
        )
    }
}

/// Everything that was measured.
pub(super) struct Figures {
    /// A handler that only signs one token.
    pub(super) bare: Series,
    /// `POST /token` of a guest with a cookie.
    pub(super) returning: Series,
    /// `POST /token` of visitors without one.
    pub(super) new_guest: Series,
    /// Access tokens of npm's oidc-provider.
    pub(super) oidc_provider: Series,
    /// Memory of the idle server, in kilobytes.
    pub(super) idle_kilobytes: u64,
    /// From start to ready line on an existing store, in milliseconds.
    pub(super) ready_milliseconds: f64,
    /// The runtime's start on a page, in milliseconds.
    pub(super) startup: Startup,
    /// Heartbeats and frontend logs.
    pub(super) ingest: Ingest,
    /// Readers of a log stream.
    pub(super) followers: Followers,
    /// Pages and the API on a large store.
    pub(super) large: Large,
    /// Deployed files beside nginx.
    pub(super) hosting: Hosting,
    /// The cost of forwarding to a backend.
    pub(super) proxy: Proxy,
    /// What a node does.
    pub(super) nodes: Nodes,
    /// Bytes of runtime.js in brotli.
    pub(super) runtime_brotli: u64,
    /// The size limit.
    pub(super) runtime_budget: u64,
}

/// A stated goal and what was measured.
pub(super) struct Goal {
    name: &'static str,
    measured: f64,
    limit: Limit,
    unit: &'static str,
}

/// The limit of a goal.
pub(super) enum Limit {
    AtLeast(f64),
    AtMost(f64),
}

/// A goal with what was measured.
pub(super) const fn goal(
    name: &'static str,
    measured: f64,
    limit: Limit,
    unit: &'static str,
) -> Goal {
    Goal {
        name,
        measured,
        limit,
        unit,
    }
}

impl Goal {
    pub(super) fn is_met(&self) -> bool {
        match self.limit {
            Limit::AtLeast(limit) => self.measured >= limit,
            Limit::AtMost(limit) => self.measured <= limit,
        }
    }
}

/// Converts a number; one that is too large becomes the largest possible.
fn whole(number: u64) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

impl Figures {
    /// The goals of this project, with what was measured.
    pub(super) fn goals(&self) -> Vec<Goal> {
        use Limit::{AtLeast, AtMost};
        let mut goals = vec![
            goal(
                "returning guest / bare signing handler",
                self.returning.ratio(&self.bare),
                AtLeast(0.75),
                "×",
            ),
            goal(
                "returning guest / oidc-provider",
                self.returning.ratio(&self.oidc_provider),
                AtLeast(3.0),
                "×",
            ),
            goal(
                "new guests",
                self.new_guest.per_second(),
                AtLeast(3_000.0),
                "/s",
            ),
            goal(
                "returning guest, p99",
                self.returning.p99(),
                AtMost(20.0),
                "ms",
            ),
            goal("new guest, p99", self.new_guest.p99(), AtMost(20.0), "ms"),
            goal(
                "memory of the idle server",
                whole(self.idle_kilobytes) / 1_024.0,
                AtMost(40.0),
                "MiB",
            ),
            goal(
                "start on an existing store",
                self.ready_milliseconds,
                AtMost(500.0),
                "ms",
            ),
            goal(
                "runtime's start in Chromium",
                self.started_in("chromium"),
                AtMost(8.0),
                "ms",
            ),
            goal(
                "runtime.js, brotli",
                whole(self.runtime_brotli),
                AtMost(whole(self.runtime_budget)),
                "bytes",
            ),
        ];
        goals.extend(self.goals_of_traffic());
        goals.extend(self.hosting_goals());
        goals.extend(self.large_goals());
        goals.extend(self.nodes.goals());
        goals
    }

    /// The goals for everything but tokens.
    fn goals_of_traffic(&self) -> [Goal; 7] {
        use Limit::{AtLeast, AtMost};
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
                whole(grown_kilobytes) / 1_024.0,
                AtMost(64.0),
                "MiB",
            ),
            goal(
                "records that came twice or in the wrong order",
                whole(wrong),
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

    /// The goals of a large store.
    fn large_goals(&self) -> [Goal; 2] {
        use Limit::AtMost;
        [
            goal(
                "start on a large store",
                self.large.ready,
                AtMost(500.0),
                "ms",
            ),
            goal(
                "slowest page or call on a large store, p99",
                self.large.slowest(),
                AtMost(20.0),
                "ms",
            ),
        ]
    }

    fn hosting_goals(&self) -> [Goal; 2] {
        use Limit::AtLeast;
        [
            goal(
                "a file of 20 kB in brotli / nginx",
                self.hosting.files_ratio,
                AtLeast(0.9),
                "×",
            ),
            goal(
                "a file that has not changed / nginx",
                self.hosting.unchanged_ratio,
                AtLeast(0.9),
                "×",
            ),
        ]
    }

    /// Milliseconds of the runtime's whole start; NaN if it was not measured.
    fn started_in(&self, engine: &str) -> f64 {
        let parts = self.startup.get(engine);
        parts
            .and_then(|parts| parts.get(WHOLE))
            .copied()
            .unwrap_or(f64::NAN)
    }

    fn named(&self) -> [(&'static str, &Series); 4] {
        [
            ("bare axum handler, one p256 signature", &self.bare),
            ("`POST /token`, returning guest", &self.returning),
            ("`POST /token`, new guest", &self.new_guest),
            ("npm oidc-provider, client credentials", &self.oidc_provider),
        ]
    }

    /// The figures as two Markdown tables.
    pub(super) fn markdown(&self, goals: &[Goal]) -> String {
        let mut lines = vec![
            "| 64 connections, medians | requests/s | p99, ms |".to_owned(),
            "|---|---:|---:|".to_owned(),
        ];
        lines.extend(self.named().map(|(name, series)| {
            format!(
                "| {name} | {:.0} | {:.1} |",
                series.per_second(),
                series.p99()
            )
        }));
        lines.extend([
            format!("| heartbeats, one token | {:.0} | |", self.ingest.beats),
            format!(
                "| bare axum handler, last-seen in memory | {:.0} | |",
                self.ingest.bare_beats
            ),
            format!(
                "| frontend log records, 50 a request | {:.0} | |",
                self.ingest.records
            ),
            format!(
                "| a deployed file of 20 kB in brotli | {:.0} | |",
                self.hosting.files
            ),
            format!("| nginx, the same | {:.0} | |", self.hosting.nginx_files),
            format!(
                "| a deployed file that has not changed | {:.0} | |",
                self.hosting.unchanged
            ),
            format!(
                "| nginx, the same | {:.0} | |",
                self.hosting.nginx_unchanged
            ),
            format!(
                "| a backend by way of the platform / straight | {:.2}× | |",
                self.proxy.ratio
            ),
            String::new(),
            "| the runtime's start | part | ms |".into(),
            "|---|---|---:|".into(),
        ]);
        for (engine, parts) in &self.startup {
            lines.extend(
                parts.iter().map(|(part, milliseconds)| {
                    format!("| {engine} | {part} | {milliseconds:.1} |")
                }),
            );
        }
        lines.extend([
            String::new(),
            "| on a large store, one after the other | p50, ms | p99, ms |".into(),
            "|---|---:|---:|".into(),
        ]);
        let medians = self.large.p50.values();
        let kinds = self.large.p99.iter().zip(medians);
        lines.extend(kinds.map(|((name, p99), p50)| format!("| {name} | {p50:.1} | {p99:.1} |")));
        lines.extend(self.nodes.markdown());
        lines.extend(table_of(goals));
        lines.join("\n")
    }

    /// The figures for other programs.
    pub(super) fn json(&self, goals: &[Goal]) -> Value {
        let rates = self.named().map(|(name, series)| {
            json!({ "name": name, "per_second": series.per_second(), "p99_milliseconds": series.p99(), "rounds": series.0 })
        });
        let goals: Vec<Value> = goals
            .iter()
            .map(|goal| {
                let (kind, limit) = match goal.limit {
                    Limit::AtLeast(limit) => ("at_least", limit),
                    Limit::AtMost(limit) => ("at_most", limit),
                };
                json!({ "name": goal.name, "measured": goal.measured, "unit": goal.unit, kind: limit, "met": goal.is_met() })
            })
            .collect();
        json!({ "rates": rates, "startup": self.startup, "ingest": self.ingest, "followers": self.followers, "large": self.large, "hosting": self.hosting, "proxy": self.proxy, "nodes": self.nodes, "goals": goals })
    }
}

/// The goals as a Markdown table.
pub(super) fn table_of(goals: &[Goal]) -> Vec<String> {
    let mut lines = vec![
        String::new(),
        "| goal | measured | wanted | |".into(),
        "|---|---:|---:|---|".into(),
    ];
    lines.extend(goals.iter().map(|goal| {
        let wanted = match goal.limit {
            Limit::AtLeast(limit) => format!("≥ {limit}"),
            Limit::AtMost(limit) => format!("≤ {limit}"),
        };
        let mark = if goal.is_met() { "met" } else { "**missed**" };
        format!(
            "| {} | {:.2} {unit} | {wanted} {unit} | {mark} |",
            goal.name,
            goal.measured,
            unit = goal.unit
        )
    }));
    lines.push(String::new());
    lines
}

/// The value that 99 of 100 values do not exceed.
pub(super) fn percentile_99(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = (sorted.len() * 99).div_ceil(100).saturating_sub(1);
    sorted.get(place).copied().unwrap_or(f64::NAN)
}

/// The middle value; for an even count the mean of the two middle ones; NaN without values.
pub(super) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        length if length % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::nodes::{Rate, Stores};

    fn series(rates: &[f64], p99: f64) -> Series {
        let mut series = Series::new();
        for per_second in rates {
            series.add(Sample {
                per_second: *per_second,
                p50_milliseconds: p99 / 2.0,
                p99_milliseconds: p99,
            });
        }
        series
    }

    fn started(milliseconds: f64) -> Startup {
        let parts = [(WHOLE.to_owned(), milliseconds)].into();
        [("chromium".to_owned(), parts)].into()
    }

    fn good() -> Figures {
        Figures {
            bare: series(&[10_000.0, 5_000.0, 10_000.0], 8.0),
            returning: series(&[8_000.0, 4_000.0, 9_000.0], 9.0),
            new_guest: series(&[4_000.0, 3_500.0, 3_100.0], 19.0),
            oidc_provider: series(&[2_000.0, 1_000.0, 2_000.0], 40.0),
            idle_kilobytes: 30_000,
            ready_milliseconds: 120.0,
            startup: started(6.0),
            ingest: Ingest {
                beats_ratio: 0.9,
                records_ratio: 0.8,
                token_p99_ratio: 2.0,
                ..Ingest::default()
            },
            followers: Followers {
                ratio: 1.2,
                ..Followers::default()
            },
            hosting: Hosting {
                files_ratio: 1.0,
                unchanged_ratio: 1.0,
                ..Hosting::default()
            },
            large: Large {
                ready: 200.0,
                p99: [("home page", 9.0)].into(),
                p50: [("home page", 5.0)].into(),
            },
            proxy: Proxy {
                added_p50: 0.2,
                ..Proxy::default()
            },
            nodes: Nodes {
                postgres: Stores {
                    lookups: Rate {
                        ratio: 0.7,
                        ..Rate::default()
                    },
                    guests: Rate {
                        ratio: 0.8,
                        ..Rate::default()
                    },
                    records: Rate {
                        ratio: 0.9,
                        ..Rate::default()
                    },
                },
                ..Nodes::default()
            },
            runtime_brotli: 17_000,
            runtime_budget: 18_000,
        }
    }

    fn missed(figures: &Figures) -> Vec<&'static str> {
        figures
            .goals()
            .iter()
            .filter(|goal| !goal.is_met())
            .map(|goal| goal.name)
            .collect()
    }

    #[test]
    fn ratios_are_taken_within_a_round() {
        let figures = good();
        assert!((figures.returning.ratio(&figures.bare) - 0.8).abs() < 1e-9);
        assert!(missed(&figures).is_empty());
    }

    #[test]
    fn every_goal_can_be_missed() {
        let mut bad = good();
        bad.bare = series(&[20_000.0; 3], 1.0);
        bad.oidc_provider = series(&[5_000.0; 3], 1.0);
        bad.returning = series(&[9_000.0; 3], 20.1);
        bad.new_guest = series(&[2_999.0; 3], 21.0);
        bad.idle_kilobytes = 41 * 1_024;
        bad.ready_milliseconds = 501.0;
        bad.startup = started(8.1);
        bad.ingest = Ingest {
            beats_ratio: 0.4,
            records_ratio: 0.4,
            token_p99_ratio: 3.1,
            ..Ingest::default()
        };
        bad.followers = Followers {
            ratio: 2.1,
            grown_kilobytes: 65 * 1_024,
            wrong: 1,
            ..Followers::default()
        };
        bad.hosting = Hosting::default();
        bad.large.ready = 501.0;
        bad.large.p99 = [("home page", 9.0), ("log search", 20.1)].into();
        bad.proxy.added_p50 = 0.51;
        bad.nodes = Nodes::default();
        bad.runtime_brotli = 18_001;
        assert_eq!(missed(&bad).len(), bad.goals().len());
        assert!(bad.markdown(&bad.goals()).contains("**missed**"));
    }

    #[test]
    fn a_run_without_samples_meets_no_goal_of_speed() {
        let mut empty = good();
        empty.returning = Series::new();
        assert_eq!(missed(&empty).len(), 3);
    }

    #[test]
    fn the_median_is_the_middle() {
        assert!((median(&[3.0, 1.0, 2.0]) - 2.0).abs() < f64::EPSILON);
        assert!((median(&[4.0, 1.0, 2.0, 3.0]) - 2.5).abs() < f64::EPSILON);
        assert!(median(&[]).is_nan());
    }
}
