//! How time and memory grow with players, games and log records: an example of the server's crate
//! measures each size, then a server starts on what it left. Written as plots into `docs/`.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use xtask::command::output;
use xtask::terminal;
use xtask::workspace::Workspace;

use super::contenders::{self, Settings};
use super::machine::Machine;
use super::plots::{self, Line, Panel, Plot};
use super::statistics::{Estimate, median};

/// Starts of the server on each size.
const STARTS: usize = 9;
/// Where the plots are, in the workspace.
const FOLDER: &str = "docs/performance";
/// Names of what this program measures itself.
const START: &str = "start, ms";
const MEMORY: &str = "memory after the start, MB";

/// What grows, and the sizes of a full run.
const GROWING: [(&str, &[usize]); 3] = [
    ("players", &[100, 1_000, 10_000, 100_000, 1_000_000]),
    ("games", &[10, 100, 1_000, 10_000]),
    ("records", &[10_000, 100_000, 1_000_000, 10_000_000]),
];

/// A plot: the file, the title, what the lines without the platform are, and for each panel what
/// grows and what was measured.
type Planned = (&'static str, &'static str, &'static str, [Named; 2]);
type Named = (&'static str, &'static str);

const PLOTS: [Planned; 7] = [
    (
        "look-ups",
        "Look-up of a session with its player",
        "SQLite alone, the same statement",
        both("look-up of a session, µs"),
    ),
    (
        "heartbeats",
        "A heartbeat in memory",
        "one map with a lock",
        both("heartbeat, µs"),
    ),
    (
        "presence-memory",
        "Memory of who is playing",
        "one map with a lock",
        both("memory of presence, bytes a player"),
    ),
    (
        "ranking",
        "The ranking is computed anew",
        "SQLite alone, without the rules",
        both("ranking, ms"),
    ),
    (
        "sweeps",
        "A sweep removes 500 old sessions",
        "SQLite alone, the same statement",
        both("sweep of 500 sessions, ms"),
    ),
    ("start", "The server starts", "", both(START)),
    (
        "search",
        "A search in the log: a frequent word, and one that is not there",
        "SQLite alone, LIKE",
        [
            ("records", "search for a frequent word, ms"),
            ("records", "search for a word that is not there, ms"),
        ],
    ),
];

const fn both(name: &'static str) -> [Named; 2] {
    [("players", name), ("games", name)]
}

/// The rounds of one figure, as the example prints them.
#[derive(Debug, Default, Deserialize)]
struct Values {
    ours: Vec<f64>,
    bare: Vec<f64>,
}

/// A figure of one size.
#[derive(Clone, Copy, Debug, Serialize)]
struct Figure {
    size: usize,
    ours: Estimate,
    /// Of the same without the platform, if there is such a thing.
    bare: Option<Estimate>,
}

/// Figures by what grows and what was measured, in the order of the sizes.
type Growth = BTreeMap<&'static str, BTreeMap<String, Vec<Figure>>>;

/// Measures and draws. With a share of 0.01, no size is larger than a hundredth of the largest.
pub(super) fn run(workspace: &Workspace, machine: &Machine, share: f64) -> Result<()> {
    let mut growth = Growth::new();
    for (what, sizes) in GROWING {
        for size in up_to(sizes, share) {
            terminal::note(&format!("bench: growth, {size} {what}"));
            let folder = tempfile::tempdir().context("there is no room for temporary files")?;
            let mut measured = example(workspace, folder.path(), what, size)?;
            if what != "records" {
                measured.extend(starts(workspace, folder.path())?);
            }
            let of_size = measured.into_iter().map(|(name, Values { ours, bare })| {
                let bare = (!bare.is_empty()).then(|| median(&bare));
                let ours = median(&ours);
                (name, Figure { size, ours, bare })
            });
            for (name, figure) in of_size {
                let names = growth.entry(what).or_default();
                names.entry(name).or_default().push(figure);
            }
        }
    }
    let folder = workspace.root.join(FOLDER);
    std::fs::create_dir_all(&folder)?;
    let write = |name: &str, text: &str| {
        let file = folder.join(name);
        std::fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))
    };
    let note = machine.note();
    for (file, title, bare, panels) in PLOTS {
        let panels = panels.map(|(what, name)| panel(&growth, what, name));
        let plot = Plot {
            title,
            note: &note,
            ours: "the platform",
            bare,
            panels: panels.into(),
        };
        write(&format!("{file}.svg"), &plots::draw(&plot)?)?;
    }
    let json = serde_json::json!({ "machine": machine, "growth": growth });
    write(
        "growth.json",
        &(serde_json::to_string_pretty(&json)? + "\n"),
    )?;
    terminal::note(&format!("written to {}", folder.display()));
    Ok(())
}

/// The sizes that are not larger than this share of the largest.
fn up_to(sizes: &[usize], share: f64) -> Vec<usize> {
    let most = sizes.last().map_or(0.0, |largest| *largest as f64 * share);
    let sizes = sizes.iter().copied();
    sizes.filter(|size| *size as f64 <= most).collect()
}

fn example(
    workspace: &Workspace,
    folder: &Path,
    what: &str,
    size: usize,
) -> Result<BTreeMap<String, Values>> {
    let mut program = Command::new(workspace.binary(true, "examples/growth"));
    let printed = output(program.arg(folder).args([what, &size.to_string()]))?;
    serde_json::from_str(printed.trim()).context("what was measured cannot be read")
}

/// Starts the server on the folder again and again.
fn starts(workspace: &Workspace, folder: &Path) -> Result<[(String, Values); 2]> {
    let [mut times, mut memory] = [Vec::new(), Vec::new()];
    for start in 0..=STARTS {
        let server = contenders::server(workspace, folder, Settings::default())?;
        // The first one deploys the demo.
        if start > 0 {
            times.push(server.ready_after.as_secs_f64() * 1_000.0);
            memory.push(server.memory()? as f64 / 1_000.0);
        }
        server.stop();
    }
    let ours = |ours| Values {
        ours,
        bare: Vec::new(),
    };
    Ok([
        (START.to_owned(), ours(times)),
        (MEMORY.to_owned(), ours(memory)),
    ])
}

fn panel<'a>(growth: &Growth, what: &'a str, name: &'a str) -> Panel<'a> {
    let figures = growth.get(what).and_then(|names| names.get(name));
    let figures = figures.map_or(&[][..], Vec::as_slice);
    let ours = figures
        .iter()
        .map(|figure| (figure.size as f64, figure.ours));
    let bare = figures
        .iter()
        .filter_map(|figure| Some((figure.size as f64, figure.bare?)));
    Panel {
        x: what,
        y: name,
        ours: Line(ours.collect()),
        bare: Line(bare.collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_leaves_the_largest_sizes_out() {
        let (_, players) = GROWING[0];
        assert_eq!(up_to(players, 1.0), players);
        assert_eq!(up_to(players, 0.01), [100, 1_000, 10_000]);
        assert!(up_to(&[], 1.0).is_empty());
    }

    #[test]
    fn every_plot_has_its_line_in_the_document() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let text = std::fs::read_to_string(root.join("docs/performance.md")).unwrap();
        for (file, ..) in PLOTS {
            assert!(
                text.contains(&format!("(performance/{file}.svg)")),
                "{file}"
            );
            assert!(root.join(FOLDER).join(format!("{file}.svg")).exists());
        }
    }
}
