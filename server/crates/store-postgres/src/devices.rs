//! Devices without a browser, and their refresh tokens.

use async_trait::async_trait;
use platform_domain::audit::{Actor, AuditKind, By};
use platform_domain::clock::Millis;
use platform_domain::device::{
    CODE_KEPT_MILLIS, DEVICE_LIFE_MILLIS, DEVICE_MILLIS, Device, FreshDevice, Refreshed, TokenHash,
    has_ended, may_ask_again,
};
use platform_domain::player::{Player, PlayerState};
use platform_store::{DeviceStore, StoreError};
use tokio_postgres::Row;
use uuid::Uuid;

use super::audit::{self, Entry};
use super::database::Database;
use super::error::Error;
use super::players;
use super::rows::{bytes, get, number, optional_bytes};
use super::store::PostgresStore;
use super::transaction::Transaction;

#[async_trait]
impl DeviceStore for PostgresStore {
    async fn refresh_device(
        &self,
        refresh_token: &TokenHash,
        fresh: FreshDevice,
    ) -> Result<Refreshed, StoreError> {
        if !self.is_known(refresh_token).await? {
            return Ok(Refreshed::Unknown);
        }
        transact!(self.main, transaction => refresh(&transaction, refresh_token, &fresh))
    }

    async fn revoke_refresh_token(
        &self,
        refresh_token: &TokenHash,
        by: By,
        now: Millis,
    ) -> Result<bool, StoreError> {
        if !self.is_known(refresh_token).await? {
            return Ok(false);
        }
        transact!(self.main, transaction => revoke(&transaction, refresh_token, &by, now))
    }

    async fn end_device(
        &self,
        player: Uuid,
        device: Uuid,
        by: By,
        now: Millis,
    ) -> Result<bool, StoreError> {
        transact!(self.main, transaction => end_of(&transaction, player, device, &by, now))
    }

    async fn list_devices(&self, player: Uuid, now: Millis) -> Result<Vec<Device>, StoreError> {
        let rows = self
            .main
            .rows(
                "SELECT id, client, network, signed_in_at, used_at FROM devices
                 WHERE player = $1 AND used_at > $2 AND signed_in_at > $3
                 ORDER BY used_at DESC, id DESC",
                &[&player, &(now - DEVICE_MILLIS), &(now - DEVICE_LIFE_MILLIS)],
            )
            .await?;
        let devices = rows.iter().map(|row| {
            Ok(Device {
                id: get(row, 0)?,
                client: get(row, 1)?,
                network: get(row, 2)?,
                signed_in_at: get(row, 3)?,
                used_at: get(row, 4)?,
            })
        });
        Ok(devices.collect::<Result<_, Error>>()?)
    }
}

impl PostgresStore {
    /// Returns whether a refresh token is known: an unknown one costs no write.
    async fn is_known(&self, token: &TokenHash) -> Result<bool, StoreError> {
        let sql = "SELECT 1 FROM refresh_tokens WHERE hash = $1";
        let row = self.main.row(sql, &[&token.0.as_slice()]).await?;
        Ok(row.is_some())
    }
}

/// The device to which a refresh token was issued.
struct Holder {
    device: Uuid,
    player: Uuid,
    client: String,
    signed_in_at: Millis,
    used_at: Millis,
    current: [u8; 32],
    previous: Option<([u8; 32], Millis)>,
}

impl Holder {
    /// Ends the device's sign-in. Returns whether there was one.
    async fn end(
        &self,
        transaction: &Transaction,
        kind: AuditKind,
        by: &By,
        now: Millis,
    ) -> Result<bool, Error> {
        let whose = (self.device, self.player, self.client.as_str());
        end(transaction, whose, kind, by, now).await
    }

