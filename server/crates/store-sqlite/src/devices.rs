//! Devices without a browser, and their refresh tokens.

use async_trait::async_trait;
use platform_domain::audit::{Actor, AuditKind, By};
use platform_domain::clock::Millis;
use platform_domain::console_token;
use platform_domain::device::{
    CODE_KEPT_MILLIS, DEVICE_LIFE_MILLIS, DEVICE_MILLIS, Device, FreshDevice, Refreshed, TokenHash,
    has_ended, may_ask_again,
};
use platform_domain::player::PlayerState;
use platform_store::{DeviceStore, StoreError};
use rusqlite::{Connection, params};
use uuid::Uuid;

use super::audit::{self, Entry};
use super::error::Error;
use super::rows::uuid;
use super::store::SqliteStore;
use super::{player_rows, session_rows};

#[async_trait]
impl DeviceStore for SqliteStore {
    async fn refresh_device(
        &self,
        refresh_token: &TokenHash,
        fresh: FreshDevice,
    ) -> Result<Refreshed, StoreError> {
        let token = *refresh_token;
        if self
            .main
            .read(|connection| holder(connection, &token))?
            .is_none()
        {
            return Ok(Refreshed::Unknown);
        }
        self.main
            .write(move |connection| refresh(connection, &token, fresh))
            .await
    }

    async fn revoke_refresh_token(
        &self,
        refresh_token: &TokenHash,
        by: By,
        now: Millis,
    ) -> Result<bool, StoreError> {
        let token = *refresh_token;
        if self
            .main
            .read(|connection| holder(connection, &token))?
            .is_none()
        {
            return Ok(false);
        }
        self.main
            .write(move |connection| match holder(connection, &token)? {
                Some(holder) => holder.end(connection, AuditKind::DeviceRevoked, by, now),
                None => Ok(false),
            })
            .await
    }

    async fn end_device(
        &self,
        player: Uuid,
        device: Uuid,
        by: By,
        now: Millis,
    ) -> Result<bool, StoreError> {
        self.main
            .write(move |connection| {
                let devices = list(connection, player, now)?;
                match devices.iter().find(|known| known.id == device) {
                    Some(known) => {
                        let kind = AuditKind::DeviceRevoked;
                        end(connection, device, player, &known.client, (kind, by), now)
                    }
                    None => Ok(false),
                }
            })
            .await
    }

    async fn list_devices(&self, player: Uuid, now: Millis) -> Result<Vec<Device>, StoreError> {
        self.main.read(|connection| list(connection, player, now))
    }
}

