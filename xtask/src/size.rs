//! The size of runtime.js against its budget.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::command::{cargo, run as run_command};
use crate::workspace::Workspace;
use crate::{build, setup, terminal};

/// The size of the built runtime.js, and its limit.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// The whole file in brotli, in bytes.
    pub brotli: u64,
    /// The limit, in bytes.
    pub budget: u64,
}

/// The one figure that this program reads from either file.
#[derive(Deserialize)]
struct Brotli {
    brotli: u64,
}

impl Sizes {
    /// The sizes of the last build.
    ///
    /// # Errors
    /// Nothing was built, or the budget cannot be read.
    pub fn read(root: &Path) -> Result<Self> {
        let read = |name: &str| {
            fs::read_to_string(root.join(name)).with_context(|| format!("{name} cannot be read"))
        };
        let built: Brotli = serde_json::from_str(&read("loader/dist/sizes.json")?)?;
        let allowed: Brotli = toml::from_str(&read("loader/size.toml")?)?;
        Ok(Self {
            brotli: built.brotli,
            budget: allowed.brotli,
        })
    }

    /// What is wrong with the size, as a sentence; `None` within the budget.
    pub fn over_budget(self) -> Option<String> {
        let Self { brotli, budget } = self;
        (brotli > budget).then(|| {
            format!(
                "runtime.js has {brotli} bytes in brotli, {} over its budget of {budget} (loader/size.toml).",
                brotli - budget
            )
        })
    }
}

/// Builds runtime.js, prints its sizes, and fails over the budget.
pub(crate) fn run(workspace: &Workspace) -> Result<ExitCode> {
    setup::run(workspace, setup::Purpose::Serve)?;
    Ok(match build::runtime(workspace)?.over_budget() {
        None => ExitCode::SUCCESS,
        Some(sentence) => {
            terminal::note(&sentence);
            ExitCode::FAILURE
        }
    })
}

/// Builds runtime.js, and says what each part of it costs.
pub(crate) fn explain(workspace: &Workspace) -> Result<ExitCode> {
    setup::run(workspace, setup::Purpose::Serve)?;
    terminal::note("compressing runtime.js without each of its parts");
    let package = "platform-loader";
    let example = ["run", "--quiet", "-p", package, "--example", "explain"];
    run_command(&mut cargo(&workspace.root, &example))?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(brotli: u64, budget: u64) -> Sizes {
        Sizes { brotli, budget }
    }

    #[test]
    fn one_byte_over_the_budget_is_too_much() {
        assert_eq!(sizes(18_000, 18_000).over_budget(), None);
        let sentence = sizes(18_001, 18_000).over_budget().unwrap();
        assert!(
            sentence.contains("1 over its budget of 18000"),
            "{sentence}"
        );
    }

    #[test]
    fn the_sizes_are_read_from_what_was_built_and_from_the_budget() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("loader/dist")).unwrap();
        let write = |name: &str, text: &str| fs::write(root.path().join(name), text).unwrap();
        write(
            "loader/dist/sizes.json",
            r#"{"file":{"raw":9},"brotli":3,"budget":0}"#,
        );
        write("loader/size.toml", "# The budget.\nbrotli = 4\n");
        let sizes = Sizes::read(root.path()).unwrap();
        assert_eq!((sizes.brotli, sizes.budget), (3, 4));
        assert!(Sizes::read(&root.path().join("nowhere")).is_err());
    }
}
