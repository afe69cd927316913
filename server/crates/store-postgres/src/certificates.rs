//! Certificates of an ACME server, and what is going on with them.

use async_trait::async_trait;
use platform_domain::certificate::{
    CertificateSummary, LONGEST_BUDGET_PERIOD, ORDER_HOLDS, OrderBudget, OrderTurn, StoredAccount,
    StoredCertificate, order_turn, wait_after,
};
use platform_domain::clock::Millis;
use platform_store::{CertificateStore, StoreError};
use tokio_postgres::Row;

use super::error::Error;
use super::rows::{get, optional_bytes};
use super::store::PostgresStore;
use super::transaction::Transaction;

#[async_trait]
impl CertificateStore for PostgresStore {
    async fn find_certificate(&self, name: &str) -> Result<Option<StoredCertificate>, StoreError> {
        let row = self
            .main
            .row(
                "SELECT name, directory, chain, private, sealed, valid_from, valid_until,
                     obtained_at
                 FROM certificates WHERE name = $1",
                &[&name],
            )
            .await?;
        Ok(row.as_ref().map(certificate).transpose()?)
    }

    async fn list_certificates(&self) -> Result<Vec<CertificateSummary>, StoreError> {
        let rows = self
            .main
            .rows(
                "SELECT name, directory, valid_from, valid_until, obtained_at
                 FROM certificates ORDER BY name",
                &[],
            )
            .await?;
        let found = rows.iter().map(|row| {
            Ok(CertificateSummary {
                name: get(row, 0)?,
                directory: get(row, 1)?,
                valid_from: get(row, 2)?,
                valid_until: get(row, 3)?,
                obtained_at: get(row, 4)?,
            })
        });
        Ok(found.collect::<Result<_, Error>>()?)
    }

    async fn put_certificate(&self, certificate: StoredCertificate) -> Result<(), StoreError> {
        transact!(self.main, transaction => put(&transaction, &certificate))
    }

    async fn remove_certificate(&self, name: &str) -> Result<(), StoreError> {
        self.main
            .write(
                "WITH gone AS (DELETE FROM certificate_orders WHERE name = $1)
                 DELETE FROM certificates WHERE name = $1",
                &[&name],
            )
            .await
            .map(drop)
    }

    async fn begin_order(
        &self,
        name: &str,
        known: Option<Millis>,
        budgets: &[OrderBudget],
        now: Millis,
    ) -> Result<OrderTurn, StoreError> {
        transact!(self.main, transaction => begin_order(&transaction, name, known, budgets, now))
    }

    async fn fail_order(
        &self,
        name: &str,
        budgets: &[OrderBudget],
        now: Millis,
    ) -> Result<Millis, StoreError> {
        transact!(self.main, transaction => fail_order(&transaction, name, budgets, now))
    }

    async fn put_challenge(
        &self,
        name: &str,
        digest: [u8; 32],
        until: Millis,
    ) -> Result<(), StoreError> {
        self.main
            .write(
                "INSERT INTO certificate_orders (name, challenge, challenge_until)
                 VALUES ($1, $2, $3)
                 ON CONFLICT (name) DO UPDATE SET challenge = excluded.challenge,
                     challenge_until = excluded.challenge_until",
                &[&name, &digest.as_slice(), &until],
            )
            .await
            .map(drop)
    }

    async fn find_challenge(
        &self,
        name: &str,
        now: Millis,
    ) -> Result<Option<[u8; 32]>, StoreError> {
        let row = self
            .main
            .row(
                "SELECT challenge FROM certificate_orders
                 WHERE name = $1 AND challenge_until > $2",
                &[&name, &now],
            )
            .await?;
        let Some(row) = row else { return Ok(None) };
        Ok(optional_bytes(&row, 0, "certificate_orders", "challenge")?)
    }

    async fn find_acme_account(
        &self,
        directory: &str,
    ) -> Result<Option<StoredAccount>, StoreError> {
        let sql = format!("{SELECT_ACCOUNTS} WHERE directory = $1");
        let row = self.main.row(&sql, &[&directory]).await?;
        Ok(row.as_ref().map(account).transpose()?)
    }

    async fn list_acme_accounts(&self) -> Result<Vec<StoredAccount>, StoreError> {
        let sql = format!("{SELECT_ACCOUNTS} ORDER BY directory");
        let rows = self.main.rows(&sql, &[]).await?;
        Ok(rows.iter().map(account).collect::<Result<_, _>>()?)
    }

    async fn put_acme_account(
        &self,
        account: StoredAccount,
        before: Option<Vec<u8>>,
    ) -> Result<bool, StoreError> {
        let StoredAccount {
            directory,
            credentials,
            sealed,
            created_at,
        } = &account;
        let changed = match &before {
            None => {
                self.main
                    .write(
                        "INSERT INTO acme_accounts (directory, credentials, sealed, created_at)
                         VALUES ($1, $2, $3, $4) ON CONFLICT (directory) DO NOTHING RETURNING 1",
                        &[directory, credentials, sealed, created_at],
                    )
                    .await?
            }
            Some(before) => {
                self.main
                    .write(
                        "UPDATE acme_accounts SET credentials = $2, sealed = $3, created_at = $4
                         WHERE directory = $1 AND credentials = $5 RETURNING 1",
                        &[directory, credentials, sealed, created_at, before],
                    )
                    .await?
            }
        };
        Ok(!changed.is_empty())
    }
}

fn certificate(row: &Row) -> Result<StoredCertificate, Error> {
    Ok(StoredCertificate {
        name: get(row, 0)?,
        directory: get(row, 1)?,
        chain: get(row, 2)?,
        private: get(row, 3)?,
        sealed: get(row, 4)?,
        valid_from: get(row, 5)?,
        valid_until: get(row, 6)?,
        obtained_at: get(row, 7)?,
    })
}

