//! The working tree compared with another commit, on the machine as it is. Both programs take
//! turns, and only the ratio within a turn counts: what else the machine does meets both alike.
//!
//! The programs are used from outside alone, by their settings, HTTP and the files of the build, so
//! that a commit from before this comparison existed can be compared as well.

mod h2load;
mod memory;
mod pages;
mod requests;
mod servers;
mod size;
mod store;
mod subjects;
mod turns;
mod verdict;

use std::process::ExitCode;

use anyhow::{Context, Result};
use xtask::terminal;
use xtask::workspace::Workspace;

use self::subjects::{Program, Subject};
use self::turns::Side;
use self::verdict::Figure;
use crate::{Part, machine};

/// What both sides are measured with.
struct Both<'a> {
    workspace: &'a Workspace,
    old: Subject,
    new: Subject,
    /// For the data of servers.
    folder: &'a std::path::Path,
}

impl Both<'_> {
    fn side(&self, side: Side) -> &Subject {
        match side {
            Side::Old => &self.old,
            Side::New => &self.new,
        }
    }
}

/// The parts that can be compared, in the order in which they are.
const PARTS: [Part; 8] = [
    Part::Size,
    Part::Memory,
    Part::Tokens,
    Part::Files,
    Part::Traffic,
    Part::Store,
    Part::Startup,
    Part::Frames,
];

/// Compares these parts, or all. Fails with the exit code 1 if a figure is more than 5 % worse, and
/// with 2 if that cannot be told of one.
pub(super) fn run(workspace: &Workspace, commit: &str, only: &[Part]) -> Result<ExitCode> {
    let parts = chosen(only)?;
    let programs = needed(&parts);
    let _lock = subjects::lock(workspace)?;
    let old = subjects::of_commit(workspace, commit, &programs)?;
    let new = subjects::working_tree(workspace, &programs)?;
    let machine = machine::divide()?;
    let names = format!("compare: {} (new) with {} (old)", new.name, old.name);
    terminal::note(&names);
    let folder = tempfile::tempdir().context("there is no room for temporary files")?;
    let both = Both {
        workspace,
        old,
        new,
        folder: folder.path(),
    };
    terminal::result(&machine.markdown().join("\n"));
    let mut figures = Vec::new();
    for part in parts {
        let of_part = measure(&both, part)?;
        terminal::result(&verdict::table(&part.name(), &of_part).join("\n"));
        figures.extend(of_part);
    }
    Ok(crate::exit_code(figures.iter().map(Figure::verdict)))
}

/// The parts that were chosen.
fn chosen(only: &[Part]) -> Result<Vec<Part>> {
    if let Some(part) = only.iter().find(|part| !PARTS.contains(part)) {
        let names = PARTS.map(Part::name).join(", ");
        anyhow::bail!(
            "`{}` cannot be compared; what can be is {names}",
            part.name()
        );
    }
    let parts = PARTS.into_iter();
    Ok(parts
        .filter(|part| only.is_empty() || only.contains(part))
        .collect())
}

/// The programs that these parts need.
fn needed(parts: &[Part]) -> Vec<Program> {
    let mut programs = vec![Program::Server];
    if parts.contains(&Part::Store) {
        programs.push(Program::StoreRates);
    }
    programs
}

fn measure(both: &Both<'_>, part: Part) -> Result<Vec<Figure>> {
    match part {
        Part::Size => size::measure(both),
        Part::Memory => memory::measure(both),
        Part::Tokens => requests::tokens(both),
        Part::Files => requests::files(both),
        Part::Traffic => requests::traffic(both),
        Part::Store => store::measure(both),
        Part::Startup => pages::startup(both),
        Part::Frames => pages::frames(both),
        Part::Nodes | Part::Connections | Part::Overload => Ok(Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_compared_once_and_in_their_order() {
        let twice = [Part::Tokens, Part::Size, Part::Tokens];
        assert_eq!(chosen(&twice).unwrap(), [Part::Size, Part::Tokens]);
        assert_eq!(chosen(&[]).unwrap(), PARTS);
    }

    #[test]
    fn only_what_the_parts_need_is_built() {
        assert_eq!(needed(&[Part::Tokens]), [Program::Server]);
        let both = [Program::Server, Program::StoreRates];
        assert_eq!(needed(&[Part::Store]), both);
        assert_eq!(needed(&PARTS), both);
    }

    #[test]
    fn a_part_that_cannot_be_compared_is_refused_with_those_that_can() {
        let error = chosen(&[Part::Size, Part::Overload])
            .unwrap_err()
            .to_string();
        assert!(error.contains("`overload` cannot be compared"), "{error}");
        assert!(error.contains("tokens, files"), "{error}");
    }
}
