//! A ratchet for language: words that a stranger does not understand may become fewer, and never more.
//!
//! | file | what it reads for |
//! |---|---|
//! | [`names`] | words in the names of types, functions, modules and constants |
//! | [`prose`] | phrases in comments, documents, pages and the names of tests |
//! | [`constants`] | times and bounds with a name that does not say so, units of time that are defined again |
//! | [`definitions`] | what a file defines |
//! | [`counts`] | what `xtask/language.toml` allows |
//!
//! This file also finds names of types that more than two crates define. Only definitions count: a name that is
//! used a hundred times is renamed where it is defined. A row is a crate, the folder of the nearest `Cargo.toml`;
//! [`row_of`] names the others. Generated files, licences and the changelog are not read.

mod constants;
mod counts;
mod definitions;
mod names;
mod prose;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use self::constants::NameFault;
use self::counts::{AllowedCounts, WordCounts};
use self::definitions::DefinitionKind;
use super::{Finding, files};
use crate::terminal;

/// The file with the counts.
const FILE: &str = "xtask/language.toml";
/// The command that lowers the counts.
const FIX: &str = "cargo xtask tidy --fix";
/// So many crates may define a type of the same name.
const CRATES_LIMIT: usize = 2;
/// Type names that every crate may define, as Rust's own libraries do.
const COMMON_TYPES: &[&str] = &["Error", "Result"];
/// Files that are generated, or are about the past.
const EXEMPT: &[&str] = &["CHANGELOG.md", "docs/settings.md"];

