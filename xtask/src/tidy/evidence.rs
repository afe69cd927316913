//! Rules for documents that give tests as evidence: each named test exists where its link leads, and
//! the table of the security standard has every row that it must have.

use std::collections::BTreeMap;
use std::path::Path;

use super::Finding;
use super::markdown::{document_lines, linked_file};

/// The document with the rows of the OWASP Application Security Verification Standard.
const STANDARD: &str = "docs/security.md";

/// How many rows of levels 1 and 2 each section of version 5.0.0 of the standard has: chapter,
/// section, rows. In every section they are the first ones.
#[rustfmt::skip]
const SECTIONS: &[(u8, u8, u8)] = &[
    (1, 1, 2), (1, 2, 9), (1, 3, 11), (1, 4, 3), (1, 5, 2),
    (2, 1, 3), (2, 2, 3), (2, 3, 4), (2, 4, 1),
    (3, 2, 2), (3, 3, 4), (3, 4, 6), (3, 5, 5), (3, 7, 2),
    (4, 1, 3), (4, 2, 1), (4, 3, 2), (4, 4, 4),
    (5, 1, 1), (5, 2, 3), (5, 3, 2), (5, 4, 3),
    (6, 1, 3), (6, 2, 12), (6, 3, 4), (6, 4, 4), (6, 5, 5), (6, 6, 3), (6, 8, 4),
    (7, 1, 3), (7, 2, 4), (7, 3, 2), (7, 4, 5), (7, 5, 2), (7, 6, 2),
    (8, 1, 2), (8, 2, 3), (8, 3, 1), (8, 4, 1),
    (9, 1, 3), (9, 2, 4),
    (10, 1, 2), (10, 2, 2), (10, 3, 4), (10, 4, 11), (10, 5, 5), (10, 6, 2), (10, 7, 3),
    (11, 1, 2), (11, 2, 3), (11, 3, 3), (11, 4, 4), (11, 5, 1), (11, 6, 1),
    (12, 1, 3), (12, 2, 2), (12, 3, 4),
    (13, 1, 1), (13, 2, 5), (13, 3, 2), (13, 4, 5),
    (14, 1, 2), (14, 2, 4), (14, 3, 3),
    (15, 1, 3), (15, 2, 3), (15, 3, 7),
    (16, 1, 1), (16, 2, 5), (16, 3, 4), (16, 4, 3), (16, 5, 3),
    (17, 1, 1), (17, 2, 4), (17, 3, 2),
];

/// Every link whose text is the name of a function and whose target is a Rust file leads to a test
/// of this name. `source` returns the text of a file of the project.
pub(super) fn named_tests(
    path: &str,
    text: &str,
    source: impl Fn(&Path) -> Option<String>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (line, content) in document_lines(path, text) {
        for (name, target) in named_functions(content) {
            let file = linked_file(path, target).and_then(|file| source(&file));
            if !file.is_some_and(|file| has_test(&file, name)) {
                findings.push(Finding {
                    path: path.into(),
                    line,
                    sentence: format!("There is no test `{name}` in `{target}`."),
                });
            }
        }
    }
    findings
}

/// The table of the standard names each of its rows exactly once: `V1.2.3`, or `V1.2.3–5` for
/// several.
pub(super) fn rows(path: &str, text: &str) -> Vec<Finding> {
    if path != STANDARD {
        return Vec::new();
    }
    let mut wanted: BTreeMap<(u8, u8, u8), bool> = SECTIONS
        .iter()
        .flat_map(|&(chapter, section, rows)| (1..=rows).map(move |row| (chapter, section, row)))
        .map(|row| (row, false))
        .collect();
    let mut findings = Vec::new();
    let mut wrong = |line, sentence| {
        findings.push(Finding {
            path: path.into(),
            line,
            sentence,
        });
    };
    for (line, content) in document_lines(path, text) {
        for (chapter, section, row) in rows_of(content) {
            let name = format!("V{chapter}.{section}.{row}");
            match wanted.get_mut(&(chapter, section, row)) {
                None => wrong(line, format!("{name} is no row of levels 1 and 2.")),
                Some(true) => wrong(line, format!("{name} is in the table already.")),
                Some(found) => *found = true,
            }
        }
    }
    for ((chapter, section, row), found) in wanted {
        if !found {
            let sentence = format!("The table does not have V{chapter}.{section}.{row}.");
            wrong(0, sentence);
        }
    }
    findings
}

/// The links of a line that name a function: its name and the target.
fn named_functions(line: &str) -> impl Iterator<Item = (&str, &str)> {
    line.match_indices("](").filter_map(|(at, _)| {
        let target = line[at + 2..].split(')').next()?;
        let text = line[..at].rsplit('[').next()?;
        let name = text.strip_prefix('`')?.strip_suffix('`')?;
        let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        let names_function = !name.is_empty() && name.chars().all(is_name);
        (names_function && target.ends_with(".rs")).then_some((name, target))
    })
}

