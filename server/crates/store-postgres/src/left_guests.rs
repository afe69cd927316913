//! Guests that were signed out, and the browsers that can restore them.

use async_trait::async_trait;
use platform_domain::audit::{AuditKind, By};
use platform_domain::clock::Millis;
use platform_domain::left_guest::{
    LEFT_MILLIS, LeftGuest, LeftHash, MOST_LEFT, Restore, Restored, SignedOut,
};
use platform_domain::player::PlayerState;
use platform_domain::session::{Session, SessionHash, SessionStatus};
use platform_store::{LeftGuestStore, StoreError};
use uuid::Uuid;

use super::audit::{self, Entry};
use super::database::Database;
use super::error::Error;
use super::rows::{count, get};
use super::store::PostgresStore;
use super::transaction::Transaction;
use super::{players, sessions};

#[async_trait]
impl LeftGuestStore for PostgresStore {
    async fn sign_out(
        &self,
        session: &SessionHash,
        browser: &LeftHash,
        by: By,
        now: Millis,
    ) -> Result<SignedOut, StoreError> {
        transact!(self.main, transaction => sign_out(&transaction, session, browser, &by, now))
    }

    async fn list_left_guests(
        &self,
        browser: &LeftHash,
        now: Millis,
        limit: usize,
    ) -> Result<Vec<LeftGuest>, StoreError> {
        let sql = format!(
            "SELECT {}, l.left_at FROM left_guests l JOIN players p ON p.id = l.player
             WHERE l.browser = $1 AND l.left_at > $2
               AND NOT p.linked AND p.merged_into IS NULL AND p.suspended_at IS NULL
             ORDER BY l.left_at - p.created_at DESC, l.player LIMIT $3",
            players::COLUMNS
        );
        let rows = self
            .main
            .rows(
                &sql,
                &[&browser.0.as_slice(), &(now - LEFT_MILLIS), &count(limit)],
            )
            .await?;
        let guests = rows.iter().map(|row| {
            Ok(LeftGuest {
                player: players::player(row)?,
                left_at: get(row, 9)?,
            })
        });
        Ok(guests.collect::<Result<_, Error>>()?)
    }

    async fn restore_guest(&self, restore: Restore) -> Result<Restored, StoreError> {
        transact!(self.main, transaction => restore_guest(&transaction, &restore))
    }
}

async fn sign_out(
    transaction: &Transaction,
    session: &SessionHash,
    browser: &LeftHash,
    by: &By,
    now: Millis,
) -> Result<SignedOut, Error> {
    let Some(found) = sessions::lookup_session(transaction, session).await? else {
        return Ok(SignedOut::Nothing);
    };
    players::lock_one(transaction, found.player.id).await?;
    // Read again: nobody else can change it now.
    let found = sessions::lookup_session(transaction, session).await?;
    let Some(found) = found.filter(|found| found.ended_at.is_none()) else {
        return Ok(SignedOut::Nothing);
    };
    let event = Entry::of(AuditKind::SignedOut, now)
        .player(found.player.id)
        .by(by);
    audit::add(transaction, &event).await?;
    if found.player.is_anonymous() {
        leave(transaction, &found, browser, now).await?;
        Ok(SignedOut::Guest)
    } else {
        sessions::end_session(transaction, session, now).await?;
        Ok(SignedOut::Account)
    }
}

/// Ends a guest's session so that this browser can restore the guest.
async fn leave(
    transaction: &Transaction,
    session: &Session,
    browser: &LeftHash,
    now: Millis,
) -> Result<(), Error> {
    transaction
        .execute(
            "INSERT INTO left_guests (browser, player, left_at) VALUES ($1, $2, $3)
             ON CONFLICT (browser, player) DO UPDATE SET left_at = excluded.left_at",
            &[&browser.0.as_slice(), &session.player.id, &now],
        )
        .await?;
    sessions::end_session(transaction, &session.hash, now).await?;
    forget_shortest(transaction, browser).await
}

/// Removes those beyond [`MOST_LEFT`] that were guests for the shortest time.
async fn forget_shortest(transaction: &Transaction, browser: &LeftHash) -> Result<(), Error> {
    let rows = transaction
        .rows(
            "SELECT l.player FROM left_guests l JOIN players p ON p.id = l.player
             WHERE l.browser = $1 ORDER BY l.left_at - p.created_at DESC, l.player OFFSET $2",
            &[&browser.0.as_slice(), &count(MOST_LEFT)],
        )
        .await?;
    let forgotten: Vec<Uuid> = rows
        .iter()
        .map(|row| get(row, 0))
        .collect::<Result<_, _>>()?;
    if forgotten.is_empty() {
        return Ok(());
    }
    players::lock(transaction, &forgotten).await?;
    for player in forgotten {
        transaction
            .execute(
                "DELETE FROM left_guests WHERE browser = $1 AND player = $2",
                &[&browser.0.as_slice(), &player],
            )
            .await?;
        players::let_go(transaction, player).await?;
    }
    Ok(())
}

