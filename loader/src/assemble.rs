//! Puts the module into the script, as a string, and finishes the source map.

use anyhow::{Context, Result, ensure};
use platform_protocol::paths::{RUNTIME_MAP, SETTINGS_PLACEHOLDER};
use serde_json::{Value, json};

/// The placeholder for the module in the minified script.
pub const PAYLOAD: &str = "__PAYLOAD__";
/// The placeholder for what the server writes into the file.
pub const SETTINGS: &str = SETTINGS_PLACEHOLDER;
/// The placeholder for the number that undoes the payload's masking.
pub const MASK: &str = "__MASK__";

/// A script without its module, and its source map.
#[derive(Debug)]
pub struct Script {
    /// One function, called with [`PAYLOAD`], [`MASK`] and the settings'
    /// placeholder.
    pub code: String,
    /// A source map of revision 3 (ECMA-426).
    pub map: String,
}

/// The files that are served.
#[derive(Debug)]
pub struct Built {
    /// `runtime.js`, without the settings.
    pub script: String,
    /// `runtime.js.map`.
    pub map: String,
}

impl Script {
    /// Joins the parts without minifying them, in one function, with a map from every line to
    /// itself.
    #[must_use]
    pub fn unminified(sources: &[(String, String)]) -> Self {
        let parts = sources
            .iter()
            .map(|(_, text)| text.as_str())
            .collect::<String>();
        let code = format!(
            "((PAYLOAD, MASK, SETTINGS) => {{\n{parts}}})({});",
            arguments()
        );
        let mappings = format!(
            "AAAA{}",
            ";AACA".repeat(code.lines().count().saturating_sub(1))
        );
        let map = json!({
            "version": 3, "file": "runtime.js", "sources": ["runtime.js"],
            "sourcesContent": [code], "names": [], "mappings": mappings,
        });
        Self {
            code,
            map: map.to_string(),
        }
    }
}

/// The arguments of the script's one function, in order.
#[must_use]
pub fn arguments() -> String {
    format!("{PAYLOAD},{MASK},{SETTINGS_PLACEHOLDER}")
}

/// Makes the served files.
///
/// # Errors
/// The script lacks a placeholder, or the map is not a source map.
pub fn assemble(script: &Script, wasm: &[u8]) -> Result<Built> {
    let code = match script.code.find("\n//# sourceMappingURL") {
        Some(end) => script.code.get(..end).unwrap_or_default(),
        None => script.code.as_str(),
    };
    // Everything else comes before the module, so the map stays right.
    let (head, tail) = code
        .trim_end()
        .split_once(&arguments())
        .context("the module and the settings are not the last in the script")?;
    ensure!(
        !tail.contains("__"),
        "the module and the settings are more than once in the script"
    );
    let mask = best_mask(wasm);
    let script_text = format!(
        "{head}{},{mask},{SETTINGS_PLACEHOLDER}{tail}\n//# sourceMappingURL={RUNTIME_MAP}\n",
        string_literal(wasm, mask)
    );

    let mut map: Value = serde_json::from_str(&script.map).context("the source map is no JSON")?;
    let sources = map["sources"]
        .as_array()
        .context("the source map names no sources")?
        .clone();
    // Debuggers leave these sources out of stacks and stepping, so that a console line shows the
    // game's own code (ECMA-426 §ignoreList).
    map["ignoreList"] = json!((0..sources.len()).collect::<Vec<_>>());
    // What the tools have added has no source: its place in the list stays.
    map["sources"] = sources
        .iter()
        .map(|name| {
            name.as_str()
                .map(|name| format!("platform:///runtime/{name}"))
        })
        .collect::<Vec<_>>()
        .into();
    Ok(Built {
        script: script_text,
        map: map.to_string(),
    })
}

/// The first byte that needs two characters.
const WIDE: u8 = 126;
/// How many bytes share a first character, and the smallest second character.
const SPAN: u8 = 65;
const LEAST: u8 = 35;

