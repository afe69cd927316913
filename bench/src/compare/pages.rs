//! Pages in Chromium: the start of both runtimes, and what they cost a game's frames. The examples
//! of the tests' crate deploy a page to both servers, and load it from them in turns.

use std::collections::BTreeMap;

use anyhow::Result;
use xtask::terminal;

use super::Both;
use super::servers::{self, Sides};
use super::turns::Side;
use super::verdict::{Better, Figure, Pair};
use crate::startup;

/// The pairs of each figure, as the examples print them.
type Pairs = BTreeMap<String, Vec<[f64; 2]>>;

/// Compares the runtime's start.
pub(super) fn startup(both: &Both<'_>) -> Result<Vec<Figure>> {
    compare(both, "startup")
}

/// Compares what the runtime costs a game.
pub(super) fn frames(both: &Both<'_>) -> Result<Vec<Figure>> {
    compare(both, "overhead")
}

fn compare(both: &Both<'_>, example: &str) -> Result<Vec<Figure>> {
    terminal::note(&format!(
        "compare: building and running the example {example}, which drives Chromium"
    ));
    let servers = Sides::make(|side| servers::start(both, side, example, &[]))?;
    let origin = |side| servers.of(side).origin.as_str();
    let arguments = ["--compare", origin(Side::Old), origin(Side::New)];
    Ok(figures(startup::example(
        both.workspace,
        example,
        &arguments,
    )?))
}

/// All of it is time.
fn figures(pairs: Pairs) -> Vec<Figure> {
    let figures = pairs.into_iter();
    figures
        .map(|(name, pairs)| {
            let pairs: Vec<Pair> = pairs
                .into_iter()
                .map(|[old, new]| Pair { old, new })
                .collect();
            Figure::measured(name, Better::Less, &pairs)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::Verdict;

    #[test]
    fn the_second_of_a_pair_is_the_new_one() {
        let printed =
            r#"{"held, ms":[[1.0,2.0],[1.0,2.0],[1.0,2.0],[1.0,2.0],[1.0,2.0],[1.0,2.0]]}"#;
        let figures = figures(serde_json::from_str(printed).unwrap());
        assert_eq!(figures[0].verdict(), Verdict::Missed);
    }
}
