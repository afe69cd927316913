//! Rules for source files: module documentation, and words that must not stay.

use super::Finding;

/// Endings of files that are written by hand and run or shown.
const SOURCES: &[&str] = &[
    ".rs", ".js", ".mjs", ".ts", ".sql", ".css", ".html", ".toml",
];

/// What must not stay in a source file, and why. Put together here, so that
/// this file keeps the rule as well.
const WORDS: &[(&str, &str)] = &[
    (
        concat!("TO", "DO"),
        "finish it, or write down in the documents what is not there yet",
    ),
    (concat!("FIX", "ME"), "mend it"),
    (concat!("XX", "X"), "say what is the matter in a sentence"),
    (concat!("dbg", "!("), "it was for one run only"),
    (
        concat!("un", "implemented!("),
        "a caller cannot do anything with it",
    ),
    (concat!("console.", "trace("), "it was for one run only"),
    (concat!("debug", "ger;"), "it was for one run only"),
];

/// Every Rust file begins with `//!`.
pub(super) fn module_docs(path: &str, text: &str) -> Option<Finding> {
    let begins = text
        .lines()
        .find(|line| !line.trim().is_empty())?
        .starts_with("//!");
    (path.ends_with(".rs") && !begins).then(|| Finding {
        path: path.into(),
        line: 1,
        sentence: "A Rust file begins with `//!`: what it is for.".into(),
    })
}

/// No source file holds a word of the list.
pub(super) fn forbidden_words(path: &str, text: &str) -> Vec<Finding> {
    if !SOURCES.iter().any(|ending| path.ends_with(ending)) {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (number, line) in text.lines().enumerate() {
        for (word, advice) in WORDS {
            if line.contains(word) {
                let sentence = format!("`{word}` may not stay: {advice}.");
                findings.push(Finding {
                    path: path.into(),
                    line: number + 1,
                    sentence,
                });
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rust_file_without_module_documentation_is_found() {
        assert!(module_docs("a.rs", "use std::fmt;\n").is_some());
        assert!(module_docs("a.rs", "#![cfg(test)]\n//! Late.\n").is_some());
        assert!(module_docs("a.rs", "\n//! Good.\n").is_none());
        assert!(module_docs("a.js", "let a;\n").is_none());
    }

    #[test]
    fn words_that_may_not_stay_are_found_with_their_line() {
        for (word, _) in WORDS {
            let findings = forbidden_words("a.rs", &format!("//! Good.\n// {word} later\n"));
            assert_eq!(findings.len(), 1, "{word}");
            assert_eq!(findings[0].line, 2);
        }
        assert!(forbidden_words("picture.svg", WORDS[0].0).is_empty());
        assert!(forbidden_words("a.rs", "//! Nothing.\n").is_empty());
    }
}
