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
use tokio_postgres::Row;
use uuid::Uuid;

use super::audit::{self, Entry};
use super::error::Error;
use super::rows::{bytes, get};
use super::store::PostgresStore;
use super::transaction::Transaction;
use super::{accounts, deletions, game_sessions, players, sessions};

#[async_trait]
impl SignInStore for PostgresStore {
    async fn add_pending_sign_in(&self, pending: PendingSignIn) -> Result<(), StoreError> {
        transact!(self.main, transaction => add_pending(&transaction, &pending))
    }

    async fn take_pending_sign_in(
        &self,
        state: &StateHash,
        browser: &[u8; 32],
        now: Millis,
    ) -> Result<TakenSignIn, StoreError> {
        let since = now - SIGN_IN_MILLIS;
        // Anybody can send any state: an unknown one costs no write.
        let found = self
            .main
            .row(
                "SELECT browser FROM pending_sign_ins WHERE state = $1 AND started_at > $2",
                &[&state.0.as_slice(), &since],
            )
            .await?;
        let Some(found) = found else {
            return Ok(TakenSignIn::Unknown);
        };
        if get::<&[u8]>(&found, 0)? != browser.as_slice() {
            return Ok(TakenSignIn::OtherBrowser);
        }
        // If two requests have the same state, only one takes it.
        let rows = self
            .main
            .write(
                "DELETE FROM pending_sign_ins WHERE state = $1 AND browser = $2 AND started_at > $3
                 RETURNING browser, provider, nonce, pkce_verifier, guest, redirect, started_at,
                     again",
                &[&state.0.as_slice(), &browser.as_slice(), &since],
            )
            .await?;
        match rows.first() {
            Some(row) => Ok(TakenSignIn::Taken(pending(*state, row)?)),
            None => Ok(TakenSignIn::Unknown),
        }
    }

    async fn complete_sign_in(&self, sign_in: SignIn) -> Result<SignInOutcome, StoreError> {
        transact!(self.main, transaction => complete(&transaction, &sign_in))
    }

    async fn list_identities(&self, player: Uuid) -> Result<Vec<LinkedIdentity>, StoreError> {
        accounts::list_identities(&self.main, player).await
    }
}

async fn add_pending(transaction: &Transaction, pending: &PendingSignIn) -> Result<(), Error> {
    // The guest may come back from the provider late. Its next token decides whether it counts.
    if let Some(guest) = pending.guest {
        players::keep_awaited(transaction, guest).await?;
    }
    transaction
        .execute(
            "INSERT INTO pending_sign_ins
                 (state, browser, provider, nonce, pkce_verifier, guest, redirect, started_at,
                  again)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
            &[
                &pending.state.0.as_slice(),
                &pending.browser.as_slice(),
                &pending.provider,
                &pending.nonce,
                &pending.pkce_verifier,
                &pending.guest,
                &pending.redirect,
                &pending.started_at,
                &pending.again,
            ],
        )
        .await
        .map(drop)
}

fn pending(state: StateHash, row: &Row) -> Result<PendingSignIn, Error> {
    Ok(PendingSignIn {
        state,
        browser: bytes(row, 0, "pending_sign_ins", "browser")?,
        provider: get(row, 1)?,
        nonce: get(row, 2)?,
        pkce_verifier: get(row, 3)?,
        guest: get(row, 4)?,
        redirect: get(row, 5)?,
        started_at: get(row, 6)?,
        again: get(row, 7)?,
    })
}

/// The players that a sign-in may change, in their state after they were locked.
struct Parties {
    /// The identity's account.
    owner: Option<Uuid>,
    /// The player of the browser's present session.
    held: Option<Uuid>,
    players: Vec<Player>,
}

impl Parties {
    fn find(&self, id: Option<Uuid>) -> Option<&Player> {
        self.players.iter().find(|player| Some(player.id) == id)
    }
}

/// Locks all players that a sign-in may change, in the order of their ids.
async fn lock_parties(transaction: &Transaction, sign_in: &SignIn) -> Result<Parties, Error> {
    let held_hash = sign_in.held.as_ref().map(|held| held.0.as_slice());
    let row = transaction
        .row(
            "SELECT (SELECT player FROM identities WHERE key = $1),
                 (SELECT player FROM sessions WHERE hash = $2)",
            &[&sign_in.identity.key.0.as_slice(), &held_hash],
        )
        .await?
        .ok_or(Error::Changed)?;
    let (owner, held): (Option<Uuid>, Option<Uuid>) = (get(&row, 0)?, get(&row, 1)?);
    let ids: Vec<Uuid> = [owner, held, sign_in.guest].into_iter().flatten().collect();
    let players = if ids.is_empty() {
        Vec::new()
    } else {
        players::lock(transaction, &ids).await?
    };
    // An identity never leaves its account, so only an identity without an account can have got one
    // meanwhile.
    if owner.is_none()
        && accounts::owner(transaction, &sign_in.identity.key)
            .await?
            .is_some()
    {
        return Err(Error::Changed);
    }
    Ok(Parties {
        owner,
        held,
        players,
    })
}

