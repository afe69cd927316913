//! The arrow through the server: which slice may use which other.
//!
//! A slice is a folder of `server/src` or a crate under `server/crates`. Each slice may use those
//! of lower levels, and none of its own or a higher level.

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;

/// The slices from the lowest to the highest level. Those of one level may not use each other.
pub(super) const LEVELS: &[&[&str]] = &[
    &["public-suffix"],
    &["domain", "telemetry"],
    &["store"],
    &["live-redis", "store-postgres", "store-sqlite", "web"],
    &["archive", "frontend-logs", "game-pages", "openid"],
    &["config"],
    &["platform"],
    &["games"],
    &["auth"],
    &["hosting"],
    &["projects"],
    &["players", "logs", "admin"],
    &["console"],
    &["app"],
    &["commands"],
];

/// Modules with a path of their own, and the slices that they belong to.
const ALIASES: &[(&str, &str)] = &[
    ("clock", "domain"),
    ("entropy", "domain"),
    ("origin", "domain"),
];

/// Names that are allowed anywhere: crates that only tests link.
const TESTS_ALONE: &[&str] = &[
    "store-conformance",
    "store_conformance",
    "test-dns",
    "test_dns",
    "test-pebble",
    "test_pebble",
    "test-ports",
    "test_ports",
    "test-postgres",
    "test_postgres",
    "test-redis",
    "test_redis",
];

/// One slice names another in a line of a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Import {
    /// The file, from the workspace's root.
    pub(super) path: String,
    /// The line, from 1.
    pub(super) line: usize,
    /// The slice that the file belongs to.
    pub(super) from: String,
    /// The slice that it names.
    pub(super) to: String,
}

/// Which slices import which, with the number of files that do.
pub(super) type Graph = BTreeMap<(String, String), usize>;

/// The slice that a file belongs to; `None` for files of no slice, such as the crate's root, and
/// for tests.
pub(super) fn slice_of(path: &str) -> Option<String> {
    let is_test = path.ends_with("/tests.rs") || path.contains("/tests/");
    if is_test || !path.ends_with(".rs") {
        return None;
    }
    if let Some(rest) = path.strip_prefix("server/crates/") {
        let (name, file) = rest.split_once('/')?;
        let is_slice = file.starts_with("src/") && !TESTS_ALONE.contains(&name);
        return is_slice.then(|| name.to_owned());
    }
    let rest = path.strip_prefix("server/src/")?;
    let name = rest.split('/').next()?.trim_end_matches(".rs");
    // `store` opens the back end that the settings name, so it names all of them.
    (!matches!(name, "lib" | "main" | "store")).then(|| known(name))
}

/// The slice of a module's or crate's name.
fn known(name: &str) -> String {
    let alias = ALIASES.iter().find(|(alias, _)| *alias == name);
    alias.map_or_else(|| name.replace('_', "-"), |(_, slice)| (*slice).to_owned())
}

/// The level of a slice, the lowest being 0.
pub(super) fn level(slice: &str) -> Option<usize> {
    LEVELS.iter().position(|level| level.contains(&slice))
}

/// The other slices that a file names, outside of tests.
pub(super) fn imports(path: &str, text: &str) -> Vec<Import> {
    let Some(from) = slice_of(path) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        // Unit tests are at the end of a file, and may use anything.
        if line.starts_with("#[cfg(test)]") {
            break;
        }
        let code = line.split("//").next().unwrap_or_default();
        for name in named(code, path.starts_with("server/src/")) {
            let to = known(name);
            // A file beside the crate's root may name the root's own items.
            let is_slice = level(&to).is_some() || slice_like(name);
            if is_slice && to != from {
                found.push(Import {
                    path: path.to_owned(),
                    line: number + 1,
                    from: from.clone(),
                    to,
                });
            }
        }
    }
    found
}

/// Whether a name is that of a module and not of a type.
fn slice_like(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_lowercase())
}

/// The slices that a line of code names. Modules are slices only in a crate that `has_slices`.
fn named(code: &str, has_slices: bool) -> Vec<&str> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let end = |text: &str| text.find(|c| !is_word(c)).unwrap_or(text.len());
    let mut names = Vec::new();
    let roots = ["crate::", "platform_server::"];
    for root in roots.into_iter().filter(|_| has_slices) {
        for (at, _) in code.match_indices(root) {
            let rest = &code[at + root.len()..];
            let name = &rest[..end(rest)];
            let is_whole = !code[..at].chars().next_back().is_some_and(is_word);
            if is_whole && !name.is_empty() {
                names.push(name);
            }
        }
    }
    for (at, root) in code.match_indices("platform_") {
        let rest = &code[at + root.len()..];
        let name = &rest[..end(rest)];
        let is_whole = !code[..at].chars().next_back().is_some_and(is_word);
        let is_crate = level(&known(name)).is_some() && rest[name.len()..].starts_with("::");
        if is_whole && is_crate {
            names.push(name);
        }
    }
    names
}

