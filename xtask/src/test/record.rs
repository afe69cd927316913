//! The result of the last run, kept in the target folder, so that failed parts can be run again
//! alone and the duration of a run can be estimated.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::workspace::Workspace;

/// The result of one part of a run: a check, or a test program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Entry {
    /// Whether all of it passed. False until it has ended.
    pub(super) passed: bool,
    /// The names of the failed tests, if it has tests. Empty for a part that did not pass: it did
    /// not run to its end.
    pub(super) failed: Vec<String>,
    /// How many seconds its last complete run took.
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
    /// Reads it. A missing or unreadable file counts as an empty record, since it is only used to
    /// skip tests.
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

    /// The entry of this part.
    pub(super) fn find(&self, part: &str) -> Option<&Entry> {
        self.parts.get(part)
    }

    /// Marks this part as not run yet, and keeps its time.
    pub(super) fn begin(&mut self, part: &str) {
        let seconds = self.find(part).and_then(|entry| entry.seconds);
        let entry = Entry {
            passed: false,
            failed: Vec::new(),
            seconds,
        };
        self.parts.insert(part.to_owned(), entry);
    }

    /// Records how this part ended, and its seconds if all of it ran.
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

    /// Writes it, so that an interrupted run can be continued.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn write(&self) -> Result<()> {
        let text = serde_json::to_vec_pretty(self).context("the record cannot be written")?;
        std::fs::write(&self.file, text)
            .with_context(|| format!("{} cannot be written", self.file.display()))
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

        // A part that was run by name keeps the time of its complete run.
        record.begin("clippy");
        record.end("clippy", vec!["a".into()], false, None);
        assert_eq!(record.find("clippy").unwrap().seconds, Some(2.5));
        assert_eq!(record.find("server it").unwrap().seconds, None);
    }

    #[test]
    fn a_record_that_cannot_be_read_is_an_empty_one() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("record.json");
        std::fs::write(&file, "{").unwrap();
        assert_eq!(Record::of(&file).find("clippy"), None);
    }
}
