//! The caller's session: a token from the environment, or the stored sign-in, refreshed when it is
//! due.

use std::sync::OnceLock;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{Request, StatusCode, header, request};
use platform_protocol::claims::SCOPE_ADMINISTRATION;
use platform_protocol::deploy_token::is_well_formed;
use serde::Deserialize;

use crate::client::answer::{Answer, Caller};
use crate::client::oauth::{Grant, Tokens};
use crate::client::{Body, Http, empty, finish};
use crate::clock::now;
use crate::credentials::{Credentials, Entry};
use crate::failure::Failure;
use crate::origin::PlatformOrigin;
use crate::secret::Secret;
use crate::settings::Settings;
use crate::terminal;

/// The failure if there never was a sign-in.
fn sign_in_first(origin: &PlatformOrigin) -> Failure {
    let sentence = format!(
        "Nobody is signed in to {origin}: run {}, or set PLATFORM_TOKEN.",
        origin.login_command()
    );
    Failure::not_signed_in(origin, sentence)
}

/// The failure if the sign-in has ended.
fn sign_in_again(origin: &PlatformOrigin) -> Failure {
    let sentence = format!(
        "The sign-in to {origin} has ended: run {}.",
        origin.login_command()
    );
    Failure::not_signed_in(origin, sentence)
}

/// Sends requests to the project API for an account.
#[derive(Debug)]
pub(crate) struct Session {
    http: Http,
    given: Option<Secret>,
    /// Whether the address was seen to be no game's.
    is_no_game: OnceLock<()>,
    credentials: Credentials,
    as_administrator: bool,
}

/// A project's owner.
#[derive(Debug, Deserialize)]
struct Owned {
    owner: Option<String>,
    owner_username: Option<String>,
    /// The role of this account. An older platform does not send it.
    #[serde(default)]
    role: Option<String>,
}

/// The claims of a token. They are only shown, never trusted: the platform verifies tokens, this
/// program does not.
#[derive(Debug, Deserialize)]
pub(crate) struct Bearer {
    /// The account's id.
    pub(crate) sub: String,
    /// Its name.
    pub(crate) username: String,
    iss: String,
    /// The scope; words with spaces between.
    #[serde(default)]
    scope: String,
}

impl Bearer {
    /// Whether the token may act on other accounts' projects, if the account is an administrator.
    /// Tokens of devices never may.
    fn may_administer(&self) -> bool {
        self.scope
            .split(' ')
            .any(|scope| scope == SCOPE_ADMINISTRATION)
    }

    /// Reads a token's claims.
    pub(crate) fn of(token: &Secret) -> Option<Self> {
        let claims = token.expose().split('.').nth(1)?;
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()
    }
}

impl Session {
    /// Makes the session that the settings name.
    ///
    /// # Errors
    /// `PLATFORM_TOKEN` is for another platform, or the caller named none, so it is not sent.
    pub(crate) fn new(
        http: Http,
        settings: &Settings,
        credentials: Credentials,
    ) -> Result<Self, Failure> {
        let given = settings.token.clone();
        if let Some(token) = &given
            && token.is_deploy_token()
        {
            // A platform.toml from a stranger's game may name any origin, and the token works for
            // whoever has it.
            if !settings.named_by_caller {
                return Err(Failure::usage(
                    "PLATFORM_TOKEN is a deploy token, which is only sent to a platform that --origin \
                     or PLATFORM_ORIGIN names: set one of them.",
                ));
            }
            if !is_well_formed(token.expose()) {
                return Err(Failure::usage(
                    "PLATFORM_TOKEN is not a complete deploy token: copy it again.",
                ));
            }
        }
        let auth_url = settings.origin.auth_url();
        // A platform.toml from a stranger's game may name any origin.
        if let Some(bearer) = given.as_ref().and_then(Bearer::of)
            && bearer.iss != auth_url
        {
            return Err(Failure::usage(format!(
                "PLATFORM_TOKEN belongs to {}, but the platform is {}: name the right one with \
                 --origin.",
                bearer.iss, settings.origin
            )));
        }
        Ok(Self {
            http,
            given,
            is_no_game: OnceLock::new(),
            credentials,
            as_administrator: settings.as_administrator,
        })
    }

