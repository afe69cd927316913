//! Tokens: the server's endpoint beside handlers that only sign, and beside other services.

use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use xtask::terminal;
use xtask::workspace::Workspace;

use super::connections::p99_at_rate;
use super::contenders::{CONTENDERS, Contenders};
use super::figures::{Goal, goal};
use super::statistics::{Estimate, median, median_of};
use super::wrk::{self, Sample};
use super::{ROUNDS, turn};

/// Seconds of one measurement at half load.
const SECONDS: u32 = 4;

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
    pub(super) fn per_second(&self) -> Estimate {
        median_of(&self.0, |sample| sample.per_second)
    }

    /// The median of the rounds' 99th percentiles, in milliseconds.
    pub(super) fn p99(&self) -> Estimate {
        median_of(&self.0, |sample| sample.p99_milliseconds)
    }

    /// The median over the rounds of this rate divided by the other.
    pub(super) fn ratio(&self, other: &Series) -> Estimate {
        let rounds: Vec<_> = self.0.iter().zip(&other.0).collect();
        median_of(&rounds, |(one, two)| one.per_second / two.per_second)
    }
}

/// What the rounds gave.
#[derive(Clone, Debug, Default)]
pub(super) struct Tokens {
    /// A handler that only signs one token with p256.
    pub(super) bare: Series,
    /// A handler that only signs one token with ring, as the server does.
    pub(super) bare_ring: Series,
    /// The first once more in each round: how far it is from the first is the machine's noise.
    pub(super) bare_again: Series,
    /// `POST /token` of a guest with a cookie.
    pub(super) returning: Series,
    /// The same on a server that counts what it does, for `/metrics`.
    pub(super) metered: Series,
    /// `POST /token` of visitors without one.
    pub(super) new_guest: Series,
    /// Access tokens of npm's oidc-provider.
    pub(super) oidc_provider: Series,
    /// Tokens of anonymous players of npm's better-auth.
    pub(super) better_auth: Series,
    /// The 99th percentile of the returning guest with half the requests a second that the server
    /// can answer, in milliseconds.
    pub(super) half_load_p99: Estimate,
}

impl Tokens {
    /// The goals.
    pub(super) fn goals(&self) -> Vec<Goal> {
        use super::statistics::Limit::{AtLeast, AtMost};
        vec![
            goal(
                "returning guest / bare handler with a p256 signature",
                self.returning.ratio(&self.bare),
                AtLeast(1.3),
                "×",
            ),
            goal(
                "returning guest / bare handler with a ring signature",
                self.returning.ratio(&self.bare_ring),
                AtLeast(0.85),
                "×",
            ),
            goal(
                "returning guest / oidc-provider",
                self.returning.ratio(&self.oidc_provider),
                AtLeast(6.0),
                "×",
            ),
            goal(
                "returning guest with metrics / without",
                self.metered.ratio(&self.returning),
                AtLeast(0.98),
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
                "returning guest at half load, p99",
                self.half_load_p99,
                AtMost(2.0),
                "ms",
            ),
        ]
    }