    /// Returns when `token` was first used, if it may be exchanged for a new one at `now`.
    fn accepts(&self, token: &TokenHash, now: Millis) -> Option<Millis> {
        if token.0 == self.current {
            return Some(now);
        }
        let (previous, rotated_at) = self.previous?;
        (token.0 == previous && may_ask_again(now - rotated_at)).then_some(rotated_at)
    }
}

/// Locks the device to which a refresh token was issued, so that concurrent uses of its tokens run
/// one after another.
async fn lock_holder(
    transaction: &Transaction,
    token: &TokenHash,
) -> Result<Option<Holder>, Error> {
    let row = transaction
        .row(
            "SELECT d.id, d.player, d.client, d.used_at, d.current, d.previous, d.rotated_at,
                    d.signed_in_at
             FROM refresh_tokens t JOIN devices d ON d.id = t.device
             WHERE t.hash = $1 FOR UPDATE OF d",
            &[&token.0.as_slice()],
        )
        .await?;
    let Some(row) = row else { return Ok(None) };
    let previous = optional_bytes(&row, 5, "devices", "previous")?;
    Ok(Some(Holder {
        device: get(&row, 0)?,
        player: get(&row, 1)?,
        client: get(&row, 2)?,
        used_at: get(&row, 3)?,
        current: bytes(&row, 4, "devices", "current")?,
        previous: previous.zip(get(&row, 6)?),
        signed_in_at: get(&row, 7)?,
    }))
}

async fn refresh(
    transaction: &Transaction,
    token: &TokenHash,
    fresh: &FreshDevice,
) -> Result<Refreshed, Error> {
    let now = fresh.now;
    let Some(holder) = lock_holder(transaction, token).await? else {
        return Ok(Refreshed::Unknown);
    };
    if has_ended(holder.signed_in_at, holder.used_at, now) {
        return Ok(Refreshed::Unknown);
    }
    let Some(rotated_at) = holder.accepts(token, now) else {
        let by = By {
            actor: Actor::Own,
            source: fresh.source.clone(),
            deploy_token: None,
        };
        let kind = AuditKind::DeviceTokenReused;
        holder.end(transaction, kind, &by, now).await?;
        return Ok(Refreshed::Reused);
    };
    let player = find_player(transaction, holder.player).await?;
    match player.state {
        PlayerState::Account => {}
        PlayerState::Suspended { reason, .. } => return Ok(Refreshed::Suspended { reason }),
        PlayerState::Guest | PlayerState::Merged { .. } => return Ok(Refreshed::Unknown),
    }
    transaction
        .execute(
            "WITH changed AS (
                 UPDATE devices SET current = $2, previous = $3, rotated_at = $4, used_at = $5
                 WHERE id = $1)
             INSERT INTO refresh_tokens (hash, device, issued_at) VALUES ($2, $1, $5)",
            &[
                &holder.device,
                &fresh.refresh_token.0.as_slice(),
                &token.0.as_slice(),
                &rotated_at,
                &now,
            ],
        )
        .await?;
    Ok(Refreshed::Given {
        player,
        device: holder.device,
    })
}

async fn revoke(
    transaction: &Transaction,
    token: &TokenHash,
    by: &By,
    now: Millis,
) -> Result<bool, Error> {
    match lock_holder(transaction, token).await? {
        Some(holder) => {
            let kind = AuditKind::DeviceRevoked;
            holder.end(transaction, kind, by, now).await
        }
        None => Ok(false),
    }
}

/// Returns the player, who must exist.
pub(super) async fn find_player(transaction: &Transaction, player: Uuid) -> Result<Player, Error> {
    let found = players::find_player(transaction, player).await?;
    Ok(found.ok_or(StoreError::Missing { table: "players" })?)
}