/// Whether a file has a function with this name that a test run calls: it has an attribute for
/// tests, or it gets what the test programs of the stores and of the browsers hand over.
fn has_test(source: &str, name: &str) -> bool {
    let begin = format!("fn {name}(");
    let lines: Vec<&str> = source.lines().collect();
    let Some(at) = lines.iter().position(|line| {
        line.split_once(&begin).is_some_and(|(before, _)| {
            before
                .split_whitespace()
                .all(|word| word == "async" || word.starts_with("pub"))
        })
    }) else {
        return false;
    };
    let attributes = lines[..at].iter().rev().map(|line| line.trim());
    let mut attributes =
        attributes.take_while(|line| !line.is_empty() && !line.ends_with(['}', ';']));
    let is_test = |line: &str| {
        ["#[test]", "#[tokio::test", "#[wasm_bindgen_test"]
            .iter()
            .any(|attribute| line.starts_with(attribute))
    };
    if attributes.any(is_test) {
        return true;
    }
    let rest = lines[at..].join(" ");
    let arguments = rest.split_once(&begin).map_or("", |(_, rest)| rest.trim());
    arguments.starts_with("place: &dyn Place") || arguments.starts_with("stage: Stage")
}

/// The rows that the first cell of a line of a table names.
fn rows_of(line: &str) -> Vec<(u8, u8, u8)> {
    let Some(cell) = line.strip_prefix("| V") else {
        return Vec::new();
    };
    let cell = cell.split('|').next().unwrap_or_default().trim();
    let parse = || {
        let mut numbers = cell.splitn(3, '.');
        let chapter = numbers.next()?.parse().ok()?;
        let section = numbers.next()?.parse().ok()?;
        let (first, last) = {
            let rows = numbers.next()?;
            rows.split_once('\u{2013}').unwrap_or((rows, rows))
        };
        let (first, last): (u8, u8) = (first.parse().ok()?, last.parse().ok()?);
        Some((first..=last).map(move |row| (chapter, section, row)))
    };
    parse().map(Iterator::collect).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    const SOURCE: &str = "\
#[test]
fn a_native_one() {}

#[tokio::test(flavor = \"multi_thread\")]
#[expect(clippy::too_many_lines)]
async fn an_async_one() {}

pub async fn of_every_store(place: &dyn Place) {}

pub async fn with_a_long_name(
    place: &dyn Place,
) {}

async fn in_a_browser(stage: Stage) {}

#[test]
fn another() {}
fn helps(text: &str) {}
";

    #[test]
    fn a_test_that_is_not_there_is_found() {
        let source = |path: &Path| (path == Path::new("a/src/b.rs")).then(|| SOURCE.to_owned());
        let found = |name: &str, target: &str| {
            let text = format!("One.\n| V1 | [`{name}`]({target}), [c](c.md) |");
            let findings = named_tests("docs/a.md", &text, source);
            assert!(findings.iter().all(|finding| finding.line == 2));
            findings.len()
        };
        let file = "../a/src/b.rs";
        for name in [
            "a_native_one",
            "an_async_one",
            "of_every_store",
            "with_a_long_name",
            "in_a_browser",
        ] {
            assert_eq!(found(name, file), 0, "{name}");
        }
        for name in ["a_native", "native_one", "helps", "gone"] {
            assert_eq!(found(name, file), 1, "{name}");
        }
        assert_eq!(found("a_native_one", "../a/src/c.rs"), 1);
        assert_eq!(found("a_native_one", "../../a/src/b.rs"), 1);
        // These name no function.
        assert_eq!(found("a/src/b.rs", file), 0);
        assert_eq!(found("a_native_one", "b.md"), 0);
    }

    #[test]
    fn a_row_that_is_missing_doubled_or_unknown_is_found() {
        let mut table = String::from("# Security\n");
        for &(chapter, section, rows) in SECTIONS {
            writeln!(table, "| V{chapter}.{section}.1\u{2013}{rows} | x |").unwrap();
        }
        let said = |text: &str| -> Vec<String> {
            let findings = rows(STANDARD, text).into_iter();
            findings.map(|finding| finding.sentence).collect()
        };
        assert_eq!(said(&table), [""; 0]);
        assert_eq!(rows("docs/other.md", "").len(), 0);
        let one = table.replace("| V5.1.1\u{2013}1 |", "| V5.1.1 |");
        assert_eq!(said(&one), [""; 0]);
        let missing = table.replace("| V4.4.1\u{2013}4 |", "| V4.4.1\u{2013}3 |");
        assert_eq!(said(&missing), ["The table does not have V4.4.4."]);
        let more = format!("{table}| V1.5.2 | x |\n| V1.5.3 | x |\n");
        assert_eq!(
            said(&more),
            [
                "V1.5.2 is in the table already.",
                "V1.5.3 is no row of levels 1 and 2."
            ]
        );
        let all: u32 = SECTIONS.iter().map(|(_, _, rows)| u32::from(*rows)).sum();
        assert_eq!(all, 253, "as many as the standard says");
    }
}
