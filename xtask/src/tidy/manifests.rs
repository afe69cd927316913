//! Rules for manifests: the crates that stay light, and the versions that are
//! written once.

use anyhow::{Context, Result};
use toml::{Table, Value};

use super::Finding;

/// Crates that may depend on a few others only, whatever the target.
const LIGHT: &[(&str, &[&str], &str)] = &[(
    "protocol/Cargo.toml",
    &["serde"],
    "The protocol depends on serde alone.",
)];

/// Crates of one version with wasm-bindgen: the root manifest pins them.
const PINNED: &[&str] = &[
    "wasm-bindgen",
    "wasm-bindgen-cli-support",
    "wasm-bindgen-test",
    "wasm-bindgen-futures",
    "js-sys",
    "web-sys",
];

/// The rules that a manifest breaks.
///
/// # Errors
/// The manifest cannot be parsed.
pub(super) fn check(path: &str, text: &str) -> Result<Vec<Finding>> {
    if !path.ends_with("/Cargo.toml") {
        return Ok(Vec::new());
    }
    let manifest: Table = text
        .parse()
        .with_context(|| format!("{path} cannot be parsed"))?;
    let mut sentences = Vec::new();
    for (_, allowed, rule) in LIGHT.iter().filter(|(light, ..)| *light == path) {
        for (name, _) in dependencies(&manifest, &["dependencies", "build-dependencies"]) {
            if !allowed.contains(&name) {
                sentences.push(format!("`{name}` is one dependency too many. {rule}"));
            }
        }
    }
    let kinds = ["dependencies", "build-dependencies", "dev-dependencies"];
    for (name, entry) in dependencies(&manifest, &kinds) {
        if PINNED.contains(&name) && entry.get("workspace").is_none() {
            sentences.push(format!(
                "`{name}` is pinned in the root Cargo.toml alone: write `workspace = true`."
            ));
        }
    }
    Ok(sentences
        .into_iter()
        .map(|sentence| Finding {
            path: path.into(),
            line: 0,
            sentence,
        })
        .collect())
}

/// The pinned version of wasm-bindgen, written where it would go stale.
pub(super) fn repeated_version(path: &str, text: &str, version: &str) -> Vec<Finding> {
    // The lock files are made by tools, and a changelog is about the past.
    let may = [
        "Cargo.toml",
        "Cargo.lock",
        "fuzz/Cargo.lock",
        "CHANGELOG.md",
    ]
    .contains(&path)
        || path.ends_with("package-lock.json");
    if may {
        return Vec::new();
    }
    text.lines()
        .enumerate()
        .filter(|(_, line)| line.contains(version))
        .map(|(number, _)| Finding {
            path: path.into(),
            line: number + 1,
            sentence: format!(
                "{version}, the version of wasm-bindgen, is written in the root Cargo.toml alone."
            ),
        })
        .collect()
}

/// The dependencies of these kinds, for every target, by their package name.
fn dependencies<'a>(manifest: &'a Table, kinds: &[&str]) -> Vec<(&'a str, &'a Value)> {
    let targets = manifest.get("target").and_then(Value::as_table);
    let tables = targets
        .into_iter()
        .flat_map(Table::values)
        .filter_map(Value::as_table);
    std::iter::once(manifest)
        .chain(tables)
        .flat_map(|table| kinds.iter().filter_map(|kind| table.get(*kind)?.as_table()))
        .flatten()
        .map(|(name, entry)| {
            (
                entry
                    .get("package")
                    .and_then(Value::as_str)
                    .unwrap_or(name.as_str()),
                entry,
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sentences(path: &str, text: &str) -> Vec<String> {
        check(path, text)
            .unwrap()
            .into_iter()
            .map(|finding| finding.sentence)
            .collect()
    }

    #[test]
    fn the_protocol_may_only_depend_on_serde() {
        let good =
            "[dependencies]\nserde.workspace = true\n[dev-dependencies]\nserde_json = \"1\"\n";
        assert!(sentences("protocol/Cargo.toml", good).is_empty());
        let bad = "[dependencies]\nserde.workspace = true\ntokio.workspace = true\n";
        assert_eq!(sentences("protocol/Cargo.toml", bad).len(), 1);
        assert!(sentences("server/Cargo.toml", bad).is_empty());
    }

    #[test]
    fn a_dependency_cannot_hide_behind_a_target_or_another_name() {
        let target = "[target.'cfg(unix)'.dependencies]\nlibc = \"1\"\n";
        assert_eq!(sentences("protocol/Cargo.toml", target).len(), 1);
        let renamed = "[dependencies]\nserde = { package = \"tokio\", version = \"1\" }\n";
        assert_eq!(sentences("protocol/Cargo.toml", renamed).len(), 1);
    }

    #[test]
    fn wasm_bindgen_is_taken_from_the_workspace() {
        let bad = "[dev-dependencies]\nwasm-bindgen-test = \"0.3\"\n";
        assert_eq!(sentences("tests/Cargo.toml", bad).len(), 1);
        let good = "[dependencies]\njs-sys.workspace = true\nweb-sys = { workspace = true, features = [\"Window\"] }\n";
        assert!(sentences("runtime-wasm/Cargo.toml", good).is_empty());
    }

    #[test]
    fn the_version_of_wasm_bindgen_is_written_once() {
        let text = "install wasm-bindgen 9.8.7\n";
        assert_eq!(repeated_version("docs/build.md", text, "9.8.7").len(), 1);
        assert!(repeated_version("Cargo.toml", text, "9.8.7").is_empty());
        assert!(repeated_version("docs/build.md", text, "9.8.8").is_empty());
    }
}
