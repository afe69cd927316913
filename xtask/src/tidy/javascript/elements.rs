//! Generates types for the elements that the console's modules look up by id, from the templates of
//! its pages: an id that no page has is a type error.

use std::collections::{BTreeMap, BTreeSet};

/// The element types by id, as TypeScript. An id that different elements have in several pages gets
/// a union of their types.
pub(super) fn types(pages: &[String]) -> String {
    let mut tags: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (id, tag) in pages.iter().flat_map(|page| with_ids(page)) {
        tags.entry(id).or_default().insert(tag);
    }
    let mut text = "// Made by `cargo xtask tidy` from the templates in www/pages.\n\n/** What `byId` returns for each id. */\ninterface PageElements {\n".to_owned();
    for (id, tags) in tags {
        let types: Vec<String> = tags
            .into_iter()
            .map(|tag| format!("HTMLElementTagNameMap[{tag:?}]"))
            .collect();
        text.push_str(&format!("  {id:?}: {};\n", types.join(" | ")));
    }
    text + "}\n"
}

/// The id and the tag name of each element with an id. An id that the template composes is left
/// out.
fn with_ids(page: &str) -> impl Iterator<Item = (&str, &str)> {
    page.split('<').skip(1).filter_map(|tag| {
        let tag = tag.split('>').next()?;
        let (name, attributes) = tag.split_once(|c: char| c.is_ascii_whitespace())?;
        let (at, start) = attributes.match_indices("id=\"").find(|(at, _)| {
            let before = attributes.get(..*at).unwrap_or_default();
            before.is_empty() || before.ends_with(|c: char| c.is_ascii_whitespace())
        })?;
        let (id, _) = attributes.get(at + start.len()..)?.split_once('"')?;
        (!id.contains('{')).then_some((id, name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_id_has_the_type_of_its_element() {
        let pages = [
            "<p id=\"one\">a < b</p><input data-grid=\"two\"\n  id=\"two\" hidden>".to_owned(),
            "<a href=\"#\" id=\"two\">x</a><b id=\"{{ made }}\"></b><i>y</i>".to_owned(),
        ];
        let found: Vec<_> = pages.iter().flat_map(|page| with_ids(page)).collect();
        assert_eq!(found, [("one", "p"), ("two", "input"), ("two", "a")]);
        let text = types(&pages);
        assert!(text.contains(
            "  \"two\": HTMLElementTagNameMap[\"a\"] | HTMLElementTagNameMap[\"input\"];\n"
        ));
    }
}