pub(super) fn add_refresh_token(
    connection: &Connection,
    token: &TokenHash,
    device: Uuid,
    now: Millis,
) -> Result<(), Error> {
    connection
        .prepare_cached("INSERT INTO refresh_tokens (hash, device, issued_at) VALUES (?1, ?2, ?3)")?
        .execute(params![token.0.as_slice(), device.as_bytes(), now])?;
    Ok(())
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
    fn end(
        &self,
        connection: &Connection,
        kind: AuditKind,
        by: By,
        now: Millis,
    ) -> Result<bool, Error> {
        let why = (kind, by);
        end(connection, self.device, self.player, &self.client, why, now)
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

fn holder(connection: &Connection, token: &TokenHash) -> Result<Option<Holder>, Error> {
    let mut statement = connection.prepare_cached(
        "SELECT d.id, d.player, d.client, d.used_at, d.current, d.previous, d.rotated_at, d.signed_in_at
         FROM refresh_tokens t JOIN devices d ON d.id = t.device WHERE t.hash = ?1",
    )?;
    let mut rows = statement.query([token.0.as_slice()])?;
    let Some(row) = rows.next()? else {
        return Ok(None);
    };
    let id = |index, column| {
        let bytes = row.get_ref(index)?.as_blob().unwrap_or_default();
        uuid(bytes, "devices", column, String::new)
    };
    let previous: Option<[u8; 32]> = row.get(5)?;
    Ok(Some(Holder {
        device: id(0, "id")?,
        player: id(1, "player")?,
        client: row.get(2)?,
        used_at: row.get(3)?,
        current: row.get(4)?,
        previous: previous.zip(row.get(6)?),
        signed_in_at: row.get(7)?,
    }))
}

fn refresh(
    connection: &Connection,
    token: &TokenHash,
    fresh: FreshDevice,
) -> Result<Refreshed, Error> {
    let now = fresh.now;
    let Some(holder) = holder(connection, token)? else {
        return Ok(Refreshed::Unknown);
    };
    if has_ended(holder.signed_in_at, holder.used_at, now) {
        return Ok(Refreshed::Unknown);
    }
    let Some(rotated_at) = holder.accepts(token, now) else {
        let by = By {
            actor: Actor::Own,
            source: fresh.source,
            deploy_token: None,
        };
        holder.end(connection, AuditKind::DeviceTokenReused, by, now)?;
        return Ok(Refreshed::Reused);
    };
    let player = player_rows::require_player(connection, holder.player)?;
    match player.state {
        PlayerState::Account => {}
        PlayerState::Suspended { reason, .. } => return Ok(Refreshed::Suspended { reason }),
        PlayerState::Guest | PlayerState::Merged { .. } => return Ok(Refreshed::Unknown),
    }
    connection
        .prepare_cached(
            "UPDATE devices SET current = ?2, previous = ?3, rotated_at = ?4, used_at = ?5
             WHERE id = ?1",
        )?
        .execute(params![
            holder.device.as_bytes(),
            fresh.refresh_token.0.as_slice(),
            token.0.as_slice(),
            rotated_at,
            now
        ])?;
    add_refresh_token(connection, &fresh.refresh_token, holder.device, now)?;
    Ok(Refreshed::Given {
        player,
        device: holder.device,
    })
}

/// Ends a device's sign-in: only the event is kept.
fn end(
    connection: &Connection,
    device: Uuid,
    player: Uuid,
    client: &str,
    (kind, by): (AuditKind, By),
    now: Millis,
) -> Result<bool, Error> {
    let ended = connection
        .prepare_cached("DELETE FROM devices WHERE id = ?1")?
        .execute([device.as_bytes()])?;
    let event = Entry::of(kind, now).player(player).subject(client).by(by);
    audit::add(connection, &event)?;
    Ok(ended > 0)
}

/// Ends the sign-in of every device of a player, and removes approved codes that were not redeemed
/// yet. Writes no event.
pub(super) fn end_all(connection: &Connection, player: Uuid) -> Result<usize, Error> {
    connection
        .prepare_cached("DELETE FROM device_authorizations WHERE player = ?1 AND approved = 1")?
        .execute([player.as_bytes()])?;
    Ok(connection
        .prepare_cached("DELETE FROM devices WHERE player = ?1")?
        .execute([player.as_bytes()])?)
}

fn list(connection: &Connection, player: Uuid, now: Millis) -> Result<Vec<Device>, Error> {
    let mut statement = connection.prepare_cached(
        "SELECT id, client, network, signed_in_at, used_at FROM devices
         WHERE player = ?1 AND used_at > ?2 AND signed_in_at > ?3 ORDER BY used_at DESC, id DESC",
    )?;
    let (used, signed_in) = (now - DEVICE_MILLIS, now - DEVICE_LIFE_MILLIS);
    let mut rows = statement.query(params![player.as_bytes(), used, signed_in])?;
    let mut devices = Vec::new();
    while let Some(row) = rows.next()? {
        let id = row.get_ref(0)?.as_blob().unwrap_or_default();
        devices.push(Device {
            id: uuid(id, "devices", "id", String::new)?,
            client: row.get(1)?,
            network: row.get(2)?,
            signed_in_at: row.get(3)?,
            used_at: row.get(4)?,
        });
    }
    Ok(devices)
}

/// The player of a signed-in device.
pub(super) fn find_holder(
    connection: &Connection,
    device: Uuid,
    now: Millis,
) -> Result<Option<console_token::Holder>, Error> {
    let mut statement = connection.prepare_cached(
        "SELECT p.id, p.username, p.linked, p.merged_into, p.suspended_at, p.suspension_reason,
                p.created_at, p.seen_at, p.awaiting IS NOT NULL,
                EXISTS (SELECT 1 FROM admins WHERE player = p.id), NULL
         FROM devices d JOIN players p ON p.id = d.player
         WHERE d.id = ?1 AND d.used_at > ?2 AND d.signed_in_at > ?3",
    )?;
    let (used, signed_in) = (now - DEVICE_MILLIS, now - DEVICE_LIFE_MILLIS);
    let mut rows = statement.query(params![device.as_bytes(), used, signed_in])?;
    rows.next()?.map(session_rows::holder).transpose()
}

/// Removes expired rows, at most `limit` of each kind.
pub(super) fn sweep(connection: &Connection, now: Millis, limit: i64) -> Result<usize, Error> {
    let mut swept = 0;
    for (statement, before) in [
        (
            "DELETE FROM device_authorizations WHERE device_code IN
                 (SELECT device_code FROM device_authorizations WHERE started_at <= ?1 LIMIT ?2)",
            now - CODE_KEPT_MILLIS,
        ),
        (
            "DELETE FROM devices WHERE id IN
                 (SELECT id FROM devices WHERE used_at <= ?1 LIMIT ?2)",
            now - DEVICE_MILLIS,
        ),
        (
            "DELETE FROM devices WHERE id IN
                 (SELECT id FROM devices WHERE signed_in_at <= ?1 LIMIT ?2)",
            now - DEVICE_LIFE_MILLIS,
        ),
        // The current token of a device in use is younger.
        (
            "DELETE FROM refresh_tokens WHERE hash IN
                 (SELECT hash FROM refresh_tokens WHERE issued_at <= ?1 LIMIT ?2)",
            now - DEVICE_MILLIS,
        ),
    ] {
        swept += connection
            .prepare_cached(statement)?
            .execute([before, limit])?;
    }
    Ok(swept)
}
