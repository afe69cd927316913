//! `cargo xtask`: set up, build, serve, test, measure and tidy. The program is `main`; the bench, a
//! program of its own, uses the public modules.
//!
//! | module | holds |
//! |---|---|
//! | [`setup`] | the steps that a fresh machine needs, as data |
//! | [`build`] | the runtime and the server |
//! | [`dist`] | the archive of a release |
//! | [`serve`] | replaces this program by the server |
//! | [`cluster`] | several nodes on this machine, with the servers that they need |
//! | [`fuzz`] | fuzz targets, for some time each |
//! | [`miri`] | tests of code with `unsafe`, in an interpreter |
//! | [`simulate`] | many virtual players, and what the platform counts |
//! | [`test`] | every stage of the test run, and the count at its end |
//! | [`size`] | the runtime's size against its budget |
//! | [`bench`] | replaces this program by the one that measures |
//! | [`tidy`] | the rules that the compiler does not check |
//! | [`workspace`] | the paths and the environment |
//! | [`command`] | runs other programs and reports which one failed |

mod bench;
pub mod build;
mod cluster;
pub mod command;
mod dist;
pub mod drivers;
mod fuzz;
mod miri;
mod serve;
pub mod setup;
mod simulate;
pub mod size;
pub mod terminal;
mod test;
mod tidy;
pub mod workspace;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::workspace::Workspace;

/// Everything that is done to this project: no other script is needed.
#[derive(Parser)]
#[command(bin_name = "cargo xtask", version, about)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

/// What there is to do.
#[derive(Subcommand)]
enum Task {
    /// Set up what is missing, build, and serve the platform with its demo game.
    Serve {
        /// Optimise the server as for production, which takes longer to build.
        #[arg(long)]
        release: bool,
        /// Arguments for `platform-server serve`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        server: Vec<OsString>,
    },
    /// Set up what is missing, build, and serve the platform from several nodes behind a balancer.
    Cluster {
        /// Optimise the server as for production, which takes longer to build.
        #[arg(long)]
        release: bool,
        /// How many nodes there are.
        #[arg(long, default_value_t = 3)]
        nodes: usize,
        /// The port of the balancer; 0 for a free one.
        #[arg(long, default_value_t = 8787)]
        port: u16,
    },
    /// Set up what is missing (browsers, PostgreSQL and other servers, Node programs), build, and run every test, which
    /// takes about an hour. `cargo xtask test cluster` runs the tests that have `cluster` in their names.
    Test(test::Choice),
    /// Build runtime.js and the server.
    Build {
        /// Optimise the server as for production.
        #[arg(long)]
        release: bool,
    },
    /// Make a release: one archive in target/dist.
    Dist {
        /// Make it of the last commit in two folders, and fail unless both are
        /// the same, byte for byte.
        #[arg(long)]
        verify: bool,
    },
    /// Print the size of runtime.js, and fail over its budget.
    Size {
        /// Say what each part of it costs instead, as a Markdown table.
        #[arg(long)]
        explain: bool,
    },
    /// Measure the server, for about an hour; `cargo xtask bench --help` says what can be chosen. Installs nginx, Caddy,
    /// wrk, browsers, PostgreSQL and Node programs.
    #[command(disable_help_flag = true)]
    Bench {
        /// Arguments for `platform-bench`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        bench: Vec<OsString>,
    },
    /// Build the fuzz targets with coverage and run them; what they find is in target/fuzz/findings.
    Fuzz {
        /// Only this target, such as `archive`.
        target: Option<String>,
        /// For how many seconds each runs; two run at a time.
        #[arg(long, default_value_t = 3_600)]
        seconds: u64,
        /// Run the target only once, with the input in this file.
        #[arg(long, requires = "target")]
        input: Option<PathBuf>,
    },
    /// Run the tests of code with `unsafe` in Miri, which needs a nightly toolchain.
    Miri,
    /// Let many virtual players play on one server or several nodes, and compare what it counts.
    Simulate {
        /// How many play at the same time.
        #[arg(long, default_value_t = 10_000)]
        players: usize,
        /// How long it takes.
        #[arg(long, default_value_t = 5.0)]
        minutes: f64,
        /// In how many of these minutes players arrive; a third, if it is not given.
        #[arg(long)]
        arriving: Option<f64>,
        /// How many nodes there are; 1 is one server on SQLite.
        #[arg(long, default_value_t = 1)]
        nodes: usize,
    },
    /// Check formatting, lints, types, dependencies between parts, and documentation.
    Tidy {
        /// Format everything first, and mend what can be mended safely.
        #[arg(long)]
        fix: bool,
        /// Say how the server's slices import each other, and check nothing else;
        /// with a file's name, draw it there as SVG.
        #[arg(long, value_name = "FILE", num_args = 0..=1)]
        graph: Option<Option<PathBuf>>,
    },
}

