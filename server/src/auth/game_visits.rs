//! Visits to games that are apart, by the cookie of the game's own address.

use std::sync::Arc;

use axum::http::HeaderMap;
use platform_protocol::problem::ProblemCode;

use crate::auth::AuthState;
use crate::clock::Millis;
use crate::domain::game_session::{GameSession, GameSessionSecret};
use crate::domain::session::{Session, SessionSecret, SessionStatus};
use crate::games::catalogue::Game;
use crate::store::StoreError;
use crate::web::api_error::ApiError;
use crate::web::cookies::{self, Embedding};
use crate::web::cors::{AllowedOrigin, may_be_from};

/// The query of a page in a frame of another site.
const FRAMED: &str = "framed";

/// The session of a game that a browser brings.
#[derive(Debug)]
pub enum Held {
    /// None, or only sessions of other games.
    Nothing,
    /// A cookie without a session. It may be that of a guest whose row was swept.
    Unknown(GameSessionSecret),
    /// The session of a guest who plays this game alone.
    Lone(GameSessionSecret, Box<Session>),
    /// A session that comes from one at the auth service.
    Child(GameSessionSecret, Box<GameSession>),
}

impl Held {
    /// Finds the session of this game in a request's cookies.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn of(
        state: &AuthState,
        game: &Game,
        (headers, embedding): (&HeaderMap, Embedding),
    ) -> Result<Self, StoreError> {
        let store = &state.platform.store;
        let mut held = Self::Nothing;
        let secure = state.platform.origin.is_secure();
        for secret in cookies::read_game(headers, secure, embedding) {
            if let Some(found) = store.lookup_game_session(&secret.hash()).await? {
                if *found.game == *game.audience {
                    return Ok(Self::Child(secret, Box::new(found)));
                }
                continue;
            }
            let lone = secret.lone_session(&game.audience);
            if let Some(session) = store.lookup_session(&lone.hash()).await? {
                return Ok(Self::Lone(secret, Box::new(session)));
            }
            held = Self::Unknown(secret);
        }
        Ok(held)
    }

    /// Whether the browser need not be sent to the auth service: its session comes from there, or
    /// the player may not play. A guest who plays this game alone is not left so for ever, and who
    /// plays this game alone keeps the cookie at the auth service.
    #[must_use]
    pub fn is_settled(&self, now: Millis) -> bool {
        match self {
            Self::Child(_, found) if found.wants_hand_off(now) => false,
            Self::Lone(..) => matches!(
                self.status(now),
                Some(SessionStatus::Leaving(_) | SessionStatus::Suspended(_))
            ),
            Self::Nothing | Self::Unknown(_) | Self::Child(..) => self.is_usable(now),
        }
    }

    /// Whether the game has a player by it, or knows why not.
    #[must_use]
    pub fn is_usable(&self, now: Millis) -> bool {
        match self.status(now) {
            None => matches!(self, Self::Child(..)),
            Some(SessionStatus::Stranger | SessionStatus::Expired) => false,
            Some(_) => true,
        }
    }

    /// Whether the player is suspended.
    #[must_use]
    pub fn is_suspended(&self, now: Millis) -> bool {
        matches!(self.status(now), Some(SessionStatus::Suspended(_)))
    }

    /// Returns what the player may do; `None` if there is no player yet, as with a blank session.
    fn status(&self, now: Millis) -> Option<SessionStatus> {
        let session = match self {
            Self::Nothing | Self::Unknown(_) => None,
            Self::Lone(_, session) => Some(&**session),
            Self::Child(_, found) => found.session.as_ref(),
        };
        session.map(|session| session.status(now))
    }

    /// Returns the secret from which a guest who plays this game alone may be made again.
    #[must_use]
    pub fn swept(&self, game: &Game) -> Option<SessionSecret> {
        match self {
            Self::Unknown(secret) => Some(secret.lone_session(&game.audience)),
            Self::Nothing | Self::Lone(..) | Self::Child(..) => None,
        }
    }
}

/// A request that the page of a game that is apart sends to its own address.
#[derive(Debug)]
pub struct OwnPage<'game> {
    /// The game, as a caller that gets tokens.
    pub caller: &'game AllowedOrigin,
    /// Where the page is.
    pub embedding: Embedding,
}

impl<'game> OwnPage<'game> {
    /// Checks that the request comes from a page of this game.
    ///
    /// # Errors
    /// `not-found` for a game that is not apart, or has no pages; `unknown-origin` for a request of
    /// another page.
    pub fn of(
        game: &'game Arc<Game>,
        headers: &HeaderMap,
        query: Option<&str>,
    ) -> Result<Self, ApiError> {
        let caller = game.caller.as_ref().filter(|_| game.is_apart);
        let caller = caller.ok_or(ProblemCode::NotFound)?;
        if !may_be_from(headers, &game.origin) {
            return Err(ProblemCode::UnknownOrigin.into());
        }
        let embedding = match query {
            Some(FRAMED) => Embedding::Framed,
            _ => Embedding::Top,
        };
        Ok(Self { caller, embedding })
    }
}