    /// The session's HTTP client.
    pub(crate) const fn http(&self) -> &Http {
        &self.http
    }

    /// Whether the token comes from the environment.
    pub(crate) const fn is_given(&self) -> bool {
        self.given.is_some()
    }

    /// Whether the token from the environment is a deploy token, which may only make the calls that
    /// its scopes name.
    pub(crate) fn is_deploy_token(&self) -> bool {
        self.given.as_ref().is_some_and(Secret::is_deploy_token)
    }

    fn caller(&self) -> Caller {
        if self.is_deploy_token() {
            Caller::DeployToken
        } else {
            Caller::Account
        }
    }

    /// The account's name as far as it is known without the platform: the sign-in may have ended
    /// elsewhere.
    pub(crate) fn known_username(&self) -> Option<String> {
        let stored = || {
            let entry = self.credentials.look_up(self.http.origin()).ok()?;
            Some(entry?.access_token)
        };
        let token = self.given.clone().or_else(stored)?;
        Some(Bearer::of(&token)?.username)
    }

    /// Returns a token that can be sent now.
    ///
    /// # Errors
    /// No account is signed in, or the auth service issues no new token.
    pub(crate) async fn token(&self) -> Result<Secret, Failure> {
        if let Some(token) = &self.given {
            if token.is_deploy_token() {
                self.require_no_game().await?;
            }
            return Ok(token.clone());
        }
        match self.credentials.look_up(self.http.origin())? {
            None => Err(sign_in_first(self.http.origin())),
            Some(entry) if entry.is_fresh(now()) => Ok(entry.access_token),
            Some(entry) => self.another_than(&entry.access_token).await,
        }
    }

    /// Makes sure that the address is not a game's, whose backend would get the token.
    async fn require_no_game(&self) -> Result<(), Failure> {
        if self.is_no_game.get().is_some() {
            return Ok(());
        }
        let origin = self.http.origin();
        match self.http.named_platform().await {
            Some(platform) if platform != *origin => Err(Failure::usage(format!(
                "{origin} is an address of the platform {platform}, and not that platform itself, so \
                 PLATFORM_TOKEN is not sent there: name the platform with --origin or PLATFORM_ORIGIN."
            ))),
            _ => {
                let _ = self.is_no_game.set(());
                Ok(())
            }
        }
    }

    /// Returns a newly issued token, or the one from the environment after the platform has
    /// accepted it. So a sign-in that was ended elsewhere is noticed.
    ///
    /// # Errors
    /// No account is signed in, or the platform does not respond.
    pub(crate) async fn fresh_token(&self) -> Result<Secret, Failure> {
        let token = self.token().await?;
        if self.is_given() {
            self.get("/api/projects").await?;
            return Ok(token);
        }
        self.another_than(&token).await
    }

    /// Returns a new token in place of one that expired or was refused.
    ///
    /// # Errors
    /// The sign-in has ended, or the auth service does not respond.
    pub(crate) async fn another_than(&self, refused: &Secret) -> Result<Secret, Failure> {
        let origin = self.http.origin();
        // The command that holds the lock may wait for two responses.
        let locked = self.credentials.lock(self.http.timeout() * 3).await?;
        let Some(entry) = locked.look_up(origin)? else {
            return Err(sign_in_again(origin));
        };
        // Another command has already refreshed it.
        if entry.access_token != *refused && entry.is_fresh(now()) {
            return Ok(entry.access_token);
        }
        let metadata = self.http.metadata().await?;
        match self.http.refresh(&metadata, &entry.refresh_token).await? {
            Grant::Given(tokens) => {
                let entry = entry_of(tokens, now());
                let token = entry.access_token.clone();
                locked.set(origin, Some(entry))?;
                Ok(token)
            }
            // RFC 6749 §5.2: used, revoked or expired, for good.
            Grant::Refused(code, _) if code == "invalid_grant" => {
                locked.set(origin, None)?;
                Err(sign_in_again(origin))
            }
            Grant::Refused(_, failure) => Err(failure),
        }
    }

