//! How every back end stores values that have no type of their own in a database.

use std::fmt::Display;

use platform_domain::audit::AuditKind;
use platform_domain::people::Outlet;
use platform_domain::project::{Frames, Inspection};
use platform_protocol::deploy_token::Scope;
use platform_protocol::names::Environment;
use platform_protocol::people::Role;
use serde_json::{Value, json};

use super::StoreError;

/// Returns the bytes of a SHA-256 in lower-case hex, as databases store it; `None` if it is not one.
#[must_use]
pub fn read_sha256(hex: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    let read = base16ct::lower::decode(hex, &mut bytes).ok()?.len();
    (read == bytes.len()).then_some(bytes)
}

/// Returns a stored SHA-256 in lower-case hex.
#[must_use]
pub fn write_sha256(stored: &[u8]) -> String {
    base16ct::lower::encode_string(stored)
}

/// Returns the stored form of who may frame an environment: a word, a list of origins, or nothing.
#[must_use]
pub fn write_frames(frames: &Frames) -> Option<String> {
    match frames {
        Frames::Any => None,
        Frames::Platform => Some(json!("platform").to_string()),
        Frames::Origins(origins) => Some(json!(origins).to_string()),
    }
}

/// Reads the stored form of who may frame an environment of the project `slug`.
///
/// # Errors
/// [`StoreError::Corrupt`]
pub fn read_frames(kept: Option<&str>, slug: &str) -> Result<Frames, StoreError> {
    let Some(kept) = kept else {
        return Ok(Frames::Any);
    };
    let kept: Option<Value> = serde_json::from_str(kept).ok();
    match kept {
        Some(Value::String(word)) if word == "platform" => Some(Frames::Platform),
        Some(Value::Array(origins)) => origins
            .into_iter()
            .map(|origin| origin.as_str().map(str::to_owned))
            .collect::<Option<Vec<String>>>()
            .map(Frames::Origins),
        _ => None,
    }
    .ok_or_else(|| StoreError::Corrupt {
        table: "environment_settings",
        column: "frame_ancestors",
        row: slug.to_owned(),
    })
}

/// Reads the name of an environment in the row `row` of deployments.
///
/// # Errors
/// [`StoreError::Corrupt`]
pub fn read_environment(
    name: &str,
    row: impl FnOnce() -> String,
) -> Result<Environment, StoreError> {
    Environment::ALL
        .into_iter()
        .find(|environment| environment.as_str() == name)
        .ok_or_else(|| StoreError::Corrupt {
            table: "deployments",
            column: "environment",
            row: row(),
        })
}

/// Returns an inspection as JSON. It holds only lists and texts, so this cannot fail.
#[must_use]
pub fn write_inspection(inspection: &Inspection) -> String {
    json!(inspection).to_string()
}

/// Reads the inspection in the row `row` of deployments, if there is one.
///
/// # Errors
/// [`StoreError::Corrupt`]
pub fn read_inspection(
    kept: Option<&str>,
    row: &dyn Display,
) -> Result<Option<Inspection>, StoreError> {
    let read = kept.map(serde_json::from_str).transpose();
    read.map_err(|_| StoreError::Corrupt {
        table: "deployments",
        column: "inspection",
        row: row.to_string(),
    })
}

/// Returns the stored form of the tags that are set for a game.
#[must_use]
pub fn write_tags(tags: Option<&[String]>) -> Option<String> {
    tags.map(|tags| json!(tags).to_string())
}

/// Reads the tags that are set for the game of the project `slug`.
///
/// # Errors
/// [`StoreError::Corrupt`]
pub fn read_tags(kept: Option<&str>, slug: &str) -> Result<Option<Vec<String>>, StoreError> {
    let read = kept.map(serde_json::from_str).transpose();
    read.map_err(|_| StoreError::Corrupt {
        table: "listings",
        column: "tags",
        row: slug.to_owned(),
    })
}

/// Returns the detail of the event that a listing was changed.
#[must_use]
pub const fn listing_detail(listed: bool) -> &'static str {
    if listed { "listing on" } else { "listing off" }
}

/// Returns the stored form of a deploy token's scopes: their names with spaces between.
#[must_use]
pub fn write_scopes(scopes: &[Scope]) -> String {
    let names: Vec<&str> = scopes.iter().map(|scope| scope.as_str()).collect();
    names.join(" ")
}

/// Reads the scopes in the row `row` of deploy tokens.
///
/// # Errors
/// [`StoreError::Corrupt`]
pub fn read_scopes(kept: &str, row: &dyn Display) -> Result<Vec<Scope>, StoreError> {
    let scopes: Option<Vec<Scope>> = kept.split(' ').map(Scope::from_name).collect();
    scopes.ok_or_else(|| StoreError::Corrupt {
        table: "deploy_tokens",
        column: "scopes",
        row: row.to_string(),
    })
}

/// Reads the role in a row of `table`.
///
/// # Errors
/// [`StoreError::Corrupt`]
pub fn read_role(name: &str, table: &'static str) -> Result<Role, StoreError> {
    Role::from_name(name).ok_or_else(|| StoreError::Corrupt {
        table,
        column: "role",
        row: name.to_owned(),
    })
}

/// Returns kind and detail of the event for a member whose role was `before` and is `after`; `None`
/// if nothing changed. `left` is what the member has set that stays.
#[must_use]
pub fn member_event(
    before: Option<Role>,
    after: Option<Role>,
    left: &[Outlet],
) -> Option<(AuditKind, String)> {
    let (kind, mut detail) = role_event(before, after)?;
    for (index, outlet) in left.iter().enumerate() {
        detail.push_str(if index == 0 { "; had set " } else { ", " });
        detail.push_str(outlet.words());
    }
    Some((kind, detail))
}

fn role_event(before: Option<Role>, after: Option<Role>) -> Option<(AuditKind, String)> {
    match (before.map(Role::as_str), after.map(Role::as_str)) {
        (None, Some(role)) => Some((AuditKind::MemberJoined, role.to_owned())),
        (Some(role), None) => Some((AuditKind::MemberRemoved, role.to_owned())),
        (Some(before), Some(after)) if before != after => {
            Some((AuditKind::MemberRoleChanged, format!("{before} to {after}")))
        }
        _ => None,
    }
}
