//! The JavaScript between module and page, as parts of one function: the glue from wasm-bindgen,
//! the runtime's own `page.js`, and the loader.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use wasm_bindgen_cli_support::Bindgen;

use crate::module::Names;

/// The module and the parts of its script.
#[derive(Debug)]
pub struct Bound {
    /// The module, its imports and exports under short names.
    pub wasm: Vec<u8>,
    /// The parts, in order: a file name for the source map, and its text.
    pub sources: Vec<(String, String)>,
}

/// Makes the glue for the module at `module`.
///
/// # Errors
/// The module was made with another version of wasm-bindgen, or a file is missing.
pub fn bind(root: &Path, module: &Path, names: Names) -> Result<Bound> {
    let mut bindgen = Bindgen::new();
    bindgen
        .bundler(true)?
        .typescript(false)
        .remove_name_section(names == Names::Removed)
        // The compiler's names have each part with its length.
        .demangle(false)
        .remove_producers_section(true)
        .input_path(module);
    let mut output = bindgen
        .generate_output()
        .context("wasm-bindgen refuses the module")?;

    let page = output
        .local_modules()
        .values()
        .map(|text| in_function(text))
        .collect::<String>();
    let glue = in_function(output.start().context("wasm-bindgen made no glue")?);
    let glue = with_short_decoder(&glue)?;
    let mut sources = vec![("page.js".to_owned(), page), ("glue.js".to_owned(), glue)];
    for name in ["presence.js", "log.js", "local.js", "loader.js"] {
        let path = root.join("loader/js").join(name);
        let text = fs::read_to_string(&path)
            .with_context(|| format!("cannot read {}", path.display()))?
            .replace("VERSION", &format!("{:?}", env!("CARGO_PKG_VERSION")));
        sources.push((name.to_owned(), text));
    }

    let wasm = output.wasm_mut();
    let mut names = short_names();
    let mut imports = String::new();
    for import in wasm.imports.iter_mut() {
        let short = names.next().context("names never end")?;
        imports.push_str(&format!("{short}: {}, ", import.name));
        import.name = short;
        "a".clone_into(&mut import.module);
    }
    let mut names = short_names();
    let mut renamed = BTreeMap::new();
    let mut unused = Vec::new();
    for export in wasm.exports.iter_mut() {
        if sources
            .iter()
            .any(|(_, text)| uses_export(text, &export.name))
        {
            let short = names.next().context("names never end")?;
            renamed.insert(std::mem::replace(&mut export.name, short.clone()), short);
        } else {
            unused.push(export.id());
        }
    }
    for export in unused {
        wasm.exports.delete(export);
    }
    for (_, text) in &mut sources {
        *text = rename_exports(
            &text.replace("IMPORTS", &format!("{{ a: {{ {imports}}} }}")),
            &renamed,
        );
    }
    Ok(Bound {
        wasm: wasm.emit_wasm(),
        sources,
    })
}

/// Turns the text of a JavaScript module into a part of a function.
fn in_function(module: &str) -> String {
    module
        .lines()
        .filter(|line| !line.trim_start().starts_with("import "))
        .map(|line| {
            let bare = line.trim_start();
            format!(
                "{}\n",
                bare.strip_prefix("export ").map_or(line, |rest| rest)
            )
        })
        .collect()
}

/// Replaces the function that reads the module's strings by one line. wasm-bindgen's version keeps
/// a decoder and a view of memory between strings, and renews the decoder after two gigabytes; the
/// runtime reads only a few short strings for each call.
fn with_short_decoder(glue: &str) -> Result<String> {
    const READ: &str = "const getStringFromWasm0 = (start, length) => new TextDecoder().decode(new Uint8Array(wasm.memory.buffer, start, length));\n";
    let glue = replace_from(
        glue,
        "function getStringFromWasm0(",
        "function handleError(",
        READ,
    )?;
    replace_from(&glue, "let cachedTextDecoder ", "let wasm;", "")
}

/// Replaces everything from `start` to before `end` in `text` by `other`.
fn replace_from(text: &str, start: &str, end: &str, other: &str) -> Result<String> {
    let parts = text.split_once(start).and_then(|(before, rest)| {
        let at = rest.find(end)?;
        Some((before, rest.get(at..)?))
    });
    let (before, after) = parts.with_context(|| {
        format!("wasm-bindgen's glue has no `{start}` before `{end}`: glue.rs is for another version of it")
    })?;
    Ok(format!("{before}{other}{after}"))
}

/// `a`, `b`, … `z`, `A`, … `Z`, `aa`, …
fn short_names() -> impl Iterator<Item = String> {
    let letters = || ('a'..='z').chain('A'..='Z');
    let one = letters().map(String::from);
    let two =
        letters().flat_map(move |first| letters().map(move |second| format!("{first}{second}")));
    one.chain(two)
}

/// The places where `text` uses an export, as `wasm.<name>` or `wasm?.<name>`, with each name.
fn exports_in(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.match_indices("wasm").filter_map(|(at, object)| {
        let after = text.get(at + object.len()..)?;
        let rest = after.strip_prefix('?').unwrap_or(after).strip_prefix('.')?;
        let start = text.len() - rest.len();
        let end = rest
            .find(|character: char| {
                !character.is_ascii_alphanumeric() && character != '_' && character != '$'
            })
            .unwrap_or(rest.len());
        Some((start, rest.get(..end).unwrap_or_default()))
    })
}

/// Whether `text` uses the export. Unused exports are removed, and then their code.
fn uses_export(text: &str, name: &str) -> bool {
    exports_in(text).any(|(_, used)| used == name)
}

fn rename_exports(text: &str, renamed: &BTreeMap<String, String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for (at, name) in exports_in(text) {
        if let Some(short) = renamed.get(name) {
            out.push_str(text.get(done..at).unwrap_or_default());
            out.push_str(short);
            done = at + name.len();
        }
    }
    out.push_str(text.get(done..).unwrap_or_default());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_becomes_a_part_of_a_function() {
        let module = "import { a } from './a.js';\nexport const b = 1;\nexport function c() {}\n";
        assert_eq!(in_function(module), "const b = 1;\nfunction c() {}\n");
    }

    #[test]
    fn what_is_replaced_ends_before_the_next_part() {
        let replaced = replace_from("a(b)c(d)e", "(b", "(d", "!");
        assert_eq!(replaced.ok().as_deref(), Some("a!(d)e"));
        assert!(replace_from("a(d)c(b)e", "(b", "(d", "!").is_err());
    }

    #[test]
    fn exports_are_renamed_as_whole_words() {
        let renamed = BTreeMap::from([("fetch".to_owned(), "a".to_owned())]);
        assert_eq!(
            rename_exports(
                "wasm.fetch(1); wasm.fetchAll(); wasm?.fetch; wasm",
                &renamed
            ),
            "wasm.a(1); wasm.fetchAll(); wasm?.a; wasm"
        );
    }

    #[test]
    fn short_names_are_unique() {
        let names = short_names()
            .take(2_000)
            .collect::<std::collections::BTreeSet<_>>();
        assert_eq!(names.len(), 2_000);
    }
}