async fn put(transaction: &Transaction, one: &StoredCertificate) -> Result<(), Error> {
    transaction
        .execute(
            "INSERT INTO certificates AS known
                 (name, directory, chain, private, sealed, valid_from, valid_until, obtained_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
             ON CONFLICT (name) DO UPDATE SET directory = excluded.directory,
                 chain = excluded.chain, private = excluded.private, sealed = excluded.sealed,
                 valid_from = excluded.valid_from, valid_until = excluded.valid_until,
                 obtained_at = excluded.obtained_at
             WHERE excluded.obtained_at >= known.obtained_at",
            &[
                &one.name,
                &one.directory,
                &one.chain,
                &one.private,
                &one.sealed,
                &one.valid_from,
                &one.valid_until,
                &one.obtained_at,
            ],
        )
        .await?;
    transaction
        .execute(
            "DELETE FROM certificate_orders WHERE name = $1",
            &[&one.name],
        )
        .await
        .map(drop)
}

async fn begin_order(
    transaction: &Transaction,
    name: &str,
    known: Option<Millis>,
    budgets: &[OrderBudget],
    now: Millis,
) -> Result<OrderTurn, Error> {
    transaction
        .execute(
            "SELECT 1 FROM locks WHERE name = 'certificate_orders' FOR UPDATE",
            &[],
        )
        .await?;
    forget_what_has_ended(transaction, now).await?;
    let mut counted = Vec::new();
    for budget in budgets {
        counted.push((budget, times(transaction, &budget.counter).await?));
    }
    let row = transaction
        .row(
            "SELECT busy_until, not_before FROM certificate_orders WHERE name = $1",
            &[&name],
        )
        .await?;
    let held: (Option<Millis>, Option<Millis>) = match &row {
        Some(row) => (get(row, 0)?, get(row, 1)?),
        None => (None, None),
    };
    // Read after the order: whoever keeps a certificate ends the order in the same transaction.
    let row = transaction
        .row(
            "SELECT obtained_at FROM certificates WHERE name = $1",
            &[&name],
        )
        .await?;
    let there: Option<Millis> = row.as_ref().map(|row| get(row, 0)).transpose()?;
    if there > known {
        return Ok(OrderTurn::Replaced);
    }
    let turn = order_turn(&counted, held, now);
    if turn == OrderTurn::Begun {
        let busy_until = now + ORDER_HOLDS;
        for budget in budgets {
            transaction
                .execute(
                    "INSERT INTO certificate_order_times (name, begun_at) VALUES ($1, $2)",
                    &[&budget.counter, &now],
                )
                .await?;
        }
        transaction
            .execute(
                "INSERT INTO certificate_orders (name, busy_until) VALUES ($1, $2)
                 ON CONFLICT (name) DO UPDATE SET busy_until = excluded.busy_until",
                &[&name, &busy_until],
            )
            .await?;
    }
    Ok(turn)
}

/// Removes orders that no budget counts any more, and challenges of names for which the certificate has another
/// name.
async fn forget_what_has_ended(transaction: &Transaction, now: Millis) -> Result<(), Error> {
    transaction
        .execute(
            "DELETE FROM certificate_order_times WHERE begun_at <= $1",
            &[&(now - LONGEST_BUDGET_PERIOD)],
        )
        .await?;
    transaction
        .execute(
            "DELETE FROM certificate_orders
             WHERE challenge_until <= $1 AND busy_until IS NULL AND failures = 0",
            &[&now],
        )
        .await
        .map(drop)
}

/// The times of the orders under a counter, oldest first.
async fn times(transaction: &Transaction, counter: &str) -> Result<Vec<Millis>, Error> {
    let rows = transaction
        .rows(
            "SELECT begun_at FROM certificate_order_times WHERE name = $1 ORDER BY begun_at, id",
            &[&counter],
        )
        .await?;
    rows.iter().map(|row| get(row, 0)).collect()
}

async fn fail_order(
    transaction: &Transaction,
    name: &str,
    budgets: &[OrderBudget],
    now: Millis,
) -> Result<Millis, Error> {
    for budget in budgets.iter().filter(|budget| !budget.counts_failures) {
        transaction
            .execute(
                "DELETE FROM certificate_order_times WHERE id =
                     (SELECT max(id) FROM certificate_order_times WHERE name = $1)",
                &[&budget.counter],
            )
            .await?;
    }
    let row = transaction
        .row(
            "INSERT INTO certificate_orders AS known (name, failures) VALUES ($1, 1)
             ON CONFLICT (name) DO UPDATE SET failures = known.failures + 1, busy_until = NULL,
                 challenge = NULL, challenge_until = NULL
             RETURNING failures",
            &[&name],
        )
        .await?
        .ok_or(Error::Changed)?;
    let failures: i64 = get(&row, 0)?;
    let not_before = now + wait_after(u32::try_from(failures).unwrap_or(u32::MAX));
    transaction
        .execute(
            "UPDATE certificate_orders SET not_before = $2 WHERE name = $1",
            &[&name, &not_before],
        )
        .await?;
    Ok(not_before)
}

const SELECT_ACCOUNTS: &str =
    "SELECT directory, credentials, sealed, created_at FROM acme_accounts";

fn account(row: &Row) -> Result<StoredAccount, Error> {
    Ok(StoredAccount {
        directory: get(row, 0)?,
        credentials: get(row, 1)?,
        sealed: get(row, 2)?,
        created_at: get(row, 3)?,
    })
}