    /// Sends a request as the account. Repeats it once with a new token if the first is refused.
    ///
    /// # Errors
    /// No response, or a bad one.
    pub(crate) async fn ask(
        &self,
        make: impl Fn() -> Result<(request::Builder, Body), Failure>,
    ) -> Result<Answer, Failure> {
        let token = self.token().await?;
        let answer = self.http.send(signed(make()?, &token)?).await?;
        if answer.status != StatusCode::UNAUTHORIZED || self.is_given() {
            return self.done(answer);
        }
        let token = self.another_than(&token).await?;
        self.http.send(signed(make()?, &token)?).await?.done()
    }

    /// Returns the response if its status means success. If the environment's token is refused,
    /// signing in does not help, because that token takes precedence.
    ///
    /// # Errors
    /// What a bad status means; see [`Answer::failure`].
    pub(crate) fn done(&self, answer: Answer) -> Result<Answer, Failure> {
        if answer.status != StatusCode::UNAUTHORIZED || !self.is_given() {
            return answer.done_for(self.caller());
        }
        let problem = answer.problem();
        let origin = self.http.origin();
        let why = problem.as_ref().filter(|_| self.is_deploy_token());
        let why = why.and_then(|problem| problem.get("detail")?.as_str());
        let sentence = match why {
            Some(why) => format!("{origin} refused PLATFORM_TOKEN: {}", why),
            None => format!(
                "{origin} refused PLATFORM_TOKEN: set one that is valid there, or unset it and run \
                 {}.",
                origin.login_command()
            ),
        };
        let failure = Failure::not_signed_in(origin, sentence);
        let failure = failure.with_request_id(answer.request_id());
        // A program gets the platform's problem; the sentence is for people.
        Err(match problem {
            Some(problem) => failure.with_problem(problem),
            None => failure,
        })
    }

    /// Checks who owns a project before changing it, if the token would let an administrator act on
    /// any project.
    ///
    /// # Errors
    /// It belongs to another account, and `--as-administrator` was not given.
    pub(crate) async fn look_whose(&self, slug: &str) -> Result<(), Failure> {
        let bearer = Bearer::of(&self.token().await?);
        let Some(bearer) = bearer.filter(Bearer::may_administer) else {
            return Ok(());
        };
        let owned: Owned = self.get(&format!("/api/projects/{slug}")).await?.json()?;
        if owned.role.is_some() || owned.owner.as_deref() == Some(bearer.sub.as_str()) {
            return Ok(());
        }
        let owner = match (owned.owner_username, owned.owner) {
            (Some(name), _) => name,
            (None, Some(id)) => format!("the player {id}"),
            (None, None) => "the platform itself".to_owned(),
        };
        if !self.as_administrator {
            return Err(Failure::failed(format!(
                "The project {slug} belongs to {owner}, not to you ({}). To act as an \
                 administrator, add --as-administrator.",
                bearer.username
            )));
        }
        terminal::note(format_args!(
            "Acting as an administrator: {slug} belongs to {}.",
            owner
        ));
        Ok(())
    }

    /// Gets a path of the project API.
    ///
    /// # Errors
    /// No response, or a bad one.
    pub(crate) async fn get(&self, path: &str) -> Result<Answer, Failure> {
        let address = format!("{}{path}", self.http.origin());
        self.ask(|| Ok((Request::get(&address), empty()))).await
    }
}

/// Adds the token to a request.
///
/// # Errors
/// The token is not a valid header value.
pub(crate) fn signed(
    (request, body): (request::Builder, Body),
    token: &Secret,
) -> Result<Request<Body>, Failure> {
    let mut value =
        header::HeaderValue::try_from(format!("Bearer {}", token.expose())).map_err(|_| {
            Failure::usage(
                "PLATFORM_TOKEN is not a token: it contains characters that no token contains.",
            )
        })?;
    value.set_sensitive(true);
    finish(request.header(header::AUTHORIZATION, value), body)
}

/// The entry to store after a response with tokens.
pub(crate) fn entry_of(tokens: Tokens, now: i64) -> Entry {
    Entry {
        access_token: tokens.access_token,
        received_at: now,
        expires_in: tokens.expires_in,
        refresh_token: tokens.refresh_token,
    }
}
