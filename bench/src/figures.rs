//! The figures of a run, the goals for them, and how both are printed.

use serde_json::{Value, json};

use super::connections::Connections;
use super::hosting::Hosting;
use super::large::Large;
use super::machine::Machine;
use super::nodes::Nodes;
use super::overload::Overload;
use super::startup::{self, InBrowsers};
use super::statistics::{Estimate, Limit, Verdict};
use super::tokens::Tokens;
use super::traffic::Traffic;

/// Everything that was measured.
pub(super) struct Figures {
    /// The machine.
    pub(super) machine: Machine,
    /// Tokens beside bare handlers and another provider.
    pub(super) tokens: Tokens,
    /// Idle connections and slow readers.
    pub(super) connections: Connections,
    /// Too many requests.
    pub(super) overload: Overload,
    /// Memory of the idle server, in kilobytes.
    pub(super) idle_kilobytes: Estimate,
    /// From start to ready line on an existing store, in milliseconds.
    pub(super) ready_milliseconds: Estimate,
    /// The runtime's start on a page, in milliseconds.
    pub(super) startup: InBrowsers,
    /// What the runtime costs a page after its start.
    pub(super) frames: InBrowsers,
    /// Heartbeats, logs and their readers, and requests to backends.
    pub(super) traffic: Traffic,
    /// Pages and the API on a large store.
    pub(super) large: Large,
    /// Deployed files beside nginx.
    pub(super) hosting: Hosting,
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
    measured: Estimate,
    limit: Limit,
    unit: &'static str,
}

/// A goal with what was measured.
pub(super) const fn goal(
    name: &'static str,
    measured: Estimate,
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
    pub(super) fn verdict(&self) -> Verdict {
        self.measured.verdict(self.limit)
    }
}

/// Converts a number; one that is too large becomes the largest possible.
pub(super) fn whole(number: u64) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

impl Figures {
    /// The goals of this project, with what was measured.
    pub(super) fn goals(&self) -> Vec<Goal> {
        use Limit::AtMost;
        let mut goals = vec![
            goal(
                "memory of the idle server",
                self.idle_kilobytes.times(1.0 / 1_024.0),
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
                "runtime.js, brotli",
                Estimate::certain(whole(self.runtime_brotli)),
                AtMost(whole(self.runtime_budget)),
                "bytes",
            ),
        ];
        goals.extend(self.tokens.goals());
        goals.extend(self.connections.goals());
        goals.extend(self.overload.goals());
        goals.extend(self.traffic.goals());
        goals.extend(startup::goals(&self.startup));
        goals.extend(startup::goals_of_frames(&self.frames));
        goals.extend(self.hosting.goals());
        goals.extend(self.large_goals());
        goals.extend(self.nodes.goals());
        goals
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

    /// The figures as Markdown tables.
    pub(super) fn markdown(&self, goals: &[Goal]) -> String {
        let mut lines = self.machine.markdown();
        lines.push(
            "Each figure is a median, with the interval that holds the true one in 95 of 100 runs."
                .to_owned(),
        );
        lines.extend(self.tokens.markdown());
        lines.extend(self.traffic.markdown());
        lines.extend(self.hosting.markdown());
        lines.extend(self.connections.markdown());
        lines.extend(self.overload.markdown());
        lines.extend(startup::markdown(&self.startup));
        lines.extend(startup::markdown_of_frames(&self.frames));
        lines.extend([
            String::new(),
            "| on a large store, one after the other | p50, ms | p99, ms |".into(),
            "|---|---:|---:|".into(),
        ]);
        let medians = self.large.p50.values();
        let kinds = self.large.p99.iter().zip(medians);
        lines.extend(
            kinds.map(|((name, p99), p50)| {
                format!("| {name} | {} | {} |", p50.cell(1), p99.cell(1))
            }),
        );
        lines.extend(self.nodes.markdown());
        lines.extend(table_of(goals));
        lines.join("\n")
    }

    /// The figures for other programs.
    pub(super) fn json(&self, goals: &[Goal]) -> Value {
        let goals: Vec<Value> = goals
            .iter()
            .map(|goal| {
                let (kind, limit) = match goal.limit {
                    Limit::AtLeast(limit) => ("at_least", limit),
                    Limit::AtMost(limit) => ("at_most", limit),
                };
                json!({ "name": goal.name, "measured": goal.measured, "unit": goal.unit, kind: limit, "verdict": goal.verdict() })
            })
            .collect();
        let tokens = self.tokens.json();
        json!({ "machine": self.machine, "tokens": tokens, "connections": self.connections, "overload": self.overload, "startup": self.startup, "frames": self.frames, "traffic": self.traffic, "large": self.large, "hosting": self.hosting, "nodes": self.nodes, "goals": goals })
    }
}

/// The goals as a Markdown table.
pub(super) fn table_of(goals: &[Goal]) -> Vec<String> {
    let mut lines = vec![
        String::new(),
        "| goal | measured | in 95 of 100 runs | wanted | |".into(),
        "|---|---:|---:|---:|---|".into(),
    ];
    lines.extend(goals.iter().map(|goal| {
        let wanted = match goal.limit {
            Limit::AtLeast(limit) => format!("≥ {limit}"),
            Limit::AtMost(limit) => format!("≤ {limit}"),
        };
        let mark = match goal.verdict() {
            Verdict::Met => "met",
            Verdict::Missed => "**missed**",
            Verdict::Unclear => "cannot be told on this machine",
        };
        format!(
            "| {} | {:.2} {unit} | {} | {wanted} {unit} | {mark} |",
            goal.name,
            goal.measured.value,
            goal.measured.interval(2),
            unit = goal.unit
        )
    }));
    lines.push(String::new());
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosting::Answers;
    use crate::nodes::{Rate, Stores};
    use crate::tokens::{self, Series};
    use crate::traffic;

    fn certain(value: f64) -> Estimate {
        Estimate::certain(value)
    }

    /// Nodes whose stores do this part of what their database does.
    fn nodes(ratio: f64) -> Nodes {
        let rate = Rate {
            ratio: certain(ratio),
            ..Rate::default()
        };
        let postgres = Stores {
            lookups: rate,
            guests: rate,
            records: rate,
        };
        Nodes {
            postgres,
            ..Nodes::default()
        }
    }

    /// The same ratio for each file.
    fn hosting(ratio: f64) -> Hosting {
        let answers = Answers {
            ratio: certain(ratio),
            ..Answers::default()
        };
        Hosting {
            file: answers,
            unchanged: answers,
            large: answers,
        }
    }

    /// Connections of 10 KiB times this, and slow readers that make others this much slower.
    fn connections(ratio: f64) -> Connections {
        Connections {
            idle_bytes: certain(10_240.0 * ratio),
            ratio: certain(ratio),
            ..Connections::default()
        }
    }

    /// An overload in which all is this many times worse than without.
    fn overload(times: f64) -> Overload {
        Overload {
            goodput: certain(1.0 / times),
            p99_ratio: certain(times),
            refused: certain(1_000.0),
            after: certain(times),
            grown_kilobytes: certain(30_000.0 * times),
        }
    }

    fn good() -> Figures {
        Figures {
            machine: Machine::default(),
            tokens: tokens::tests::good(),
            connections: connections(1.0),
            overload: overload(1.0),
            idle_kilobytes: certain(30_000.0),
            ready_milliseconds: certain(120.0),
            startup: startup::every_engine(certain(1.5), certain(0.0)),
            frames: startup::every_frame(certain(1.005), certain(0.9)),
            traffic: traffic::tests::good(),
            hosting: hosting(1.0),
            large: Large {
                ready: certain(200.0),
                p99: [("home page", certain(9.0))].into(),
                p50: [("home page", certain(5.0))].into(),
            },
            nodes: nodes(0.7),
            runtime_brotli: 17_000,
            runtime_budget: 18_000,
        }
    }

    /// The names of the goals with this verdict.
    fn with(verdict: Verdict, figures: &Figures) -> Vec<&'static str> {
        figures
            .goals()
            .iter()
            .filter(|goal| goal.verdict() == verdict)
            .map(|goal| goal.name)
            .collect()
    }

