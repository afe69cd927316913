//! The size of runtime.js against its budget.

use std::process::ExitCode;

use anyhow::Result;

use crate::workspace::Workspace;
use crate::{build, setup, terminal};

/// Builds runtime.js, prints its sizes, and fails over the budget.
pub(crate) fn run(workspace: &Workspace) -> Result<ExitCode> {
    setup::run(workspace, setup::Purpose::Serve)?;
    let report = build::runtime(workspace)?;
    terminal::result(&report.to_string());
    Ok(match over_budget(report.brotli, report.budget) {
        None => ExitCode::SUCCESS,
        Some(sentence) => {
            terminal::note(&sentence);
            ExitCode::FAILURE
        }
    })
}

/// What is wrong with a size, in a sentence; nothing if it is within budget.
pub(crate) fn over_budget(brotli: u64, budget: u64) -> Option<String> {
    (brotli > budget).then(|| {
        format!(
            "runtime.js has {brotli} bytes in brotli, {} over its budget of {budget} (loader/size.toml).",
            brotli - budget
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_byte_over_the_budget_is_too_much() {
        assert_eq!(over_budget(18_000, 18_000), None);
        let sentence = over_budget(18_001, 18_000).unwrap();
        assert!(
            sentence.contains("1 over its budget of 18000"),
            "{sentence}"
        );
    }
}
