//! The codes of devices: a sign-in from its beginning to the device's first
//! tokens.

use async_trait::async_trait;
use platform_domain::audit::{AuditKind, By};
use platform_domain::clock::Millis;
use platform_domain::device::{
    CODE_MILLIS, Decided, DeviceAuthorization, FreshDevice, INTERVAL_SECONDS, MAX_INTERVAL_SECONDS,
    NewDeviceAuthorization, Redeemed, SLOW_DOWN_SECONDS, TokenHash, UserCode, is_too_early,
};
use platform_domain::player::PlayerState;
use platform_store::{DeviceCodeStore, StoreError};
use tokio_postgres::Row;
use uuid::Uuid;

use super::audit::{self, Entry};
use super::database::Database;
use super::devices;
use super::error::Error;
use super::rows::get;
use super::store::PostgresStore;
use super::transaction::Transaction;

#[async_trait]
impl DeviceCodeStore for PostgresStore {
    async fn add_device_authorization(
        &self,
        authorization: NewDeviceAuthorization,
    ) -> Result<UserCode, StoreError> {
        transact!(self.main, transaction =>
            add_authorization(&transaction, &authorization))
    }

    async fn find_device_authorization(
        &self,
        user_code: &UserCode,
        now: Millis,
    ) -> Result<Option<DeviceAuthorization>, StoreError> {
        find_authorization(&self.main, user_code, now).await
    }

    async fn decide_device_authorization(
        &self,
        user_code: &UserCode,
        player: Uuid,
        approve: bool,
        by: By,
        now: Millis,
    ) -> Result<Decided, StoreError> {
        transact!(self.main, transaction =>
            decide(&transaction, user_code, player, approve, (&by, now)))
    }

    async fn redeem_device_code(
        &self,
        device_code: &TokenHash,
        fresh: FreshDevice,
    ) -> Result<Redeemed, StoreError> {
        // Anybody can send any code: an unknown one costs no write.
        let sql = "SELECT 1 FROM device_authorizations WHERE device_code = $1";
        let known = self.main.row(sql, &[&device_code.0.as_slice()]).await?;
        if known.is_none() {
            return Ok(Redeemed::Unknown);
        }
        transact!(self.main, transaction =>
            redeem(&transaction, device_code, &fresh))
    }
}

async fn add_authorization(
    transaction: &Transaction,
    new: &NewDeviceAuthorization,
) -> Result<UserCode, Error> {
    for code in &new.user_codes {
        let added = transaction
            .execute(
                "INSERT INTO device_authorizations
                     (device_code, user_code, client, network, started_at, interval_seconds)
                 VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (user_code) DO NOTHING",
                &[
                    &new.device_code.0.as_slice(),
                    &code.letters(),
                    &new.client,
                    &new.network,
                    &new.now,
                    &INTERVAL_SECONDS,
                ],
            )
            .await?;
        if added == 1 {
            return Ok(code.clone());
        }
    }
    Err(StoreError::Conflict {
        table: "device_authorizations",
        column: "user_code",
    }
    .into())
}

/// Selects the sign-in with the code `$1` that waits for a decision and began after `$2`.
const WAITING: &str = "SELECT client, network, started_at FROM device_authorizations
    WHERE user_code = $1 AND approved IS NULL AND started_at > $2";

fn authorization(row: &Row) -> Result<DeviceAuthorization, Error> {
    Ok(DeviceAuthorization {
        client: get(row, 0)?,
        network: get(row, 1)?,
        started_at: get(row, 2)?,
    })
}

async fn find_authorization(
    database: &Database,
    code: &UserCode,
    now: Millis,
) -> Result<Option<DeviceAuthorization>, StoreError> {
    let row = database
        .row(WAITING, &[&code.letters(), &(now - CODE_MILLIS)])
        .await?;
    Ok(row.as_ref().map(authorization).transpose()?)
}

