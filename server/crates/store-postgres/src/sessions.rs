//! Sessions.

use async_trait::async_trait;
use platform_domain::audit::{AuditKind, By};
use platform_domain::clock::Millis;
use platform_domain::console_token::{Hold, Holder};
use platform_domain::deletion::Deletion;
use platform_domain::game_session::{GameSession, GameSessionHash};
use platform_domain::player::UNCONFIRMED_MILLIS;
use platform_domain::session::{KEPT_MILLIS, SESSION_MILLIS, Session, SessionHash, SessionSummary};
use platform_domain::sign_in::SIGN_IN_MILLIS;
use platform_store::{SessionStore, StoreError};
use tokio_postgres::Row;
use uuid::Uuid;

use super::audit::{self, Entry};
use super::database::Database;
use super::error::Error;
use super::rows::{bytes, count, get, number};
use super::store::PostgresStore;
use super::transaction::Transaction;
use super::{devices, game_sessions, left_guests, players};

/// How long the row of an address is kept after its last new guest.
const ADDRESS_KEPT_MILLIS: Millis = 24 * 60 * 60 * 1_000;

#[async_trait]
impl SessionStore for PostgresStore {
    async fn lookup_session(&self, hash: &SessionHash) -> Result<Option<Session>, StoreError> {
        let row = self.main.row(&lookup(), &[&hash.0.as_slice()]).await?;
        Ok(row.map(|row| session(*hash, &row)).transpose()?)
    }

    async fn find_holder(&self, hold: &Hold, now: Millis) -> Result<Option<Holder>, StoreError> {
        let row = match hold {
            Hold::Session(hash) => {
                let sql = format!(
                    "SELECT {}, EXISTS (SELECT 1 FROM admins WHERE player = p.id),
                         s.authenticated_at
                     FROM sessions s JOIN players p ON p.id = s.player
                     WHERE s.hash = $1 AND s.ended_at IS NULL AND s.renewed_at > $2",
                    players::COLUMNS
                );
                let values: [super::database::Value<'_>; 2] =
                    [&hash.0.as_slice(), &(now - SESSION_MILLIS)];
                self.main.row(&sql, &values).await?
            }
            Hold::Device(device) => devices::holder_of(&self.main, *device, now).await?,
        };
        Ok(row.as_ref().map(holder).transpose()?)
    }

    async fn renew_session(&self, hash: &SessionHash, now: Millis) -> Result<(), StoreError> {
        self.main
            .write(
                "UPDATE sessions SET renewed_at = $2
                 WHERE hash = $1 AND renewed_at < $2 AND ended_at IS NULL",
                &[&hash.0.as_slice(), &now],
            )
            .await
            .map(drop)
    }

    async fn end_session(&self, hash: &SessionHash, by: By, now: Millis) -> Result<(), StoreError> {
        transact!(self.main, transaction => sign_out(&transaction, hash, &by, now))
    }

    async fn note_browser(&self, hash: &SessionHash, browser: &str) -> Result<(), StoreError> {
        self.main
            .write(
                "UPDATE sessions SET browser = $2 WHERE hash = $1",
                &[&hash.0.as_slice(), &browser],
            )
            .await
            .map(drop)
    }

    async fn end_session_of(
        &self,
        player: Uuid,
        hash: &SessionHash,
        by: By,
        now: Millis,
    ) -> Result<bool, StoreError> {
        transact!(self.main, transaction => end_session_of(&transaction, player, hash, &by, now))
    }

    async fn end_other_sessions(
        &self,
        player: Uuid,
        kept: Option<&SessionHash>,
        by: By,
        now: Millis,
    ) -> Result<usize, StoreError> {
        transact!(self.main, transaction =>
            end_other_sessions(&transaction, player, kept, &by, now))
    }

    async fn list_sessions(
        &self,
        player: Uuid,
        now: Millis,
    ) -> Result<Vec<SessionSummary>, StoreError> {
        let rows = self
            .main
            .rows(
                "SELECT hash, created_at, renewed_at, browser FROM sessions
                 WHERE player = $1 AND ended_at IS NULL AND renewed_at > $2
                 ORDER BY renewed_at DESC, created_at DESC",
                &[&player, &(now - SESSION_MILLIS)],
            )
            .await?;
        let sessions = rows.iter().map(|row| {
            Ok(SessionSummary {
                hash: SessionHash(bytes(row, 0, "sessions", "hash")?),
                created_at: get(row, 1)?,
                renewed_at: get(row, 2)?,
                browser: get(row, 3)?,
            })
        });
        Ok(sessions.collect::<Result<_, Error>>()?)
    }

    async fn list_ended_sessions(&self, since: Millis) -> Result<Vec<(Uuid, Millis)>, StoreError> {
        let rows = self
            .main
            .rows(
                "SELECT player, max(ended_at) FROM sessions WHERE ended_at >= $1 GROUP BY player",
                &[&since],
            )
            .await?;
        let ended = rows.iter().map(|row| Ok((get(row, 0)?, get(row, 1)?)));
        Ok(ended.collect::<Result<_, Error>>()?)
    }

    async fn sweep_sessions(&self, now: Millis, limit: usize) -> Result<usize, StoreError> {
        let limit = count(limit);
        let mut swept = 0;
        for (sql, before) in [
            (
                "DELETE FROM sessions WHERE hash = ANY(ARRAY(
                     SELECT hash FROM sessions WHERE renewed_at <= $1
                     LIMIT $2 FOR UPDATE SKIP LOCKED)) RETURNING 1",
                now - KEPT_MILLIS,
            ),
            (
                "DELETE FROM pending_sign_ins WHERE state = ANY(ARRAY(
                     SELECT state FROM pending_sign_ins WHERE started_at <= $1
                     LIMIT $2 FOR UPDATE SKIP LOCKED)) RETURNING 1",
                now - SIGN_IN_MILLIS,
            ),
        ] {
            swept += self.main.write(sql, &[&before, &limit]).await?.len();
        }
        swept += sweep_awaited(&self.main, now, limit).await?;
        swept += left_guests::sweep(&self.main, now, limit).await?;
        swept += game_sessions::sweep(&self.main, now, limit).await?;
        swept += devices::sweep(&self.main, now, limit).await?;
        self.main
            .write(
                "DELETE FROM guest_addresses WHERE address = ANY(ARRAY(
                     SELECT address FROM guest_addresses WHERE used_at <= $1
                     LIMIT $2 FOR UPDATE SKIP LOCKED))",
                &[&(now - ADDRESS_KEPT_MILLIS), &limit],
            )
            .await?;
        Ok(swept)
    }
}

