//! A session: the link between a browser and a player, behind the auth cookie.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};
use uuid::{Builder, Uuid};

use super::player::{Player, PlayerState};
use super::username::generate_guest_names;
use crate::clock::Millis;
use crate::cookie_secret::cookie_secret;
use crate::deletion::Deletion;
use crate::entropy::Entropy;

cookie_secret! {
    /// The cookie's value before it is encoded: 256 random bits.
    ///
    /// Never stored and never logged; the store has its [`SessionHash`].
    SessionSecret, SessionHash
}

impl SessionSecret {
    /// The id of the guest with which this session begins. It is derived from the secret: if a
    /// guest's row was removed before its cookie came back, the cookie makes the same player again.
    /// The id reveals nothing about the secret.
    #[must_use]
    pub fn guest_id(&self) -> Uuid {
        let derived = Derived::of(self, b"platform guest id");
        Builder::from_random_bytes((&derived as &dyn Entropy).bytes()).into_uuid()
    }

    /// The names of that guest, best first: always the same ones.
    #[must_use]
    pub fn guest_names(&self) -> Vec<String> {
        guest_names(self.guest_id())
    }
}

/// The names of the guest with this id, best first: always the same ones, so that a guest whose row
/// was removed has its name again.
#[must_use]
pub fn guest_names(guest: Uuid) -> Vec<String> {
    let begun = Sha256::new().chain_update(b"platform guest name\0");
    generate_guest_names(&Derived {
        begun: begun.chain_update(guest.as_bytes()),
        block: AtomicU64::new(0),
    })
}

/// Bytes that are derived from something for one purpose, in blocks.
struct Derived {
    /// The purpose, and what they are derived from.
    begun: Sha256,
    block: AtomicU64,
}

impl Derived {
    /// The secret has a fixed length, so no two purposes hash the same bytes, and none the same as
    /// [`SessionSecret::hash`].
    fn of(secret: &SessionSecret, purpose: &[u8]) -> Self {
        let begun = Sha256::new().chain_update(purpose).chain_update([0]);
        Self {
            begun: begun.chain_update(secret.0),
            block: AtomicU64::new(0),
        }
    }
}

impl Entropy for Derived {
    fn fill(&self, bytes: &mut [u8]) {
        for part in bytes.chunks_mut(32) {
            let block = self.block.fetch_add(1, Ordering::Relaxed);
            let hash = self.begun.clone().chain_update(block.to_be_bytes());
            for (to, from) in part.iter_mut().zip(hash.finalize()) {
                *to = from;
            }
        }
    }
}

impl fmt::Debug for Derived {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Derived(hidden)")
    }
}

/// SHA-256 of a [`SessionSecret`]: identifies a session, but gives no access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SessionHash(pub [u8; 32]);

impl SessionHash {
    /// The id of the session on its player's own page: 22 characters of base64url, from which the
    /// hash cannot be computed.
    #[must_use]
    pub fn public_id(&self) -> String {
        let hash = Sha256::new()
            .chain_update(b"platform session id\0")
            .chain_update(self.0)
            .finalize();
        let mut id = URL_SAFE_NO_PAD.encode(hash);
        id.truncate(PUBLIC_ID_CHARS);
        id
    }
}

/// Characters of a session's public id: 132 bits.
const PUBLIC_ID_CHARS: usize = 22;

/// A session with its player, read in one transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// The session's hash.
    pub hash: SessionHash,
    /// Its player.
    pub player: Player,
    /// When it began.
    pub created_at: Millis,
    /// When it was last renewed; moved at most daily.
    pub renewed_at: Millis,
    /// When it ended: by signing out, by revocation, or by a merge.
    pub ended_at: Option<Millis>,
    /// A short description of its browser; `None` until it was seen.
    pub browser: Option<String>,
    /// The deletion of its player that was asked for.
    pub deletion: Option<Deletion>,
}

/// What a session still allows.
#[derive(Debug, PartialEq, Eq)]
pub enum SessionStatus {
    /// Its player gets a token.
    Good,
    /// A guest's session that ended. It counts as no session.
    Stranger,
    /// An ended session of an account, or a session of a merged guest. The player must sign in: a
    /// new guest would lose access to their progress.
    Expired,
    /// No token and no new guest, because the player is to be deleted: the player takes that back,
    /// or signs out.
    Leaving(Deletion),
    /// No token and no new guest until the suspension is lifted. With the reason for the player.
    Suspended(Option<String>),
}

/// A session as its player may see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionSummary {
    /// The session's hash.
    pub hash: SessionHash,
    /// When it began.
    pub created_at: Millis,
    /// When it was last renewed; moved at most daily.
    pub renewed_at: Millis,
    /// A short description of its browser; `None` until it was seen.
    pub browser: Option<String>,
}

/// Life of a session without use. It is shorter than that of its cookie: when the session of an
/// account has ended by age, the browser still has the cookie, so the player is told, and does not
/// become a new guest.
pub const SESSION_MILLIS: Millis = 370 * DAY_MILLIS;
/// Life of a cookie without use: 400 days, the longest that browsers keep one (RFC 6265bis §5.5).
pub const COOKIE_AGE: Millis = 400 * DAY_MILLIS;
/// How often a session in use is renewed, at most.
pub const RENEW_MILLIS: Millis = DAY_MILLIS;
/// For how long the old cookie of a guest still works after the guest, whose row was removed, was
/// made again under a new cookie: the response with the new one may have been lost, and other tabs
/// send requests at the same moment.
pub const BACK_MILLIS: Millis = DAY_MILLIS;
/// How long a session's row is kept after its last renewal. An unknown cookie makes a new guest, so
/// the row of an account's session outlives the cookie, even if the browser's clock is wrong.
pub const KEPT_MILLIS: Millis = COOKIE_AGE + 30 * DAY_MILLIS;