/// What the rules count, each by the key that the file has for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum LanguageRule {
    Name(&'static str),
    Prose(&'static str),
    Time,
    Bound,
    Unit,
    /// Its rows are the names of types; each counts the crates that define it.
    SharedType,
}

/// The key of the rows with the names of types that more than two crates define.
const SHARED_TYPE: &str = "type in more than two crates";

impl LanguageRule {
    /// The key in the file.
    fn key(self) -> String {
        match self {
            Self::Name(word) => format!("name {word}"),
            Self::Prose(phrase) => format!("prose {phrase}"),
            Self::Time => "constant that is a time".into(),
            Self::Bound => "constant that is a bound".into(),
            Self::Unit => "constant that is a unit of time".into(),
            Self::SharedType => SHARED_TYPE.into(),
        }
    }

    /// What is wrong and what to do, behind the number of occurrences.
    fn advice(self) -> String {
        match self {
            Self::Name(word) => format!(
                "`{word}` says nothing to a stranger. Take the field's word for the thing: {}.",
                names::terms_for(word)
            ),
            Self::Prose(phrase) => format!(
                "\u{201c}{phrase}\u{201d} is read twice: write subject, verb and object, and {}.",
                prose::advice(phrase)
            ),
            Self::Time => "A constant that is a time ends in _TIMEOUT, _INTERVAL, _AGE or _PERIOD; a number has \
                           its unit behind that, as in SESSION_AGE_SECONDS."
                .into(),
            Self::Bound => "A constant that is a bound begins with MAX_ or ends in _LIMIT.".into(),
            Self::Unit => {
                "Take the unit from `platform_domain::counting`, or write `Duration::from_hours(24)` where it is used."
                    .into()
            }
            Self::SharedType => "More than two crates define a type of this name, so that it cannot be searched \
                                 for. Say what it is a kind of, as in `StackFrame`, or use the type that is there."
                .into(),
        }
    }
}

/// A file and a line, from 1.
type Location = (String, usize);

/// What was found in the project's files.
#[derive(Default)]
pub(super) struct Usage {
    /// The folders of the crates, the root's without a name.
    crates: BTreeSet<String>,
    locations: BTreeMap<LanguageRule, BTreeMap<String, Vec<Location>>>,
    /// By the name of a type and by crate, where it is defined first.
    types: BTreeMap<String, BTreeMap<String, Location>>,
}

impl Usage {
    /// Nothing yet, for a project of these files.
    pub(super) fn new(paths: &[String]) -> Self {
        let manifests = paths
            .iter()
            .filter_map(|path| path.strip_suffix("/Cargo.toml"));
        Self {
            crates: manifests.map(str::to_owned).collect(),
            ..Self::default()
        }
    }

    /// Reads a file.
    pub(super) fn read(&mut self, path: &str, text: &str) {
        let name = path.rsplit('/').next().unwrap_or(path);
        let is_licence = name.starts_with("LICENSE");
        if is_licence || name.contains(".generated.") || EXEMPT.contains(&path) {
            return;
        }
        let row = row_of(path, &self.crates);
        for (phrase, line) in prose::banned(path, text) {
            self.add(LanguageRule::Prose(phrase), &row, path, line);
        }
        for definition in definitions::definitions(path, text) {
            let line = definition.line;
            if definition.is_sentence {
                for (phrase, line) in prose::banned_in_name(definition.name, line) {
                    self.add(LanguageRule::Prose(phrase), &row, path, line);
                }
                continue;
            }
            for word in names::banned(definition.name) {
                self.add(LanguageRule::Name(word), &row, path, line);
            }
            match constants::fault(path, &definition) {
                Some(NameFault::Time) => self.add(LanguageRule::Time, &row, path, line),
                Some(NameFault::Bound) => self.add(LanguageRule::Bound, &row, path, line),
                Some(NameFault::Unit) => self.add(LanguageRule::Unit, &row, path, line),
                None => {}
            }
            let is_type = definition.kind == DefinitionKind::Type && path.ends_with(".rs");
            if is_type && !COMMON_TYPES.contains(&definition.name) {
                let crates = self.types.entry(definition.name.to_owned()).or_default();
                let location = (path.to_owned(), line);
                crates.entry(row.clone()).or_insert(location);
            }
        }
    }

    fn add(&mut self, rule: LanguageRule, row: &str, path: &str, line: usize) {
        let rows = self.locations.entry(rule).or_default();
        let locations = rows.entry(row.to_owned()).or_default();
        locations.push((path.to_owned(), line));
    }

    /// All occurrences, with those of types.
    fn all(&self) -> BTreeMap<LanguageRule, BTreeMap<String, Vec<Location>>> {
        let mut all = self.locations.clone();
        for (name, crates) in &self.types {
            if crates.len() > CRATES_LIMIT {
                let rows = all.entry(LanguageRule::SharedType).or_default();
                rows.insert(name.clone(), crates.values().cloned().collect());
            }
        }
        all
    }

    /// How often what a rule reads for occurs in each row.
    fn counts(&self) -> WordCounts {
        let count = |rows: BTreeMap<String, Vec<Location>>| {
            let rows = rows.into_iter();
            rows.map(|(row, locations)| (row, locations.len()))
                .collect()
        };
        let all = self.all().into_iter();
        all.map(|(rule, rows)| (rule.key(), count(rows))).collect()
    }

    /// What occurs more often than the text of the file allows, and what is wrong with the file.
    fn rises(&self, allowed: &AllowedCounts) -> Vec<Finding> {
        let wrong_totals = allowed.wrong_totals().map(|(word, total, sum)| {
            format!(
                "The rows of [\"{word}\"] sum to {sum}, and its total says {total}. Code that moves \
                 between crates lowers one row by what it raises another; the total stays."
            )
        });
        let mut sentences: Vec<String> = wrong_totals.collect();
        for (rule, rows) in self.all() {
            for (row, locations) in rows {
                let limit = allowed.count(&rule.key(), &row);
                if locations.len() > limit {
                    sentences.push(sentence(rule, &row, &locations, limit));
                }
            }
        }
        sentences.into_iter().map(finding).collect()
    }

    /// Compares with the file, and says in a line if it can be lowered.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(super) fn check(&self, root: &Path) -> Result<Vec<Finding>> {
        let Some(text) = files::read(root, FILE)? else {
            let sentence = format!("The file is missing. `{FIX}` writes it with today's counts.");
            return Ok(vec![finding(sentence)]);
        };
        let allowed = match AllowedCounts::parse(&text) {
            Ok(allowed) => allowed,
            Err(error) => return Ok(vec![finding(format!("{error:#}"))]),
        };
        if allowed.lowered(&self.counts()) != allowed {
            terminal::note(&format!("tidy: {FILE} can be lowered: run `{FIX}`"));
        }
        Ok(self.rises(&allowed))
    }
}

