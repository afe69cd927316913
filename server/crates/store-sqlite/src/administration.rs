//! Administration.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use platform_domain::administration::{Admin, Granted, HoldingAddress, MergedGuest, Transferred};
use platform_domain::audit::{AuditKind, By};
use platform_domain::clock::Millis;
use platform_domain::player::Player;
use platform_domain::username;
use platform_store::{AdminStore, StoreError};
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use uuid::Uuid;

use super::audit::{self, Entry};
use super::error::Error;
use super::player_rows;
use super::projects::project_id;
use super::rows::{count, uuid};
use super::store::SqliteStore;
use super::{deploy_tokens, people, webhooks};

#[async_trait]
impl AdminStore for SqliteStore {
    async fn grant_admin(&self, player: Uuid, by: By, now: Millis) -> Result<Granted, StoreError> {
        self.main
            .write(move |connection| grant_admin(connection, player, by, now))
            .await
    }

    async fn revoke_admin(&self, player: Uuid, by: By, now: Millis) -> Result<bool, StoreError> {
        self.main
            .write(move |connection| revoke_admin(connection, player, by, now))
            .await
    }

    async fn is_admin(&self, player: Uuid) -> Result<bool, StoreError> {
        self.main.read(|connection| {
            Ok(connection
                .prepare_cached("SELECT 1 FROM admins WHERE player = ?1")?
                .exists([player.as_bytes()])?)
        })
    }

    async fn list_admins(&self) -> Result<Vec<Admin>, StoreError> {
        self.main.read_much(list_admins).await
    }

    async fn transfer_project(
        &self,
        slug: &str,
        to: Uuid,
        by: By,
        now: Millis,
    ) -> Result<Transferred, StoreError> {
        let slug = slug.to_owned();
        self.main
            .write(move |connection| transfer_project(connection, &slug, to, by, now))
            .await
    }

    async fn find_player_by_name(&self, name: &str) -> Result<Option<Player>, StoreError> {
        let key = username::unique_key(name);
        let query = format!("{PLAYERS} WHERE username_key = ?1");
        let found = self
            .main
            .read(|connection| list_players(connection, &query, [key]))?;
        Ok(found.into_iter().next())
    }

    async fn list_players_by_name(
        &self,
        start: &str,
        limit: usize,
    ) -> Result<Vec<Player>, StoreError> {
        let from = username::unique_key(start);
        // No name contains `char::MAX`, so this key follows every name with the prefix.
        let to = format!("{from}{}", char::MAX);
        let query = format!(
            "{PLAYERS} WHERE username_key >= ?1 AND username_key < ?2
             ORDER BY username_key LIMIT ?3"
        );
        self.main
            .read_much(move |connection| {
                list_players(connection, &query, params![from, to, count(limit)])
            })
            .await
    }

    async fn list_usernames(
        &self,
        players: BTreeSet<Uuid>,
    ) -> Result<BTreeMap<Uuid, String>, StoreError> {
        self.main
            .read_much(move |connection| list_usernames(connection, players))
            .await
    }

    async fn list_merged_guests(
        &self,
        account: Uuid,
        limit: usize,
    ) -> Result<Vec<MergedGuest>, StoreError> {
        self.main
            .read_much(move |connection| list_merged_guests(connection, account, limit))
            .await
    }

    async fn list_holding_addresses(
        &self,
        seen_since: Millis,
        limit: usize,
    ) -> Result<Vec<HoldingAddress>, StoreError> {
        self.main
            .read_much(move |connection| list_holding_addresses(connection, seen_since, limit))
            .await
    }

    async fn list_held_guests(
        &self,
        address: &str,
        seen_since: Millis,
        limit: usize,
    ) -> Result<Vec<Player>, StoreError> {
        let address = address.to_owned();
        let query = format!(
            "{PLAYERS} WHERE address = ?1 AND seen_at >= ?2 AND awaiting IS NULL
             ORDER BY seen_at DESC, id LIMIT ?3"
        );
        self.main
            .read_much(move |connection| {
                list_players(
                    connection,
                    &query,
                    params![address, seen_since, count(limit)],
                )
            })
            .await
    }
}

/// All columns of a player, as [`player_rows::player`] reads them.
const PLAYERS: &str = "SELECT id, username, linked, merged_into, suspended_at, suspension_reason,
        created_at, seen_at, awaiting IS NOT NULL FROM players";

fn list_players(
    connection: &Connection,
    query: &str,
    params: impl rusqlite::Params,
) -> Result<Vec<Player>, Error> {
    let mut statement = connection.prepare_cached(query)?;
    let mut rows = statement.query(params)?;
    let mut list = Vec::new();
    while let Some(row) = rows.next()? {
        list.push(player_rows::player(row)?);
    }
    Ok(list)
}

/// Whether the player is an account, suspended or not; `None` if the player does not exist.
fn is_account(connection: &Connection, player: Uuid) -> Result<Option<bool>, Error> {
    Ok(connection
        .prepare_cached("SELECT linked = 1 FROM players WHERE id = ?1")?
        .query_row([player.as_bytes()], |row| row.get(0))
        .optional()?)
}

