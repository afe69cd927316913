//! Measures everything in one run on one machine: absolute figures vary with the machine, ratios do
//! not. The contenders take turns, and medians are used, so that another program's load does not
//! hit only one of them.

mod contenders;
mod figures;
mod followers;
mod hosting;
mod ingest;
mod large;
mod nodes;
mod process;
mod proxy;
mod startup;
mod wrk;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::ValueEnum;

use self::contenders::{Contenders, Settings};
use self::figures::{Figures, Goal, Series};
use self::process::Process;
use crate::build;
use crate::command::{cargo, run as run_command};
use crate::setup::{self, Purpose};
use crate::size::Sizes;
use crate::terminal;
use crate::workspace::{FEATURES, Workspace};

/// Turns of every contender.
const ROUNDS: usize = 5;
/// Starts of the server that are timed.
const STARTS: usize = 5;

/// The programs that are measured beside the server.
const EXAMPLES: [&str; 8] = [
    "bare_sign",
    "bare_beat",
    "raw_log_rows",
    "hosted_file",
    "bare_backend",
    "large_store",
    "store_rates",
    "followers",
];

/// A part that can be measured alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// What a node on PostgreSQL does, beside the bare database and a server on SQLite.
    Nodes,
}

/// Measures, prints a table, writes `target/bench.json`, and fails if a goal is missed. The large
/// store has this `share` of its records. With a part, measures only that and writes no file.
pub(crate) fn run(workspace: &Workspace, share: f64, only: Option<Part>) -> Result<ExitCode> {
    setup::run(workspace, Purpose::Bench)?;
    // As releases are, with what several nodes need.
    build::cluster(workspace, true)?;
    let mut examples = vec!["build", "--release", "--workspace", "--features", FEATURES];
    let needed = match only {
        Some(Part::Nodes) => &["store_rates"][..],
        None => &EXAMPLES,
    };
    examples.extend(needed.iter().flat_map(|example| ["--example", example]));
    run_command(&mut cargo(&workspace.root, &examples))?;

    let folder = tempfile::tempdir().context("there is no room for temporary files")?;
    if only == Some(Part::Nodes) {
        let nodes = nodes::measure(workspace, folder.path())?;
        let goals = nodes.goals();
        let lines = [nodes.markdown(), figures::table_of(&goals)].concat();
        terminal::result(&lines.join("\n"));
        return Ok(verdict(&goals));
    }
    let sizes = Sizes::read(&workspace.root)?;
    let figures = measure(workspace, folder.path(), share, &sizes)?;
    let goals = figures.goals();
    terminal::result(&figures.markdown(&goals));
    let file = workspace.target.join("bench.json");
    let json = serde_json::to_string_pretty(&figures.json(&goals))?;
    std::fs::write(&file, json).with_context(|| format!("cannot write {}", file.display()))?;
    terminal::note(&format!("written to {}", file.display()));
    if let Some(sentence) = sizes.over_budget() {
        terminal::note(&sentence);
    }
    Ok(verdict(&goals))
}

fn verdict(goals: &[Goal]) -> ExitCode {
    if goals.iter().all(Goal::is_met) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Measures everything.
fn measure(workspace: &Workspace, folder: &Path, share: f64, sizes: &Sizes) -> Result<Figures> {
    let (ready_milliseconds, idle_kilobytes) = starts(workspace, folder)?;
    let startup = startup::measure(workspace)?;
    let ingest = ingest::measure(workspace, folder)?;
    let followers = followers::measure(workspace)?;
    let hosting = hosting::measure(workspace, folder)?;
    let proxy = proxy::measure(workspace, folder)?;
    let [bare, returning, new_guest, oidc_provider] = rates(workspace, folder)?;
    let nodes = nodes::measure(workspace, folder)?;
    // The longest comes last, so that a fault in the others shows earlier.
    let large = large::measure(workspace, folder, share)?;
    Ok(Figures {
        bare,
        returning,
        new_guest,
        oidc_provider,
        idle_kilobytes,
        ready_milliseconds,
        startup,
        ingest,
        followers,
        large,
        hosting,
        proxy,
        nodes,
        runtime_brotli: sizes.brotli,
        runtime_budget: sizes.budget,
    })
}

/// Starts the server on an existing store several times: the median time to its ready line in
/// milliseconds, and its memory after one request for each kind of page, in kilobytes.
fn starts(workspace: &Workspace, folder: &Path) -> Result<(f64, u64)> {
    terminal::note("bench: starting the server on an existing store");
    let data = folder.join("idle");
    let settings = Settings::default();
    contenders::server(workspace, &data, settings)?.stop();
    let mut times = Vec::new();
    for _ in 0..STARTS {
        let server = contenders::server(workspace, &data, settings)?;
        times.push(server.ready_after.as_secs_f64() * 1_000.0);
        server.stop();
    }
    let server: Process = contenders::server(workspace, &data, settings)?;
    contenders::visit(&server)?;
    let kilobytes = server.memory()?;
    server.stop();
    Ok((figures::median(&times), kilobytes))
}

/// Requests a second of every contender, in turns.
fn rates(workspace: &Workspace, folder: &Path) -> Result<[Series; 4]> {
    let contenders = Contenders::start(workspace, folder)?;
    let mut series = [const { Series::new() }; 4];
    // The first turn is a warm-up and does not count.
    for round in 0..=ROUNDS {
        terminal::note(&format!("bench: round {round} of {ROUNDS}"));
        for (place, load) in contenders.loads.iter().enumerate() {
            let sample = wrk::run(load).with_context(|| format!("{} failed", load.name))?;
            if round > 0 {
                series[place].add(sample);
            }
        }
    }
    Ok(series)
}
