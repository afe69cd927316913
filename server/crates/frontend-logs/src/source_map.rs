//! Source maps (ECMA-426): the original place of a place in a bundled script, and the source around it.
//!
//! A map comes from a game, so whatever is in it, the decoded form stays within bounds of size, and
//! a place is found by binary search.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{self, Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// The maximum number of segments that are decoded.
const SEGMENTS: usize = 2_000_000;
/// The maximum number of sources, and of names.
const NAMES: usize = 500_000;
/// The maximum number of lines of all sources whose text is kept.
const LINES: usize = 1_000_000;
/// The maximum number of sections.
const SECTIONS: usize = 1_000;
/// No index: of a segment without a source, or without a name.
const NONE: u32 = u32::MAX;

/// A source map, decoded.
#[derive(Debug, Default)]
pub struct SourceMap {
    /// In the order of their places in the script.
    segments: Vec<Segment>,
    sources: Vec<Source>,
    names: Vec<Box<str>>,
}

/// Where a piece of the script begins, and its original place, all counted from 0.
#[derive(Clone, Copy, Debug)]
struct Segment {
    row: u32,
    begin: u32,
    source: u32,
    line: u32,
    column: u32,
    name: u32,
}

/// A source: its name, and its text if the map has it.
#[derive(Debug)]
struct Source {
    file: Box<str>,
    text: Option<Text>,
}

/// A text, and where its lines begin.
#[derive(Debug)]
pub struct Text {
    text: Box<str>,
    starts: Vec<u32>,
}

/// The place in a source.
#[derive(Clone, Copy, Debug)]
pub struct Original<'map> {
    /// The source, without the prefixes of bundlers.
    pub file: &'map str,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
    /// The name at this place in the source; empty if the map has none.
    pub name: &'map str,
    /// The text of the source, if the map has it.
    pub text: Option<&'map Text>,
}

/// A map as it is written. `S` are its sections; a map in a section has none.
#[derive(serde::Deserialize)]
struct Written<S> {
    #[serde(default)]
    mappings: String,
    #[serde(default)]
    sources: List<Word, NAMES>,
    #[serde(default, rename = "sourcesContent")]
    contents: Option<List<Word, NAMES>>,
    #[serde(default)]
    names: List<Word, NAMES>,
    sections: Option<S>,
}

/// A part of a map.
#[derive(serde::Deserialize)]
struct Section {
    offset: Offset,
    map: Written<IgnoredAny>,
}

/// A list that is refused while it is read if it has more than `MOST` elements, so that a short text
/// does not become a large list.
struct List<T, const MOST: usize>(Vec<T>);

/// A text. Whatever else stands in its place is passed over without being kept.
struct Word(Option<Box<str>>);

impl<T, const MOST: usize> Default for List<T, MOST> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>, const MOST: usize> Deserialize<'de> for List<T, MOST> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Elements<T, const MOST: usize>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>, const MOST: usize> Visitor<'de> for Elements<T, MOST> {
            type Value = List<T, MOST>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "at most {MOST} elements")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Self::Value, A::Error> {
                let mut list = Vec::new();
                while let Some(element) = from.next_element()? {
                    if list.len() == MOST {
                        return Err(de::Error::invalid_length(MOST + 1, &self));
                    }
                    list.push(element);
                }
                Ok(List(list))
            }
        }
        from.deserialize_seq(Elements(PhantomData))
    }
}

impl<'de> Deserialize<'de> for Word {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct AnyValue;
        impl<'de> Visitor<'de> for AnyValue {
            type Value = Word;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Word(Some(text.into())))
            }

            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Word(None))
            }

            fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
                Ok(Word(None))
            }

            fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
                Ok(Word(None))
            }

            fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
                Ok(Word(None))
            }

            fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
                Ok(Word(None))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Self::Value, A::Error> {
                while from.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Word(None))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Self::Value, A::Error> {
                while from.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Word(None))
            }
        }
        from.deserialize_any(AnyValue)
    }
}