/// Lowers the counts of the file to what there is; writes it if it is missing.
///
/// # Errors
/// The project cannot be read, or the file cannot be written.
pub(super) fn fix(root: &Path) -> Result<()> {
    let paths = files::list(root)?;
    let mut usage = Usage::new(&paths);
    for path in &paths {
        if let Some(text) = files::read(root, path)? {
            usage.read(path, &text);
        }
    }
    let before = files::read(root, FILE)?;
    let after = match &before {
        Some(text) => AllowedCounts::parse(text)?.lowered(&usage.counts()),
        None => anew(root, &usage.counts())?,
    };
    let after = after.text();
    if before.is_none_or(|before| before != after) {
        std::fs::write(root.join(FILE), after)
            .with_context(|| format!("{FILE} cannot be written"))?;
        terminal::note(&format!("tidy: wrote {FILE}"));
    }
    Ok(())
}

/// The counts of today, if no word occurs more often than the last commit allows. Only shared names of types
/// may become more: a crate that is divided shares those that it had.
fn anew(root: &Path, counts: &WordCounts) -> Result<AllowedCounts> {
    let after = AllowedCounts::new(counts);
    let committed = Command::new("git")
        .args(["show", &format!("HEAD:{FILE}")])
        .current_dir(root)
        .output();
    // Without git, or before the first commit, there is nothing to compare with.
    if let Some(committed) = committed
        .ok()
        .filter(|committed| committed.status.success())
    {
        let before = AllowedCounts::parse(&String::from_utf8_lossy(&committed.stdout))?;
        let risen = after.risen(&before, SHARED_TYPE);
        ensure!(
            risen.is_empty(),
            "{FILE} is not written: in all crates together there is more than the last commit allows of {}. \
             `git checkout {FILE}` brings the file back, and `cargo xtask tidy` then says where they are",
            risen.join(", ")
        );
    }
    Ok(after)
}

/// Something that the file does not allow.
fn finding(sentence: String) -> Finding {
    Finding {
        path: FILE.into(),
        line: 0,
        sentence,
    }
}

/// Says that a word occurs too often, what to do, and where it is.
fn sentence(rule: LanguageRule, row: &str, locations: &[Location], limit: usize) -> String {
    let mut by_file: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (path, line) in locations {
        let lines = by_file.entry(path).or_default();
        lines.push(line.to_string());
    }
    let key = rule.key();
    let count = locations.len();
    let by_hand = if rule == LanguageRule::SharedType {
        "If a crate became two, raise this row and the total by hand."
    } else {
        "Only if existing code came here from another crate, lower that crate's row by hand and raise this one; the total \
         stays."
    };
    let mut text = format!(
        "[\"{key}\"] \"{row}\" is {count} now, and the file allows {limit}.\n  {} docs/glossary.md has the terms of \
         this project, and xtask/src/tidy/language/ the words that are counted.\n  {by_hand}",
        rule.advice(),
    );
    for (path, lines) in by_file {
        // Writing to a string cannot fail.
        let _ = write!(text, "\n    {path}:{}", lines.join(","));
    }
    text
}

