//! Finds what a source file defines: types, functions, modules and constants.
//!
//! It reads lines, not syntax: rustfmt and Biome begin a line with every definition and keep keyword and name
//! together. Names that a definition binds inside (fields, variants, arguments, `let`) are not read.

/// What a definition defines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DefinitionKind {
    /// `struct`, `enum`, `union`, `trait`, `class`, and `type` outside of `impl` and `trait`.
    Type,
    /// `fn` or `function`.
    Function,
    /// `mod`.
    Module,
    /// `const` or `static`; in JavaScript `const` and `let` of a module.
    Constant,
}

/// A definition in a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Definition<'a> {
    pub(super) kind: DefinitionKind,
    pub(super) name: &'a str,
    /// What follows the name in its line.
    pub(super) rest: &'a str,
    /// The line, from 1.
    pub(super) line: usize,
    /// The name is a sentence, as those of tests are: it is read as prose.
    pub(super) is_sentence: bool,
}

/// So many words are a sentence, also without an attribute: the suites of the stores and of the browsers call
/// their tests by name.
const SENTENCE_WORDS: usize = 5;

/// The definitions of a file; none if it is neither Rust nor JavaScript.
pub(super) fn definitions<'a>(path: &str, text: &'a str) -> Vec<Definition<'a>> {
    let is_rust = path.ends_with(".rs");
    if !is_rust && !super::is_javascript(path) {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut is_test = false;
    for (number, line) in text.lines().enumerate() {
        let code = line.trim();
        if code.starts_with("#[") {
            is_test |= ["#[test]", "#[tokio::test", "#[wasm_bindgen_test"]
                .iter()
                .any(|attribute| code.starts_with(attribute));
            continue;
        }
        let definition = if is_rust {
            of_rust(line)
        } else {
            of_javascript(line)
        };
        if let Some((kind, name, rest)) = definition {
            let is_sentence = kind == DefinitionKind::Function
                && (is_test || name.split('_').count() >= SENTENCE_WORDS);
            found.push(Definition {
                kind,
                name,
                rest,
                line: number + 1,
                is_sentence,
            });
        }
        if definition.is_some() || code.is_empty() || code.ends_with(['}', ';']) {
            is_test = false;
        }
    }
    found
}

/// The words of a name in any case: `NotFound`, `not_found` and `NOT_FOUND` are "not" and "found".
pub(super) fn words(name: &str) -> Vec<String> {
    let mut words = Vec::new();
    for part in name.split('_').filter(|part| !part.is_empty()) {
        if !part.chars().any(char::is_lowercase) {
            words.push(part.to_lowercase());
            continue;
        }
        for (at, letter) in part.char_indices() {
            if at == 0 || letter.is_uppercase() {
                words.push(String::new());
            }
            if let Some(word) = words.last_mut() {
                word.extend(letter.to_lowercase());
            }
        }
    }
    words
}

/// DefinitionKind, name and rest of the definition that a line of Rust begins with.
fn of_rust(line: &str) -> Option<(DefinitionKind, &str, &str)> {
    let code = line.trim_start();
    let is_inner = code.len() < line.len();
    let (is_public, code) = match code.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => (true, rest.split_once(')')?.1.trim_start()),
        Some(rest) => (true, rest.strip_prefix(' ')?),
        None => (false, code),
    };
    let mut rest = code;
    loop {
        let (keyword, after) = rest.split_once(' ')?;
        let kind = match keyword {
            "async" | "unsafe" | "extern" | "\"C\"" => None,
            "const"
                if ["fn ", "async ", "unsafe ", "extern "]
                    .iter()
                    .any(|next| after.starts_with(next)) =>
            {
                None
            }
            "struct" | "enum" | "union" | "trait" => Some(DefinitionKind::Type),
            // The types of an `impl` have the names that the trait gives them; they are never public.
            "type" if is_public || !is_inner => Some(DefinitionKind::Type),
            "fn" => Some(DefinitionKind::Function),
            "mod" => Some(DefinitionKind::Module),
            // In lower case it is a line of JavaScript, in a string.
            "const" | "static"
                if !after.starts_with(char::is_lowercase) || after.starts_with("mut ") =>
            {
                Some(DefinitionKind::Constant)
            }
            _ => return None,
        };
        match kind {
            None => rest = after,
            Some(kind) => {
                let (name, rest) = split_name(after.strip_prefix("mut ").unwrap_or(after))?;
                return Some((kind, name, rest));
            }
        }
    }
}

