//! The claims of a game token: a JWT (RFC 7519) signed with ES256.

use serde::{Deserialize, Serialize};

/// What a game token says about a player, to the backend of one game.
///
/// Every member is always present. The token never contains the player's e-mail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GameTokenClaims {
    /// Player id, a UUID: the same in every game. Key a player's data on it.
    pub sub: String,
    /// The current display name. It can change, so never use it as a key.
    pub username: String,
    /// The one audience that may accept this token: `game:<slug>`,
    /// `game:dev-<slug>` or `platform:console`.
    pub aud: String,
    /// The auth service that minted the token.
    pub iss: String,
    /// True for a guest: a player without a linked external identity.
    pub is_anon: bool,
    /// Whether a person or a test user plays.
    pub principal_kind: PrincipalKind,
    /// End of the token's life, in seconds since the epoch (RFC 7519 §4.1.4).
    pub exp: u64,
    /// Time of issue, in seconds since the epoch (RFC 7519 §4.1.6).
    pub iat: u64,
    /// Unique id of this token (RFC 7519 §4.1.7).
    pub jti: String,
}

/// A console token with this scope may manage the player's own projects.
pub const SCOPE_PROJECTS: &str = "projects";
/// A console token with this scope may also administer the platform. No device ever gets it.
pub const SCOPE_ADMINISTRATION: &str = "administration";

/// The claims of a token for the platform's own API, audience `platform:console`: those of a game
/// token, and the session or device that it depends on, and its scope. A game token has its nine
/// claims and no others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsoleTokenClaims {
    /// The player.
    #[serde(flatten)]
    pub player: GameTokenClaims,
    /// The browser session that the token ends with, by an id that is no credential (OpenID Connect
    /// Front-Channel Logout 1.0 §3, `sid`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sid: Option<String>,
    /// The device that the token ends with, a UUID.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// The scope, words with spaces between (RFC 9068 §2.2.3).
    pub scope: String,
}

/// What kind of player a token is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PrincipalKind {
    /// A player.
    Human,
    /// One of a project's test users or test guests, in the dev environment.
    TestUser,
}

/// The JOSE header of a game token (RFC 7515 §4).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GameTokenHeader {
    /// Always `ES256`.
    pub alg: String,
    /// Always `JWT`.
    pub typ: String,
    /// The signing key's RFC 7638 thumbprint, to find it in the key set.
    pub kid: String,
}

/// The claims with which the platform signs every request that it forwards to a game's backend: the
/// request came through the platform. They name no player and no request, so one assertion is used
/// until it expires.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssertionClaims {
    /// The platform's auth service.
    pub iss: String,
    /// [`ASSERTION_AUDIENCE`] and the audience of the game's tokens, so that a game token is never
    /// accepted as an assertion, or an assertion as a game token.
    pub aud: String,
    /// The game's address, `<host>[:<port>]`.
    pub host: String,
    /// Its end, in seconds since the epoch.
    pub exp: u64,
    /// When it was signed, in seconds since the epoch.
    pub iat: u64,
}

/// The header of an assertion, in lower case.
pub const ASSERTION_HEADER: &str = "platform-assertion";
/// `typ` of an assertion (RFC 8725 §3.11).
pub const ASSERTION_TYPE: &str = "platform-request+jwt";
/// The prefix of an assertion's audience, before the audience of the game's tokens.
pub const ASSERTION_AUDIENCE: &str = "backend:";
/// The life of an assertion, in seconds.
pub const ASSERTION_SECONDS: u64 = 120;

/// The only signature algorithm of game tokens (RFC 7518 §3.4).
pub const ALGORITHM: &str = "ES256";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn principal_kinds_are_spelled_as_the_specification_spells_them() {
        let json = |kind| serde_json::to_string(&kind).unwrap();
        assert_eq!(json(PrincipalKind::Human), r#""human""#);
        assert_eq!(json(PrincipalKind::TestUser), r#""test_user""#);
    }
}