async fn decide(
    transaction: &Transaction,
    code: &UserCode,
    player: Uuid,
    approve: bool,
    (by, now): (&By, Millis),
) -> Result<Decided, Error> {
    // If several decisions arrive at once, the first one counts.
    let sql = format!("{WAITING} FOR UPDATE");
    let row = transaction
        .row(&sql, &[&code.letters(), &(now - CODE_MILLIS)])
        .await?;
    let Some(found) = row.as_ref().map(authorization).transpose()? else {
        return Ok(Decided::Unknown);
    };
    match devices::find_player(transaction, player).await?.state {
        PlayerState::Account => {}
        PlayerState::Suspended { reason, .. } => return Ok(Decided::Suspended { reason }),
        PlayerState::Guest | PlayerState::Merged { .. } => return Ok(Decided::Guest),
    }
    transaction
        .execute(
            "UPDATE device_authorizations SET player = $2, approved = $3 WHERE user_code = $1",
            &[&code.letters(), &player, &approve],
        )
        .await?;
    let kind = if approve {
        AuditKind::DeviceApproved
    } else {
        AuditKind::DeviceDenied
    };
    let event = Entry::of(kind, now)
        .player(player)
        .subject(&found.client)
        .detail(&found.network)
        .by(by);
    audit::add(transaction, &event).await?;
    Ok(Decided::Done)
}

/// A sign-in in progress, as its device finds it.
struct Pending {
    client: String,
    network: String,
    started_at: Millis,
    polled_at: Option<Millis>,
    interval: i64,
    decision: Option<(Uuid, bool)>,
}

async fn redeem(
    transaction: &Transaction,
    code: &TokenHash,
    fresh: &FreshDevice,
) -> Result<Redeemed, Error> {
    let now = fresh.now;
    let row = transaction
        .row(
            "SELECT client, network, started_at, polled_at, interval_seconds, player, approved
             FROM device_authorizations WHERE device_code = $1 FOR UPDATE",
            &[&code.0.as_slice()],
        )
        .await?;
    let Some(row) = row else {
        return Ok(Redeemed::Unknown);
    };
    let pending = Pending {
        client: get(&row, 0)?,
        network: get(&row, 1)?,
        started_at: get(&row, 2)?,
        polled_at: get(&row, 3)?,
        interval: get(&row, 4)?,
        decision: get::<Option<Uuid>>(&row, 5)?.zip(get(&row, 6)?),
    };
    if now - pending.started_at >= CODE_MILLIS {
        return Ok(Redeemed::Expired);
    }
    let player = match pending.decision {
        None => return poll(transaction, code, &pending, now).await,
        Some((_, false)) => return Ok(Redeemed::Denied),
        Some((player, true)) => devices::find_player(transaction, player).await?,
    };
    if let PlayerState::Suspended { reason, .. } = player.state {
        return Ok(Redeemed::Suspended { reason });
    }
    // One statement, so that the code is removed at the same moment at which the device is added.
    transaction
        .execute(
            "WITH gone AS (DELETE FROM device_authorizations WHERE device_code = $7),
                 added AS (
                     INSERT INTO devices
                         (id, player, client, network, signed_in_at, used_at, current)
                     VALUES ($1, $2, $3, $4, $5, $5, $6))
             INSERT INTO refresh_tokens (hash, device, issued_at) VALUES ($6, $1, $5)",
            &[
                &fresh.device,
                &player.id,
                &pending.client,
                &pending.network,
                &now,
                &fresh.refresh_token.0.as_slice(),
                &code.0.as_slice(),
            ],
        )
        .await?;
    Ok(Redeemed::Given(player))
}

/// Handles a request while there is no decision yet.
async fn poll(
    transaction: &Transaction,
    code: &TokenHash,
    pending: &Pending,
    now: Millis,
) -> Result<Redeemed, Error> {
    let early = is_too_early(pending.polled_at, pending.interval, now);
    let interval = if early {
        (pending.interval + SLOW_DOWN_SECONDS).min(MAX_INTERVAL_SECONDS)
    } else {
        pending.interval
    };
    transaction
        .execute(
            "UPDATE device_authorizations SET polled_at = $2, interval_seconds = $3
             WHERE device_code = $1",
            &[&code.0.as_slice(), &now, &interval],
        )
        .await?;
    Ok(if early {
        Redeemed::SlowDown
    } else {
        Redeemed::Pending
    })
}
