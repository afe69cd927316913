//! Measures everything in one run on one machine: absolute figures vary with the machine, ratios do
//! not. The contenders take turns, each time another one first, so that another program's load does
//! not hit only one of them. Every figure has an interval, and a goal is met only if the whole
//! interval keeps it. One contender is measured beside itself, which shows the machine's noise.

mod compare;
mod connections;
mod contenders;
mod figures;
mod file_servers;
mod followers;
mod growth;
mod hosting;
mod ingest;
mod large;
mod machine;
mod nodes;
mod overload;
mod plots;
mod process;
mod proxy;
mod startup;
mod statistics;
mod tokens;
mod traffic;
mod wrk;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Parser, ValueEnum};
use xtask::build;
use xtask::command::{cargo, run as run_command};
use xtask::size::Sizes;
use xtask::terminal;
use xtask::workspace::{FEATURES, Workspace};

use self::contenders::Settings;
use self::figures::{Figures, Goal};
use self::machine::Machine;
use self::statistics::{Estimate, Verdict, median};

/// Turns of every contender: the interval of a median then leaves out the fastest and the slowest.
const ROUNDS: usize = 9;
/// Starts of the server that are timed.
const STARTS: usize = 9;

/// The programs that are measured beside the server.
const EXAMPLES: [&str; 10] = [
    "bare_sign",
    "paced_load",
    "bare_beat",
    "raw_log_rows",
    "hosted_file",
    "bare_file",
    "bare_backend",
    "large_store",
    "store_rates",
    "followers",
];

/// Measures the server compared with other servers, for about an hour on a machine that does nothing else, and writes
/// target/bench.json. Exits with 1 if a stated goal is missed, and with 2 if it cannot be told on this machine.
#[derive(Parser)]
#[command(bin_name = "cargo xtask bench")]
struct Arguments {
    /// How much is filled of the store of a million players and ten million log records, and how far --plot
    /// goes: 0.01 for a quick look.
    #[arg(long, default_value_t = 1.0)]
    share: f64,
    /// Measure only this part, for some minutes, and write no file. With --compare, it may be given more than once.
    #[arg(long)]
    only: Vec<Part>,
    /// Compare the working tree with this commit instead: both take turns on this machine as it is, some minutes for
    /// each part. The commit is built below target/compare, once. Exits with 1 if a figure is more than 5 % worse, and with 2 if
    /// that cannot be told.
    #[arg(long, value_name = "COMMIT", conflicts_with = "plot")]
    compare: Option<String>,
    /// Measure how time and memory grow with players, games and log records, and draw that in
    /// docs/performance.
    #[arg(long, conflicts_with = "only")]
    plot: bool,
}

/// A part that can be measured alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// With --compare: the bytes of runtime.js, and of the server's program.
    Size,
    /// With --compare: the start of the server, its memory, and that of a connection.
    Memory,
    /// With --compare: the rates of both stores, and PostgreSQL's round trips.
    Store,
    /// What a node on PostgreSQL does, beside the bare database and a server on SQLite.
    Nodes,
    /// For how long the runtime's start holds a page's main thread.
    Startup,
    /// What the runtime costs a game's frames.
    Frames,
    /// Deployed files, beside nginx, hyper and axum.
    Files,
    /// Tokens, beside bare handlers and another provider.
    Tokens,
    /// Idle connections, and slow readers beside fast ones.
    Connections,
    /// Four times as many tokens as the server can answer.
    Overload,
    /// Heartbeats, logs and their readers, and requests to backends.
    Traffic,
}