const DAY_MILLIS: Millis = 24 * 60 * 60 * 1_000;

impl Session {
    /// Whether it has ended at `now`, explicitly or by age.
    #[must_use]
    pub const fn has_ended(&self, now: Millis) -> bool {
        self.ended_at.is_some() || now - self.renewed_at >= SESSION_MILLIS
    }

    /// What it allows at `now`.
    #[must_use]
    pub fn status(&self, now: Millis) -> SessionStatus {
        match (&self.player.state, self.has_ended(now)) {
            (PlayerState::Suspended { reason, .. }, _) => SessionStatus::Suspended(reason.clone()),
            (PlayerState::Merged { .. }, _) | (PlayerState::Account, true) => {
                SessionStatus::Expired
            }
            (PlayerState::Guest, true) => SessionStatus::Stranger,
            (PlayerState::Guest | PlayerState::Account, false) => match self.deletion {
                Some(deletion) => SessionStatus::Leaving(deletion),
                None => SessionStatus::Good,
            },
        }
    }

    /// Whether its use at `now` should be stored.
    #[must_use]
    pub const fn wants_renewal(&self, now: Millis) -> bool {
        now - self.renewed_at >= RENEW_MILLIS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::player::PlayerState;
    use uuid::Uuid;

    fn session(state: PlayerState, ended_at: Option<Millis>) -> Session {
        let player = Player {
            id: Uuid::nil(),
            username: "swift-otter-4821".into(),
            state,
            created_at: 0,
            seen_at: 0,
            awaited: false,
        };
        Session {
            hash: SessionHash([0; 32]),
            player,
            created_at: 0,
            renewed_at: 0,
            ended_at,
            browser: None,
            deletion: None,
        }
    }

    #[test]
    fn a_session_is_named_without_its_hash() {
        let (one, other) = (SessionHash([1; 32]), SessionHash([2; 32]));
        assert_eq!(one.public_id().len(), 22);
        assert_eq!(one.public_id(), one.public_id());
        assert_ne!(one.public_id(), other.public_id());
    }

    #[test]
    fn a_guest_follows_from_its_secret_and_says_nothing_about_it() {
        let secret = |byte| SessionSecret::from_bytes([byte; 32]);
        let (one, again, other) = (secret(1), secret(1), secret(2));
        assert_eq!(one.guest_id(), again.guest_id());
        assert_eq!(one.guest_names(), again.guest_names());
        assert_ne!(one.guest_id(), other.guest_id());
        assert_ne!(one.guest_names(), other.guest_names());
        assert_eq!(one.guest_id().get_version_num(), 4);
        let hash = one.hash().0;
        assert!(
            !hash
                .windows(4)
                .any(|part| one.guest_id().as_bytes().starts_with(part))
        );
    }

    #[test]
    fn who_is_to_be_deleted_gets_no_token_and_a_suspension_counts_more() {
        let deletion = Deletion { asked_at: 1, at: 9 };
        for state in [PlayerState::Guest, PlayerState::Account] {
            let session = Session {
                deletion: Some(deletion),
                ..session(state, None)
            };
            // Whoever removes the player may be late.
            for now in [2, 10] {
                assert_eq!(session.status(now), SessionStatus::Leaving(deletion));
            }
        }
        let suspended = Session {
            deletion: Some(deletion),
            ..session(
                PlayerState::Suspended {
                    reason: None,
                    linked: true,
                },
                None,
            )
        };
        assert_eq!(suspended.status(2), SessionStatus::Suspended(None));
    }

    #[test]
    fn only_a_guest_that_ended_makes_room_for_a_new_one() {
        let merged = PlayerState::Merged { into: Uuid::nil() };
        let suspended = PlayerState::Suspended {
            reason: Some("Why.".into()),
            linked: true,
        };
        let told = || SessionStatus::Suspended(Some("Why.".into()));
        let cases = [
            (PlayerState::Guest, None, 1, SessionStatus::Good),
            (PlayerState::Guest, Some(1), 2, SessionStatus::Stranger),
            (
                PlayerState::Guest,
                None,
                SESSION_MILLIS,
                SessionStatus::Stranger,
            ),
            (PlayerState::Account, None, 1, SessionStatus::Good),
            (PlayerState::Account, Some(1), 2, SessionStatus::Expired),
            (
                PlayerState::Account,
                None,
                SESSION_MILLIS,
                SessionStatus::Expired,
            ),
            (merged.clone(), None, 1, SessionStatus::Expired),
            (merged, Some(1), 2, SessionStatus::Expired),
            (suspended.clone(), None, 1, told()),
            (suspended, Some(1), 2, told()),
        ];
        for (state, ended_at, now, expected) in cases {
            let session = session(state, ended_at);
            assert_eq!(session.status(now), expected, "{session:?} at {now}");
        }
    }
}
