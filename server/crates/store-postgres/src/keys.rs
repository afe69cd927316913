//! Signing keys.

use async_trait::async_trait;
use platform_domain::audit::{AuditKind, By};
use platform_domain::clock::Millis;
use platform_domain::key::{Revocation, StoredKey};
use platform_store::{KeyStore, StoreError};

use super::audit::{self, Entry};
use super::error::Error;
use super::rows::{bytes, get};
use super::store::PostgresStore;
use super::transaction::Transaction;

#[async_trait]
impl KeyStore for PostgresStore {
    async fn list_keys(&self) -> Result<Vec<StoredKey>, StoreError> {
        let rows = self
            .main
            .rows(
                "SELECT kid, private, sealed, created_at, signs_from, token_millis
                 FROM signing_keys ORDER BY position",
                &[],
            )
            .await?;
        let keys = rows.iter().map(|row| {
            Ok(StoredKey {
                kid: get(row, 0)?,
                private: get(row, 1)?,
                sealed: get(row, 2)?,
                created_at: get(row, 3)?,
                signs_from: get(row, 4)?,
                token_millis: get(row, 5)?,
            })
        });
        Ok(keys.collect::<Result<_, Error>>()?)
    }

    async fn add_key(
        &self,
        key: StoredKey,
        after: Option<&str>,
        by: By,
    ) -> Result<bool, StoreError> {
        transact!(self.main, transaction => add_key(&transaction, &key, after, &by))
    }

    async fn shared_secret(&self, name: &str, proposed: [u8; 32]) -> Result<[u8; 32], StoreError> {
        let rows = self
            .main
            .write(
                // The row that is there is returned, and stays as it is.
                "INSERT INTO shared_secrets (name, secret) VALUES ($1, $2)
                 ON CONFLICT (name) DO UPDATE SET name = excluded.name RETURNING secret",
                &[&name, &proposed.as_slice()],
            )
            .await?;
        let table = "shared_secrets";
        let row = rows.first().ok_or(StoreError::Missing { table })?;
        Ok(bytes(row, 0, table, "secret")?)
    }

    async fn remove_keys(&self, kids: &[String]) -> Result<(), StoreError> {
        transact!(self.main, transaction => remove_keys(&transaction, kids))
    }

    async fn revoke_key(
        &self,
        kid: &str,
        successor: Option<StoredKey>,
        after: Option<&str>,
        at: Millis,
        by: By,
    ) -> Result<Revocation, StoreError> {
        let successor = successor.as_ref();
        transact!(self.main, transaction =>
            revoke_key(&transaction, kid, successor, after, (at, &by)))
    }

    async fn reseal_keys(&self, keys: Vec<(String, Vec<u8>)>) -> Result<(), StoreError> {
        transact!(self.main, transaction => reseal_keys(&transaction, &keys))
    }

    async fn raise_token_life(&self, millis: Millis) -> Result<(), StoreError> {
        self.main
            .write(
                "UPDATE signing_keys SET token_millis = $1 WHERE token_millis < $1",
                &[&millis],
            )
            .await
            .map(drop)
    }
}

/// Locks the keys, so that they do not change until the transaction ends. Returns the key that was
/// added last.
async fn lock_newest(transaction: &Transaction) -> Result<Option<String>, Error> {
    transaction
        .execute(
            "SELECT 1 FROM locks WHERE name = 'signing_keys' FOR UPDATE",
            &[],
        )
        .await?;
    let row = transaction
        .row(
            "SELECT kid FROM signing_keys ORDER BY position DESC LIMIT 1",
            &[],
        )
        .await?;
    row.as_ref().map(|row| get(row, 0)).transpose()
}

async fn add_key(
    transaction: &Transaction,
    key: &StoredKey,
    after: Option<&str>,
    by: &By,
) -> Result<bool, Error> {
    if lock_newest(transaction).await?.as_deref() != after {
        return Ok(false);
    }
    insert(transaction, key, after, by).await?;
    Ok(true)
}

async fn insert(
    transaction: &Transaction,
    key: &StoredKey,
    follows: Option<&str>,
    by: &By,
) -> Result<(), Error> {
    transaction
        .execute(
            "INSERT INTO signing_keys
                 (kid, follows, private, sealed, created_at, signs_from, token_millis)
             VALUES ($1, $2, $3, $4, $5, $6, $7)",
            &[
                &key.kid,
                &follows.unwrap_or_default(),
                &key.private,
                &key.sealed,
                &key.created_at,
                &key.signs_from,
                &key.token_millis,
            ],
        )
        .await?;
    let event = Entry::of(AuditKind::KeyAdded, key.created_at)
        .subject(&key.kid)
        .by(by);
    audit::add(transaction, &event).await
}

async fn revoke_key(
    transaction: &Transaction,
    kid: &str,
    successor: Option<&StoredKey>,
    after: Option<&str>,
    (at, by): (Millis, &By),
) -> Result<Revocation, Error> {
    if lock_newest(transaction).await?.as_deref() != after {
        return Ok(Revocation::Changed);
    }
    let removed = transaction
        .execute("DELETE FROM signing_keys WHERE kid = $1", &[&kid])
        .await?;
    if removed == 0 {
        return Ok(Revocation::Missing);
    }
    let event = Entry::of(AuditKind::KeyRevoked, at).subject(kid).by(by);
    audit::add(transaction, &event).await?;
    if let Some(successor) = successor {
        insert(transaction, successor, after, by).await?;
    }
    Ok(Revocation::Done)
}

async fn reseal_keys(transaction: &Transaction, keys: &[(String, Vec<u8>)]) -> Result<(), Error> {
    lock_newest(transaction).await?;
    for (kid, private) in keys {
        transaction
            .execute(
                "UPDATE signing_keys SET private = $2, sealed = true WHERE kid = $1",
                &[kid, private],
            )
            .await?;
    }
    Ok(())
}

async fn remove_keys(transaction: &Transaction, kids: &[String]) -> Result<(), Error> {
    lock_newest(transaction).await?;
    transaction
        .execute("DELETE FROM signing_keys WHERE kid = ANY($1)", &[&kids])
        .await
        .map(drop)
}