fn main() -> ExitCode {
    match start(&Arguments::parse()) {
        Ok(code) => code,
        Err(error) => {
            terminal::note(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// Does what the arguments ask for.
fn start(arguments: &Arguments) -> Result<ExitCode> {
    let workspace = Workspace::find()?;
    let Arguments { share, only, .. } = arguments;
    if let Some(commit) = &arguments.compare {
        return compare::run(&workspace, commit, only);
    }
    if arguments.plot {
        return plot(&workspace, *share);
    }
    match only[..] {
        [] => run(&workspace, *share, None),
        [part @ (Part::Size | Part::Memory | Part::Store)] => {
            anyhow::bail!("`{}` is only compared: add --compare <commit>", part.name())
        }
        [part] => run(&workspace, *share, Some(part)),
        _ => {
            anyhow::bail!("several parts are only compared: add --compare <commit>, or choose one")
        }
    }
}

impl Part {
    /// Its name on the command line.
    fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

/// Measures how everything grows, and writes the plots into `docs/performance`. The largest sizes are
/// this `share` of those of a full run.
fn plot(workspace: &Workspace, share: f64) -> Result<ExitCode> {
    let programs = ["--bin", "platform-server", "--example", "growth"];
    let arguments = ["build", "--release", "--workspace", "--features", FEATURES];
    let arguments = [&arguments[..], &programs].concat();
    run_command(&mut cargo(&workspace.root, &arguments))?;
    let machine = machine::divide()?;
    growth::run(workspace, &machine, share)?;
    Ok(ExitCode::SUCCESS)
}

/// Measures, prints a table, writes `target/bench.json`, and fails if a goal is missed, with the
/// exit code 2 if it only cannot be told. The large store has this `share` of its records. With a part, measures only that and writes no file.
fn run(workspace: &Workspace, share: f64, only: Option<Part>) -> Result<ExitCode> {
    if only == Some(Part::Startup) {
        let startup = startup::measure(workspace)?;
        let goals = startup::goals(&startup);
        return Ok(tell(&goals, &startup::markdown(&startup)));
    }
    if only == Some(Part::Frames) {
        let frames = startup::measure_frames(workspace)?;
        let goals = startup::goals_of_frames(&frames);
        return Ok(tell(&goals, &startup::markdown_of_frames(&frames)));
    }
    // As releases are, with what several nodes need.
    build::cluster(workspace, true)?;
    let mut examples = vec!["build", "--release", "--workspace", "--features", FEATURES];
    let needed = match only {
        Some(Part::Files) => &["hosted_file", "bare_file"][..],
        Some(Part::Tokens) => &["bare_sign", "paced_load"],
        Some(Part::Connections) => &["hosted_file", "paced_load"],
        Some(Part::Overload) => &["paced_load"],
        Some(Part::Traffic) => &["bare_beat", "raw_log_rows", "bare_backend", "followers"],
        Some(_) => &["store_rates"],
        None => &EXAMPLES,
    };
    examples.extend(needed.iter().flat_map(|example| ["--example", example]));
    run_command(&mut cargo(&workspace.root, &examples))?;

    let machine = machine::divide()?;
    terminal::note(&format!("bench: {}", machine.markdown().join(" ")));
    let folder = tempfile::tempdir().context("there is no room for temporary files")?;
    if let Some(part) = only {
        return measure_part(workspace, folder.path(), part, &machine);
    }
    let sizes = Sizes::read(&workspace.root)?;
    let figures = measure(workspace, folder.path(), share, (machine, &sizes))?;
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

/// Measures one part for which the server is built.
fn measure_part(
    workspace: &Workspace,
    folder: &Path,
    part: Part,
    machine: &Machine,
) -> Result<ExitCode> {
    let (goals, lines) = match part {
        Part::Nodes => {
            let nodes = nodes::measure(workspace, folder)?;
            (nodes.goals().into(), nodes.markdown())
        }
        Part::Files => {
            let hosting = hosting::measure(workspace, folder)?;
            (hosting.goals().into(), hosting.markdown())
        }
        Part::Tokens => {
            let tokens = tokens::measure(workspace, folder)?;
            (tokens.goals(), tokens.markdown())
        }
        Part::Connections => {
            let connections = connections::measure(workspace, folder)?;
            (connections.goals().into(), connections.markdown())
        }
        Part::Overload => {
            let overload = overload::measure(workspace, folder)?;
            (overload.goals().into(), overload.markdown())
        }
        Part::Traffic => {
            let traffic = traffic::measure(workspace, folder)?;
            (traffic.goals().into(), traffic.markdown())
        }
        Part::Startup | Part::Frames | Part::Size | Part::Memory | Part::Store => {
            (Vec::new(), Vec::new())
        }
    };
    Ok(tell(&goals, &[machine.markdown(), lines].concat()))
}

/// Prints these lines and the goals of a part.
fn tell(goals: &[Goal], lines: &[String]) -> ExitCode {
    let lines = [lines, &figures::table_of(goals)].concat();
    terminal::result(&lines.join("\n"));
    verdict(goals)
}

fn verdict(goals: &[Goal]) -> ExitCode {
    exit_code(goals.iter().map(Goal::verdict))
}

/// Fails if one is missed, and with another code if one only cannot be told.
fn exit_code(verdicts: impl Iterator<Item = Verdict>) -> ExitCode {
    let verdicts: Vec<Verdict> = verdicts.collect();
    if verdicts.contains(&Verdict::Missed) {
        ExitCode::FAILURE
    } else if verdicts.contains(&Verdict::Unclear) {
        ExitCode::from(2)
    } else {
        ExitCode::SUCCESS
    }
}

/// Measures everything.
fn measure(
    workspace: &Workspace,
    folder: &Path,
    share: f64,
    (machine, sizes): (Machine, &Sizes),
) -> Result<Figures> {
    let (ready_milliseconds, idle_kilobytes) = starts(workspace, folder)?;
    let startup = startup::measure(workspace)?;
    show(&startup::markdown(&startup));
    let frames = startup::measure_frames(workspace)?;
    show(&startup::markdown_of_frames(&frames));
    let traffic = traffic::measure(workspace, folder)?;
    show(&traffic.markdown());
    let hosting = hosting::measure(workspace, folder)?;
    show(&hosting.markdown());
    let connections = connections::measure(workspace, folder)?;
    show(&connections.markdown());
    let tokens = tokens::measure(workspace, folder)?;
    show(&tokens.markdown());
    let overload = overload::measure(workspace, folder)?;
    show(&overload.markdown());
    let nodes = nodes::measure(workspace, folder)?;
    show(&nodes.markdown());
    // The longest comes last, so that a fault in the others shows earlier.
    let large = large::measure(workspace, folder, share)?;
    Ok(Figures {
        machine,
        tokens,
        connections,
        overload,
        idle_kilobytes,
        ready_milliseconds,
        startup,
        frames,
        traffic,
        large,
        hosting,
        nodes,
        runtime_brotli: sizes.brotli,
        runtime_budget: sizes.budget,
    })
}

/// Shows what was measured so far, for a run that is interrupted.
fn show(lines: &[String]) {
    terminal::note(&lines.join("\n"));
}

/// Starts the server on an existing store several times: the time to its ready line in
/// milliseconds, and its memory after one request for each kind of page, in kilobytes.
fn starts(workspace: &Workspace, folder: &Path) -> Result<(Estimate, Estimate)> {
    terminal::note("bench: starting the server on an existing store");
    let data = folder.join("idle");
    let settings = Settings::default();
    contenders::server(workspace, &data, settings)?.stop();
    let (mut times, mut kilobytes) = (Vec::new(), Vec::new());
    for _ in 0..STARTS {
        let server = contenders::server(workspace, &data, settings)?;
        times.push(server.ready_after.as_secs_f64() * 1_000.0);
        contenders::visit(&server)?;
        kilobytes.push(server.memory()? as f64);
        server.stop();
    }
    Ok((median(&times), median(&kilobytes)))
}

/// The order of a round: each contender is the first in one round, and comes after another one.
fn turn(round: usize, contenders: usize) -> impl Iterator<Item = usize> {
    (0..contenders).map(move |place| (place + round) % contenders)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory as _;
        Arguments::command().debug_assert();
    }

    #[test]
    fn parts_may_be_chosen_more_than_once_and_have_the_names_of_the_command_line() {
        let words = [
            "bench",
            "--compare",
            "HEAD~1",
            "--only",
            "size",
            "--only",
            "tokens",
        ];
        let arguments = Arguments::parse_from(words);
        assert_eq!(arguments.compare.as_deref(), Some("HEAD~1"));
        assert_eq!(arguments.only, [Part::Size, Part::Tokens]);
        let names: Vec<String> = arguments.only.into_iter().map(Part::name).collect();
        assert_eq!(names, ["size", "tokens"]);
        assert!(Arguments::try_parse_from(["bench", "--compare", "a", "--plot"]).is_err());
    }

    #[test]
    fn what_is_only_compared_is_refused_alone_with_advice() {
        for words in [
            &["bench", "--only", "size"][..],
            &["bench", "--only", "tokens", "--only", "files"],
        ] {
            let error = start(&Arguments::parse_from(words))
                .unwrap_err()
                .to_string();
            assert!(error.contains("--compare <commit>"), "{error}");
        }
    }

    #[test]
    fn one_loss_fails_and_one_doubt_has_a_code_of_its_own() {
        let code = |verdicts: &[Verdict]| exit_code(verdicts.iter().copied());
        assert_eq!(
            code(&[Verdict::Met, Verdict::Unclear, Verdict::Missed]),
            ExitCode::FAILURE
        );
        assert_eq!(code(&[Verdict::Met, Verdict::Unclear]), ExitCode::from(2));
        assert_eq!(code(&[Verdict::Met]), ExitCode::SUCCESS);
        assert_eq!(code(&[]), ExitCode::SUCCESS);
    }

    #[test]
    fn every_contender_is_first_in_turn() {
        let orders: Vec<Vec<usize>> = (0..3).map(|round| turn(round, 3).collect()).collect();
        assert_eq!(orders, [[0, 1, 2], [1, 2, 0], [2, 0, 1]]);
    }
}
