//! Signing keys.

use rusqlite::{Connection, OptionalExtension, params};

use super::audit::{self, Entry};
use crate::domain::audit::{AuditKind, By};
use crate::domain::key::StoredKey;
use crate::store::StoreError;

pub(super) fn list_keys(connection: &Connection) -> Result<Vec<StoredKey>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT kid, private, sealed, created_at, signs_from FROM signing_keys ORDER BY position",
    )?;
    let keys = statement
        .query_map([], |row| {
            Ok(StoredKey {
                kid: row.get(0)?,
                private: row.get(1)?,
                sealed: row.get(2)?,
                created_at: row.get(3)?,
                signs_from: row.get(4)?,
            })
        })?
        .collect::<Result<_, _>>()?;
    Ok(keys)
}

pub(super) fn add_key(
    connection: &Connection,
    key: &StoredKey,
    after: Option<&str>,
    by: By,
) -> Result<bool, StoreError> {
    let newest: Option<String> = connection
        .prepare_cached("SELECT kid FROM signing_keys ORDER BY position DESC LIMIT 1")?
        .query_row([], |row| row.get(0))
        .optional()?;
    if newest.as_deref() != after {
        return Ok(false);
    }
    connection
        .prepare_cached(
            "INSERT INTO signing_keys (kid, private, sealed, created_at, signs_from)
             VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute(params![
            key.kid,
            key.private,
            key.sealed,
            key.created_at,
            key.signs_from
        ])?;
    let event = Entry::of(AuditKind::KeyAdded, key.created_at)
        .subject(&key.kid)
        .by(by);
    audit::add(connection, &event)?;
    Ok(true)
}

pub(super) fn remove_keys(connection: &Connection, kids: &[String]) -> Result<(), StoreError> {
    let mut remove = connection.prepare_cached("DELETE FROM signing_keys WHERE kid = ?1")?;
    for kid in kids {
        remove.execute([kid])?;
    }
    Ok(())
}
