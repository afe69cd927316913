//! How long the runtime takes to start on a page, measured in real browsers by
//! an example of the end-to-end tests' crate.

use std::collections::BTreeMap;

use anyhow::{Context, Result};

use super::statistics::{Estimate, median};
use crate::command::{cargo, output};
use crate::workspace::Workspace;
use crate::{drivers, terminal};

/// Milliseconds of each part, by engine.
pub(super) type Startup = BTreeMap<String, BTreeMap<String, Estimate>>;

/// The name of the sum of all parts.
pub(super) const WHOLE: &str = "whole";

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
