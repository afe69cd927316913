//! What the last run came to, kept in the target folder: what has not passed
//! can be run again alone, and how long a run will take can be told.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::workspace::Workspace;

/// What became of one part of a run: a check, or a test program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Entry {
    /// Whether all of it passed. False until it has ended.
    pub(super) passed: bool,
    /// The names of the tests that failed, where it has tests. None, though it
    /// did not pass: it did not come to its end.
    pub(super) failed: Vec<String>,
    /// How many seconds it took when it was last run whole.
    pub(super) seconds: Option<f64>,
}

/// The last run, by the names of its parts.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Record {
    #[serde(skip)]
    file: PathBuf,
    parts: BTreeMap<String, Entry>,
}

impl Record {
    /// Reads it. A file that is missing or cannot be read is an empty record:
    /// it only says what could be left out.
    pub(super) fn read(workspace: &Workspace) -> Self {
        Self::of(&workspace.target.join("xtask-last-test-run.json"))
    }

    fn of(file: &Path) -> Self {
        let known = std::fs::read(file)
            .ok()
            .and_then(|text| serde_json::from_slice::<Self>(&text).ok());
        Self {
            file: file.to_owned(),
            ..known.unwrap_or_default()
        }
    }

    /// What is known of this part.
    pub(super) fn find(&self, part: &str) -> Option<&Entry> {
        self.parts.get(part)
    }

    /// Notes that this part is still to be run, and keeps its time.
    pub(super) fn begin(&mut self, part: &str) {
        let seconds = self.find(part).and_then(|entry| entry.seconds);
        let entry = Entry {
            passed: false,
            failed: Vec::new(),
            seconds,
        };
        self.parts.insert(part.to_owned(), entry);
    }

    /// Notes how this part ended, and how many seconds it took if all of it ran.
    pub(super) fn end(
        &mut self,
        part: &str,
        failed: Vec<String>,
        passed: bool,
        whole: Option<f64>,
    ) {
        let known = self.find(part).and_then(|entry| entry.seconds);
        let entry = Entry {
            passed,
            failed,
            seconds: whole.or(known),
        };
        self.parts.insert(part.to_owned(), entry);
    }

    /// Writes it, so that an interrupted run can be gone on with.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn write(&self) -> Result<()> {
        let text = serde_json::to_vec_pretty(self).context("the record cannot be written")?;
        std::fs::write(&self.file, text)
            .with_context(|| format!("{} cannot be written", self.file.display()))
    }

    /// How many seconds these parts took when they were last run, as far as
    /// that is known of all of them.
    pub(super) fn seconds<'a>(&self, parts: impl IntoIterator<Item = &'a str>) -> Option<f64> {
        parts.into_iter().map(|part| self.find(part)?.seconds).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_begun_and_never_ended_has_not_passed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("record.json");
        let mut record = Record::of(&file);
        record.begin("clippy");
        record.begin("server it");
        record.end("clippy", Vec::new(), true, Some(2.5));
        record.write().unwrap();

        let mut record = Record::of(&file);
        assert!(record.find("clippy").unwrap().passed);
        let open = record.find("server it").unwrap();
        assert!(!open.passed && open.failed.is_empty());
        assert_eq!(record.find("other"), None);

        // A part that ran by name keeps the time of the whole.
        record.begin("clippy");
        record.end("clippy", vec!["a".into()], false, None);
        assert_eq!(record.seconds(["clippy"]), Some(2.5));
        assert_eq!(record.seconds(["clippy", "server it"]), None);
    }

    #[test]
    fn a_record_that_cannot_be_read_is_an_empty_one() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("record.json");
        std::fs::write(&file, "{").unwrap();
        assert_eq!(Record::of(&file).find("clippy"), None);
    }
}