async fn sweep_awaited(database: &Database, now: Millis, limit: i64) -> Result<usize, StoreError> {
    transact!(database, transaction =>
        players::sweep_awaited(&transaction, now - UNCONFIRMED_MILLIS, limit))
}

/// Returns the columns of a session `s` with its player `p`, for [`session`].
fn columns() -> String {
    format!(
        "{}, s.created_at, s.renewed_at, s.ended_at, s.browser, p.deletion_asked_at, p.deletion_at",
        players::COLUMNS
    )
}

/// The number of these columns.
const COLUMNS: usize = 15;

/// Returns the query for the session with the hash `$1`, with its player.
fn lookup() -> String {
    let columns = columns();
    format!("SELECT {columns} FROM sessions s JOIN players p ON p.id = s.player WHERE s.hash = $1")
}

/// Returns a session of a game with the session from which it comes, unless that one is blank.
pub(super) async fn find_of_game(
    database: &Database,
    hash: &GameSessionHash,
) -> Result<Option<GameSession>, StoreError> {
    let columns = columns();
    let sql = format!(
        "SELECT {columns}, g.player, g.parent, g.game, g.created_at, g.used_at
         FROM game_sessions g
         JOIN sessions s ON s.hash = g.parent JOIN players p ON p.id = s.player WHERE g.hash = $1"
    );
    let Some(row) = database.row(&sql, &[&hash.0.as_slice()]).await? else {
        return Ok(None);
    };
    let parent = SessionHash(bytes(&row, COLUMNS + 1, "game_sessions", "parent")?);
    Ok(Some(GameSession {
        hash: *hash,
        player: get(&row, COLUMNS)?,
        parent,
        game: get(&row, COLUMNS + 2)?,
        created_at: get(&row, COLUMNS + 3)?,
        used_at: get(&row, COLUMNS + 4)?,
        session: Some(session(parent, &row)?),
    }))
}

fn session(hash: SessionHash, row: &Row) -> Result<Session, Error> {
    let asked_at: Option<Millis> = get(row, 13)?;
    let at: Option<Millis> = get(row, 14)?;
    Ok(Session {
        hash,
        player: players::player(row)?,
        created_at: get(row, 9)?,
        renewed_at: get(row, 10)?,
        ended_at: get(row, 11)?,
        browser: get(row, 12)?,
        deletion: asked_at
            .zip(at)
            .map(|(asked_at, at)| Deletion { asked_at, at }),
    })
}

/// Returns the session with this hash in its present state.
pub(super) async fn lookup_session(
    transaction: &Transaction,
    hash: &SessionHash,
) -> Result<Option<Session>, Error> {
    let row = transaction.row(&lookup(), &[&hash.0.as_slice()]).await?;
    row.map(|row| session(*hash, &row)).transpose()
}

