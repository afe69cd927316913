//! Signing keys.

use async_trait::async_trait;
use platform_domain::audit::{AuditKind, By};
use platform_domain::clock::Millis;
use platform_domain::key::{Revocation, StoredKey};
use platform_store::{KeyStore, StoreError};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::audit::{self, Entry};
use super::error::Error;
use super::store::SqliteStore;

#[async_trait]
impl KeyStore for SqliteStore {
    async fn list_keys(&self) -> Result<Vec<StoredKey>, StoreError> {
        self.main.read_much(list_keys).await
    }

    async fn add_key(
        &self,
        key: StoredKey,
        after: Option<&str>,
        by: By,
    ) -> Result<bool, StoreError> {
        let after = after.map(str::to_owned);
        self.main
            .write(move |connection| add_key(connection, &key, after.as_deref(), by))
            .await
    }

    async fn remove_keys(&self, kids: &[String]) -> Result<(), StoreError> {
        let kids = kids.to_vec();
        self.main
            .write(move |connection| remove_keys(connection, &kids))
            .await
    }

    async fn revoke_key(
        &self,
        kid: &str,
        successor: Option<StoredKey>,
        after: Option<&str>,
        at: Millis,
        by: By,
    ) -> Result<Revocation, StoreError> {
        let (kid, after) = (kid.to_owned(), after.map(str::to_owned));
        self.main
            .write(move |connection| {
                let after = after.as_deref();
                revoke_key(connection, &kid, successor.as_ref(), after, at, by)
            })
            .await
    }

    async fn reseal_keys(&self, keys: Vec<(String, Vec<u8>)>) -> Result<(), StoreError> {
        self.main
            .write(move |connection| reseal_keys(connection, &keys))
            .await
    }

    async fn raise_token_life(&self, millis: Millis) -> Result<(), StoreError> {
        self.main
            .write(move |connection| raise_token_life(connection, millis))
            .await
    }

    async fn shared_secret(&self, name: &str, proposed: [u8; 32]) -> Result<[u8; 32], StoreError> {
        let name = name.to_owned();
        self.main
            .write(move |connection| {
                // At all starts but the first, nothing is written.
                let sql = "INSERT INTO shared_secrets (name, secret) VALUES (?1, ?2)
                     ON CONFLICT (name) DO NOTHING";
                connection.execute(sql, params![name, proposed])?;
                let sql = "SELECT secret FROM shared_secrets WHERE name = ?1";
                Ok(connection.query_row(sql, [&name], |row| row.get(0))?)
            })
            .await
    }
}

pub(super) fn list_keys(connection: &Connection) -> Result<Vec<StoredKey>, Error> {
    let mut statement = connection.prepare_cached(
        "SELECT kid, private, sealed, created_at, signs_from, token_millis
         FROM signing_keys ORDER BY position",
    )?;
    let keys = statement
        .query_map([], |row| {
            Ok(StoredKey {
                kid: row.get(0)?,
                private: row.get(1)?,
                sealed: row.get(2)?,
                created_at: row.get(3)?,
                signs_from: row.get(4)?,
                token_millis: row.get(5)?,
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
) -> Result<bool, Error> {
    if newest(connection)?.as_deref() != after {
        return Ok(false);
    }
    insert(connection, key, by)?;
    Ok(true)
}

/// The key that was added last.
fn newest(connection: &Connection) -> Result<Option<String>, Error> {
    Ok(connection
        .prepare_cached("SELECT kid FROM signing_keys ORDER BY position DESC LIMIT 1")?
        .query_row([], |row| row.get(0))
        .optional()?)
}

fn insert(connection: &Connection, key: &StoredKey, by: By) -> Result<(), Error> {
    connection
        .prepare_cached(
            "INSERT INTO signing_keys (kid, private, sealed, created_at, signs_from, token_millis)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute(params![
            key.kid,
            key.private,
            key.sealed,
            key.created_at,
            key.signs_from,
            key.token_millis
        ])?;
    let event = Entry::of(AuditKind::KeyAdded, key.created_at)
        .subject(&key.kid)
        .by(by);
    audit::add(connection, &event)?;
    Ok(())
}

pub(super) fn revoke_key(
    connection: &Connection,
    kid: &str,
    successor: Option<&StoredKey>,
    after: Option<&str>,
    at: Millis,
    by: By,
) -> Result<Revocation, Error> {
    if newest(connection)?.as_deref() != after {
        return Ok(Revocation::Changed);
    }
    // Deleted data is overwritten with zeros, not only freed.
    connection.pragma_update(None, "secure_delete", true)?;
    let removed = connection
        .prepare_cached("DELETE FROM signing_keys WHERE kid = ?1")?
        .execute([kid])?;
    if removed == 0 {
        return Ok(Revocation::Missing);
    }
    let event = Entry::of(AuditKind::KeyRevoked, at)
        .subject(kid)
        .by(by.clone());
    audit::add(connection, &event)?;
    if let Some(successor) = successor {
        insert(connection, successor, by)?;
    }
    Ok(Revocation::Done)
}

pub(super) fn reseal_keys(
    connection: &Connection,
    keys: &[(String, Vec<u8>)],
) -> Result<(), Error> {
    connection.pragma_update(None, "secure_delete", true)?;
    let mut update = connection
        .prepare_cached("UPDATE signing_keys SET private = ?2, sealed = 1 WHERE kid = ?1")?;
    for (kid, private) in keys {
        update.execute(params![kid, private])?;
    }
    Ok(())
}

pub(super) fn raise_token_life(connection: &Connection, millis: Millis) -> Result<(), Error> {
    connection
        .prepare_cached("UPDATE signing_keys SET token_millis = ?1 WHERE token_millis < ?1")?
        .execute([millis])?;
    Ok(())
}

pub(super) fn remove_keys(connection: &Connection, kids: &[String]) -> Result<(), Error> {
    let mut remove = connection.prepare_cached("DELETE FROM signing_keys WHERE kid = ?1")?;
    for kid in kids {
        remove.execute([kid])?;
    }
    Ok(())
}
