//! Players: their names, and their present state. Guests are added in `guests`.

use async_trait::async_trait;
use platform_domain::audit::{AuditKind, By};
use platform_domain::clock::Millis;
use platform_domain::player::{Player, PlayerState};
use platform_domain::username;
use platform_store::{GuestCap, NewGuest, PlayerStore, StoreError};
use tokio_postgres::Row;
use uuid::Uuid;

use super::audit::{self, Entry};
use super::error::Error;
use super::rows::{get, number};
use super::store::PostgresStore;
use super::transaction::Transaction;

#[async_trait]
impl PlayerStore for PostgresStore {
    async fn add_guest(&self, guest: NewGuest) -> Result<Player, StoreError> {
        self.guests.add(guest).await
    }

    async fn bring_back_guest(&self, guest: NewGuest) -> Result<Player, StoreError> {
        self.guests.bring_back(&guest).await
    }

    async fn has_room_for_new_guest(
        &self,
        address: &str,
        game: &str,
        cap: GuestCap,
    ) -> Result<bool, StoreError> {
        self.guests.admits(address, game, cap).await
    }

    async fn confirm_guest(
        &self,
        player: Uuid,
        cap: Option<GuestCap>,
        now: Millis,
    ) -> Result<bool, StoreError> {
        self.guests.confirm(player, cap, now).await
    }

    async fn see_guest(&self, player: Uuid, now: Millis) -> Result<(), StoreError> {
        self.main
            .write(
                "UPDATE players SET seen_at = $2 WHERE id = $1 AND seen_at < $2",
                &[&player, &now],
            )
            .await
            .map(drop)
    }

    async fn find_player(&self, id: Uuid) -> Result<Option<Player>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM players p WHERE p.id = $1");
        let row = self.main.row(&sql, &[&id]).await?;
        Ok(row.as_ref().map(player).transpose()?)
    }

    async fn rename_player(
        &self,
        player: Uuid,
        username: &str,
        by: By,
        now: Millis,
    ) -> Result<(), StoreError> {
        transact!(self.main, transaction => rename_player(&transaction, player, username, &by, now))
    }
}

/// A player's columns in a row, as [`player`] reads them; `p` is the table.
pub(super) const COLUMNS: &str = "p.id, p.username, p.linked, p.merged_into, p.suspended_at, \
     p.suspension_reason, p.created_at, p.seen_at, p.awaiting IS NOT NULL";

/// Reads the player from a row's first nine columns.
pub(super) fn player(row: &Row) -> Result<Player, Error> {
    let suspended_at: Option<Millis> = get(row, 4)?;
    let state = match (get(row, 3)?, suspended_at, get(row, 2)?) {
        // A merged guest counts as merged, not as suspended: nobody has this player any more, so
        // there is nobody to suspend.
        (Some(into), _, _) => PlayerState::Merged { into },
        (None, Some(_), linked) => PlayerState::Suspended {
            reason: get(row, 5)?,
            linked,
        },
        (None, None, true) => PlayerState::Account,
        (None, None, false) => PlayerState::Guest,
    };
    Ok(Player {
        id: get(row, 0)?,
        username: get(row, 1)?,
        state,
        created_at: get(row, 6)?,
        seen_at: get(row, 7)?,
        awaited: get(row, 8)?,
    })
}

/// Returns the player in its present state.
pub(super) async fn find_player(
    transaction: &Transaction,
    id: Uuid,
) -> Result<Option<Player>, Error> {
    let sql = format!("SELECT {COLUMNS} FROM players p WHERE p.id = $1");
    let row = transaction.row(&sql, &[&id]).await?;
    row.as_ref().map(player).transpose()
}

/// Locks the rows of players, in the order of their ids, until the transaction ends. Operations
/// that change a player, or add or end its sessions, lock its row. Returns the players that exist.
pub(super) async fn lock(transaction: &Transaction, ids: &[Uuid]) -> Result<Vec<Player>, Error> {
    let sql = format!(
        "SELECT {COLUMNS} FROM players p WHERE p.id = ANY($1) ORDER BY p.id FOR NO KEY UPDATE"
    );
    let rows = transaction.rows(&sql, &[&ids]).await?;
    rows.iter().map(player).collect()
}

/// Locks the row of one player. Returns the player as it is then.
pub(super) async fn lock_one(transaction: &Transaction, id: Uuid) -> Result<Option<Player>, Error> {
    Ok(lock(transaction, &[id]).await?.into_iter().next())
}