#[derive(Clone, Copy, Default, serde::Deserialize)]
struct Offset {
    line: u32,
    column: u32,
}

impl SourceMap {
    /// Decodes a map; `None` if it is not one, or too large.
    pub fn parse(json: &[u8]) -> Option<Self> {
        // A server may put a line before the JSON, so that no script can include it.
        let json = match json.strip_prefix(b")]}'") {
            Some(rest) => rest.get(rest.iter().position(|byte| *byte == b'\n')?..)?,
            None => json,
        };
        let mut written: Written<List<Section, SECTIONS>> = serde_json::from_slice(json).ok()?;
        let mut map = Self::default();
        let mut lines = LINES;
        match written.sections.take() {
            None => map.add(written, Offset::default(), &mut lines)?,
            Some(sections) => {
                for section in sections.0 {
                    map.add(section.map, section.offset, &mut lines)?;
                }
            }
        }
        // Within a map they are in order, but nothing forces a game to write them so.
        map.segments
            .sort_by_key(|segment| (segment.row, segment.begin));
        map.segments.shrink_to_fit();
        Some(map)
    }

    /// Adds a map, whose places begin at `offset`.
    fn add<S>(&mut self, written: Written<S>, offset: Offset, lines: &mut usize) -> Option<()> {
        let bases = (
            u32::try_from(self.sources.len()).ok()?,
            u32::try_from(self.names.len()).ok()?,
        );
        let mut contents = written.contents.unwrap_or_default().0.into_iter();
        for file in written.sources.0 {
            let text = contents.next().and_then(|text| text.0);
            let file = file.0.unwrap_or_default();
            self.sources.push(Source {
                file: plain_name(&file).into(),
                text: text.and_then(|text| Text::new(text, lines)),
            });
        }
        let names = written.names.0.into_iter();
        self.names
            .extend(names.map(|name| name.0.unwrap_or_default()));
        if self.sources.len() > NAMES || self.names.len() > NAMES {
            return None;
        }
        self.decode(&written.mappings, offset, bases)
    }

    /// Decodes mappings. `bases` are the numbers of the first source and of the first name.
    fn decode(&mut self, mappings: &str, offset: Offset, bases: (u32, u32)) -> Option<()> {
        let [mut source, mut line, mut column, mut name] = [0_i64; 4];
        for (row, group) in (0_u32..).zip(mappings.split(';')) {
            let start = if row == 0 { offset.column } else { 0 };
            let row = row.saturating_add(offset.line);
            let mut begin = 0_i64;
            for segment in group.split(',').filter(|segment| !segment.is_empty()) {
                if self.segments.len() >= SEGMENTS {
                    return None;
                }
                let (fields, count) = vlq(segment)?;
                begin = begin.saturating_add(fields[0]);
                if count >= 4 {
                    source = source.saturating_add(fields[1]);
                    line = line.saturating_add(fields[2]);
                    column = column.saturating_add(fields[3]);
                }
                if count >= 5 {
                    name = name.saturating_add(fields[4]);
                }
                let index = |is_there: bool, value: i64, base: u32| {
                    let value = is_there.then(|| u32::try_from(value).ok()).flatten();
                    value.map_or(NONE, |value| value.saturating_add(base))
                };
                let place = |value: i64| u32::try_from(value.max(0)).unwrap_or(NONE);
                self.segments.push(Segment {
                    row,
                    begin: place(begin).saturating_add(start),
                    source: index(count >= 4, source, bases.0),
                    line: place(line),
                    column: place(column),
                    name: index(count >= 5, name, bases.1),
                });
            }
        }
        Some(())
    }