/// Adds a session. `authenticated_at` is when the player last proved its identity; `None` for a
/// guest.
pub(super) async fn add_session(
    transaction: &Transaction,
    hash: &SessionHash,
    player: Uuid,
    authenticated_at: Option<Millis>,
    now: Millis,
) -> Result<(), Error> {
    transaction
        .execute(
            "INSERT INTO sessions (hash, player, created_at, renewed_at, authenticated_at)
             VALUES ($1, $2, $3, $3, $4)",
            &[&hash.0.as_slice(), &player, &now, &authenticated_at],
        )
        .await
        .map(drop)
}

/// Reads a player, whether it is an administrator, and when it last proved its identity.
fn holder(row: &Row) -> Result<Holder, Error> {
    Ok(Holder {
        player: players::player(row)?,
        is_admin: get(row, 9)?,
        authenticated_at: get(row, 10)?,
    })
}

/// Returns the player of the session, or `None` if the session has ended. Locks the player's row.
async fn lock_owner(transaction: &Transaction, hash: &SessionHash) -> Result<Option<Uuid>, Error> {
    let row = transaction
        .row(
            "SELECT player FROM sessions WHERE hash = $1 AND ended_at IS NULL",
            &[&hash.0.as_slice()],
        )
        .await?;
    let Some(row) = row else { return Ok(None) };
    let player: Uuid = get(&row, 0)?;
    players::lock_one(transaction, player).await?;
    Ok(Some(player))
}

/// Ends a session because its player signed out.
async fn sign_out(
    transaction: &Transaction,
    hash: &SessionHash,
    by: &By,
    now: Millis,
) -> Result<(), Error> {
    if lock_owner(transaction, hash).await?.is_none() {
        return Ok(());
    }
    let Some(player) = end_session(transaction, hash, now).await? else {
        return Ok(());
    };
    let event = Entry::of(AuditKind::SignedOut, now).player(player).by(by);
    audit::add(transaction, &event).await
}

/// Ends a session, without an event. Returns its player, if it had not ended before. The caller has
/// locked the player's row.
pub(super) async fn end_session(
    transaction: &Transaction,
    hash: &SessionHash,
    now: Millis,
) -> Result<Option<Uuid>, Error> {
    let row = transaction
        .row(
            "UPDATE sessions SET ended_at = $2 WHERE hash = $1 AND ended_at IS NULL
             RETURNING player",
            &[&hash.0.as_slice(), &now],
        )
        .await?;
    let Some(row) = row else { return Ok(None) };
    let player = get(&row, 0)?;
    players::let_go(transaction, player).await?;
    Ok(Some(player))
}

async fn end_session_of(
    transaction: &Transaction,
    player: Uuid,
    hash: &SessionHash,
    by: &By,
    now: Millis,
) -> Result<bool, Error> {
    players::lock_one(transaction, player).await?;
    let ended = transaction
        .execute(
            "UPDATE sessions SET ended_at = $3
             WHERE hash = $1 AND player = $2 AND ended_at IS NULL",
            &[&hash.0.as_slice(), &player, &now],
        )
        .await?;
    if ended == 0 {
        return Ok(false);
    }
    players::let_go(transaction, player).await?;
    let event = Entry::of(AuditKind::SessionsEnded, now)
        .player(player)
        .by(by);
    audit::add(transaction, &event).await?;
    Ok(true)
}

/// Ends every session of a player except `kept`, without an event. The caller has locked the
/// player's row.
pub(super) async fn end_all(
    transaction: &Transaction,
    player: Uuid,
    kept: Option<&SessionHash>,
    now: Millis,
) -> Result<usize, Error> {
    let kept = kept.map(|kept| kept.0.as_slice());
    let ended = transaction
        .execute(
            "UPDATE sessions SET ended_at = $2
             WHERE player = $1 AND ended_at IS NULL AND ($3::bytea IS NULL OR hash <> $3)",
            &[&player, &now, &kept],
        )
        .await?;
    left_guests::forget(transaction, player).await?;
    players::let_go(transaction, player).await?;
    Ok(number(ended))
}

async fn end_other_sessions(
    transaction: &Transaction,
    player: Uuid,
    kept: Option<&SessionHash>,
    by: &By,
    now: Millis,
) -> Result<usize, Error> {
    players::lock_one(transaction, player).await?;
    let ended = end_all(transaction, player, kept, now).await?
        + devices::end_all(transaction, player).await?;
    if ended > 0 {
        let event = Entry::of(AuditKind::SessionsEnded, now)
            .player(player)
            .by(by);
        audit::add(transaction, &event).await?;
    }
    Ok(ended)
}

/// Returns whether the player has a session that has not ended or expired.
pub(super) async fn has_session(
    transaction: &Transaction,
    player: Uuid,
    now: Millis,
) -> Result<bool, Error> {
    let row = transaction
        .row(
            "SELECT 1 FROM sessions
             WHERE player = $1 AND ended_at IS NULL AND renewed_at > $2 LIMIT 1",
            &[&player, &(now - SESSION_MILLIS)],
        )
        .await?;
    Ok(row.is_some())
}
