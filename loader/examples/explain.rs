//! Says what each part of `runtime.js` costs: by how much the shipped file would be smaller, in brotli,
//! without that part alone. `cargo xtask size --explain` runs it. The parts share patterns, so their
//! costs are less than the whole together.

#![expect(
    clippy::print_stdout,
    reason = "standard output is this program's result"
)]

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use platform_compression::{BEST, SMALL, brotli};
use platform_loader::assemble::{self, Script};
use platform_loader::module::{self, Names};
use platform_loader::{Options, bind, build, shrink};
use sourcemap::SourceMap;
use wasmparser::{ExternalKind, KnownCustom, Name, Parser, Payload};

/// Pieces of a file.
type Pieces = Vec<Range<usize>>;

/// What the parts of the script are for, by the names of their files.
const FILES: [(&str, &str); 5] = [
    (
        "page.js",
        "requests: tokens, `platform.fetch`, signing out, and the browser's functions",
    ),
    ("presence.js", "who plays: the page's events"),
    ("log.js", "the log of errors and console lines"),
    (
        "local.js",
        "local development: the badge, and the page to choose a test player",
    ),
    ("loader.js", "the start, and `platform`"),
];

/// What the parts of the module are for, by the module that their functions are named after. The first
/// that a name contains counts.
const MODULES: [(&str, &str); 7] = [
    ("platform_runtime::token", "the rules of tokens"),
    ("platform_runtime::log", "the rules of the log"),
    ("platform_runtime::presence", "the rules of who plays"),
    (
        "platform_runtime::exports",
        "what the script calls, with the rules that are only called there",
    ),
    ("platform_runtime::heap", "memory"),
    (
        "platform_runtime",
        "generic code of the standard library for the runtime's types",
    ),
    ("", "the standard library and wasm-bindgen"),
];

/// The name of an exported function, for [`is_of`].
const EXPORTED: &str = "platform_runtime7exports";

/// A row of the table.
struct Part {
    name: String,
    what: &'static str,
    /// Its bytes, uncompressed.
    raw: usize,
    /// By how many bytes the file is smaller without it, in brotli.
    cost: usize,
}

fn main() -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .canonicalize()?;
    let options = Options {
        workspace_root: root.clone(),
    };
    let _built = build(&options)?;
    let dist = root.join("loader/dist");
    let file = std::fs::read_to_string(dist.join("runtime.js"))?;
    let whole = size(&file)?;
    let start = file.rfind("(\"").context("the file contains no module")? + 1;
    let mut parts = parts_of_script(&dist, &file, start, whole)?;
    parts.extend(parts_of_module(&root, (&file, start), whole)?);
    parts.sort_by_key(|part| std::cmp::Reverse(part.cost));
    println!("| part | what it is for | raw bytes | bytes of brotli |");
    println!("|---|---|---:|---:|");
    for part in parts {
        let Part {
            name,
            what,
            raw,
            cost,
        } = part;
        println!("| `{name}` | {what} | {raw} | {cost} |");
    }
    println!(
        "| `runtime.js` | the whole file | {} | {whole} |",
        file.len()
    );
    Ok(())
}

fn size(file: &str) -> Result<usize> {
    Ok(brotli(file.as_bytes(), BEST, SMALL)?.len())
}

/// Returns the bytes without these pieces, which are in order.
fn without(bytes: &[u8], pieces: &[Range<usize>]) -> Vec<u8> {
    let mut kept = Vec::with_capacity(bytes.len());
    let mut at = 0;
    for piece in pieces {
        kept.extend_from_slice(bytes.get(at..piece.start).unwrap_or_default());
        at = piece.end;
    }
    kept.extend_from_slice(bytes.get(at..).unwrap_or_default());
    kept
}

fn length(pieces: &[Range<usize>]) -> usize {
    pieces.iter().map(ExactSizeIterator::len).sum()
}

/// The source map says which file each piece of the script comes from. The module begins at `start`.
fn parts_of_script(dist: &Path, file: &str, start: usize, whole: usize) -> Result<Vec<Part>> {
    let map = SourceMap::from_slice(&std::fs::read(dist.join("runtime.js.map"))?)?;
    let ends = file.match_indices('\n').map(|(at, _)| at + 1);
    let lines: Vec<usize> = std::iter::once(0).chain(ends).collect();
    let mut begins = Vec::new();
    for token in map.tokens() {
        let line = lines.get(token.get_dst_line() as usize);
        let at = line.context("the map is of another file")? + token.get_dst_col() as usize;
        let source = token.get_source().unwrap_or_default();
        begins.push((at, source.rsplit('/').next().unwrap_or_default()));
    }
    begins.retain(|(at, _)| *at < start);
    begins.sort_unstable();
    let ends = begins.iter().skip(1).map(|(at, _)| *at).chain([start]);
    let mut pieces: BTreeMap<&str, Pieces> = BTreeMap::new();
    for ((at, source), end) in begins.iter().zip(ends) {
        pieces.entry(source).or_default().push(*at..end);
    }
    let parts = FILES.into_iter().map(|(name, what)| {
        let pieces = pieces.get(name).cloned().unwrap_or_default();
        let rest = String::from_utf8(without(file.as_bytes(), &pieces))?;
        Ok(Part {
            name: name.to_owned(),
            what,
            raw: length(&pieces),
            cost: whole.saturating_sub(size(&rest)?),
        })
    });
    parts.collect()
}