    #[test]
    fn ratios_are_taken_within_a_round() {
        let figures = good();
        let tokens = &figures.tokens;
        let ratio = tokens.returning.ratio(&tokens.bare);
        assert!((ratio.value - 1.4).abs() < 1e-9, "{ratio:?}");
        assert_eq!(with(Verdict::Met, &figures).len(), figures.goals().len());
    }

    #[test]
    fn every_goal_can_be_missed() {
        let mut bad = good();
        bad.tokens = tokens::tests::bad();
        bad.connections = connections(1.6);
        bad.overload = overload(6.0);
        bad.idle_kilobytes = certain(41.0 * 1_024.0);
        bad.ready_milliseconds = certain(501.0);
        bad.startup = startup::every_engine(certain(8.1), certain(51.0));
        bad.frames = startup::every_frame(certain(1.02), certain(1.1));
        bad.traffic = traffic::tests::bad();
        bad.hosting = hosting(0.89);
        bad.large.ready = certain(501.0);
        bad.large.p99 = [("home page", certain(9.0)), ("log search", certain(20.1))].into();
        bad.nodes = nodes(0.59);
        bad.runtime_brotli = 18_001;
        assert_eq!(with(Verdict::Missed, &bad).len(), bad.goals().len());
        assert!(bad.markdown(&bad.goals()).contains("**missed**"));
    }

    #[test]
    fn a_run_without_samples_says_nothing_of_speed() {
        let mut empty = good();
        empty.tokens.returning = Series::new();
        assert_eq!(with(Verdict::Unclear, &empty).len(), 5);
        assert!(
            empty
                .markdown(&empty.goals())
                .contains("cannot be told on this machine")
        );
    }

    #[test]
    fn the_noise_is_printed_and_written() {
        let figures = good();
        let text = figures.markdown(&figures.goals());
        assert!(
            text.contains("beside itself is 1.00 (0.90–1.10)×"),
            "{text}"
        );
        let json = figures.json(&figures.goals());
        assert_eq!(json["tokens"]["noise"]["low"], 0.9);
    }
}
