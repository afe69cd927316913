//! One provider: starting and completing a sign-in.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use openidconnect::core::{
    CoreAuthPrompt, CoreAuthenticationFlow, CoreErrorResponseType, CoreRequestTokenError,
    CoreTokenResponse,
};
use openidconnect::{
    AuthorizationCode, ClientId, ClientSecret, CsrfToken, IssuerUrl, Nonce, PkceCodeChallenge,
    PkceCodeVerifier, RedirectUrl, RequestTokenError, Scope, TokenResponse as _,
};
use url::{ParseError, Url};

use crate::client::{HttpClient, HttpError};
use crate::id_token::{self, Expected, Proved, TokenError};
use crate::metadata::{Discovery, Known, Registration};
use crate::settings::IdentityProvider;
use crate::{SignInError, shown};
use platform_domain::clock::{Clock, Millis};
use platform_domain::entropy::Entropy;

/// The scope that makes a request one of OpenID Connect; the library always sends it.
const OPENID: &str = "openid";

/// A provider for sign-ins.
#[derive(Debug)]
pub struct Provider {
    id: String,
    name: String,
    scopes: Vec<Scope>,
    discovery: Discovery,
}

/// The person that the provider should sign in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// The person that the provider remembers in this browser, if any.
    Anyone,
    /// Perhaps another person: the provider asks, even if it remembers somebody. This is
    /// `prompt=login`, which every provider supports (OpenID Connect Core 1.0 §15.1); not all
    /// support `select_account`.
    Another,
    /// Anyone, but with a new authentication: for actions that require a recent sign-in (OpenID
    /// Connect Core 1.0 §3.1.2.1, `prompt=login` and `max_age`).
    Again,
}

/// A started sign-in: the address for the browser, and the values that are stored.
pub struct Beginning {
    /// The provider's authorization endpoint with its parameters.
    pub address: Url,
    /// Returned with the response (RFC 6749 §4.1.1).
    pub state: String,
    /// Returned in the ID token (OpenID Connect Core 1.0 §3.1.2.1).
    pub nonce: String,
    /// Proves to the token endpoint who started the sign-in (RFC 7636 §4.1).
    pub pkce_verifier: String,
}

impl fmt::Debug for Beginning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Beginning(hidden)")
    }
}

/// The response that a browser brought from a provider, and the stored values of the sign-in.
#[derive(Clone, Copy)]
pub struct Answer<'a> {
    /// The authorization code.
    pub code: &'a str,
    /// The issuer that the response names (RFC 9207).
    pub issuer: Option<&'a str>,
    /// The stored value.
    pub nonce: &'a str,
    /// The stored value.
    pub pkce_verifier: &'a str,
    /// The stored value.
    pub started_at: Millis,
    /// The stored value: whether the provider had to ask.
    pub again: bool,
}

impl fmt::Debug for Answer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Answer(hidden)")
    }
}

/// The person who signed in: the subject is unique at its issuer, and never given to anyone else
/// (OpenID Connect Core 1.0 §2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// The provider's issuer.
    pub issuer: String,
    /// The person's subject there.
    pub subject: String,
    /// When the person authenticated, if the provider says so.
    pub authenticated_at: Option<Millis>,
    /// How the person likes to be called, if the provider says so: any text, not unique.
    pub preferred_username: Option<String>,
}

