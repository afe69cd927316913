//! The demo provider's rules: authorization requests, codes, and their exchange (OpenID Connect
//! Core 1.0 §3.1).

use std::fmt;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use url::Url;

use super::DemoProvider;
use crate::auth::keys::KeyError;

/// How long a person may take to enter a name.
pub(super) const REQUEST_LIFE: Duration = Duration::from_secs(600);
/// The lifetime of a code (RFC 6749 §4.1.2).
pub(super) const CODE_LIFE: Duration = Duration::from_secs(60);
/// The lifetime of an ID token, in seconds.
const TOKEN_SECONDS: i64 = 300;
/// The maximum number of characters of a name.
pub const MAX_NAME_CHARS: usize = 64;
/// The maximum number of bytes of any parameter.
const MAX_PARAMETER_BYTES: usize = 512;

/// An authorization request as it arrives.
#[derive(Default)]
pub struct Asked<'a> {
    /// `response_type`
    pub response_type: Option<&'a str>,
    /// `client_id`
    pub client_id: Option<&'a str>,
    /// `redirect_uri`
    pub redirect: Option<&'a str>,
    /// `scope`
    pub scope: Option<&'a str>,
    /// `state`
    pub state: Option<&'a str>,
    /// `nonce`
    pub nonce: Option<&'a str>,
    /// `code_challenge`
    pub challenge: Option<&'a str>,
    /// `code_challenge_method`
    pub challenge_method: Option<&'a str>,
}

impl fmt::Debug for Asked<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Asked(hidden)")
    }
}

/// A request that waits for the person's decision.
#[derive(Deserialize, Serialize)]
pub(super) struct Request {
    state: Option<String>,
    nonce: Option<String>,
    challenge: String,
}

/// The data of a code.
#[derive(Deserialize, Serialize)]
pub(super) struct Grant {
    subject: String,
    /// The name as the person typed it.
    name: String,
    /// When the person entered the name, in seconds since the Unix epoch.
    said_at: i64,
    nonce: Option<String>,
    challenge: String,
}

/// The parameters of a request to the token endpoint.
pub struct Exchange<'a> {
    /// The client's id and secret.
    pub client: Option<(&'a str, &'a str)>,
    /// `grant_type`
    pub grant_type: Option<&'a str>,
    /// `code`
    pub code: Option<&'a str>,
    /// `redirect_uri`
    pub redirect: Option<&'a str>,
    /// `code_verifier`
    pub verifier: Option<&'a str>,
}

impl fmt::Debug for Exchange<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Exchange(hidden)")
    }
}

/// The redirect address is invalid, so there is no address for an error response (RFC 6749
/// §4.1.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongAddress;

/// Why no token is issued (RFC 6749 §5.2).
#[derive(Debug)]
pub enum Refused {
    /// `invalid_client`
    Client,
    /// `unsupported_grant_type`
    GrantType,
    /// `invalid_grant`
    Grant,
    /// The token could not be signed.
    Key(KeyError),
}

/// The token endpoint's response (OpenID Connect Core 1.0 §3.1.3.3). The access token gives access
/// to nothing, since there is nothing to access.
#[derive(Serialize)]
pub struct NewToken {
    access_token: String,
    token_type: &'static str,
    expires_in: i64,
    id_token: String,
}

impl fmt::Debug for NewToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NewToken(hidden)")
    }
}

#[derive(Serialize)]
struct IdTokenClaims<'a> {
    iss: &'a str,
    sub: &'a str,
    preferred_username: &'a str,
    aud: &'a str,
    exp: i64,
    iat: i64,
    auth_time: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    nonce: Option<&'a str>,
}

impl DemoProvider {
    /// Returns the request, sealed for the form, or the address for an error redirect.
    ///
    /// # Errors
    /// [`WrongAddress`]
    pub fn ask(&self, asked: &Asked<'_>) -> Result<Result<String, Url>, WrongAddress> {
        if asked.client_id != Some(&self.client_id) || asked.redirect != Some(&self.redirect) {
            return Err(WrongAddress);
        }
        let fits = |text: &&str| text.len() <= MAX_PARAMETER_BYTES;
        let state = asked.state.filter(fits).map(str::to_owned);
        let error = |error| Ok(Err(self.back(state.as_deref(), &[("error", error)])?));
        if asked.response_type != Some("code") {
            return error("unsupported_response_type");
        }
        let mut scopes = asked.scope.unwrap_or_default().split(' ');
        if !scopes.any(|scope| scope == "openid") {
            return error("invalid_scope");
        }
        // RFC 7636 §4.4.1. A challenge is SHA-256 in base64url.
        let challenge = asked.challenge.filter(|challenge| challenge.len() == 43);
        let (Some(challenge), Some("S256")) = (challenge, asked.challenge_method) else {
            return error("invalid_request");
        };
        let request = Request {
            nonce: asked.nonce.filter(fits).map(str::to_owned),
            challenge: challenge.to_owned(),
            state,
        };
        let sealed = self
            .requests
            .seal(request, self.clock.now(), &*self.entropy);
        sealed.map(Ok).ok_or(WrongAddress)
    }