async fn end_of(
    transaction: &Transaction,
    player: Uuid,
    device: Uuid,
    by: &By,
    now: Millis,
) -> Result<bool, Error> {
    let row = transaction
        .row(
            "SELECT client FROM devices
             WHERE id = $1 AND player = $2 AND used_at > $3 AND signed_in_at > $4 FOR UPDATE",
            &[
                &device,
                &player,
                &(now - DEVICE_MILLIS),
                &(now - DEVICE_LIFE_MILLIS),
            ],
        )
        .await?;
    let Some(row) = row else { return Ok(false) };
    let whose = (device, player, get(&row, 0)?);
    end(transaction, whose, AuditKind::DeviceRevoked, by, now).await
}

/// Ends a device's sign-in: only the event is kept.
async fn end(
    transaction: &Transaction,
    (device, player, client): (Uuid, Uuid, &str),
    kind: AuditKind,
    by: &By,
    now: Millis,
) -> Result<bool, Error> {
    let ended = transaction
        .execute("DELETE FROM devices WHERE id = $1", &[&device])
        .await?;
    let event = Entry::of(kind, now).player(player).subject(client).by(by);
    audit::add(transaction, &event).await?;
    Ok(ended > 0)
}

/// Ends the sign-in of every device of a player, and removes approved codes that were not redeemed
/// yet. Writes no event.
pub(super) async fn end_all(transaction: &Transaction, player: Uuid) -> Result<usize, Error> {
    // The codes are removed first: if one has just been redeemed, the second statement finds its
    // device.
    transaction
        .execute(
            "DELETE FROM device_authorizations WHERE player = $1 AND approved",
            &[&player],
        )
        .await?;
    let ended = transaction
        .execute("DELETE FROM devices WHERE player = $1", &[&player])
        .await?;
    Ok(number(ended))
}

/// Returns the player of a signed-in device, as a row for `sessions::holder`.
pub(super) async fn holder_of(
    database: &Database,
    device: Uuid,
    now: Millis,
) -> Result<Option<Row>, StoreError> {
    let sql = format!(
        "SELECT {}, EXISTS (SELECT 1 FROM admins WHERE player = p.id), NULL::bigint
         FROM devices d JOIN players p ON p.id = d.player
         WHERE d.id = $1 AND d.used_at > $2 AND d.signed_in_at > $3",
        players::COLUMNS
    );
    let (used, signed_in) = (now - DEVICE_MILLIS, now - DEVICE_LIFE_MILLIS);
    database.row(&sql, &[&device, &used, &signed_in]).await
}

/// Removes expired rows, at most `limit` of each kind.
pub(super) async fn sweep(
    database: &Database,
    now: Millis,
    limit: i64,
) -> Result<usize, StoreError> {
    let mut swept = 0;
    for (sql, before) in [
        (
            "DELETE FROM device_authorizations WHERE device_code = ANY(ARRAY(
                 SELECT device_code FROM device_authorizations WHERE started_at <= $1
                 LIMIT $2 FOR UPDATE SKIP LOCKED)) RETURNING 1",
            now - CODE_KEPT_MILLIS,
        ),
        (
            "DELETE FROM devices WHERE id = ANY(ARRAY(
                 SELECT id FROM devices WHERE used_at <= $1
                 LIMIT $2 FOR UPDATE SKIP LOCKED)) RETURNING 1",
            now - DEVICE_MILLIS,
        ),
        (
            "DELETE FROM devices WHERE id = ANY(ARRAY(
                 SELECT id FROM devices WHERE signed_in_at <= $1
                 LIMIT $2 FOR UPDATE SKIP LOCKED)) RETURNING 1",
            now - DEVICE_LIFE_MILLIS,
        ),
        // The current token of a device in use is younger.
        (
            "DELETE FROM refresh_tokens WHERE hash = ANY(ARRAY(
                 SELECT hash FROM refresh_tokens WHERE issued_at <= $1
                 LIMIT $2 FOR UPDATE SKIP LOCKED)) RETURNING 1",
            now - DEVICE_MILLIS,
        ),
    ] {
        swept += database.write(sql, &[&before, &limit]).await?.len();
    }
    Ok(swept)
}