    /// Returns the original place of a line and column of the script, both counted from 1.
    pub fn find(&self, line: u32, column: u32) -> Option<Original<'_>> {
        let (row, column) = (line.checked_sub(1)?, column.checked_sub(1)?);
        let end = self
            .segments
            .partition_point(|segment| (segment.row, segment.begin) <= (row, column));
        let segment = self.segments.get(end.checked_sub(1)?)?;
        // A segment of an earlier line says nothing about this one.
        if segment.row != row {
            return None;
        }
        let source = self.sources.get(segment.source as usize)?;
        let name = self.names.get(segment.name as usize);
        (!source.file.is_empty()).then(|| Original {
            file: &source.file,
            line: segment.line.saturating_add(1),
            column: segment.column.saturating_add(1),
            name: name.map_or("", |name| name),
            text: source.text.as_ref(),
        })
    }

    /// Returns how many bytes it takes in memory, about.
    pub fn weight(&self) -> usize {
        let segments = self.segments.capacity() * size_of::<Segment>();
        let sources = self.sources.iter().map(|source| {
            let text = source.text.as_ref().map_or(0, Text::weight);
            size_of::<Source>() + source.file.len() + text
        });
        let names = self
            .names
            .iter()
            .map(|name| size_of::<Box<str>>() + name.len());
        segments + sources.sum::<usize>() + names.sum::<usize>()
    }
}

impl Text {
    /// Finds the lines of a text, unless it has more than `left`, which they are taken from.
    pub fn new(text: Box<str>, left: &mut usize) -> Option<Self> {
        u32::try_from(text.len()).ok()?;
        let ends = memchr_lines(&text);
        let mut starts = vec![0];
        for end in ends {
            if starts.len() >= *left {
                return None;
            }
            starts.push(end);
        }
        starts.shrink_to_fit();
        *left -= starts.len();
        Some(Self { text, starts })
    }

    /// Returns how many bytes it takes in memory, about.
    pub fn weight(&self) -> usize {
        self.text.len() + self.starts.capacity() * size_of::<u32>()
    }

    /// Returns a line, counted from 1, without its end.
    pub fn line(&self, number: u32) -> Option<&str> {
        let at = usize::try_from(number.checked_sub(1)?).ok()?;
        let start = *self.starts.get(at)? as usize;
        let end = self
            .starts
            .get(at + 1)
            .map_or(self.text.len(), |next| *next as usize);
        let line = self.text.get(start..end)?;
        Some(line.trim_end_matches(['\n', '\r']))
    }
}

/// Returns where the lines after the first one begin.
fn memchr_lines(text: &str) -> impl Iterator<Item = u32> {
    let ends = text.bytes().zip(1_u32..);
    ends.filter(|(byte, _)| *byte == b'\n')
        .map(|(_, next)| next)
}

/// Decodes the fields of a segment (Base64 VLQ), and returns how many there are.
fn vlq(segment: &str) -> Option<([i64; 5], usize)> {
    let (mut fields, mut count, mut value, mut shift) = ([0; 5], 0, 0_i64, 0_u32);
    for byte in segment.bytes() {
        let digit = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        // Numbers have at most 32 bits.
        if shift > 30 {
            return None;
        }
        value |= i64::from(digit & 31) << shift;
        shift += 5;
        if digit & 32 == 0 {
            let field = fields.get_mut(count)?;
            *field = if value & 1 == 1 {
                -(value >> 1)
            } else {
                value >> 1
            };
            (count, value, shift) = (count + 1, 0, 0);
        }
    }
    (shift == 0).then_some((fields, count))
}