fn grant_admin(
    connection: &Connection,
    player: Uuid,
    by: By,
    now: Millis,
) -> Result<Granted, Error> {
    match is_account(connection, player)? {
        None => return Ok(Granted::NoPlayer),
        Some(false) => return Ok(Granted::NotAnAccount),
        Some(true) => {}
    }
    let added = connection
        .prepare_cached(
            "INSERT INTO admins (player, granted_at) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
        )?
        .execute(params![player.as_bytes(), now])?;
    if added == 0 {
        return Ok(Granted::Already);
    }
    let event = Entry::of(AuditKind::AdminGranted, now)
        .player(player)
        .by(by);
    audit::add(connection, &event)?;
    Ok(Granted::Done)
}

fn revoke_admin(connection: &Connection, player: Uuid, by: By, now: Millis) -> Result<bool, Error> {
    let removed = connection
        .prepare_cached("DELETE FROM admins WHERE player = ?1")?
        .execute([player.as_bytes()])?;
    if removed == 0 {
        return Ok(false);
    }
    let event = Entry::of(AuditKind::AdminRevoked, now)
        .player(player)
        .by(by);
    audit::add(connection, &event)?;
    Ok(true)
}

fn list_admins(connection: &Connection) -> Result<Vec<Admin>, Error> {
    let mut statement = connection.prepare_cached(
        "SELECT a.player, p.username, a.granted_at FROM admins a JOIN players p ON p.id = a.player
         ORDER BY a.granted_at, a.player",
    )?;
    let mut rows = statement.query([])?;
    let mut admins = Vec::new();
    while let Some(row) = rows.next()? {
        admins.push(Admin {
            player: id(row, "admins")?,
            username: row.get(1)?,
            granted_at: row.get(2)?,
        });
    }
    Ok(admins)
}

/// The UUID in a row's first column.
fn id(row: &Row<'_>, table: &'static str) -> Result<Uuid, Error> {
    let bytes = row.get_ref(0)?.as_blob().unwrap_or_default();
    uuid(bytes, table, "id", String::new)
}

fn transfer_project(
    connection: &Connection,
    slug: &str,
    to: Uuid,
    by: By,
    now: Millis,
) -> Result<Transferred, Error> {
    let from: Option<Option<Vec<u8>>> = connection
        .prepare_cached("SELECT owner FROM projects WHERE slug = ?1 AND removed_at IS NULL")?
        .query_row([slug], |row| row.get(0))
        .optional()?;
    let Some(from) = from else {
        return Ok(Transferred::NoProject);
    };
    match is_account(connection, to)? {
        None => return Ok(Transferred::NoPlayer),
        Some(false) => return Ok(Transferred::NotAnAccount),
        Some(true) => {}
    }
    let from = from
        .map(|from| uuid(&from, "projects", "owner", || slug.to_owned()))
        .transpose()?;
    if from == Some(to) {
        return Ok(Transferred::Already);
    }
    connection
        .prepare_cached("UPDATE projects SET owner = ?2, forget_from = ?3 WHERE slug = ?1")?
        .execute(params![slug, to.as_bytes(), now])?;
    let project = project_id(connection, slug)?;
    people::new_owner(connection, project, to)?;
    deploy_tokens::revoke_all(connection, slug, now)?;
    webhooks::remove_of(connection, project)?;
    let mut event = Entry::of(AuditKind::ProjectTransferred, now)
        .player(to)
        .subject(slug)
        .by(by);
    if let Some(from) = from {
        event = event.other(from);
    }
    audit::add(connection, &event)?;
    Ok(Transferred::Done)
}

fn list_usernames(
    connection: &Connection,
    players: BTreeSet<Uuid>,
) -> Result<BTreeMap<Uuid, String>, Error> {
    let mut statement = connection.prepare_cached("SELECT username FROM players WHERE id = ?1")?;
    let mut names = BTreeMap::new();
    for player in players {
        let name = statement.query_row([player.as_bytes()], |row| row.get(0));
        if let Some(name) = name.optional()? {
            names.insert(player, name);
        }
    }
    Ok(names)
}

fn list_merged_guests(
    connection: &Connection,
    account: Uuid,
    limit: usize,
) -> Result<Vec<MergedGuest>, Error> {
    let mut statement = connection.prepare_cached(
        "SELECT id, merged_at FROM players WHERE merged_into = ?1
         ORDER BY merged_at DESC, id LIMIT ?2",
    )?;
    let mut rows = statement.query(params![account.as_bytes(), count(limit)])?;
    let mut guests = Vec::new();
    while let Some(row) = rows.next()? {
        guests.push(MergedGuest {
            guest: id(row, "players")?,
            merged_at: row.get(1)?,
        });
    }
    Ok(guests)
}

fn list_holding_addresses(
    connection: &Connection,
    seen_since: Millis,
    limit: usize,
) -> Result<Vec<HoldingAddress>, Error> {
    let mut statement = connection.prepare_cached(
        "SELECT address, count(*) AS guests, max(seen_at) FROM players
         WHERE address IS NOT NULL AND seen_at >= ?1 AND awaiting IS NULL
         GROUP BY address ORDER BY guests DESC, address LIMIT ?2",
    )?;
    let addresses = statement
        .query_map([seen_since, count(limit)], |row| {
            Ok(HoldingAddress {
                address: row.get(0)?,
                guests: row.get(1)?,
                seen_at: row.get(2)?,
            })
        })?
        .collect::<Result<_, _>>()?;
    Ok(addresses)
}