    fn named(&self) -> [(&'static str, &Series); 7] {
        [
            ("bare axum handler, one p256 signature", &self.bare),
            ("bare axum handler, one ring signature", &self.bare_ring),
            ("`POST /token`, returning guest", &self.returning),
            (
                "`POST /token`, returning guest, with metrics",
                &self.metered,
            ),
            ("`POST /token`, new guest", &self.new_guest),
            ("npm oidc-provider, client credentials", &self.oidc_provider),
            ("npm better-auth, anonymous player", &self.better_auth),
        ]
    }

    /// The figures as a Markdown table.
    pub(super) fn markdown(&self) -> Vec<String> {
        let mut lines = vec![
            self.noise(),
            String::new(),
            "| 64 connections | requests/s | p99, ms |".to_owned(),
            "|---|---:|---:|".to_owned(),
        ];
        lines.extend(self.named().map(|(name, series)| {
            let (rate, p99) = (series.per_second().cell(0), series.p99().cell(1));
            format!("| {name} | {rate} | {p99} |")
        }));
        lines.push(format!(
            "| the returning guest, half as many requests | | {} |",
            self.half_load_p99.cell(2)
        ));
        lines
    }

    /// A sentence on what the same contender measured twice says of the machine.
    fn noise(&self) -> String {
        format!(
            "Noise of this machine: the bare signing handler beside itself is {}×.",
            self.bare_again.ratio(&self.bare).cell(2)
        )
    }

    /// The figures for other programs.
    pub(super) fn json(&self) -> Value {
        let rates = self.named().map(|(name, series)| {
            json!({ "name": name, "per_second": series.per_second(), "p99_milliseconds": series.p99(), "rounds": series.0 })
        });
        let rates: Vec<Value> = rates.into();
        let noise = self.bare_again.ratio(&self.bare);
        json!({ "noise": noise, "rates": rates, "half_load_p99_milliseconds": self.half_load_p99 })
    }
}

/// Requests a second of every contender, in turns, then the returning guest at half load.
pub(super) fn measure(workspace: &Workspace, folder: &Path) -> Result<Tokens> {
    let contenders = Contenders::start(workspace, folder)?;
    let mut series = [const { Series::new() }; CONTENDERS];
    // The first turn is a warm-up and does not count.
    for round in 0..=ROUNDS {
        terminal::note(&format!("bench: tokens, round {round} of {ROUNDS}"));
        for place in turn(round, CONTENDERS) {
            let load = &contenders.loads[place];
            let sample = wrk::run(load).with_context(|| format!("{} failed", load.name))?;
            if round > 0 {
                series[place].add(sample);
            }
        }
    }
    let [
        bare,
        bare_ring,
        returning,
        metered,
        new_guest,
        oidc_provider,
        better_auth,
        bare_again,
    ] = series;
    let half = (returning.per_second().value / 2.0) as u32;
    let mut p99 = Vec::new();
    for round in 1..=ROUNDS {
        terminal::note(&format!(
            "bench: tokens at half load, {half} a second, round {round} of {ROUNDS}"
        ));
        let (site, head) = contenders.returning();
        p99.push(p99_at_rate(workspace, site, (half, SECONDS), head)?);
    }
    Ok(Tokens {
        bare,
        bare_ring,
        bare_again,
        returning,
        metered,
        new_guest,
        oidc_provider,
        better_auth,
        half_load_p99: median(&p99),
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    fn series(rates: &[f64], p99: f64) -> Series {
        let mut series = Series::new();
        for per_second in rates {
            series.add(Sample {
                responses: 2.0 * per_second,
                per_second: *per_second,
                p50_milliseconds: p99 / 2.0,
                p99_milliseconds: p99,
            });
        }
        series
    }

    /// Tokens that reach every goal: six rounds, the fewest that give an interval.
    pub(crate) fn good() -> Tokens {
        let twice = |rates: [f64; 3], p99| series(&[rates, rates].concat(), p99);
        Tokens {
            bare: twice([10_000.0, 5_000.0, 10_000.0], 8.0),
            bare_ring: twice([16_000.0, 8_000.0, 16_000.0], 8.0),
            bare_again: twice([10_000.0, 5_500.0, 9_000.0], 8.0),
            returning: twice([14_000.0, 7_000.0, 15_000.0], 9.0),
            metered: twice([14_000.0, 7_000.0, 15_000.0], 9.0),
            new_guest: twice([4_000.0, 3_500.0, 3_100.0], 19.0),
            oidc_provider: twice([2_000.0, 1_000.0, 2_000.0], 40.0),
            better_auth: twice([400.0, 200.0, 400.0], 160.0),
            half_load_p99: Estimate::certain(1.0),
        }
    }

    /// Tokens that miss every goal.
    pub(crate) fn bad() -> Tokens {
        Tokens {
            bare: series(&[20_000.0; 6], 1.0),
            bare_ring: series(&[40_000.0; 6], 1.0),
            bare_again: series(&[20_000.0; 6], 1.0),
            returning: series(&[9_000.0; 6], 20.1),
            metered: series(&[8_000.0; 6], 20.1),
            new_guest: series(&[2_999.0; 6], 21.0),
            oidc_provider: series(&[5_000.0; 6], 1.0),
            better_auth: series(&[1_000.0; 6], 1.0),
            half_load_p99: Estimate::certain(2.1),
        }
    }
}
