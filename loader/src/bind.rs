//! The script around the module, as parts of one function: the runtime's own `page.js`, and the
//! loader. Numbers alone pass between module and page, so nothing of the glue from wasm-bindgen is
//! needed.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
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

/// What the glue of a module contains that gets more than numbers.
const CONVERSIONS: [&str; 3] = ["FromWasm", "ToWasm", "ExternrefTable0"];
/// What wasm-bindgen imports to fill the module's table of objects, which is empty here. Nothing calls
/// it any more.
const UNUSED: &str = "__wbindgen_init_externref_table";

/// Binds the module at `module` to the functions of the page.
///
/// # Errors
/// The module was made with another version of wasm-bindgen, it passes more than numbers, or a file is
/// missing.
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
    let glue = output.start().context("wasm-bindgen made no glue")?;
    for conversion in CONVERSIONS {
        ensure!(
            !glue.contains(conversion),
            "the module and page.js may pass numbers only, and the glue has `{conversion}`"
        );
    }
    let mut sources = vec![("page.js".to_owned(), page)];
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
        if import.name != UNUSED {
            let function = function_of(&import.name);
            ensure!(
                declares(&sources, function),
                "page.js has no `{function}`, which the module imports"
            );
            imports.push_str(&format!("{short}: {function}, "));
        }
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

/// The function that an import calls. wasm-bindgen gives its wrappers names with a hash; they would
/// only convert numbers.
fn function_of(import: &str) -> &str {
    import
        .strip_prefix("__wbg_")
        .and_then(|name| name.rsplit_once('_'))
        .map_or(import, |(function, _)| function)
}

/// Whether one of the parts has a function of this name.
fn declares(sources: &[(String, String)], function: &str) -> bool {
    let declaration = format!("const {function} = ");
    sources.iter().any(|(_, text)| text.contains(&declaration))
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
    fn an_import_names_the_function_that_it_calls() {
        assert_eq!(function_of("__wbg_exchange_d568ea933e06e79c"), "exchange");
        assert_eq!(function_of("monotonic"), "monotonic");
        let sources = [("page.js".to_owned(), "const wall = () => 1;".to_owned())];
        assert!(declares(&sources, "wall") && !declares(&sources, "all"));
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
