//! For how long the runtime's start holds a page's main thread, and what the runtime costs a game's
//! frames afterwards, measured in real browsers by examples of the end-to-end tests' crate.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde::de::DeserializeOwned;
use xtask::command::{cargo, command, output, run};
use xtask::workspace::Workspace;
use xtask::{drivers, terminal};

use super::figures::{Goal, goal};
use super::statistics::{Estimate, Limit, median};

/// Figures by engine and name, such as the milliseconds of each part of the start.
pub(super) type InBrowsers = BTreeMap<String, BTreeMap<String, Estimate>>;

/// The names of what the example measures: the sum of all parts that hold the main thread, and the
/// longest task of the page.
const HELD: &str = "main thread held";
const LONGEST: &str = "longest task";
/// The engine whose processor is made slower, as the example names it.
const SLOW: &str = "chromium, 6 × slower";

/// Loads a page in every engine, again and again, and returns the medians.
pub(super) fn measure(workspace: &Workspace) -> Result<InBrowsers> {
    terminal::note("bench: starting the runtime, and scripts of others, in browsers");
    let peers = workspace.root.join("tests/peers");
    run(command("npm", &peers).args(["run", "--silent", "build"]))?;
    of_example(
        workspace,
        "startup",
        &[&peers.join("dist").to_string_lossy()],
    )
}

/// Plays games with the runtime and without it, in turns, and returns what a frame costs in both, and
/// what calls cost.
pub(super) fn measure_frames(workspace: &Workspace) -> Result<InBrowsers> {
    terminal::note("bench: playing games with the runtime and without it");
    of_example(workspace, "overhead", &[])
}

/// Builds and runs an example that measures in browsers, and reads the JSON that it prints.
pub(super) fn example<Printed: DeserializeOwned>(
    workspace: &Workspace,
    name: &str,
    arguments: &[&str],
) -> Result<Printed> {
    let example = [&["run", "--quiet", "--example", name, "--"], arguments].concat();
    let json = output(&mut drivers::add_to(
        cargo(&workspace.root, &example),
        workspace,
    )?)?;
    serde_json::from_str(json.trim()).context("what browsers measured cannot be read")
}

/// Runs an example that prints the values of its rounds, and returns their medians.
fn of_example(workspace: &Workspace, name: &str, arguments: &[&str]) -> Result<InBrowsers> {
    let engines: BTreeMap<String, BTreeMap<String, Vec<f64>>> =
        example(workspace, name, arguments)?;
    let medians = engines.into_iter().map(|(engine, figures)| {
        let figures = figures.into_iter();
        let figures = figures.map(|(name, values)| (name, median(&values)));
        (engine, figures.collect())
    });
    Ok(medians.collect())
}

/// The goals of the start.
pub(super) fn goals(startup: &InBrowsers) -> [Goal; 5] {
    let part = |engine, part| {
        let parts = startup.get(engine);
        let part = parts.and_then(|parts| parts.get(part)).copied();
        part.unwrap_or_default()
    };
    [
        ("runtime's start in Chromium", "chromium", HELD, 2.0),
        ("runtime's start in Firefox", "firefox", HELD, 2.0),
        ("runtime's start in WebKit", "webkit", HELD, 2.0),
        ("runtime's start, 6 × slower", SLOW, HELD, 8.0),
        ("longest task at the start, 6 × slower", SLOW, LONGEST, 50.0),
    ]
    .map(|(name, engine, measured, limit)| {
        goal(name, part(engine, measured), Limit::AtMost(limit), "ms")
    })
}

/// How an example names the ratio of what a game works on a frame.
const RATIO: &str = "frame, ratio";

/// How the example names what the runtime works in a second of a game that logs ten lines.
const SECOND: &str = "a second with ten lines, µs";

/// The goals of frames. Of the games that were played, the one that costs most counts; their frames
/// differ more among themselves than by the runtime, so what it works in a second is a goal as well.
pub(super) fn goals_of_frames(frames: &InBrowsers) -> [Goal; 4] {
    let largest = |engine, end| {
        let figures = frames.get(engine).into_iter().flatten();
        let found = figures.filter(|(name, _)| name.ends_with(end));
        Estimate::largest(found.map(|(_, figure)| *figure))
    };
    [
        (
            "frame with / without the runtime in Chromium",
            "chromium",
            RATIO,
            1.01,
            "×",
        ),
        (
            "frame with / without the runtime in Firefox",
            "firefox",
            RATIO,
            1.01,
            "×",
        ),
        (
            "runtime's work in a second in Chromium",
            "chromium",
            SECOND,
            10_000.0,
            "µs",
        ),
        (
            "runtime's work in a second in Firefox",
            "firefox",
            SECOND,
            10_000.0,
            "µs",
        ),
    ]
    .map(|(name, engine, figure, limit, unit)| {
        goal(name, largest(engine, figure), Limit::AtMost(limit), unit)
    })
}

/// What the runtime costs after its start, as the lines of a Markdown table.
pub(super) fn markdown_of_frames(frames: &InBrowsers) -> Vec<String> {
    table("after the runtime's start", "", 3, frames)
}

/// The parts of the start as the lines of a Markdown table.
pub(super) fn markdown(startup: &InBrowsers) -> Vec<String> {
    table("the runtime's start", "ms", 1, startup)
}

fn table(title: &str, unit: &str, decimals: usize, figures: &InBrowsers) -> Vec<String> {
    let head = format!("| {title} | part | {unit} |");
    let mut lines = vec![String::new(), head, "|---|---|---:|".to_owned()];
    for (engine, parts) in figures {
        let parts = parts.iter();
        lines.extend(parts.map(|(part, figure)| {
            let figure = figure.cell(decimals);
            format!("| {engine} | {part} | {figure} |")
        }));
    }
    lines
}

/// The same times in every engine.
#[cfg(test)]
pub(super) fn every_engine(held: Estimate, longest: Estimate) -> InBrowsers {
    let parts: BTreeMap<_, _> = [(HELD.to_owned(), held), (LONGEST.to_owned(), longest)].into();
    ["chromium", "firefox", "webkit", SLOW]
        .map(|engine| (engine.to_owned(), parts.clone()))
        .into()
}

/// The same ratio in every engine and game, and so many hundredths of a second of work.
#[cfg(test)]
pub(super) fn every_frame(ratio: Estimate, hundredths: Estimate) -> InBrowsers {
    let work = hundredths.times(10_000.0);
    let figures: BTreeMap<_, _> = [
        (format!("phaser, {RATIO}"), ratio),
        (SECOND.to_owned(), work),
    ]
    .into();
    ["chromium", "firefox"]
        .map(|engine| (engine.to_owned(), figures.clone()))
        .into()
}