/// A module with names says what each function is for. The optimiser orders functions by their names,
/// too, so it is not the shipped one byte for byte; it must be as small.
fn parts_of_module(root: &Path, (file, start): (&str, usize), whole: usize) -> Result<Vec<Part>> {
    let compiled = module::compile(root, "platform-runtime")?;
    let named = bind::bind(root, &compiled, Names::Kept)?;
    let folder = tempfile::tempdir()?;
    let tools = shrink::Tools::find(root);
    let named = tools.optimise(&named.wasm, folder.path(), Names::Kept)?;
    let (bodies, sections) = pieces_of(&named)?;
    let mut pieces: BTreeMap<&str, Pieces> = BTreeMap::new();
    for (body, name) in bodies.into_iter().zip(names(&named)?) {
        let found = MODULES.iter().find(|(module, _)| is_of(&name, module));
        let (module, _) = found.context("every name contains nothing")?;
        pieces.entry(module).or_default().push(body);
    }
    let (_, tail) = file
        .rsplit_once(assemble::SETTINGS)
        .context("the file has no settings")?;
    let head = file.get(..start).unwrap_or_default();
    let script = Script {
        code: format!("{head}{}{tail}", assemble::arguments()),
        map: r#"{"sources":[]}"#.to_owned(),
    };
    // The module's own sections for tools, such as the names, come last.
    let size_without = |pieces: &[Range<usize>]| -> Result<usize> {
        let left_out = [pieces, &sections].concat();
        let built = assemble::assemble(&script, &without(&named, &left_out))?;
        size(&built.script)
    };
    let all = size_without(&[])?;
    ensure!(
        all.abs_diff(whole) < whole / 100,
        "with the module whose functions have names, the file has {all} bytes, not {whole}"
    );
    let mut parts = Vec::new();
    for (module, what) in MODULES {
        let Some(pieces) = pieces.get(module) else {
            continue;
        };
        let name = if module.is_empty() {
            "core, alloc, wasm_bindgen"
        } else {
            module
        };
        parts.push(Part {
            name: name.to_owned(),
            what,
            raw: length(pieces),
            cost: all.saturating_sub(size_without(pieces)?),
        });
    }
    Ok(parts)
}

/// Whether the name of a function has this module in it. The compiler writes a name's parts with their
/// lengths.
fn is_of(name: &str, module: &str) -> bool {
    match module.split_once("::") {
        Some((package, inner)) => name.contains(&format!("{package}{}{inner}", inner.len())),
        None => name.contains(module),
    }
}

/// Where the code of each function of a module is, and where its sections for tools are.
fn pieces_of(module: &[u8]) -> Result<(Pieces, Pieces)> {
    let (mut bodies, mut sections, mut end) = (Vec::new(), Vec::new(), 0);
    for payload in Parser::new(0).parse_all(module) {
        let payload = payload?;
        match &payload {
            Payload::CodeSectionEntry(body) => bodies.push(body.range()),
            // A section's number and length stand between the end of the one before and its content.
            Payload::CustomSection(section) => sections.push(end..section.range().end),
            _ => {}
        }
        end = payload.as_section().map_or(end, |(_, content)| content.end);
    }
    Ok((bodies, sections))
}

/// The names of the functions of a module that have code, in order.
fn names(module: &[u8]) -> Result<Vec<String>> {
    let (mut imported, mut functions) = (0, 0);
    let mut names = BTreeMap::new();
    let mut exported = Vec::new();
    for payload in Parser::new(0).parse_all(module) {
        match payload? {
            Payload::ImportSection(section) => imported = section.count(),
            Payload::FunctionSection(section) => functions = section.count(),
            Payload::ExportSection(section) => {
                for export in section {
                    let export = export?;
                    exported.extend((export.kind == ExternalKind::Func).then_some(export.index));
                }
            }
            Payload::CustomSection(section) => {
                let KnownCustom::Name(section) = section.as_known() else {
                    continue;
                };
                for subsection in section {
                    if let Name::Function(map) = subsection? {
                        for naming in map {
                            let naming = naming?;
                            names.insert(naming.index, naming.name.to_owned());
                        }
                    }
                }
            }
            _ => {}
        }
    }
    // What the script calls is named after nothing.
    names.extend(
        exported
            .into_iter()
            .map(|index| (index, EXPORTED.to_owned())),
    );
    let numbers = imported..imported + functions;
    Ok(numbers
        .map(|number| names.remove(&number).unwrap_or_default())
        .collect())
}