async fn complete(transaction: &Transaction, sign_in: &SignIn) -> Result<SignInOutcome, Error> {
    let parties = lock_parties(transaction, sign_in).await?;
    let before = held(transaction, sign_in).await?;
    let guest = guest(transaction, sign_in, &parties).await?;
    let outcome = match parties.owner {
        Some(_) => {
            let account = parties.find(parties.owner);
            let account = account.ok_or(StoreError::Missing { table: "players" })?;
            enter(transaction, sign_in, account.clone(), guest).await?
        }
        None => begin(transaction, sign_in, guest).await?,
    };
    let Some(player) = outcome.player() else {
        return Ok(outcome);
    };
    if let Some(held) = &sign_in.held {
        sessions::end_session(transaction, held, sign_in.now).await?;
    }
    let proved = Some(sign_in.authenticated_at);
    sessions::add_session(
        transaction,
        &sign_in.session,
        player.id,
        proved,
        sign_in.now,
    )
    .await?;
    match (&sign_in.held, before) {
        (Some(held), Held::Of(before)) if before == player.id => {
            game_sessions::follow(transaction, held, &sign_in.session).await?;
        }
        // Its guest will never be made.
        (Some(held), Held::Blank) => game_sessions::remove_of(transaction, held).await?,
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

async fn held(transaction: &Transaction, sign_in: &SignIn) -> Result<Held, Error> {
    let Some(held) = &sign_in.held else {
        return Ok(Held::Nothing);
    };
    let session = sessions::lookup_session(transaction, held).await?;
    Ok(match session {
        None => Held::Blank,
        Some(session) if session.has_ended(sign_in.now) => Held::Nothing,
        Some(session) => Held::Of(session.player.id),
    })
}

/// Returns the player whose progress the browser has: the one that began the sign-in or, if that
/// one no longer counts or there was none, the browser's present one. It counts only with a
/// session: a guest that has signed out is not merged.
async fn guest(
    transaction: &Transaction,
    sign_in: &SignIn,
    parties: &Parties,
) -> Result<Option<Player>, Error> {
    for id in [sign_in.guest, parties.held] {
        if let Some(player) = parties.find(id)
            && counts(transaction, player, sign_in.now).await?
        {
            return Ok(Some(player.clone()));
        }
    }
    Ok(None)
}

/// Returns whether the player has a session, or is suspended: a suspension outlasts every session.
/// Whoever asked to be deleted does not become a part of an account.
async fn counts(transaction: &Transaction, player: &Player, now: Millis) -> Result<bool, Error> {
    Ok(matches!(player.state, PlayerState::Suspended { .. })
        || sessions::has_session(transaction, player.id, now).await?
            && !deletions::is_asked(transaction, player.id).await?)
}

/// Signs in to the account of a known identity.
async fn enter(
    transaction: &Transaction,
    sign_in: &SignIn,
    player: Player,
    guest: Option<Player>,
) -> Result<SignInOutcome, Error> {
    if let PlayerState::Suspended { reason, .. } = player.state {
        return Ok(SignInOutcome::Suspended { reason });
    }
    let Some(guest) = guest.filter(|guest| guest.state == PlayerState::Guest) else {
        log(transaction, AuditKind::SignedIn, player.id, sign_in).await?;
        return Ok(SignInOutcome::Returned(player));
    };
    accounts::merge(transaction, guest.id, player.id, sign_in.now).await?;
    sessions::end_all(transaction, guest.id, None, sign_in.now).await?;
    let event = Entry::of(AuditKind::Merged, sign_in.now)
        .player(guest.id)
        .other(player.id)
        .subject(&sign_in.identity.provider)
        .by(&by(sign_in));
    audit::add(transaction, &event).await?;
    Ok(SignInOutcome::Merged {
        player,
        guest: guest.id,
    })
}

/// Signs in with a new identity: the guest becomes its account.
async fn begin(
    transaction: &Transaction,
    sign_in: &SignIn,
    guest: Option<Player>,
) -> Result<SignInOutcome, Error> {
    let now = sign_in.now;
    match guest {
        Some(guest) if guest.state == PlayerState::Guest => {
            accounts::link(transaction, &sign_in.identity, guest.id, now).await?;
            sessions::end_all(transaction, guest.id, None, now).await?;
            log(transaction, AuditKind::Linked, guest.id, sign_in).await?;
            let account = as_account(guest);
            let account = wished(transaction, sign_in, account).await?;
            Ok(SignInOutcome::Linked(account))
        }
        // There is no guest, or it is suspended: another person may be signing in at its browser
        // with a new identity.
        _ => {
            let names = &sign_in.names();
            let player =
                players::add_player(transaction, sign_in.new_player, names, None, None, now)
                    .await?;
            accounts::link(transaction, &sign_in.identity, player.id, now).await?;
            log(transaction, AuditKind::Created, player.id, sign_in).await?;
            Ok(SignInOutcome::Created(as_account(player)))
        }
    }
}

/// Gives the new account the name that its identity asks for, if it is free and the guest has not
/// chosen a name of its own.
async fn wished(
    transaction: &Transaction,
    sign_in: &SignIn,
    player: Player,
) -> Result<Player, Error> {
    let Some(name) = sign_in.wished_username.as_deref() else {
        return Ok(player);
    };
    if !username::is_generated(&player.username) {
        return Ok(player);
    }
    let key = username::unique_key(name);
    let renamed = transaction
        .execute(
            "UPDATE players SET username = $2, username_key = $3
             WHERE id = $1 AND NOT EXISTS (SELECT 1 FROM players WHERE username_key = $3)",
            &[&player.id, &name, &key],
        )
        .await?;
    if renamed == 0 {
        return Ok(player);
    }
    log(transaction, AuditKind::Renamed, player.id, sign_in).await?;
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

async fn log(
    transaction: &Transaction,
    kind: AuditKind,
    player: Uuid,
    sign_in: &SignIn,
) -> Result<(), Error> {
    let event = Entry::of(kind, sign_in.now)
        .player(player)
        .subject(&sign_in.identity.provider)
        .by(&by(sign_in));
    audit::add(transaction, &event).await
}

/// Returns who acts: a player signs in by their own act.
fn by(sign_in: &SignIn) -> By {
    By {
        actor: Actor::Own,
        source: sign_in.source.clone(),
        deploy_token: None,
    }
}
