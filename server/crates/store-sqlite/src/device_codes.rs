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
use rusqlite::{Connection, OptionalExtension as _, params};
use uuid::Uuid;

use super::audit::{self, Entry};
use super::devices;
use super::error::Error;
use super::player_rows;
use super::rows::uuid;
use super::store::SqliteStore;

#[async_trait]
impl DeviceCodeStore for SqliteStore {
    async fn add_device_authorization(
        &self,
        authorization: NewDeviceAuthorization,
    ) -> Result<UserCode, StoreError> {
        self.main
            .write(move |connection| add_authorization(connection, &authorization))
            .await
    }

    async fn find_device_authorization(
        &self,
        user_code: &UserCode,
        now: Millis,
    ) -> Result<Option<DeviceAuthorization>, StoreError> {
        self.main
            .read(|connection| find_authorization(connection, user_code, now))
    }

    async fn decide_device_authorization(
        &self,
        user_code: &UserCode,
        player: Uuid,
        approve: bool,
        by: By,
        now: Millis,
    ) -> Result<Decided, StoreError> {
        let code = user_code.clone();
        self.main
            .write(move |connection| decide(connection, &code, player, approve, by, now))
            .await
    }

    async fn redeem_device_code(
        &self,
        device_code: &TokenHash,
        fresh: FreshDevice,
    ) -> Result<Redeemed, StoreError> {
        let code = *device_code;
        // Anybody can send any code: an unknown one costs no write.
        if self
            .main
            .read(|connection| pending(connection, &code))?
            .is_none()
        {
            return Ok(Redeemed::Unknown);
        }
        self.main
            .write(move |connection| redeem(connection, &code, &fresh))
            .await
    }
}

fn add_authorization(
    connection: &Connection,
    new: &NewDeviceAuthorization,
) -> Result<UserCode, Error> {
    let mut add = connection.prepare_cached(
        "INSERT INTO device_authorizations
             (device_code, user_code, client, network, started_at, interval)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (user_code) DO NOTHING",
    )?;
    for code in &new.user_codes {
        let added = add.execute(params![
            new.device_code.0.as_slice(),
            code.letters(),
            new.client,
            new.network,
            new.now,
            INTERVAL_SECONDS
        ])?;
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

fn find_authorization(
    connection: &Connection,
    code: &UserCode,
    now: Millis,
) -> Result<Option<DeviceAuthorization>, Error> {
    Ok(connection
        .prepare_cached(
            "SELECT client, network, started_at FROM device_authorizations
             WHERE user_code = ?1 AND approved IS NULL AND started_at > ?2",
        )?
        .query_row(params![code.letters(), now - CODE_MILLIS], |row| {
            Ok(DeviceAuthorization {
                client: row.get(0)?,
                network: row.get(1)?,
                started_at: row.get(2)?,
            })
        })
        .optional()?)
}

fn decide(
    connection: &Connection,
    code: &UserCode,
    player: Uuid,
    approve: bool,
    by: By,
    now: Millis,
) -> Result<Decided, Error> {
    let Some(found) = find_authorization(connection, code, now)? else {
        return Ok(Decided::Unknown);
    };
    match player_rows::require_player(connection, player)?.state {
        PlayerState::Account => {}
        PlayerState::Suspended { reason, .. } => return Ok(Decided::Suspended { reason }),
        PlayerState::Guest | PlayerState::Merged { .. } => return Ok(Decided::Guest),
    }
    connection
        .prepare_cached(
            "UPDATE device_authorizations SET player = ?2, approved = ?3 WHERE user_code = ?1",
        )?
        .execute(params![code.letters(), player.as_bytes(), approve])?;
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
    audit::add(connection, &event)?;
    Ok(Decided::Done)
}

/// A sign-in in progress, as its device finds it.
struct Pending {
    client: String,
    network: String,
    started_at: Millis,
    polled_at: Option<Millis>,
    interval: i64,
    decision: Option<(Vec<u8>, bool)>,
}

fn pending(connection: &Connection, code: &TokenHash) -> Result<Option<Pending>, Error> {
    Ok(connection
        .prepare_cached(
            "SELECT client, network, started_at, polled_at, interval, player, approved
             FROM device_authorizations WHERE device_code = ?1",
        )?
        .query_row([code.0.as_slice()], |row| {
            let player: Option<Vec<u8>> = row.get(5)?;
            let approved: Option<bool> = row.get(6)?;
            Ok(Pending {
                client: row.get(0)?,
                network: row.get(1)?,
                started_at: row.get(2)?,
                polled_at: row.get(3)?,
                interval: row.get(4)?,
                decision: player.zip(approved),
            })
        })
        .optional()?)
}

fn redeem(
    connection: &Connection,
    code: &TokenHash,
    fresh: &FreshDevice,
) -> Result<Redeemed, Error> {
    let now = fresh.now;
    let Some(pending) = pending(connection, code)? else {
        return Ok(Redeemed::Unknown);
    };
    if now - pending.started_at >= CODE_MILLIS {
        return Ok(Redeemed::Expired);
    }
    let player = match &pending.decision {
        None => return poll(connection, code, &pending, now),
        Some((_, false)) => return Ok(Redeemed::Denied),
        Some((player, true)) => uuid(player, "device_authorizations", "player", String::new)?,
    };
    let player = player_rows::require_player(connection, player)?;
    if let PlayerState::Suspended { reason, .. } = player.state {
        return Ok(Redeemed::Suspended { reason });
    }
    connection
        .prepare_cached("DELETE FROM device_authorizations WHERE device_code = ?1")?
        .execute([code.0.as_slice()])?;
    connection
        .prepare_cached(
            "INSERT INTO devices (id, player, client, network, signed_in_at, used_at, current)
             VALUES (?1, ?2, ?3, ?4, ?5, ?5, ?6)",
        )?
        .execute(params![
            fresh.device.as_bytes(),
            player.id.as_bytes(),
            pending.client,
            pending.network,
            now,
            fresh.refresh_token.0.as_slice()
        ])?;
    devices::add_refresh_token(connection, &fresh.refresh_token, fresh.device, now)?;
    Ok(Redeemed::Given(player))
}

/// Handles a request while there is no decision yet.
fn poll(
    connection: &Connection,
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
    connection
        .prepare_cached(
            "UPDATE device_authorizations SET polled_at = ?2, interval = ?3
             WHERE device_code = ?1",
        )?
        .execute(params![code.0.as_slice(), now, interval])?;
    Ok(if early {
        Redeemed::SlowDown
    } else {
        Redeemed::Pending
    })
}