/// Returns a source's name without the prefixes of bundlers.
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

    fn parse(json: &str) -> Option<SourceMap> {
        SourceMap::parse(json.as_bytes())
    }

    fn found(map: &SourceMap, line: u32, column: u32) -> Option<(String, u32, u32, String)> {
        let found = map.find(line, column)?;
        Some((
            found.file.into(),
            found.line,
            found.column,
            found.name.into(),
        ))
    }

    #[test]
    fn a_place_is_found_in_its_line_alone() {
        let map = parse(
            r#"{"version":3,"sources":["../src/main.ts"],"sourcesContent":["a\r\nb\nlose()\n"],
                "names":["lose"],"mappings":";AAEEA,IAAA,C"}"#,
        )
        .unwrap();
        let lose = Some(("src/main.ts".into(), 3, 3, "lose".into()));
        assert_eq!(found(&map, 2, 1), lose);
        assert_eq!(found(&map, 2, 4), lose);
        let other = Some(("src/main.ts".into(), 3, 3, String::new()));
        assert_eq!(found(&map, 2, 5), other);
        // The last segment has no source.
        assert_eq!(found(&map, 2, 900), None);
        for (line, column) in [(0, 0), (1, 1), (3, 1), (u32::MAX, u32::MAX)] {
            assert_eq!(found(&map, line, column), None, "{line}:{column}");
        }
        let text = map.find(2, 1).unwrap().text.unwrap();
        assert_eq!(text.line(1), Some("a"));
        assert_eq!(text.line(3), Some("lose()"));
        assert_eq!(text.line(4), Some(""));
        assert_eq!((text.line(0), text.line(5)), (None, None));
        assert!(map.weight() > 100);
    }

    #[test]
    fn sections_lie_where_their_offset_says() {
        let part = |source: &str| {
            format!(r#"{{"sources":["{source}"],"names":["n{source}"],"mappings":"AAAAA;AAAA"}}"#)
        };
        let map = parse(&format!(
            r#"{{"sections":[{{"offset":{{"line":0,"column":0}},"map":{}}},
                {{"offset":{{"line":1,"column":7}},"map":{}}}]}}"#,
            part("a"),
            part("b")
        ))
        .unwrap();
        let file = |line, column| found(&map, line, column).map(|found| (found.0, found.3));
        assert_eq!(file(1, 1), Some(("a".into(), "na".into())));
        assert_eq!(file(2, 7), Some(("a".into(), String::new())));
        assert_eq!(file(2, 8), Some(("b".into(), "nb".into())));
        assert_eq!(file(3, 1), Some(("b".into(), String::new())));
    }

    #[test]
    fn hostile_maps_are_refused_or_harmless() {
        for bad in [
            "",
            "[]",
            "{\"sources\":7}",
            "{\"mappings\":\"A!\"}",
            "{\"mappings\":\"gggggggggggggg\"}",
            "{\"mappings\":\"g\"}",
            "{\"mappings\":\"AAAAAA\"}",
            ")]}'",
        ] {
            assert!(parse(bad).is_none(), "{bad}");
        }
        assert!(
            parse(&format!(
                "{{\"mappings\":\"{}\"}}",
                "A,".repeat(SEGMENTS + 1)
            ))
            .is_none()
        );
        // The largest numbers, negative ones, and sources that are not there.
        for mappings in [
            "+/////D+/////D+/////D+/////D+/////D",
            "DDDDD,DDDDD",
            "AAAA",
            "AZAA",
        ] {
            let map = parse(&format!("{{\"mappings\":\"{mappings}\"}}")).unwrap();
            for column in [1, 7, u32::MAX] {
                assert_eq!(found(&map, 1, column), None, "{mappings}");
            }
        }
        // What is no text is not kept, and too long a list is not read to its end.
        let map =
            parse("{\"names\":[{\"\":{\"a\":[0]}},7,null,[1],true,1.5],\"mappings\":\"AAAAA\"}");
        assert_eq!(map.unwrap().names, vec![Box::from(""); 6]);
        let nested =
            "{\"sections\":[{\"offset\":{\"line\":0,\"column\":0},\"map\":{\"sections\":[]}}]}";
        assert!(parse(nested).unwrap().segments.is_empty());
        let long = |list: &str, element: &str| {
            let elements = vec![element; NAMES + 1].join(",");
            format!("{{\"{list}\":[{elements}]}}")
        };
        for list in ["names", "sources", "sourcesContent"] {
            assert!(parse(&long(list, "0")).is_none(), "{list}");
        }
        let many = "\\n".repeat(LINES + 5);
        let json = format!(
            "{{\"sources\":[\"a\"],\"sourcesContent\":[\"{many}\"],\"mappings\":\"AAAA\"}}"
        );
        assert!(parse(&json).unwrap().find(1, 1).unwrap().text.is_none());
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
