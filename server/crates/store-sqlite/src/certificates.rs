//! Certificates of an ACME server, and what is going on with them.

use async_trait::async_trait;
use platform_domain::certificate::{
    CertificateSummary, LONGEST_BUDGET_PERIOD, ORDER_HOLDS, OrderBudget, OrderTurn, StoredAccount,
    StoredCertificate, order_turn, wait_after,
};
use platform_domain::clock::Millis;
use platform_store::{CertificateStore, StoreError};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::error::Error;
use super::store::SqliteStore;

#[async_trait]
impl CertificateStore for SqliteStore {
    async fn find_certificate(&self, name: &str) -> Result<Option<StoredCertificate>, StoreError> {
        self.main.read(|connection| find(connection, name))
    }

    async fn list_certificates(&self) -> Result<Vec<CertificateSummary>, StoreError> {
        self.main.read_much(list).await
    }

    async fn put_certificate(&self, certificate: StoredCertificate) -> Result<(), StoreError> {
        self.main
            .write(move |connection| put(connection, &certificate))
            .await
    }

    async fn remove_certificate(&self, name: &str) -> Result<(), StoreError> {
        let name = name.to_owned();
        self.main
            .write(move |connection| {
                for sql in [
                    "DELETE FROM certificates WHERE name = ?1",
                    "DELETE FROM certificate_orders WHERE name = ?1",
                ] {
                    connection.prepare_cached(sql)?.execute([&name])?;
                }
                Ok(())
            })
            .await
    }

    async fn begin_order(
        &self,
        name: &str,
        known: Option<Millis>,
        budgets: &[OrderBudget],
        now: Millis,
    ) -> Result<OrderTurn, StoreError> {
        let (name, budgets) = (name.to_owned(), budgets.to_vec());
        self.main
            .write(move |connection| begin_order(connection, &name, known, &budgets, now))
            .await
    }

    async fn fail_order(
        &self,
        name: &str,
        budgets: &[OrderBudget],
        now: Millis,
    ) -> Result<Millis, StoreError> {
        let (name, budgets) = (name.to_owned(), budgets.to_vec());
        self.main
            .write(move |connection| fail_order(connection, &name, &budgets, now))
            .await
    }

    async fn put_challenge(
        &self,
        name: &str,
        digest: [u8; 32],
        until: Millis,
    ) -> Result<(), StoreError> {
        let name = name.to_owned();
        self.main
            .write(move |connection| {
                connection
                    .prepare_cached(
                        "INSERT INTO certificate_orders (name, challenge, challenge_until)
                         VALUES (?1, ?2, ?3)
                         ON CONFLICT (name) DO UPDATE SET challenge = excluded.challenge,
                             challenge_until = excluded.challenge_until",
                    )?
                    .execute(params![name, digest, until])?;
                Ok(())
            })
            .await
    }

    async fn find_challenge(
        &self,
        name: &str,
        now: Millis,
    ) -> Result<Option<[u8; 32]>, StoreError> {
        self.main.read(|connection| {
            let found = connection
                .prepare_cached(
                    "SELECT challenge FROM certificate_orders
                     WHERE name = ?1 AND challenge IS NOT NULL AND challenge_until > ?2",
                )?
                .query_row(params![name, now], |row| row.get(0))
                .optional()?;
            Ok(found)
        })
    }

    async fn find_acme_account(
        &self,
        directory: &str,
    ) -> Result<Option<StoredAccount>, StoreError> {
        self.main.read(|connection| {
            let found = connection
                .prepare_cached(&format!("{SELECT_ACCOUNTS} WHERE directory = ?1"))?
                .query_row([directory], account)
                .optional()?;
            Ok(found)
        })
    }

    async fn list_acme_accounts(&self) -> Result<Vec<StoredAccount>, StoreError> {
        self.main.read(|connection| {
            let mut statement =
                connection.prepare_cached(&format!("{SELECT_ACCOUNTS} ORDER BY directory"))?;
            let accounts = statement.query_map([], account)?;
            Ok(accounts.collect::<Result<_, _>>()?)
        })
    }

