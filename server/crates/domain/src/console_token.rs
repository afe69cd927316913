//! Tokens for the platform's own API: what they depend on, their scope, and their life.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use platform_protocol::claims::{
    ConsoleTokenClaims, GameTokenClaims, SCOPE_ADMINISTRATION, SCOPE_PROJECTS,
};
use uuid::Uuid;

use super::player::Player;
use super::session::SessionHash;
use crate::clock::{CLOCKS_DIFFER, Millis};

/// Life of a token in seconds, unless game tokens have a shorter one.
pub const CONSOLE_TOKEN_SECONDS: u64 = 300;
/// How old a sign-in may be for administration: 15 minutes.
pub const FRESH_MILLIS: Millis = 15 * 60 * 1_000;

/// The life of a token, given the life of game tokens.
#[must_use]
pub const fn life(token_seconds: u64) -> u64 {
    if token_seconds < CONSOLE_TOKEN_SECONDS {
        token_seconds
    } else {
        CONSOLE_TOKEN_SECONDS
    }
}

/// What a token depends on. The token ends with it, even before its own expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Hold {
    /// A session in a browser.
    Session(SessionHash),
    /// A device that is signed in.
    Device(Uuid),
}

impl Hold {
    /// Returns the claims that name it: `sid` or `device`.
    #[must_use]
    pub fn names(&self) -> (Option<String>, Option<String>) {
        match self {
            Self::Session(hash) => (Some(URL_SAFE_NO_PAD.encode(hash.0)), None),
            Self::Device(device) => (None, Some(device.to_string())),
        }
    }

    /// Reads it from the claims `sid` and `device`; `None` unless they name exactly one thing.
    #[must_use]
    pub fn named(sid: Option<&str>, device: Option<&str>) -> Option<Self> {
        match (sid, device) {
            (Some(sid), None) => {
                let hash = URL_SAFE_NO_PAD.decode(sid).ok()?;
                Some(Self::Session(SessionHash(hash.try_into().ok()?)))
            }
            (None, Some(device)) => device.parse().ok().map(Self::Device),
            _ => None,
        }
    }

    /// Returns the claims of a token for `player` that ends with this session or device. A device
    /// never gets the scope for administration.
    #[must_use]
    pub fn claims(&self, player: GameTokenClaims) -> ConsoleTokenClaims {
        let (sid, device) = self.names();
        let scope = match self {
            Self::Session(_) => format!("{SCOPE_PROJECTS} {SCOPE_ADMINISTRATION}"),
            Self::Device(_) => SCOPE_PROJECTS.to_owned(),
        };
        ConsoleTokenClaims {
            player,
            sid,
            device,
            scope,
        }
    }

    /// Reads what a token depends on from its claims; `None` unless they name exactly one thing.
    #[must_use]
    pub fn of(claims: &ConsoleTokenClaims) -> Option<Self> {
        Self::named(claims.sid.as_deref(), claims.device.as_deref())
    }
}

/// Whether a token's scope allows administration, if its player is an administrator.
#[must_use]
pub fn may_administer(claims: &ConsoleTokenClaims) -> bool {
    let mut scopes = claims.scope.split(' ');
    scopes.any(|scope| scope == SCOPE_ADMINISTRATION)
}

/// The player of a session or device that has not ended, read in one transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The player.
    pub player: Player,
    /// Whether the operator's command made the player an administrator.
    pub is_admin: bool,
    /// When the player last signed in at the provider, in this browser; `None` for devices and
    /// guests.
    pub authenticated_at: Option<Millis>,
}

impl Holder {
    /// Whether the sign-in is recent enough for administration.
    #[must_use]
    pub fn is_fresh(&self, now: Millis) -> bool {
        let age = self.authenticated_at.map(|at| now - at);
        // The person may have signed in at a node whose clock is ahead.
        age.is_some_and(|age| (-CLOCKS_DIFFER..=FRESH_MILLIS).contains(&age))
    }
}

#[cfg(test)]
mod tests {
    use platform_protocol::claims::PrincipalKind;

    use super::*;
    use crate::player::PlayerState;

    fn player() -> GameTokenClaims {
        GameTokenClaims {
            sub: "s".into(),
            username: "heron".into(),
            aud: "platform:console".into(),
            iss: "http://auth.example".into(),
            is_anon: false,
            principal_kind: PrincipalKind::Human,
            exp: 2,
            iat: 1,
            jti: "j".into(),
        }
    }

    #[test]
    fn a_token_says_what_it_hangs_on_and_only_a_browsers_administers() {
        for (hold, administers) in [
            (Hold::Session(SessionHash([7; 32])), true),
            (Hold::Device(Uuid::max()), false),
        ] {
            let claims = hold.claims(player());
            let json = serde_json::to_string(&claims).unwrap();
            let read: ConsoleTokenClaims = serde_json::from_str(&json).unwrap();
            assert_eq!(read, claims);
            assert_eq!(Hold::of(&read), Some(hold));
            assert_eq!(may_administer(&read), administers);
            let both = ConsoleTokenClaims {
                sid: Some(URL_SAFE_NO_PAD.encode([7; 32])),
                device: Some(Uuid::max().to_string()),
                ..read
            };
            assert_eq!(Hold::of(&both), None);
        }
        let none = ConsoleTokenClaims {
            player: player(),
            sid: None,
            device: None,
            scope: String::new(),
        };
        assert_eq!(Hold::of(&none), None);
    }

    #[test]
    fn a_sign_in_is_fresh_for_fifteen_minutes() {
        let holder = |authenticated_at| Holder {
            player: Player {
                id: Uuid::nil(),
                username: "heron".into(),
                state: PlayerState::Account,
                created_at: 0,
                seen_at: 0,
                awaited: false,
            },
            is_admin: true,
            authenticated_at,
        };
        assert!(holder(Some(5)).is_fresh(5) && holder(Some(5)).is_fresh(5 + FRESH_MILLIS));
        assert!(!holder(Some(5)).is_fresh(6 + FRESH_MILLIS));
        // By the clock of another node.
        assert!(holder(Some(5)).is_fresh(5 - CLOCKS_DIFFER));
        assert!(!holder(Some(5)).is_fresh(4 - CLOCKS_DIFFER) && !holder(None).is_fresh(5));
    }

    #[test]
    fn a_token_lives_five_minutes_at_most() {
        assert_eq!((life(86_400), life(900), life(60)), (300, 300, 60));
    }
}