/// Removes guests whose cookie did not come back and that were added before `made_before`, at most
/// `limit`. Returns how many.
pub(super) async fn sweep_awaited(
    transaction: &Transaction,
    made_before: Millis,
    limit: i64,
) -> Result<usize, Error> {
    let rows = transaction
        .rows(
            "SELECT id FROM players
             WHERE awaiting IS NOT NULL AND awaiting <> '' AND created_at <= $1
             LIMIT $2 FOR UPDATE SKIP LOCKED",
            &[&made_before, &limit],
        )
        .await?;
    remove_locked(transaction, &rows).await
}

/// Removes players whose rows this transaction has locked, with their sessions.
pub(super) async fn remove_locked(transaction: &Transaction, rows: &[Row]) -> Result<usize, Error> {
    let ids: Vec<Uuid> = rows
        .iter()
        .map(|row| get(row, 0))
        .collect::<Result<_, _>>()?;
    if ids.is_empty() {
        return Ok(0);
    }
    transaction
        .execute(
            "DELETE FROM game_sessions
             WHERE parent = ANY(ARRAY(SELECT hash FROM sessions WHERE player = ANY($1)))",
            &[&ids],
        )
        .await?;
    transaction
        .execute("DELETE FROM sessions WHERE player = ANY($1)", &[&ids])
        .await?;
    transaction
        .execute("DELETE FROM player_games WHERE player = ANY($1)", &[&ids])
        .await?;
    let removed = transaction
        .execute("DELETE FROM players WHERE id = ANY($1)", &[&ids])
        .await?;
    Ok(number(removed))
}

/// Keeps the row of a guest with a cookie that has not come back for a token: it is neither swept nor
/// removed to make room. The game it waits for is then empty, so that it counts for no game.
pub(super) async fn keep_awaited(transaction: &Transaction, player: Uuid) -> Result<(), Error> {
    transaction
        .execute(
            "UPDATE players SET awaiting = '' WHERE id = $1 AND awaiting IS NOT NULL",
            &[&player],
        )
        .await
        .map(drop)
}

/// Adds a player, which is a guest until an identity is linked. It gets the first of these
/// usernames that is free.
pub(super) async fn add_player(
    transaction: &Transaction,
    id: Uuid,
    usernames: &[String],
    address: Option<&str>,
    awaiting: Option<&str>,
    now: Millis,
) -> Result<Player, Error> {
    for name in usernames {
        let key = username::unique_key(name);
        let added = transaction
            .execute(
                "INSERT INTO players (id, username, username_key, address, awaiting, created_at, seen_at)
                 VALUES ($1, $2, $3, $4, $5, $6, $6) ON CONFLICT (username_key) DO NOTHING",
                &[&id, name, &key, &address, &awaiting, &now],
            )
            .await?;
        if added == 1 {
            return Ok(Player {
                id,
                username: name.clone(),
                state: PlayerState::Guest,
                created_at: now,
                seen_at: now,
                awaited: awaiting.is_some(),
            });
        }
    }
    Err(StoreError::Conflict {
        table: "players",
        column: "username",
    }
    .into())
}

/// Releases a guest whose last session has ended: it counts for no address any more, and its
/// username becomes free, unless a browser can restore the guest. A suspended guest stays as it is.
/// The caller has locked the player's row.
pub(super) async fn let_go(transaction: &Transaction, player: Uuid) -> Result<(), Error> {
    transaction
        .execute(
            // No username contains a space, so no other player has this key.
            "UPDATE players SET address = NULL, awaiting = NULL,
                 username = CASE WHEN kept.is_kept THEN username
                     ELSE 'gone-' || substr(replace(id::text, '-', ''), 15) END,
                 username_key = CASE WHEN kept.is_kept THEN username_key
                     ELSE ' ' || upper(replace(id::text, '-', '')) END
             FROM (SELECT EXISTS (SELECT 1 FROM left_guests WHERE player = $1) AS is_kept) AS kept
             WHERE id = $1 AND NOT linked AND suspended_at IS NULL
               AND NOT EXISTS (SELECT 1 FROM sessions WHERE player = $1 AND ended_at IS NULL)",
            &[&player],
        )
        .await
        .map(drop)
}

async fn rename_player(
    transaction: &Transaction,
    player: Uuid,
    name: &str,
    by: &By,
    now: Millis,
) -> Result<(), Error> {
    let known = lock_one(transaction, player).await?;
    let known = known.ok_or(StoreError::Missing { table: "players" })?;
    if known.username == name {
        return Ok(());
    }
    let key = username::unique_key(name);
    transaction
        .execute(
            "UPDATE players SET username = $2, username_key = $3 WHERE id = $1",
            &[&player, &name, &key],
        )
        .await?;
    let event = Entry::of(AuditKind::Renamed, now).player(player).by(by);
    audit::add(transaction, &event).await
}