    async fn put_acme_account(
        &self,
        account: StoredAccount,
        before: Option<Vec<u8>>,
    ) -> Result<bool, StoreError> {
        self.main
            .write(move |connection| put_account(connection, &account, before.as_deref()))
            .await
    }
}

fn find(connection: &Connection, name: &str) -> Result<Option<StoredCertificate>, Error> {
    let found = connection
        .prepare_cached(
            "SELECT name, directory, chain, private, sealed, valid_from, valid_until, obtained_at
             FROM certificates WHERE name = ?1",
        )?
        .query_row([name], |row| {
            Ok(StoredCertificate {
                name: row.get(0)?,
                directory: row.get(1)?,
                chain: row.get(2)?,
                private: row.get(3)?,
                sealed: row.get(4)?,
                valid_from: row.get(5)?,
                valid_until: row.get(6)?,
                obtained_at: row.get(7)?,
            })
        })
        .optional()?;
    Ok(found)
}

fn list(connection: &Connection) -> Result<Vec<CertificateSummary>, Error> {
    let mut statement = connection.prepare_cached(
        "SELECT name, directory, valid_from, valid_until, obtained_at
         FROM certificates ORDER BY name",
    )?;
    let found = statement.query_map([], |row| {
        Ok(CertificateSummary {
            name: row.get(0)?,
            directory: row.get(1)?,
            valid_from: row.get(2)?,
            valid_until: row.get(3)?,
            obtained_at: row.get(4)?,
        })
    })?;
    Ok(found.collect::<Result<_, _>>()?)
}

