//! Finds a record's place and function names in the game's sources, through the source maps of the
//! deployment that logged it, as long as that one is kept. Maps come from the game and are only
//! used for display.

use std::collections::HashMap;

use percent_encoding::percent_decode_str;
use platform_protocol::paths::PREFIX;
use serde_json::Value;
use sourcemap::{DecodedMap, decode_data_url, decode_slice, locate_sourcemap_reference_slice};
use url::Url;
use url::form_urlencoded::Serializer;

use super::Source;

/// Scripts whose maps are kept in memory, at most.
const KEPT: usize = 16;
/// How many bytes of a stack's line are read.
const LINE: usize = 1_000;
/// How many lines of a stack are read.
const FRAMES: usize = 50;
/// A name with at most this many characters counts as shortened by a bundler.
const SHORTENED: usize = 3;

/// The requested maps, by deployment and script; `None` if there is no map.
#[derive(Default)]
pub(super) struct Sources(HashMap<(String, String), Option<DecodedMap>>);

impl std::fmt::Debug for Sources {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// A place in a script of the game, as written in a stack.
#[derive(Debug, PartialEq, Eq)]
struct Place<'a> {
    /// The range within its line.
    span: std::ops::Range<usize>,
    /// The script's path in the deployment.
    script: &'a str,
    /// Counted from one.
    line: u32,
    /// Counted from one.
    column: u32,
}

/// A place in a source.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Original {
    place: String,
    file: String,
    line: u32,
    column: u32,
    /// The name at that place, if the map has it.
    name: Option<String>,
}

impl Sources {
    /// The record, with every place that a map knows replaced by its place in the source.
    pub(super) async fn mapped(&mut self, source: &Source, record: &Value) -> Value {
        let mut mapped = record.clone();
        let text = |member: &str| record.get(member).and_then(Value::as_str);
        let Some(deployment) = text("deployment") else {
            return mapped;
        };
        let stack = text("stack").unwrap_or_default();
        let behind = u32::from(counts_behind(stack));
        if let Some(url) = text("url") {
            let number = |member: &str| record.get(member).and_then(Value::as_u64);
            let number = |member| number(member).unwrap_or_default();
            let place = format!("{url}:{}:{}", number("line"), number("column"));
            if let Some(place) = place_in(&place, &source.game)
                && let Some(original) = self.original(source, deployment, &place, behind).await
            {
                mapped["url"] = Value::from(original.file);
                mapped["line"] = Value::from(original.line);
                mapped["column"] = Value::from(original.column);
            }
        }
        if !stack.is_empty() {
            mapped["stack"] = Value::from(self.stack(source, deployment, stack, behind).await);
        }
        mapped
    }

    async fn stack(
        &mut self,
        source: &Source,
        deployment: &str,
        stack: &str,
        behind: u32,
    ) -> String {
        let lines: Vec<&str> = stack.lines().collect();
        let mut originals = Vec::with_capacity(lines.len());
        for (at, line) in lines.iter().enumerate() {
            let place = (at < FRAMES)
                .then(|| place_in(line, &source.game))
                .flatten();
            originals.push(match place {
                Some(place) => {
                    let original = self.original(source, deployment, &place, behind).await;
                    original.map(|original| (place.span, original))
                }
                None => None,
            });
        }
        let rewritten = lines.iter().enumerate().map(|(at, line)| {
            let Some((span, original)) = &originals[at] else {
                return (*line).to_owned();
            };
            // The frame below knows the name with which this one was called.
            let called = originals.get(at + 1).and_then(Option::as_ref);
            let called = called.and_then(|(_, caller)| caller.name.as_deref());
            let (before, after) = (&line[..span.start], &line[span.end..]);
            format!("{}{}{after}", renamed(before, called), original.place)
        });
        rewritten.collect::<Vec<_>>().join("\n")
    }