/// Checks the imports of a file against the arrow.
pub(super) fn check(path: &str, text: &str) -> Vec<Finding> {
    let Some(from) = slice_of(path) else {
        return Vec::new();
    };
    let Some(here) = level(&from) else {
        return vec![Finding {
            path: path.into(),
            line: 0,
            sentence: format!(
                "The slice `{from}` has no place in the arrow: give it one in LEVELS of \
                 xtask/src/tidy/layers.rs and in ARCHITECTURE.md."
            ),
        }];
    };
    let against = |import: Import| {
        let below = level(&import.to).is_some_and(|there| there < here);
        (!below).then(|| Finding {
            path: import.path,
            line: import.line,
            sentence: format!(
                "`{from}` may not use `{}`: a slice uses what is below it in the arrow of \
                 ARCHITECTURE.md.",
                import.to
            ),
        })
    };
    let found = imports(path, text).into_iter();
    found.filter_map(against).collect()
}

/// Which slices import which.
pub(super) fn graph(imports: &[Import]) -> Graph {
    let mut files: BTreeMap<(String, String), BTreeSet<&str>> = BTreeMap::new();
    for import in imports {
        let edge = (import.from.clone(), import.to.clone());
        files.entry(edge).or_default().insert(&import.path);
    }
    let count = |(edge, files): (_, BTreeSet<&str>)| (edge, files.len());
    files.into_iter().map(count).collect()
}

/// The groups of slices that import each other in a circle.
pub(super) fn circles(graph: &Graph) -> Vec<Vec<String>> {
    let slices: BTreeSet<&String> = graph.keys().flat_map(|(from, to)| [from, to]).collect();
    let reached: BTreeMap<&String, BTreeSet<&String>> = slices
        .iter()
        .map(|slice| (*slice, reachable(graph, slice)))
        .collect();
    let mut circles: BTreeSet<Vec<String>> = BTreeSet::new();
    for slice in &slices {
        let with: Vec<String> = reached[slice]
            .iter()
            .filter(|other| reached[**other].contains(*slice))
            .map(|other| (*other).clone())
            .collect();
        if with.len() > 1 {
            circles.insert(with);
        }
    }
    circles.into_iter().collect()
}

/// The slices that one imports, directly or through others.
fn reachable<'a>(graph: &'a Graph, from: &str) -> BTreeSet<&'a String> {
    let mut reached = BTreeSet::new();
    let mut next = vec![from.to_owned()];
    while let Some(slice) = next.pop() {
        for (_, to) in graph.keys().filter(|(source, _)| *source == slice) {
            if reached.insert(to) {
                next.push(to.clone());
            }
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    fn breaks(path: &str, code: &str) -> bool {
        !check(path, &format!("//! Docs.\n{code}\n")).is_empty()
    }

    #[test]
    fn a_slice_uses_what_is_below_it_and_nothing_else() {
        for (path, code, expected) in [
            (
                "auth/caller.rs",
                "use crate::games::catalogue::Game;",
                false,
            ),
            ("auth/caller.rs", "use crate::auth::keys;", false),
            ("auth/caller.rs", "use crate::web::cookies;", false),
            ("auth/caller.rs", "let a = crate::app::state::x();", true),
            ("games/catalogue.rs", "use crate::hosting::range;", true),
            ("logs/mod.rs", "use crate::players::counting;", true),
            ("config/mod.rs", "use crate::web::limiter::Rate;", false),
            (
                "commands/keys.rs",
                "use platform_server::app::start;",
                false,
            ),
            ("commands/keys.rs", "use crate::{Failure, Settings};", false),
            ("config/mod.rs", "use platform_server::auth;", true),
            ("auth/mod.rs", "pub use platform_store::Store;", false),
        ] {
            assert_eq!(
                breaks(&format!("server/src/{path}"), code),
                expected,
                "{path} {code}"
            );
        }
        assert!(breaks(
            "server/crates/domain/src/a.rs",
            "use platform_store::Store;"
        ));
        assert!(!breaks(
            "server/crates/store/src/a.rs",
            "use platform_domain::Clock;"
        ));
        for (code, expected) in [
            ("use platform_domain::origin::PlatformOrigin;", false),
            ("use platform_store::StoreError;", false),
            ("use platform_store_sqlite::SqliteStore;", true),
        ] {
            assert_eq!(
                breaks("server/crates/web/src/a.rs", code),
                expected,
                "{code}"
            );
        }
    }

    #[test]
    fn tests_use_whatever_helps_them() {
        let code = "#[cfg(test)]\nmod tests {\n    use crate::app::start;\n}";
        assert!(!breaks("server/src/games/catalogue.rs", code));
        assert!(!breaks(
            "server/src/games/catalogue/tests.rs",
            "use crate::app::start;"
        ));
        assert!(!breaks(
            "server/tests/it/main.rs",
            "use platform_server::app::start;"
        ));
    }

    #[test]
    fn a_module_without_a_place_is_found() {
        assert!(breaks("server/src/toolbox.rs", ""));
        assert!(breaks(
            "server/src/auth/mod.rs",
            "use crate::toolbox::Hammer;"
        ));
        assert!(!breaks("server/src/lib.rs", "pub mod toolbox;"));
    }

    #[test]
    fn circles_are_found_through_others_too() {
        let edge = |from: &str, to: &str| ((from.to_owned(), to.to_owned()), 1);
        let straight = Graph::from([edge("a", "b"), edge("b", "c"), edge("a", "c")]);
        assert!(circles(&straight).is_empty());
        let bent = Graph::from([
            edge("a", "b"),
            edge("b", "c"),
            edge("c", "a"),
            edge("d", "a"),
        ]);
        assert_eq!(
            circles(&bent),
            [["a", "b", "c"].map(str::to_owned).to_vec()]
        );
    }
}
