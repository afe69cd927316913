//! Signing in: pending sign-ins, and the one operation that completes them.

use async_trait::async_trait;
use platform_domain::audit::{Actor, AuditKind, By};
use platform_domain::clock::Millis;
use platform_domain::identity::LinkedIdentity;
use platform_domain::player::{Player, PlayerState};
use platform_domain::sign_in::{
    PendingSignIn, SIGN_IN_MILLIS, SignIn, SignInOutcome, StateHash, TakenSignIn,
};
use platform_domain::username;
use platform_store::{SignInStore, StoreError};
use rusqlite::{Connection, OptionalExtension as _, params};
use uuid::Uuid;

use super::audit::{self, Entry};
use super::error::Error;
use super::rows::uuid;
use super::store::SqliteStore;
use super::{accounts, deletions, game_sessions, player_rows, session_rows, sessions};

#[async_trait]
impl SignInStore for SqliteStore {
    async fn add_pending_sign_in(&self, pending: PendingSignIn) -> Result<(), StoreError> {
        self.main
            .write(move |connection| add_pending(connection, &pending))
            .await
    }

    async fn take_pending_sign_in(
        &self,
        state: &StateHash,
        browser: &[u8; 32],
        now: Millis,
    ) -> Result<TakenSignIn, StoreError> {
        let (state, browser) = (*state, *browser);
        // Anybody can send any state: an unknown one costs no write.
        if !self
            .main
            .read(|connection| is_pending(connection, &state))?
        {
            return Ok(TakenSignIn::Unknown);
        }
        self.main
            .write(move |connection| take_pending(connection, &state, &browser, now))
            .await
    }

    async fn complete_sign_in(&self, sign_in: SignIn) -> Result<SignInOutcome, StoreError> {
        self.main
            .write(move |connection| complete(connection, &sign_in))
            .await
    }

    async fn list_identities(&self, player: Uuid) -> Result<Vec<LinkedIdentity>, StoreError> {
        self.main
            .read(|connection| accounts::list_identities(connection, player))
    }
}

pub(super) fn add_pending(connection: &Connection, pending: &PendingSignIn) -> Result<(), Error> {
    connection
        .prepare_cached(
            "INSERT INTO pending_sign_ins
                 (state, browser, provider, nonce, pkce_verifier, guest, redirect, started_at,
                  again)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        )?
        .execute(params![
            pending.state.0.as_slice(),
            pending.browser.as_slice(),
            pending.provider,
            pending.nonce,
            pending.pkce_verifier,
            pending.guest.as_ref().map(Uuid::as_bytes),
            pending.redirect,
            pending.started_at,
            pending.again
        ])?;
    // The guest may come back from the provider late. Its next token decides whether it counts.
    if let Some(guest) = pending.guest {
        player_rows::keep_awaited(connection, guest)?;
    }
    Ok(())
}

/// Whether there is a sign-in with this state.
pub(super) fn is_pending(connection: &Connection, state: &StateHash) -> Result<bool, Error> {
    Ok(connection
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM pending_sign_ins WHERE state = ?1)")?
        .query_row([state.0.as_slice()], |row| row.get(0))?)
}

pub(super) fn take_pending(
    connection: &Connection,
    state: &StateHash,
    browser: &[u8; 32],
    now: Millis,
) -> Result<TakenSignIn, Error> {
    let found = connection
        .prepare_cached(
            "SELECT browser, provider, nonce, pkce_verifier, guest, redirect, started_at, again
             FROM pending_sign_ins WHERE state = ?1 AND started_at > ?2",
        )?
        .query_row(params![state.0.as_slice(), now - SIGN_IN_MILLIS], |row| {
            let guest: Option<Vec<u8>> = row.get(4)?;
            let pending = PendingSignIn {
                state: *state,
                browser: row.get(0)?,
                provider: row.get(1)?,
                nonce: row.get(2)?,
                pkce_verifier: row.get(3)?,
                guest: None,
                redirect: row.get(5)?,
                started_at: row.get(6)?,
                again: row.get(7)?,
            };
            Ok((pending, guest))
        })
        .optional()?;
    let Some((pending, guest)) = found else {
        return Ok(TakenSignIn::Unknown);
    };
    if pending.browser != *browser {
        return Ok(TakenSignIn::OtherBrowser);
    }
    connection
        .prepare_cached("DELETE FROM pending_sign_ins WHERE state = ?1")?
        .execute([state.0.as_slice()])?;
    let guest = guest
        .map(|guest| uuid(&guest, "pending_sign_ins", "guest", String::new))
        .transpose()?;
    Ok(TakenSignIn::Taken(PendingSignIn { guest, ..pending }))
}

pub(super) fn complete(connection: &Connection, sign_in: &SignIn) -> Result<SignInOutcome, Error> {
    let before = held(connection, sign_in)?;
    let guest = guest(connection, sign_in)?;
    let owner = accounts::owner(connection, &sign_in.identity.key)?;
    let outcome = match owner {
        Some(account) => enter(connection, sign_in, account, guest)?,
        None => begin(connection, sign_in, guest)?,
    };
    let Some(player) = outcome.player() else {
        return Ok(outcome);
    };
    if let Some(held) = &sign_in.held {
        session_rows::end_session(connection, held, sign_in.now)?;
    }
    let proved = Some(sign_in.authenticated_at);
    session_rows::add_session(connection, &sign_in.session, player.id, proved, sign_in.now)?;
    match (&sign_in.held, before) {
        (Some(held), Held::Of(before)) if before == player.id => {
            game_sessions::follow(connection, held, &sign_in.session)?;
        }
        // Its guest will never be made.
        (Some(held), Held::Blank) => game_sessions::remove_of(connection, held)?,
        _ => {}
    }
    Ok(outcome)
}

