//! For how long the runtime's start holds a page's main thread, measured in real browsers by an
//! example of the end-to-end tests' crate.

use std::collections::BTreeMap;

use anyhow::{Context, Result};

use super::figures::{Goal, goal};
use super::statistics::{Estimate, Limit, median};
use crate::command::{cargo, output};
use crate::workspace::Workspace;
use crate::{drivers, terminal};

/// Milliseconds of each part, by engine.
pub(super) type Startup = BTreeMap<String, BTreeMap<String, Estimate>>;

/// The names of what the example measures: the sum of all parts that hold the main thread, and the
/// longest task of the page.
const HELD: &str = "main thread held";
const LONGEST: &str = "longest task";
/// The engine whose processor is made slower, as the example names it.
const SLOW: &str = "chromium, 6 × slower";

/// Loads a page in every engine, again and again, and returns the medians.
pub(super) fn measure(workspace: &Workspace) -> Result<Startup> {
    terminal::note("bench: starting the runtime in browsers");
    let example = ["run", "--quiet", "--example", "startup"];
    let json = output(&mut drivers::add_to(
        cargo(&workspace.root, &example),
        workspace,
    )?)?;
    let engines: BTreeMap<String, BTreeMap<String, Vec<f64>>> =
        serde_json::from_str(json.trim()).context("the start-up times cannot be read")?;
    let medians = engines.into_iter().map(|(engine, parts)| {
        let parts = parts.into_iter();
        let parts = parts.map(|(part, times)| (part, median(&times)));
        (engine, parts.collect())
    });
    Ok(medians.collect())
}

/// The goals of the start.
pub(super) fn goals(startup: &Startup) -> [Goal; 5] {
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

/// The parts of the start as the lines of a Markdown table.
pub(super) fn markdown(startup: &Startup) -> Vec<String> {
    let head = ["", "| the runtime's start | part | ms |", "|---|---|---:|"];
    let mut lines = head.map(str::to_owned).to_vec();
    for (engine, parts) in startup {
        let parts = parts.iter();
        lines.extend(parts.map(|(part, time)| format!("| {engine} | {part} | {} |", time.cell(1))));
    }
    lines
}

/// The same times in every engine.
#[cfg(test)]
pub(super) fn every_engine(held: Estimate, longest: Estimate) -> Startup {
    let parts: BTreeMap<_, _> = [(HELD.to_owned(), held), (LONGEST.to_owned(), longest)].into();
    ["chromium", "firefox", "webkit", SLOW]
        .map(|engine| (engine.to_owned(), parts.clone()))
        .into()
}
