//! Which part of the code may name which other: the arrows of ARCHITECTURE.md.

use super::Finding;

/// Files of one part may not name some crates and modules.
struct Arrow {
    /// The prefix of the files' paths.
    part: &'static str,
    /// Files and folders of the part that are exempt.
    except: &'static [&'static str],
    /// Names that may not precede `::` or occur in a `use`. A name that ends with `*` is a prefix.
    names: &'static [&'static str],
    /// The rule, as a sentence.
    rule: &'static str,
}

const ARROWS: &[Arrow] = &[
    Arrow {
        part: "runtime-wasm/src/",
        // `tests.rs` calls the exports from within a page, as a game does.
        except: &["runtime-wasm/src/web/", "runtime-wasm/src/tests.rs"],
        names: &[
            "web_sys",
            "js_sys",
            "gloo*",
            "wasm_bindgen_futures",
            "serde_wasm_bindgen",
        ],
        rule: "The runtime's rules reach the browser through src/web/ alone.",
    },
    Arrow {
        part: "server/crates/domain/src/",
        except: &[],
        names: &[
            "axum*", "hyper*", "sqlx", "rusqlite", "redis", "tokio", "reqwest", "http",
        ],
        rule: "The domain is pure: no web server, no database, no runtime.",
    },
    Arrow {
        part: "server/src/",
        // It stores files by the hash of their content.
        except: &["server/src/games/files.rs", "server/src/games/files/"],
        names: &["rusqlite", "sqlx", "redis", "object_store"],
        rule: "A slice calls one operation of the store, whatever the store is made of.",
    },
    Arrow {
        part: "server/crates/store",
        except: &[],
        names: &["axum*", "hyper*", "http"],
        rule: "The store knows nothing of HTTP.",
    },
    Arrow {
        part: "protocol/src/",
        except: &[],
        names: &[
            "tokio",
            "web_sys",
            "js_sys",
            "wasm_bindgen",
            "SystemTime",
            "Instant",
        ],
        rule: "The protocol knows no clock, no I/O and no browser.",
    },
    Arrow {
        part: "verifier/src/",
        except: &[],
        names: &["platform_server", "platform_demo_backend"],
        rule: "A game's backend can use the verifier without the platform.",
    },
];

/// The arrows that a file breaks.
pub(super) fn check(path: &str, text: &str) -> Vec<Finding> {
    let arrows = ARROWS.iter().filter(|arrow| {
        path.ends_with(".rs")
            && path.starts_with(arrow.part)
            && !arrow
                .except
                .iter()
                .any(|exception| path.starts_with(exception))
    });
    let mut findings = Vec::new();
    for arrow in arrows {
        for (number, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            for name in arrow.names.iter().filter(|name| names(code, name)) {
                let sentence = format!("`{name}` may not be named here. {}", arrow.rule);
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

/// Whether a line of code names a crate or module: as a path's segment, or at the end of a `use`.
fn names(code: &str, name: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let (stem, is_prefix) = name
        .strip_suffix('*')
        .map_or((name, false), |stem| (stem, true));
    let in_use = code.trim_start().starts_with("use ") || code.trim_start().starts_with("pub use ");
    code.match_indices(stem).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        let rest = &code[at + stem.len()..];
        let rest = if is_prefix {
            rest.trim_start_matches(is_word)
        } else {
            rest
        };
        let whole = !before.is_some_and(is_word) && !rest.starts_with(is_word);
        whole && (rest.starts_with("::") || in_use)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn breaks(path: &str, code: &str) -> bool {
        !check(path, &format!("//! Docs.\n{code}\n")).is_empty()
    }

    #[test]
    fn only_the_web_folder_and_the_exports_name_the_browser() {
        for code in [
            "use web_sys::Window;",
            "let x = js_sys::Date::now();",
            "use gloo_timers;",
        ] {
            assert!(breaks("runtime-wasm/src/token.rs", code), "{code}");
            assert!(!breaks("runtime-wasm/src/web/clock.rs", code), "{code}");
            assert!(breaks("runtime-wasm/src/exports.rs", code), "{code}");
            assert!(!breaks("runtime-wasm/tests/page.rs", code), "{code}");
        }
    }

    #[test]
    fn every_arrow_fails_on_each_of_its_names() {
        for arrow in ARROWS {
            for name in arrow.names {
                let name = name.trim_end_matches('*');
                let path = format!("{}some.rs", arrow.part);
                assert!(
                    breaks(&path, &format!("use {name}::Thing;")),
                    "{path} {name}"
                );
                assert!(
                    breaks(&path, &format!("    let a = {name}::make();")),
                    "{path} {name}"
                );
            }
        }
    }

    #[test]
    fn grouped_and_nested_imports_are_seen() {
        assert!(breaks(
            "server/crates/domain/src/a.rs",
            "use {axum::Router, std::fmt};"
        ));
        assert!(breaks("server/crates/store/src/a.rs", "use crate::http;"));
        assert!(breaks(
            "server/crates/store/src/a.rs",
            "pub use crate::{clock, http};"
        ));
        assert!(breaks(
            "server/crates/domain/src/a.rs",
            "use axum_extra::TypedHeader;"
        ));
    }

    #[test]
    fn comments_strings_and_longer_names_are_no_arrows() {
        assert!(!breaks(
            "server/crates/domain/src/a.rs",
            "// axum::Router would be wrong here."
        ));
        assert!(!breaks(
            "server/crates/store/src/a.rs",
            "let a = \"http://example.com\";"
        ));
        assert!(!breaks("server/crates/store/src/a.rs", "let http = 1;"));
        assert!(!breaks(
            "server/src/auth/handlers/a.rs",
            "let a = my_rusqlite::open();"
        ));
        assert!(!breaks("server/crates/web/src/a.rs", "use axum::Router;"));
    }
}