impl Provider {
    pub(super) fn new(
        settings: &IdentityProvider,
        auth_url: &str,
        http: HttpClient,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, ParseError> {
        let redirect = format!(
            "{auth_url}{}{}",
            platform_protocol::paths::CALLBACK,
            settings.id
        );
        let registration = Registration {
            issuer: IssuerUrl::new(settings.issuer.clone())?,
            client_id: ClientId::new(settings.client_id.clone()),
            client_secret: ClientSecret::new(settings.client_secret.expose().to_owned()),
            redirect: RedirectUrl::new(redirect)?,
        };
        let scopes = settings.scopes.iter().filter(|scope| *scope != OPENID);
        Ok(Self {
            id: settings.id.clone(),
            name: settings.name.clone(),
            scopes: scopes.cloned().map(Scope::new).collect(),
            discovery: Discovery::new(registration, http, clock),
        })
    }

    /// Returns the path segment of its addresses.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the text of its button.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Asks the provider for its metadata and keys, as a sign-in does.
    ///
    /// # Errors
    /// [`SignInError::Unavailable`] if they cannot be used.
    pub async fn look(&self) -> Result<(), SignInError> {
        self.discovery.known().await.map(drop)
    }

    /// Starts a sign-in.
    ///
    /// # Errors
    /// [`SignInError::Unavailable`] if the provider's metadata is not available.
    pub async fn begin(&self, entropy: &dyn Entropy, who: Who) -> Result<Beginning, SignInError> {
        let known = self.discovery.known().await?;
        let state = CsrfToken::new(secret(entropy));
        let nonce = Nonce::new(secret(entropy));
        let pkce_verifier = PkceCodeVerifier::new(secret(entropy));
        let mut request = known
            .client
            .authorize_url(
                CoreAuthenticationFlow::AuthorizationCode,
                move || state,
                move || nonce,
            )
            .add_scopes(self.scopes.iter().cloned())
            .set_pkce_challenge(PkceCodeChallenge::from_code_verifier_sha256(&pkce_verifier));
        if matches!(who, Who::Another | Who::Again) {
            request = request.add_prompt(CoreAuthPrompt::Login);
        }
        if who == Who::Again {
            request = request.set_max_age(Duration::ZERO);
        }
        let (address, state, nonce) = request.url();
        Ok(Beginning {
            address,
            state: state.into_secret(),
            nonce: nonce.secret().clone(),
            pkce_verifier: pkce_verifier.into_secret(),
        })
    }

    /// Whether a response that names `issuer`, or no issuer, may be from this provider: one that
    /// names another is a mix-up attack (RFC 9207 §2.4).
    #[must_use]
    pub fn may_be(&self, issuer: Option<&str>) -> bool {
        issuer.is_none_or(|issuer| issuer == self.discovery.registration().issuer.as_str())
    }

    /// Completes a sign-in: exchanges the code, and verifies the ID token.
    ///
    /// # Errors
    /// [`SignInError`]
    pub async fn finish(&self, answer: Answer<'_>) -> Result<Subject, SignInError> {
        if !self.may_be(answer.issuer) {
            return Err(SignInError::Refused(
                "the answer is from another issuer".to_owned(),
            ));
        }
        let known = self.discovery.known().await?;
        if known.says_issuer && answer.issuer.is_none() {
            return Err(SignInError::Refused(
                "the answer does not say which issuer it is from".to_owned(),
            ));
        }
        let proved = self.identify(&known, answer).await;
        if proved.is_err() {
            self.discovery.doubt(&known);
        }
        let proved = proved?;
        Ok(Subject {
            issuer: self.discovery.registration().issuer.to_string(),
            subject: proved.subject,
            authenticated_at: proved.authenticated_at,
            preferred_username: proved.preferred_username,
        })
    }

    async fn identify(&self, known: &Known, answer: Answer<'_>) -> Result<Proved, SignInError> {
        let response = self.exchange(known, answer).await?;
        let token = response
            .id_token()
            .ok_or_else(|| SignInError::Refused("the answer has no ID token".to_owned()))?;
        let registration = self.discovery.registration();
        let nonce = Nonce::new(answer.nonce.to_owned());
        let expected = Expected {
            issuer: &registration.issuer,
            client_id: &registration.client_id,
            nonce: &nonce,
            started_at: answer.started_at,
            again: answer.again,
            now: self.discovery.clock().now(),
        };
        let seen = known.keys();
        let mut proved = id_token::verify(token, &seen, expected);
        if proved == Err(TokenError::UnknownKey)
            && let Some(keys) = self.discovery.keys_again(known, &seen).await?
        {
            proved = id_token::verify(token, &keys, expected);
        }
        proved.map_err(|error| match error {
            TokenError::UnknownKey => SignInError::Refused(
                "the ID token is signed with a key that is not in the key set".to_owned(),
            ),
            TokenError::Bad(problem) => SignInError::Refused(problem),
        })
    }

    async fn exchange(
        &self,
        known: &Known,
        answer: Answer<'_>,
    ) -> Result<CoreTokenResponse, SignInError> {
        let request = known
            .client
            .exchange_code(AuthorizationCode::new(answer.code.to_owned()))
            .map_err(|error| SignInError::Refused(error.to_string()))?;
        request
            .set_pkce_verifier(PkceCodeVerifier::new(answer.pkce_verifier.to_owned()))
            .request_async(self.discovery.http())
            .await
            .map_err(|error| refused(&error))
    }
}

/// Returns 256 random bits, in characters that every parameter may have.
fn secret(entropy: &dyn Entropy) -> String {
    URL_SAFE_NO_PAD.encode(entropy.bytes::<32>())
}

/// Returns the error with only the error code of the response: the rest may contain a token.
fn refused(error: &CoreRequestTokenError<HttpError>) -> SignInError {
    match error {
        RequestTokenError::Request(error) => {
            SignInError::Unavailable(format!("the token endpoint: {error}"))
        }
        RequestTokenError::ServerResponse(answer) => {
            let code = match answer.error() {
                CoreErrorResponseType::Extension(_) => "an error of its own",
                known => known.as_ref(),
            };
            SignInError::Refused(format!("the token endpoint refused: {code}"))
        }
        RequestTokenError::Parse(error, _) => SignInError::Refused(format!(
            "the token endpoint's answer cannot be read at `{}`",
            shown(&error.path().to_string())
        )),
        RequestTokenError::Other(problem) => {
            SignInError::Refused(format!("the token endpoint: {}", shown(problem)))
        }
    }
}