    async fn original(
        &mut self,
        source: &Source,
        deployment: &str,
        place: &Place<'_>,
        behind: u32,
    ) -> Option<Original> {
        let key = (deployment.to_owned(), place.script.to_owned());
        if !self.0.contains_key(&key) {
            let map = read(source, deployment, place.script).await;
            if self.0.len() >= KEPT {
                self.0.clear();
            }
            self.0.insert(key.clone(), map);
        }
        look_up(self.0.get(&key)?.as_ref()?, place, behind)
    }
}

/// Finds a place in its source.
fn look_up(map: &DecodedMap, place: &Place<'_>, behind: u32) -> Option<Original> {
    let line = place.line.checked_sub(1)?;
    // Some engines report the column after the failing expression.
    let column = place.column.checked_sub(1)?.saturating_sub(behind);
    let token = map.lookup_token(line, column)?;
    // A mapping of an earlier line does not apply to this one.
    if token.get_dst_line() != line {
        return None;
    }
    let file = plain_name(token.get_source()?).to_owned();
    let (line, column) = (token.get_src_line() + 1, token.get_src_col() + 1);
    Some(Original {
        place: format!("{file}:{line}:{column}"),
        name: token.get_name().map(str::to_owned),
        file,
        line,
        column,
    })
}

/// Reads the map that a script names in its last comment: a separate file or inline.
async fn read(source: &Source, deployment: &str, script: &str) -> Option<DecodedMap> {
    let text = file(source, deployment, script).await?;
    let reference = locate_sourcemap_reference_slice(&text).ok()??;
    let name = reference.get_url();
    if name.starts_with("data:") {
        return decode_data_url(name).ok();
    }
    let base = Url::parse(&format!("{}/{script}", source.game)).ok()?;
    let url = base.join(name).ok()?;
    if url.origin() != base.origin() {
        return None;
    }
    let path = percent_decode_str(url.path().strip_prefix('/')?);
    let path = path.decode_utf8().ok()?;
    decode_slice(&file(source, deployment, &path).await?).ok()
}

/// A file of a deployment; `None` if it is not kept or cannot be loaded.
async fn file(source: &Source, deployment: &str, path: &str) -> Option<Vec<u8>> {
    // An id must be one path segment, whatever a record contains.
    let is_id = deployment
        .bytes()
        .all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    let project = source.address.strip_suffix("/logs").filter(|_| is_id)?;
    let query = Serializer::new(String::new())
        .append_pair("path", path)
        .finish();
    let environment = source.environment;
    let address =
        format!("{project}/environments/{environment}/deployments/{deployment}/file?{query}");
    Some(source.session.get(&address).await.ok()?.body.to_vec())
}

/// The last place in a line that is in a script of the game.
fn place_in<'a>(line: &'a str, game: &str) -> Option<Place<'a>> {
    let start = line
        .get(..line.len().min(LINE))
        .unwrap_or(line)
        .rfind(game)?;
    let rest = &line[start..];
    let end = rest
        .find(|char: char| char.is_whitespace() || char == ')')
        .unwrap_or(rest.len());
    let mut parts = rest[..end].rsplitn(3, ':');
    let column = parts.next()?.parse().ok()?;
    let line_number = parts.next()?.parse().ok()?;
    let path = parts.next()?.strip_prefix(game)?.split(['?', '#']).next()?;
    let script = path.strip_prefix('/')?;
    let known = [".js", ".mjs", ".cjs"]
        .iter()
        .any(|end| script.ends_with(end));
    (known && !path.starts_with(PREFIX) && !script.contains('%')).then_some(Place {
        span: start..start + end,
        script,
        line: line_number,
        column,
    })
}

/// Whether columns are those after the failing expression, as in WebKit: its stacks are like
/// Firefox's, but do not end with a newline.
fn counts_behind(stack: &str) -> bool {
    !stack.is_empty()
        && !stack.ends_with('\n')
        && stack.contains("@http")
        && !stack
            .lines()
            .any(|line| line.trim_start().starts_with("at "))
}

