//! The file with everything that the platform knows about a player. `docs/privacy.md` documents it.

use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::clock::Millis;
use crate::domain::date::rfc3339;
use crate::store::exports::ExportedSection;
use crate::store::{Store, StoreError};

/// The version of the file's shape. A new section or field does not change it.
const FORMAT: u32 = 1;
/// The section that is one object.
const PLAYER: &str = "player";

/// Returns the file; `None` if there is no such player.
///
/// # Errors
/// Errors of the store.
pub async fn file(
    store: &dyn Store,
    player: Uuid,
    now: Millis,
) -> Result<Option<String>, StoreError> {
    let Some(sections) = store.export_player(player).await? else {
        return Ok(None);
    };
    let written = serde_json::to_string_pretty(&content(sections, now));
    let written = written.map_err(|error| StoreError::Database(Box::new(error)))?;
    Ok(Some(written + "\n"))
}

/// Returns what is in the file: a member for each section, and which of them do not have all their
/// rows.
fn content(sections: Vec<ExportedSection>, now: Millis) -> Value {
    let mut object = Map::new();
    object.insert("format".to_owned(), json!(FORMAT));
    object.insert("exported_at".to_owned(), json!(rfc3339(now)));
    let cut: Vec<&str> = sections
        .iter()
        .filter(|section| section.is_cut)
        .map(|section| section.name)
        .collect();
    object.insert("incomplete_sections".to_owned(), json!(cut));
    for section in sections {
        let rows = if section.name == PLAYER {
            section.rows.into_iter().next().unwrap_or_default()
        } else {
            Value::Array(section.rows)
        };
        object.insert(section.name.to_owned(), rows);
    }
    Value::Object(object)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_player_is_an_object_and_every_other_section_a_list() {
        let section = |name, rows, is_cut| ExportedSection { name, rows, is_cut };
        let sections = vec![
            section(PLAYER, vec![json!({ "id": "1" })], false),
            section("sessions", Vec::new(), false),
            section("events", vec![json!({ "kind": "renamed" })], true),
        ];
        let expected = json!({
            "format": 1,
            "exported_at": "1970-01-01T00:00:00Z",
            "incomplete_sections": ["events"],
            "player": { "id": "1" },
            "sessions": [],
            "events": [{ "kind": "renamed" }],
        });
        assert_eq!(content(sections, 0), expected);
    }
}