    /// Whether this request is waiting.
    #[must_use]
    pub fn is_waiting(&self, request: &str) -> bool {
        self.requests.has(request, self.clock.now())
    }

    /// Grants a request for the person with this name, and returns the redirect with a code.
    /// Returns `None` if there is no such request, or [`subject_of`] returns none for the name.
    #[must_use]
    pub fn grant(&self, request: &str, name: &str) -> Option<Url> {
        let subject = subject_of(name)?;
        let now = self.clock.now();
        let request = self.requests.take(request, now)?;
        let grant = Grant {
            subject,
            name: name.trim().to_owned(),
            said_at: now / 1_000,
            nonce: request.nonce,
            challenge: request.challenge,
        };
        let code = self.codes.seal(grant, now, &*self.entropy)?;
        let answer = [("code", code.as_str())];
        self.back(request.state.as_deref(), &answer).ok()
    }

    /// Denies a request, and returns the redirect with the error. Returns `None` if there is no
    /// such request.
    #[must_use]
    pub fn cancel(&self, request: &str) -> Option<Url> {
        let request = self.requests.take(request, self.clock.now())?;
        let answer = [("error", "access_denied")];
        self.back(request.state.as_deref(), &answer).ok()
    }

    /// Exchanges a code for a token. A code is removed at the first try, whatever the result.
    ///
    /// # Errors
    /// [`Refused`]
    pub fn exchange(&self, exchange: &Exchange<'_>) -> Result<NewToken, Refused> {
        let (id, secret) = exchange.client.ok_or(Refused::Client)?;
        let secret = secret
            .as_bytes()
            .ct_eq(self.client_secret.expose().as_bytes());
        if id != self.client_id || !bool::from(secret) {
            return Err(Refused::Client);
        }
        if exchange.grant_type != Some("authorization_code") {
            return Err(Refused::GrantType);
        }
        let grant = exchange
            .code
            .and_then(|code| self.codes.take(code, self.clock.now()))
            .ok_or(Refused::Grant)?;
        // RFC 7636 §4.6.
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(exchange.verifier.unwrap_or("")));
        let is_the_one = challenge.as_bytes().ct_eq(grant.challenge.as_bytes());
        if exchange.redirect != Some(&self.redirect) || !bool::from(is_the_one) {
            return Err(Refused::Grant);
        }
        let now = self.clock.now() / 1_000;
        let claims = IdTokenClaims {
            iss: &self.issuer,
            sub: &grant.subject,
            preferred_username: &grant.name,
            aud: &self.client_id,
            exp: now + TOKEN_SECONDS,
            iat: now,
            auth_time: grant.said_at,
            nonce: grant.nonce.as_deref(),
        };
        Ok(NewToken {
            access_token: self.random(),
            token_type: "Bearer",
            expires_in: TOKEN_SECONDS,
            id_token: self.key.sign(&claims).map_err(Refused::Key)?,
        })
    }

    /// Returns the client's redirect address with the response, which names the issuer (RFC 9207
    /// §2).
    fn back(&self, state: Option<&str>, answer: &[(&str, &str)]) -> Result<Url, WrongAddress> {
        let mut address = Url::parse(&self.redirect).map_err(|_| WrongAddress)?;
        address
            .query_pairs_mut()
            .extend_pairs(answer)
            .extend_pairs(state.map(|state| ("state", state)))
            .append_pair("iss", &self.issuer);
        Ok(address)
    }
}

/// Returns the person with this name: the same name in any case is the same person. Returns `None`
/// if the name is invalid.
#[must_use]
pub fn subject_of(name: &str) -> Option<String> {
    let name = name.trim();
    let plain = !name.is_empty()
        && name.chars().count() <= MAX_NAME_CHARS
        && !name.chars().any(char::is_control);
    plain.then(|| name.to_lowercase())
}
