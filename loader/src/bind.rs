//! The script around the module, as parts of one function: the runtime's own `page.js`, and the
//! loader. Numbers alone pass between module and page, so nothing of the glue from wasm-bindgen is
//! needed.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use wasm_bindgen_cli_support::Bindgen;
use wasmparser::{ExternalKind, Parser, Payload, TypeRef, ValType};

use crate::module::Names;

/// The module and the parts of its script.
#[derive(Debug)]
pub struct Bound {
    /// The module, its imports and exports under short names.
    pub wasm: Vec<u8>,
    /// The parts, in order: a file name for the source map, and its text.
    pub sources: Vec<(String, String)>,
}

/// What the glue of a module contains that passes more than numbers as they are.
const CONVERSIONS: [&str; 6] = [
    "FromWasm",
    "ToWasm",
    "ExternrefTable0",
    "isLikeNone",
    "BigInt",
    "CodePoint",
];
/// What wasm-bindgen imports to fill the module's table of objects, which is empty here.
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
    let unused = wasm.imports.iter().find(|import| import.name == UNUSED);
    if let Some(module) = unused.map(|import| import.module.clone()) {
        let function = wasm.imports.get_func(module, UNUSED)?;
        wasm.replace_imported_func(function, |_| {})?;
    }
    let mut names = short_names();
    let mut imports = String::new();
    for import in wasm.imports.iter_mut() {
        let short = names.next().context("names never end")?;
        let function = function_of(&import.name);
        ensure!(
            declares(&sources, function),
            "page.js has no `{function}`, which the module imports"
        );
        imports.push_str(&format!("{short}: {function}, "));
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
    let wasm = wasm.emit_wasm();
    passes_numbers(&wasm)?;
    Ok(Bound { wasm, sources })
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

/// Whether page.js, the first part, has a function of this name.
fn declares(sources: &[(String, String)], function: &str) -> bool {
    let declaration = format!("const {function} = ");
    let page = sources.iter().take(1);
    page.flat_map(|(_, text)| text.lines())
        .any(|line| line.starts_with(&declaration))
}

/// Fails if a function that the module imports or exports takes or returns anything but numbers of 32
/// bits and `f64`.
fn passes_numbers(module: &[u8]) -> Result<()> {
    let (mut types, mut functions, mut passing) = (Vec::new(), Vec::new(), Vec::new());
    for payload in Parser::new(0).parse_all(module) {
        match payload? {
            Payload::TypeSection(section) => {
                for group in section.into_iter_err_on_gc_types() {
                    types.push(group?);
                }
            }
            Payload::ImportSection(section) => {
                for import in section.into_imports() {
                    if let TypeRef::Func(kind) = import?.ty {
                        passing.push(kind);
                        functions.push(kind);
                    }
                }
            }
            Payload::FunctionSection(section) => {
                for kind in section {
                    functions.push(kind?);
                }
            }
            Payload::ExportSection(section) => {
                for export in section {
                    let export = export?;
                    if export.kind == ExternalKind::Func {
                        passing.extend(functions.get(export.index as usize));
                    }
                }
            }
            _ => {}
        }
    }
    for kind in passing {
        let kind = types.get(kind as usize).context("a function has a type")?;
        let values = kind.params().iter().chain(kind.results());
        for value in values {
            ensure!(
                matches!(value, ValType::I32 | ValType::F64),
                "the module and page.js may pass numbers only, and a function has {value:?}"
            );
        }
    }
    Ok(())
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

    /// A module with one function that takes or returns the value of this code, and imports or exports
    /// it.
    fn module(value: u8, is_result: bool, is_import: bool) -> Vec<u8> {
        let mut bytes = b"\0asm\x01\0\0\0".to_vec();
        // One type: with the value as its parameter, or as its result.
        let kind: &[u8] = if is_result {
            &[1, 0x60, 0, 1, value]
        } else {
            &[1, 0x60, 1, value, 0]
        };
        bytes.extend([&[1, 5], kind].concat());
        if is_import {
            bytes.extend([2, 7, 1, 1, b'a', 1, b'b', 0, 0]);
        } else {
            // One function, exported as `a`, whose code is `unreachable`.
            bytes.extend([3, 2, 1, 0, 7, 5, 1, 1, b'a', 0, 0, 10, 5, 1, 3, 0, 0, 0x0b]);
        }
        bytes
    }

    #[test]
    fn a_module_that_passes_more_than_numbers_is_refused() {
        const I32: u8 = 0x7f;
        const I64: u8 = 0x7e;
        const F64: u8 = 0x7c;
        const OBJECT: u8 = 0x6f;
        for is_result in [true, false] {
            for is_import in [true, false] {
                for number in [I32, F64] {
                    assert!(passes_numbers(&module(number, is_result, is_import)).is_ok());
                }
                for other in [I64, OBJECT] {
                    let refused = passes_numbers(&module(other, is_result, is_import));
                    let sentence = refused.expect_err("it is refused").to_string();
                    assert!(sentence.contains("numbers only"), "{sentence}");
                }
            }
        }
    }
}