/// The text before a place. If the engine's function name is short, it is replaced by the name with
/// which the function was called. An anonymous callback stays anonymous.
fn renamed(before: &str, called: Option<&str>) -> String {
    let behind = before.trim_end_matches(['(', '@', ' ']);
    let start = behind.rfind(['.', ' ']).map_or(0, |at| at + 1);
    let name = behind.get(start..).unwrap_or_default();
    let is_name = (1..=SHORTENED).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$'))
        // `at https://…`, without a function.
        && behind.len() < before.trim_end_matches(' ').len();
    match called {
        Some(called) if is_name => {
            format!("{}{called}{}", &before[..start], &before[behind.len()..])
        }
        _ => before.to_owned(),
    }
}

/// A source's name without the prefix of bundlers.
fn plain_name(source: &str) -> &str {
    let mut name = match source.strip_prefix("webpack://") {
        Some(rest) => rest.split_once('/').map_or(rest, |(_, name)| name),
        None => source,
    };
    while let Some(rest) = name.strip_prefix("./").or_else(|| name.strip_prefix("../")) {
        name = rest;
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    const GAME: &str = "http://game.platform.localhost:8787";

    #[test]
    fn a_place_of_the_game_is_found_in_every_engines_lines() {
        for (line, script, at) in [
            (
                "    at t.a (http://game.platform.localhost:8787/assets/i.js:1:50)",
                "assets/i.js",
                (1, 50),
            ),
            (
                "    at http://game.platform.localhost:8787/i.js?v=1:2:3",
                "i.js",
                (2, 3),
            ),
            (
                "t@http://game.platform.localhost:8787/i.mjs:4:5",
                "i.mjs",
                (4, 5),
            ),
        ] {
            let place = place_in(line, GAME).unwrap();
            assert_eq!(
                (place.script, (place.line, place.column)),
                (script, at),
                "{line}"
            );
        }
        for line in [
            "Error: no",
            "    at Array.forEach (<anonymous>)",
            "    at https://elsewhere.example/i.js:1:2",
            "    at http://game.platform.localhost:8787/:1:2",
            "    at http://game.platform.localhost:8787/__platform/runtime.js:1:2",
            "    at http://game.platform.localhost:8787/i.js:1",
        ] {
            assert_eq!(place_in(line, GAME), None, "{line}");
        }
    }

    #[test]
    fn only_short_names_are_replaced() {
        for (before, expected) in [
            ("    at t (", "    at lose ("),
            ("    at e.t (", "    at e.lose ("),
            ("    at async t (", "    at async lose ("),
            ("t@", "lose@"),
            ("    at start (", "    at start ("),
            ("    at ", "    at "),
            ("@", "@"),
        ] {
            assert_eq!(renamed(before, Some("lose")), expected);
            assert_eq!(renamed(before, None), before);
        }
    }

    #[test]
    fn a_place_is_looked_up_in_its_line_alone() {
        let map =
            br#"{"version":3,"sources":["../src/main.ts"],"names":["lose"],"mappings":";AAEEA"}"#;
        let map = decode_slice(map).unwrap();
        let place = |line, column| Place {
            span: 0..0,
            script: "i.js",
            line,
            column,
        };
        let found = look_up(&map, &place(2, 9), 0).unwrap();
        assert_eq!(
            (found.place.as_str(), found.name.as_deref()),
            ("src/main.ts:3:3", Some("lose"))
        );
        assert_eq!(look_up(&map, &place(1, 1), 0), None);
        assert_eq!(look_up(&map, &place(3, 1), 0), None);
        assert_eq!(look_up(&map, &place(0, 0), 0), None);
    }

    #[test]
    fn sources_are_named_without_what_bundlers_add() {
        for (source, name) in [
            ("webpack://game/./src/a.js", "src/a.js"),
            ("../../src/a.ts", "src/a.ts"),
            ("a.ts", "a.ts"),
        ] {
            assert_eq!(plain_name(source), name);
        }
    }
}