/// The browser's present session, before a sign-in.
enum Held {
    /// It has none that is valid.
    Nothing,
    /// Its cookie is no session yet.
    Blank,
    /// It is this player's.
    Of(Uuid),
}

fn held(connection: &Connection, sign_in: &SignIn) -> Result<Held, Error> {
    let Some(held) = &sign_in.held else {
        return Ok(Held::Nothing);
    };
    let session = session_rows::lookup_session(connection, held)?;
    Ok(match session {
        None => Held::Blank,
        Some(session) if session.has_ended(sign_in.now) => Held::Nothing,
        Some(session) => Held::Of(session.player.id),
    })
}

/// The player whose progress the browser has: the one that began the sign-in or, if that one no
/// longer counts or there was none, the browser's present one. It counts only with a session: a
/// guest that has signed out is not merged.
fn guest(connection: &Connection, sign_in: &SignIn) -> Result<Option<Player>, Error> {
    if let Some(id) = sign_in.guest
        && let Some(player) = player_rows::find_player(connection, id)?
        && counts(connection, &player, sign_in.now)?
    {
        return Ok(Some(player));
    }
    let Some(held) = &sign_in.held else {
        return Ok(None);
    };
    let Some(session) = session_rows::lookup_session(connection, held)? else {
        return Ok(None);
    };
    let player = session.player;
    Ok(counts(connection, &player, sign_in.now)?.then_some(player))
}

/// Whether the player has a session, or is suspended: a suspension outlasts every session. Whoever
/// asked to be deleted does not become a part of an account.
fn counts(connection: &Connection, player: &Player, now: Millis) -> Result<bool, Error> {
    Ok(matches!(player.state, PlayerState::Suspended { .. })
        || session_rows::has_session(connection, player.id, now)?
            && deletions::find(connection, player.id)?.is_none())
}

/// Signs in to the account of a known identity.
fn enter(
    connection: &Connection,
    sign_in: &SignIn,
    account: Uuid,
    guest: Option<Player>,
) -> Result<SignInOutcome, Error> {
    let player = player_rows::find_player(connection, account)?
        .ok_or(StoreError::Missing { table: "players" })?;
    if let PlayerState::Suspended { reason, .. } = player.state {
        return Ok(SignInOutcome::Suspended { reason });
    }
    let guest = guest.filter(|guest| guest.state == PlayerState::Guest);
    let provider = &sign_in.identity.provider;
    let Some(guest) = guest else {
        log(connection, AuditKind::SignedIn, player.id, sign_in)?;
        return Ok(SignInOutcome::Returned(player));
    };
    accounts::merge(connection, guest.id, account, sign_in.now)?;
    sessions::end_all(connection, guest.id, None, sign_in.now)?;
    let event = Entry::of(AuditKind::Merged, sign_in.now)
        .player(guest.id)
        .other(account)
        .subject(provider)
        .by(by(sign_in));
    audit::add(connection, &event)?;
    Ok(SignInOutcome::Merged {
        player,
        guest: guest.id,
    })
}

/// Signs in with a new identity: the guest becomes its account.
fn begin(
    connection: &Connection,
    sign_in: &SignIn,
    guest: Option<Player>,
) -> Result<SignInOutcome, Error> {
    let now = sign_in.now;
    match guest {
        Some(guest) if guest.state == PlayerState::Guest => {
            accounts::link(connection, &sign_in.identity, guest.id, now)?;
            sessions::end_all(connection, guest.id, None, now)?;
            log(connection, AuditKind::Linked, guest.id, sign_in)?;
            let account = as_account(guest);
            Ok(SignInOutcome::Linked(wished(connection, sign_in, account)?))
        }
        // There is no guest, or it is suspended: another person may be signing in at its browser
        // with a new identity.
        _ => {
            let names = &sign_in.names();
            let player = player_rows::add_player(connection, sign_in.new_player, names, None, now)?;
            accounts::link(connection, &sign_in.identity, player.id, now)?;
            log(connection, AuditKind::Created, player.id, sign_in)?;
            Ok(SignInOutcome::Created(as_account(player)))
        }
    }
}

/// Gives the new account the name that its identity asks for, if it is free and the guest has not
/// chosen a name of its own.
fn wished(connection: &Connection, sign_in: &SignIn, player: Player) -> Result<Player, Error> {
    let Some(name) = sign_in.wished_username.as_deref() else {
        return Ok(player);
    };
    if !username::is_generated(&player.username) {
        return Ok(player);
    }
    let renamed = connection
        .prepare_cached(
            "UPDATE players SET username = ?2, username_key = ?3
             WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM players WHERE username_key = ?3)",
        )?
        .execute(params![
            player.id.as_bytes(),
            name,
            username::unique_key(name)
        ])?;
    if renamed == 0 {
        return Ok(player);
    }
    log(connection, AuditKind::Renamed, player.id, sign_in)?;
    Ok(Player {
        username: name.to_owned(),
        ..player
    })
}

fn as_account(player: Player) -> Player {
    Player {
        state: PlayerState::Account,
        ..player
    }
}

fn log(
    connection: &Connection,
    kind: AuditKind,
    player: Uuid,
    sign_in: &SignIn,
) -> Result<(), Error> {
    let event = Entry::of(kind, sign_in.now)
        .player(player)
        .subject(&sign_in.identity.provider)
        .by(by(sign_in));
    audit::add(connection, &event)
}

/// The player signs in by their own act.
fn by(sign_in: &SignIn) -> By {
    By {
        actor: Actor::Own,
        source: sign_in.source.clone(),
        deploy_token: None,
    }
}