fn put(connection: &Connection, one: &StoredCertificate) -> Result<(), Error> {
    // The key before it is overwritten with zeros, not only freed.
    connection.pragma_update(None, "secure_delete", true)?;
    connection
        .prepare_cached(
            "INSERT INTO certificates
                 (name, directory, chain, private, sealed, valid_from, valid_until, obtained_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
             ON CONFLICT (name) DO UPDATE SET directory = excluded.directory,
                 chain = excluded.chain, private = excluded.private, sealed = excluded.sealed,
                 valid_from = excluded.valid_from, valid_until = excluded.valid_until,
                 obtained_at = excluded.obtained_at
             WHERE excluded.obtained_at >= certificates.obtained_at",
        )?
        .execute(params![
            one.name,
            one.directory,
            one.chain,
            one.private,
            one.sealed,
            one.valid_from,
            one.valid_until,
            one.obtained_at
        ])?;
    connection
        .prepare_cached("DELETE FROM certificate_orders WHERE name = ?1")?
        .execute([&one.name])?;
    Ok(())
}

fn begin_order(
    connection: &Connection,
    name: &str,
    known: Option<Millis>,
    budgets: &[OrderBudget],
    now: Millis,
) -> Result<OrderTurn, Error> {
    let there: Option<Millis> = connection
        .prepare_cached("SELECT obtained_at FROM certificates WHERE name = ?1")?
        .query_row([name], |row| row.get(0))
        .optional()?;
    if there > known {
        return Ok(OrderTurn::Replaced);
    }
    forget_what_has_ended(connection, now)?;
    let mut counted = Vec::new();
    for budget in budgets {
        counted.push((budget, times(connection, &budget.counter)?));
    }
    let held: (Option<Millis>, Option<Millis>) = connection
        .prepare_cached("SELECT busy_until, not_before FROM certificate_orders WHERE name = ?1")?
        .query_row([name], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?
        .unwrap_or_default();
    let turn = order_turn(&counted, held, now);
    if turn == OrderTurn::Begun {
        for budget in budgets {
            connection
                .prepare_cached(
                    "INSERT INTO certificate_order_times (name, begun_at) VALUES (?1, ?2)",
                )?
                .execute(params![budget.counter, now])?;
        }
        connection
            .prepare_cached(
                "INSERT INTO certificate_orders (name, busy_until) VALUES (?1, ?2)
                 ON CONFLICT (name) DO UPDATE SET busy_until = excluded.busy_until",
            )?
            .execute(params![name, now + ORDER_HOLDS])?;
    }
    Ok(turn)
}

/// Removes orders that no budget counts any more, and challenges of names for which the certificate has another
/// name.
fn forget_what_has_ended(connection: &Connection, now: Millis) -> Result<(), Error> {
    connection
        .prepare_cached("DELETE FROM certificate_order_times WHERE begun_at <= ?1")?
        .execute([now - LONGEST_BUDGET_PERIOD])?;
    connection
        .prepare_cached(
            "DELETE FROM certificate_orders
             WHERE challenge_until <= ?1 AND busy_until IS NULL AND failures = 0",
        )?
        .execute([now])?;
    Ok(())
}

/// The times of the orders under a counter, oldest first.
fn times(connection: &Connection, counter: &str) -> Result<Vec<Millis>, Error> {
    let mut statement = connection.prepare_cached(
        "SELECT begun_at FROM certificate_order_times WHERE name = ?1 ORDER BY begun_at, id",
    )?;
    let times = statement.query_map([counter], |row| row.get(0))?;
    Ok(times.collect::<Result<_, _>>()?)
}

fn fail_order(
    connection: &Connection,
    name: &str,
    budgets: &[OrderBudget],
    now: Millis,
) -> Result<Millis, Error> {
    for budget in budgets.iter().filter(|budget| !budget.counts_failures) {
        connection
            .prepare_cached(
                "DELETE FROM certificate_order_times WHERE id =
                     (SELECT max(id) FROM certificate_order_times WHERE name = ?1)",
            )?
            .execute([&budget.counter])?;
    }
    let failures: u32 = connection
        .prepare_cached(
            "INSERT INTO certificate_orders (name, failures) VALUES (?1, 1)
             ON CONFLICT (name) DO UPDATE SET failures = failures + 1, busy_until = NULL,
                 challenge = NULL, challenge_until = NULL
             RETURNING failures",
        )?
        .query_row([name], |row| row.get(0))?;
    let not_before = now + wait_after(failures);
    connection
        .prepare_cached("UPDATE certificate_orders SET not_before = ?2 WHERE name = ?1")?
        .execute(params![name, not_before])?;
    Ok(not_before)
}

const SELECT_ACCOUNTS: &str =
    "SELECT directory, credentials, sealed, created_at FROM acme_accounts";

fn account(row: &Row<'_>) -> rusqlite::Result<StoredAccount> {
    Ok(StoredAccount {
        directory: row.get(0)?,
        credentials: row.get(1)?,
        sealed: row.get(2)?,
        created_at: row.get(3)?,
    })
}

fn put_account(
    connection: &Connection,
    account: &StoredAccount,
    before: Option<&[u8]>,
) -> Result<bool, Error> {
    connection.pragma_update(None, "secure_delete", true)?;
    let values = params![
        account.directory,
        account.credentials,
        account.sealed,
        account.created_at
    ];
    let changed = match before {
        None => connection
            .prepare_cached(
                "INSERT INTO acme_accounts (directory, credentials, sealed, created_at)
                 VALUES (?1, ?2, ?3, ?4) ON CONFLICT (directory) DO NOTHING",
            )?
            .execute(values)?,
        Some(before) => connection
            .prepare_cached(
                "UPDATE acme_accounts SET credentials = ?2, sealed = ?3, created_at = ?4
                 WHERE directory = ?1 AND credentials = ?5",
            )?
            .execute(params![
                account.directory,
                account.credentials,
                account.sealed,
                account.created_at,
                before
            ])?,
    };
    Ok(changed > 0)
}