/// DefinitionKind, name and rest of the definition that a line of JavaScript begins with.
fn of_javascript(line: &str) -> Option<(DefinitionKind, &str, &str)> {
    let mut rest = line.trim_start();
    let is_inner = rest.len() < line.len();
    loop {
        let (keyword, after) = rest.split_once(' ')?;
        let kind = match keyword {
            "export" | "default" | "async" => None,
            "class" => Some(DefinitionKind::Type),
            "function" | "function*" => Some(DefinitionKind::Function),
            "const" | "let" | "var" if !is_inner => Some(DefinitionKind::Constant),
            _ => return None,
        };
        match kind {
            None => rest = after,
            Some(kind) => {
                let (name, rest) = split_name(after)?;
                return Some((kind, name, rest));
            }
        }
    }
}

/// The name at the beginning of a text, and what follows it.
fn split_name(text: &str) -> Option<(&str, &str)> {
    let is_of_name = |c: char| c.is_alphanumeric() || c == '_';
    let end = text.find(|c| !is_of_name(c)).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(path: &str, text: &str) -> Vec<(DefinitionKind, String)> {
        definitions(path, text)
            .into_iter()
            .map(|definition| (definition.kind, definition.name.to_owned()))
            .collect()
    }

    #[test]
    fn definitions_of_rust_are_found_whatever_precedes_their_keyword() {
        for (line, kind, name) in [
            ("struct Lease;", DefinitionKind::Type, "Lease"),
            ("    pub(super) enum Lease {", DefinitionKind::Type, "Lease"),
            ("pub type Lease = u8;", DefinitionKind::Type, "Lease"),
            ("pub const fn renew() {", DefinitionKind::Function, "renew"),
            ("    async fn renew<T>(", DefinitionKind::Function, "renew"),
            (
                "pub unsafe extern \"C\" fn renew(",
                DefinitionKind::Function,
                "renew",
            ),
            ("mod lease {", DefinitionKind::Module, "lease"),
            (
                "const LEASE_AGE: Duration =",
                DefinitionKind::Constant,
                "LEASE_AGE",
            ),
            (
                "static mut LEASES: u8 = 0;",
                DefinitionKind::Constant,
                "LEASES",
            ),
        ] {
            assert_eq!(names("a.rs", line), [(kind, name.to_owned())], "{line}");
        }
    }

    #[test]
    fn what_only_looks_like_a_definition_is_not_one() {
        for line in [
            "    type Error = Refused;",
            "const lease = 1;",
            "// struct Lease;",
            "let lease = 1;",
            "publish fn",
            "use a::fn_name;",
            "    lease: fn(u8),",
        ] {
            assert_eq!(names("a.rs", line), [], "{line}");
        }
        assert_eq!(names("a.md", "struct Lease;"), []);
    }

    #[test]
    fn definitions_of_javascript_are_those_of_modules_and_functions() {
        for (line, kind, name) in [
            (
                "export default class Lease {",
                DefinitionKind::Type,
                "Lease",
            ),
            (
                "  async function renew() {",
                DefinitionKind::Function,
                "renew",
            ),
            ("export const AGE = 3;", DefinitionKind::Constant, "AGE"),
        ] {
            assert_eq!(names("a.js", line), [(kind, name.to_owned())], "{line}");
        }
        assert_eq!(names("a.js", "  const age = 3;"), []);
    }

    #[test]
    fn the_names_of_tests_are_sentences() {
        let text = "#[test]\n#[expect(clippy::too_many_lines)]\nfn it_works() {}\nfn helps() {}\n\
                    async fn two_nodes_take_one_lease() {}\n";
        let sentences: Vec<bool> = definitions("a.rs", text)
            .iter()
            .map(|definition| definition.is_sentence)
            .collect();
        assert_eq!(sentences, [true, false, true]);
    }

    #[test]
    fn a_name_has_the_same_words_in_every_case() {
        for name in ["NotFound", "not_found", "NOT_FOUND", "notFound"] {
            assert_eq!(words(name), ["not", "found"], "{name}");
        }
        assert_eq!(words("replaced"), ["replaced"]);
        assert!(words("_").is_empty());
    }
}
