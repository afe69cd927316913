//! Which names a deployed file may have.

use platform_protocol::paths;

use crate::limits::MAX_PATH_BYTES;

/// What is wrong with a file's path; as text, a part of a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathProblem {
    /// It is empty.
    #[error("it has no name")]
    Empty,
    /// It has more than [`MAX_PATH_BYTES`].
    #[error("its name is longer than {MAX_PATH_BYTES} bytes")]
    TooLong,
    /// It begins with `/`, or with the name of a Windows drive.
    #[error("its name is absolute")]
    Absolute,
    /// It has a `\`, which separates folders on some systems.
    #[error("its name has a backslash")]
    Backslash,
    /// It has a control character.
    #[error("its name has a control character")]
    Control,
    /// One of its segments is `.` or `..`.
    #[error("its name has a segment . or ..")]
    Dots,
    /// Two slashes follow each other, or the last character is one.
    #[error("its name has an empty segment")]
    EmptySegment,
    /// It lies under `/__platform/`, in any spelling.
    #[error("paths under /__platform/ are reserved for the platform")]
    Reserved,
}

/// Checks a file's path: segments joined by `/`, relative to the deployment's
/// start page.
///
/// # Errors
/// The first rule that it breaks. A path is refused if, on any system, it could mean a place
/// outside of the deployment or no place at all, or if it belongs to the platform.
pub fn check_path(path: &str) -> Result<(), PathProblem> {
    if path.is_empty() {
        Err(PathProblem::Empty)
    } else if path.len() > MAX_PATH_BYTES {
        Err(PathProblem::TooLong)
    } else if path.starts_with('/') || begins_with_drive(path) {
        Err(PathProblem::Absolute)
    } else if path.contains('\\') {
        Err(PathProblem::Backslash)
    } else if path.chars().any(char::is_control) {
        Err(PathProblem::Control)
    } else if path.split('/').any(|part| matches!(part, "." | "..")) {
        Err(PathProblem::Dots)
    } else if path.split('/').any(str::is_empty) {
        Err(PathProblem::EmptySegment)
    } else if path.split('/').next().is_some_and(is_reserved) {
        Err(PathProblem::Reserved)
    } else {
        Ok(())
    }
}

/// On Windows `C:x` and `C:/x` are absolute, whatever they are joined to.
fn begins_with_drive(path: &str) -> bool {
    matches!(path.as_bytes(), [letter, b':', ..] if letter.is_ascii_alphabetic())
}

/// Whether the first segment is the platform's prefix. Case and percent-encoding make no
/// difference: a proxy between the player and the platform may treat the spellings as equal.
fn is_reserved(segment: &str) -> bool {
    let reserved = paths::PREFIX.trim_matches('/').as_bytes();
    let mut decoded = segment.as_bytes().to_vec();
    // Encoded twice is as suspicious as encoded once.
    while !decoded.eq_ignore_ascii_case(reserved) {
        let again: Vec<u8> = percent_encoding::percent_decode(&decoded).collect();
        if again.len() == decoded.len() {
            return false;
        }
        decoded = again;
    }
    true
}

/// Returns the path as a deployment keeps it: without the one leading `./` that archives may write.
///
/// # Errors
/// Those of [`check_path`].
pub fn normalise(path: &str) -> Result<&str, PathProblem> {
    let name = path.strip_prefix("./").unwrap_or(path);
    check_path(name).map(|()| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_lead_elsewhere_are_refused() {
        use PathProblem::*;
        let long = "a".repeat(MAX_PATH_BYTES + 1);
        for (path, problem) in [
            ("", Empty),
            (".", Dots),
            ("..", Dots),
            ("./", Empty),
            ("/", Absolute),
            ("/etc/passwd", Absolute),
            ("//x", Absolute),
            ("a//b", EmptySegment),
            ("a/", EmptySegment),
            ("a/./b", Dots),
            ("a/../b", Dots),
            ("../a", Dots),
            ("./../a", Dots),
            ("a/..", Dots),
            ("././a", Dots),
            (".//a", Absolute),
            ("a\\b", Backslash),
            ("..\\a", Backslash),
            ("a\\..\\..\\b", Backslash),
            ("C:\\a", Absolute),
            ("C:/a", Absolute),
            ("c:a", Absolute),
            ("./C:/a", Absolute),
            ("a\0b", Control),
            ("a\nb", Control),
            ("a\u{7f}", Control),
            ("a\u{85}b", Control),
            ("__platform", Reserved),
            ("__platform/x", Reserved),
            ("./__platform/x", Reserved),
            ("__Platform/x", Reserved),
            ("__PLATFORM", Reserved),
            ("%5f%5Fplatform/x", Reserved),
            ("__p%6Catform/x", Reserved),
            ("%255f_platform/x", Reserved),
            (&long, TooLong),
        ] {
            assert_eq!(normalise(path), Err(problem), "{path:?}");
        }
    }

    #[test]
    fn every_other_path_is_kept_as_it_is() {
        for (path, kept) in [
            ("index.html", "index.html"),
            ("./index.html", "index.html"),
            ("a/b/c.js", "a/b/c.js"),
            ("...", "..."),
            ("a b/é.png", "a b/é.png"),
            ("%2e%2e/a", "%2e%2e/a"),
            ("100%/a", "100%/a"),
            ("ab:c", "ab:c"),
            ("__platform.js", "__platform.js"),
            ("x__platform/a", "x__platform/a"),
            ("a/__platform/b", "a/__platform/b"),
            (".well-known/x", ".well-known/x"),
        ] {
            assert_eq!(normalise(path), Ok(kept));
        }
    }
}
