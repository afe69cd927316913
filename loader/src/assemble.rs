//! Puts the module into the script, as a string, and finishes the source map.

use std::fmt::Write as _;

use anyhow::{Context, Result, ensure};
use platform_protocol::paths::{RUNTIME_MAP, SETTINGS_PLACEHOLDER};
use serde_json::{Value, json};

/// Stands in the minified script where the module comes to stand.
pub const PAYLOAD: &str = "__PAYLOAD__";

/// A script without its module, and its source map.
#[derive(Debug)]
pub struct Script {
    /// One function, called with [`PAYLOAD`] and the settings' placeholder.
    pub code: String,
    /// A source map of revision 3 (ECMA-426).
    pub map: String,
}

/// The files that are served.
#[derive(Debug)]
pub struct Built {
    /// `runtime.js`, but for the settings.
    pub script: String,
    /// `runtime.js.map`.
    pub map: String,
}

impl Script {
    /// The parts as they are, in one function, with a map that leads every
    /// line to itself.
    #[must_use]
    pub fn unminified(sources: &[(String, String)]) -> Self {
        let parts = sources.iter().map(|(_, text)| text.as_str()).collect::<String>();
        let code =
            format!("((PAYLOAD, SETTINGS) => {{\n{parts}}})({PAYLOAD},{SETTINGS_PLACEHOLDER});");
        let mappings = format!("AAAA{}", ";AACA".repeat(code.lines().count().saturating_sub(1)));
        let map = json!({
            "version": 3, "file": "runtime.js", "sources": ["runtime.js"],
            "sourcesContent": [code], "names": [], "mappings": mappings,
        });
        Self { code, map: map.to_string() }
    }
}

/// The served files.
///
/// # Errors
/// The script lacks a placeholder, or the map is none.
pub fn assemble(script: &Script, wasm: &[u8]) -> Result<Built> {
    let code = match script.code.find("\n//# sourceMappingURL") {
        Some(end) => script.code.get(..end).unwrap_or_default(),
        None => script.code.as_str(),
    };
    for placeholder in [PAYLOAD, SETTINGS_PLACEHOLDER] {
        ensure!(code.matches(placeholder).count() == 1, "{placeholder} is not once in the script");
    }
    // Everything else stands before the module, so the map stays right.
    let tail = format!("{PAYLOAD},{SETTINGS_PLACEHOLDER}");
    ensure!(code.contains(&tail), "the module and the settings are not the last in the script");
    let script_text = format!(
        "{}\n//# sourceMappingURL={RUNTIME_MAP}\n",
        code.trim_end().replace(PAYLOAD, &string_literal(wasm))
    );

    let mut map: Value = serde_json::from_str(&script.map).context("the source map is no JSON")?;
    let sources = map["sources"].as_array().context("the source map names no sources")?.clone();
    // Debuggers leave these sources out of stacks and stepping, so that a
    // console line shows the game's place and not ours (ECMA-426 §ignoreList).
    map["ignoreList"] = json!((0..sources.len()).collect::<Vec<_>>());
    map["sources"] = sources
        .iter()
        .filter_map(Value::as_str)
        .map(|name| format!("platform:///runtime/{name}"))
        .collect();
    Ok(Built { script: script_text, map: map.to_string() })
}

/// Bytes as a string of the code points 0 to 255. In UTF-8, after compression,
/// this is a twentieth larger than the bytes; base64 would be a third.
fn string_literal(bytes: &[u8]) -> String {
    let quote = if count(bytes, b'"') > count(bytes, b'\'') { '\'' } else { '"' };
    let mut out = String::with_capacity(bytes.len() * 3 / 2);
    out.push(quote);
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            // As one character unless a digit follows, which would make it
            // another escape.
            0 if bytes.get(at + 1).is_some_and(u8::is_ascii_digit) => out.push_str("\\x00"),
            0 => out.push_str("\\0"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\\' => out.push_str("\\\\"),
            byte if char::from(*byte) == quote => {
                let _ = write!(out, "\\{quote}");
            }
            byte => out.push(char::from(*byte)),
        }
    }
    out.push(quote);
    out
}

fn count(bytes: &[u8], wanted: u8) -> usize {
    bytes.iter().filter(|byte| **byte == wanted).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_literal_escapes_what_would_end_or_change_it() {
        assert_eq!(string_literal(b"a\0b\x001\n\r\\\"\xff"), "'a\\0b\\x001\\n\\r\\\\\"\u{ff}'");
        assert_eq!(string_literal(b"''\""), "\"''\\\"\"");
    }

    #[test]
    fn the_map_tells_debuggers_to_ignore_every_source() {
        let script = Script::unminified(&[("a.js".into(), "let a;\n".into())]);
        let built = assemble(&script, b"\0asm").unwrap();
        let map: Value = serde_json::from_str(&built.map).unwrap();
        assert_eq!(map["ignoreList"], json!([0]));
        assert_eq!(map["sources"], json!(["platform:///runtime/runtime.js"]));
        assert!(built.script.ends_with("//# sourceMappingURL=/__platform/runtime.js.map\n"));
        assert!(built.script.contains("(\"\\0asm\",__PLATFORM_SETTINGS__)"));
    }

    #[test]
    fn a_script_without_its_placeholders_is_refused() {
        let script = Script { code: "1".into(), map: "{}".into() };
        assert!(assemble(&script, b"").is_err());
    }
}