/// The row of the file that a file of the project counts in: its crate, without one the first folder; `docs` for
/// the root's documents and `loader/js` for the script, which has a crate around it.
fn row_of(path: &str, crates: &BTreeSet<String>) -> String {
    if path.starts_with("loader/js/") {
        return "loader/js".into();
    }
    let mut folders = path.match_indices('/').map(|(at, _)| &path[..at]).rev();
    if let Some(folder) = folders.find(|folder| crates.contains(*folder)) {
        return folder.into();
    }
    match path.split_once('/') {
        Some((folder, _)) => folder.into(),
        None if path.ends_with(".md") => "docs".into(),
        None => "root".into(),
    }
}

/// Whether a file is JavaScript or TypeScript.
fn is_javascript(path: &str) -> bool {
    [".js", ".mjs", ".ts"]
        .iter()
        .any(|ending| path.ends_with(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(files: &[(&str, &str)]) -> Usage {
        let paths = ["a", "b", "c", "www/d"].map(|folder| format!("{folder}/Cargo.toml"));
        let mut usage = Usage::new(&paths);
        for (path, text) in files {
            usage.read(path, text);
        }
        usage
    }

    fn sentences(usage: &Usage, allowed: &AllowedCounts) -> Vec<String> {
        let findings = usage.rises(allowed).into_iter();
        findings.map(|finding| finding.sentence).collect()
    }

    #[test]
    fn the_file_in_the_project_has_totals_that_are_the_sums_of_its_rows() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let allowed = AllowedCounts::parse(&files::read(root, FILE).unwrap().unwrap()).unwrap();
        assert_eq!(allowed.wrong_totals().collect::<Vec<_>>(), []);
        assert!(!allowed.counts.is_empty());
    }

    #[test]
    fn what_occurs_more_often_is_said_with_its_lines_and_what_to_do() {
        let before = usage(&[("a/src/x.rs", "struct Place;\n")]);
        let allowed = AllowedCounts::new(&before.counts());
        assert_eq!(sentences(&before, &allowed), [""; 0]);
        let after = usage(&[
            ("a/src/x.rs", "struct Place;\n"),
            ("a/src/y.rs", "//! One.\nfn place() {}\nmod place_of;\n"),
        ]);
        let said = sentences(&after, &allowed);
        assert_eq!(said.len(), 1);
        for part in [
            "[\"name Place\"] \"a\" is 3 now, and the file allows 1.",
            "a location, path,",
            "docs/glossary.md",
            "by hand",
            "a/src/x.rs:1",
            "a/src/y.rs:2,3",
        ] {
            assert!(said[0].contains(part), "{part} is not in {}", said[0]);
        }
    }

    #[test]
    fn code_that_moves_takes_its_count_along_by_hand_and_the_total_stays() {
        let before = usage(&[("a/x.rs", "fn look() {}\n")]);
        let after = usage(&[("b/x.rs", "fn look() {}\n")]);
        let allowed = AllowedCounts::new(&before.counts());
        assert_eq!(sentences(&after, &allowed).len(), 1);
        // `--fix` does not lower what may have moved.
        assert_eq!(allowed.lowered(&after.counts()), allowed);
        let text = allowed.text();
        let moved = AllowedCounts::parse(&text.replace("\"a\" = 1", "\"b\" = 1")).unwrap();
        assert_eq!(sentences(&after, &moved), [""; 0]);
        let raised =
            AllowedCounts::parse(&text.replace("\"a\" = 1", "\"a\" = 1\n\"b\" = 1")).unwrap();
        let said = sentences(&after, &raised);
        assert!(
            said[0].contains("sum to 2, and its total says 1"),
            "{said:?}"
        );
    }

    #[test]
    fn a_file_that_is_written_anew_may_not_allow_more_in_all() {
        let before = AllowedCounts::new(&usage(&[("a/x.rs", "fn look() {}\n")]).counts());
        let moved = AllowedCounts::new(&usage(&[("b/x.rs", "fn look() {}\n")]).counts());
        assert_eq!(moved.risen(&before, SHARED_TYPE), [""; 0]);
        let more = [("a/x.rs", "fn look() {}\n"), ("b/x.rs", "fn look() {}\n")];
        let more = AllowedCounts::new(&usage(&more).counts());
        assert_eq!(
            more.risen(&before, SHARED_TYPE),
            ["`name Look` (2, allowed 1)"]
        );
    }

    #[test]
    fn a_type_name_is_counted_from_the_third_crate_on() {
        let two = [("a/x.rs", "struct Kind;\n"), ("b/x.rs", "enum Kind {}\n")];
        assert_eq!(usage(&two).counts(), WordCounts::new());
        let third = "mod x;\npub type Kind = u8;\n";
        let again = "struct Kind;\n";
        let three = [two[0], two[1], ("www/d/x.rs", third), ("www/d/y.rs", again)];
        let said = sentences(&usage(&three), &AllowedCounts::default());
        assert_eq!(said.len(), 1);
        assert!(said[0].contains("\"Kind\" is 3 now"), "{said:?}");
        assert!(said[0].contains("www/d/x.rs:2"), "{said:?}");
        let all_errors = "pub type Error = u8;\n";
        let errors = three.map(|(path, _)| (path, all_errors));
        assert_eq!(usage(&errors).counts(), WordCounts::new());
    }

    #[test]
    fn the_row_of_a_file_is_its_crate_or_its_first_folder() {
        let crates: BTreeSet<String> = ["server", "server/crates/web", "loader"]
            .map(str::to_owned)
            .into();
        for (path, row) in [
            ("server/src/app/mod.rs", "server"),
            ("server/crates/web/src/lib.rs", "server/crates/web"),
            ("loader/src/lib.rs", "loader"),
            ("loader/js/loader.js", "loader/js"),
            ("www/console/app.js", "www"),
            ("docs/runtime.md", "docs"),
            ("README.md", "docs"),
            ("deny.toml", "root"),
        ] {
            assert_eq!(row_of(path, &crates), row, "{path}");
        }
    }

    #[test]
    fn generated_files_licences_and_the_changelog_are_not_read() {
        let text = "Whoever asks.\n";
        for path in [
            "CHANGELOG.md",
            "docs/settings.md",
            "a/LICENSE.md",
            "www/x.generated.d.ts",
        ] {
            assert_eq!(usage(&[(path, text)]).counts(), WordCounts::new(), "{path}");
        }
        assert_ne!(
            usage(&[("docs/errors.md", text)]).counts(),
            WordCounts::new()
        );
    }

    #[test]
    fn the_names_of_tests_are_read_as_prose() {
        let text = "#[test]\nfn a_place_is_found_by_whoever() {}\n";
        let counts = usage(&[("a/x.rs", text)]).counts();
        assert_eq!(counts.keys().collect::<Vec<_>>(), ["prose whoever"]);
    }

    #[test]
    fn the_file_is_written_if_it_is_missing_and_lowered_otherwise() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        std::fs::create_dir_all(root.join("xtask")).unwrap();
        std::fs::write(root.join("x.rs"), "fn look() {}\nfn found() {}\n").unwrap();
        let check = || {
            let mut usage = Usage::default();
            usage.read("x.rs", &std::fs::read_to_string(root.join("x.rs")).unwrap());
            usage.check(root).unwrap()
        };
        assert!(check()[0].sentence.contains("is missing"));
        fix(root).unwrap();
        assert_eq!(check(), []);
        std::fs::write(root.join("x.rs"), "fn look() {}\n").unwrap();
        assert_eq!(check(), []);
        fix(root).unwrap();
        let text = std::fs::read_to_string(root.join(FILE)).unwrap();
        assert!(text.contains("Look") && !text.contains("Found"), "{text}");
        std::fs::write(root.join("x.rs"), "fn look() {}\nfn found() {}\n").unwrap();
        fix(root).unwrap();
        assert_eq!(check().len(), 1);
    }
}
