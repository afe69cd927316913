//! Rules for documents: commands that exist, and links that lead somewhere.

use std::path::{Component, Path, PathBuf};

use super::Finding;

/// Every `cargo xtask <command>` that a document mentions exists.
pub(super) fn commands(path: &str, text: &str, known: &[String]) -> Vec<Finding> {
    const CALL: &str = "cargo xtask ";
    let mut findings = Vec::new();
    for (number, line) in document_lines(path, text) {
        for (at, _) in line.match_indices(CALL) {
            let word: String = line[at + CALL.len()..]
                .chars()
                .take_while(|c| c.is_ascii_alphanumeric() || *c == '-')
                .collect();
            // No word follows in prose and in `cargo xtask <command>`.
            if !word.is_empty() && !word.starts_with('-') && !known.contains(&word) {
                let sentence = format!("There is no command `{CALL}{word}`.");
                findings.push(Finding {
                    path: path.into(),
                    line: number,
                    sentence,
                });
            }
        }
    }
    findings
}

/// Every link to a file of the project leads to one. `exists` is asked with a
/// path from the root.
pub(super) fn links(path: &str, text: &str, exists: impl Fn(&Path) -> bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in document_lines(path, text) {
        for target in line
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next())
        {
            let file = target.split('#').next().unwrap_or_default();
            if file.is_empty() || file.contains("://") || file.starts_with("mailto:") {
                continue;
            }
            let leads_somewhere = linked_file(path, file).is_some_and(|file| exists(&file));
            if !leads_somewhere {
                let sentence = format!("The link to `{target}` leads nowhere.");
                findings.push(Finding {
                    path: path.into(),
                    line: number,
                    sentence,
                });
            }
        }
    }
    findings
}

/// The file to which a link of a document leads, from the root; none if it leaves the project.
pub(super) fn linked_file(path: &str, target: &str) -> Option<PathBuf> {
    let folder = Path::new(path).parent().unwrap_or(Path::new(""));
    inside(&folder.join(target))
}

/// The lines of a document with their numbers; none of any other file.
pub(super) fn document_lines<'a>(
    path: &str,
    text: &'a str,
) -> impl Iterator<Item = (usize, &'a str)> + use<'a> {
    let text = if path.ends_with(".md") { text } else { "" };
    text.lines()
        .enumerate()
        .map(|(number, line)| (number + 1, line))
}

/// A path without `.` and `..`; none if it leaves the project.
fn inside(path: &Path) -> Option<PathBuf> {
    let mut clean = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => clean.push(name),
            Component::CurDir => {}
            Component::ParentDir => clean.pop().then_some(())?,
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(clean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_does_not_exist_is_found() {
        let known = crate::task_names();
        assert!(commands("README.md", "Run `cargo xtask serve`.", &known).is_empty());
        assert!(commands("README.md", "Run `cargo xtask <command>`.", &known).is_empty());
        let findings = commands("README.md", "One.\nRun `cargo xtask deploy`.", &known);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].line, 2);
    }

    #[test]
    fn a_link_that_leads_nowhere_is_found() {
        let exists = |path: &Path| path == Path::new("docs/hosting.md");
        let count = |path, text| links(path, text, exists).len();
        assert_eq!(count("README.md", "[a](docs/hosting.md#backup)"), 0);
        assert_eq!(count("docs/runtime.md", "[a](hosting.md)"), 0);
        assert_eq!(count("docs/runtime.md", "[a](../docs/hosting.md)"), 0);
        assert_eq!(
            count("README.md", "[a](https://example.com/) [b](#here)"),
            0
        );
        assert_eq!(count("README.md", "[a](hosting.md)"), 1);
        assert_eq!(count("README.md", "[a](../../docs/hosting.md)"), 1);
    }
}