/// Writes masked bytes (exclusive or) as a string of ASCII: a page or a dev server without a
/// declared encoding must not change them. Bytes from [`WIDE`] on become two characters. After
/// compression this is 2 % larger than the bytes; base64 would be 33 % larger. `loader.js` undoes
/// it.
fn string_literal(bytes: &[u8], mask: u8) -> String {
    let mut out = String::with_capacity(bytes.len() * 3 / 2);
    out.push('"');
    for byte in bytes {
        let masked = byte ^ mask;
        if masked < WIDE {
            push_escaped(&mut out, masked);
        } else {
            let above = masked - WIDE;
            push_escaped(&mut out, WIDE + above / SPAN);
            push_escaped(&mut out, LEAST + above % SPAN);
        }
    }
    out.push('"');
    out
}

/// Appends an ASCII character as it is written in a string literal.
fn push_escaped(out: &mut String, character: u8) {
    match character {
        // An escape whose meaning does not change if a digit follows.
        0 => out.push_str("\\x00"),
        b'\n' => out.push_str("\\n"),
        b'\r' => out.push_str("\\r"),
        b'\\' => out.push_str("\\\\"),
        b'"' => out.push_str("\\\""),
        plain => out.push(char::from(plain)),
    }
}

/// The mask with the shortest string: it moves the module's most frequent bytes away from those
/// that need an escape or two characters.
fn best_mask(bytes: &[u8]) -> u8 {
    (0..=u8::MAX)
        .min_by_key(|mask| string_literal(bytes, *mask).len())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_literal_escapes_what_would_end_or_change_it() {
        assert_eq!(
            string_literal(b"a\0b\x001\n\r\\\"'", 0),
            r#""a\x00b\x001\n\r\\\"'""#
        );
        assert_eq!(string_literal(b"a\0", 1), "\"`\u{1}\"");
    }

    #[test]
    fn a_string_literal_is_ascii_and_can_be_undone() {
        let bytes = (0..=u8::MAX).collect::<Vec<_>>();
        let literal = string_literal(&bytes, 0);
        assert!(literal.is_ascii());
        // The loader does the same, on the bytes that need no escape.
        let literal = string_literal(&bytes[126..], 0).replace("\\\\", "\\");
        let mut characters = literal.trim_matches('"').bytes();
        let mut undone = Vec::new();
        while let Some(character) = characters.next() {
            let code = u16::from(character);
            let next = if code > 125 {
                characters.next().map(u16::from)
            } else {
                None
            };
            undone.push(next.map_or(code, |next| (code - 126) * 65 + next + 91));
        }
        assert_eq!(undone, (126..=255).collect::<Vec<u16>>());
    }

    #[test]
    fn the_mask_avoids_escapes() {
        assert_ne!(best_mask(&[0; 9]), 0);
    }

    #[test]
    fn the_map_tells_debuggers_to_ignore_every_source() {
        let script = Script::unminified(&[("a.js".into(), "let a;\n".into())]);
        let built = assemble(&script, b"\0asm").unwrap();
        let map: Value = serde_json::from_str(&built.map).unwrap();
        assert_eq!(map["ignoreList"], json!([0]));
        assert_eq!(map["sources"], json!(["platform:///runtime/runtime.js"]));
        assert!(
            built
                .script
                .ends_with("//# sourceMappingURL=/__platform/runtime.js.map\n")
        );
        assert!(built.script.contains(",__PLATFORM_SETTINGS__)"));
    }

    #[test]
    fn a_place_without_a_source_keeps_its_number() {
        let mut script = Script::unminified(&[("a.js".into(), "let a;\n".into())]);
        let mut map: Value = serde_json::from_str(&script.map).unwrap();
        map["sources"] = json!([null, "a.js"]);
        script.map = map.to_string();
        let built = assemble(&script, b"\0asm").unwrap();
        let map: Value = serde_json::from_str(&built.map).unwrap();
        assert_eq!(map["sources"], json!([null, "platform:///runtime/a.js"]));
    }

    #[test]
    fn a_script_without_its_placeholders_is_refused() {
        let script = Script {
            code: "1".into(),
            map: "{}".into(),
        };
        assert!(assemble(&script, b"").is_err());
    }
}