async fn restore_guest(transaction: &Transaction, restore: &Restore) -> Result<Restored, Error> {
    let now = restore.now;
    let mut locked = vec![restore.guest];
    if let Some(held) = &restore.held
        && let Some(session) = sessions::lookup_session(transaction, held).await?
    {
        locked.push(session.player.id);
    }
    let players = players::lock(transaction, &locked).await?;
    let known = transaction
        .row(
            "SELECT 1 FROM left_guests WHERE browser = $1 AND player = $2 AND left_at > $3",
            &[
                &restore.browser.0.as_slice(),
                &restore.guest,
                &(now - LEFT_MILLIS),
            ],
        )
        .await?;
    let player = players
        .into_iter()
        .find(|player| player.id == restore.guest);
    let Some(player) = player.filter(|_| known.is_some()) else {
        return Ok(Restored::NotThere);
    };
    match player.state {
        PlayerState::Guest => {}
        PlayerState::Suspended { reason, .. } => return Ok(Restored::Suspended { reason }),
        PlayerState::Account | PlayerState::Merged { .. } => return Ok(Restored::NotThere),
    }
    let held = match &restore.held {
        Some(held) => sessions::lookup_session(transaction, held).await?,
        None => None,
    };
    let mut event = Entry::of(AuditKind::GuestRestored, now).player(restore.guest);
    if let Some(held) = held {
        match held.status(now) {
            // Restoring another guest must not bypass a suspension.
            SessionStatus::Suspended(reason) => return Ok(Restored::Suspended { reason }),
            SessionStatus::Good if !held.player.is_anonymous() => return Ok(Restored::SignedIn),
            SessionStatus::Good => {
                leave(transaction, &held, &restore.browser, now).await?;
                event = event.other(held.player.id);
            }
            SessionStatus::Stranger | SessionStatus::Expired | SessionStatus::Leaving(_) => {}
        }
    }
    take_back(transaction, restore).await?;
    audit::add(transaction, &event.by(&restore.by)).await?;
    let player = players::find_player(transaction, restore.guest).await?;
    Ok(player.map_or(Restored::NotThere, Restored::Back))
}

/// Gives the guest a session and an address again.
async fn take_back(transaction: &Transaction, restore: &Restore) -> Result<(), Error> {
    forget(transaction, restore.guest).await?;
    transaction
        .execute(
            "UPDATE players SET address = $2, seen_at = greatest(seen_at, $3) WHERE id = $1",
            &[&restore.guest, &restore.address, &restore.now],
        )
        .await?;
    sessions::add_session(
        transaction,
        &restore.session,
        restore.guest,
        None,
        restore.now,
    )
    .await
}

/// Removes every way to restore this player.
pub(super) async fn forget(transaction: &Transaction, player: Uuid) -> Result<(), Error> {
    transaction
        .execute("DELETE FROM left_guests WHERE player = $1", &[&player])
        .await
        .map(drop)
}

/// Removes expired ones, at most `limit`. Returns how many.
pub(super) async fn sweep(
    database: &Database,
    now: Millis,
    limit: i64,
) -> Result<usize, StoreError> {
    transact!(database, transaction => let_go_old(&transaction, now, limit))
}

async fn let_go_old(transaction: &Transaction, now: Millis, limit: i64) -> Result<usize, Error> {
    // The players are locked first, as everywhere. Players that others have locked are left to the
    // next sweep.
    let rows = transaction
        .rows(
            "SELECT p.id FROM players p WHERE p.id = ANY(ARRAY(
                 SELECT player FROM left_guests WHERE left_at <= $1 ORDER BY left_at LIMIT $2))
             ORDER BY p.id FOR NO KEY UPDATE SKIP LOCKED",
            &[&(now - LEFT_MILLIS), &limit],
        )
        .await?;
    let players: Vec<Uuid> = rows
        .iter()
        .map(|row| get(row, 0))
        .collect::<Result<_, _>>()?;
    if players.is_empty() {
        return Ok(0);
    }
    let gone = transaction
        .rows(
            "DELETE FROM left_guests WHERE player = ANY($1) AND left_at <= $2 RETURNING player",
            &[&players, &(now - LEFT_MILLIS)],
        )
        .await?;
    for row in &gone {
        players::let_go(transaction, get(row, 0)?).await?;
    }
    Ok(gone.len())
}