/// Does what the command line asks for, and returns the program's exit code.
#[must_use]
pub fn main() -> ExitCode {
    match run(Arguments::parse().task) {
        Ok(code) => code,
        Err(error) => {
            terminal::note(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(task: Task) -> anyhow::Result<ExitCode> {
    let workspace = Workspace::find()?;
    match task {
        Task::Serve { release, server } => serve::run(&workspace, release, &server),
        Task::Cluster {
            release,
            nodes,
            port,
        } => cluster::run(&workspace, release, nodes, port),
        Task::Test(choice) => test::run(&workspace, &choice),
        Task::Build { release } => {
            setup::run(&workspace, setup::Purpose::Serve)?;
            build::run(&workspace, release)?;
            Ok(ExitCode::SUCCESS)
        }
        Task::Dist { verify } => dist::run(&workspace, verify),
        Task::Size { explain: false } => size::run(&workspace),
        Task::Size { explain: true } => size::explain(&workspace),
        Task::Bench { bench } => bench::run(&workspace, &bench),
        Task::Fuzz {
            target,
            seconds,
            input,
        } => fuzz::run(&workspace, target.as_deref(), seconds, input.as_deref()),
        Task::Miri => miri::run(&workspace),
        Task::Simulate {
            players,
            minutes,
            arriving,
            nodes,
        } => {
            let times = (minutes, arriving.unwrap_or(minutes / 3.0));
            simulate::run(&workspace, players, times, nodes)
        }
        Task::Tidy {
            graph: Some(picture),
            ..
        } => tidy::graph(&workspace, picture.as_deref()),
        Task::Tidy { fix, graph: None } => tidy::run(&workspace, fix),
    }
}

/// The names of the subcommands, to check those that the documents mention.
fn task_names() -> Vec<String> {
    use clap::CommandFactory;
    Arguments::command()
        .get_subcommands()
        .map(|task| task.get_name().to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn arguments_of_the_bench_are_passed_on_untouched() {
        for words in [
            &["--only", "tokens", "--only", "size"][..],
            &["--help"],
            &[],
        ] {
            let words = [&["xtask", "bench"], words].concat();
            let Task::Bench { bench } = Arguments::parse_from(&words).task else {
                panic!("not bench")
            };
            assert_eq!(bench, words[2..], "{words:?}");
        }
    }

    #[test]
    fn arguments_of_the_server_are_passed_on_untouched() {
        for (words, is_release) in [
            (&["xtask", "serve", "--", "--no-demo", "--help"][..], false),
            (
                &["xtask", "serve", "--release", "--", "--no-demo", "--help"],
                true,
            ),
            (&["xtask", "serve", "--no-demo", "--help"], false),
        ] {
            let Task::Serve { release, server } = Arguments::parse_from(words).task else {
                panic!("not serve")
            };
            assert_eq!(server, ["--no-demo", "--help"], "{words:?}");
            assert_eq!(release, is_release, "{words:?}");
        }
    }
}
