//! Signing in with OpenID Connect (OpenID Connect Core 1.0, authorization code
//! with PKCE). Of what a provider knows about a player, the platform asks for
//! one thing alone: who it is, as the provider's issuer and subject.
//!
//! | module | holds |
//! |---|---|
//! | [`provider`] | one provider: the way there, and what comes back |
//! | [`metadata`] | what a provider says of itself, and its keys |
//! | [`id_token`] | what makes an ID token good |
//! | [`client`] | HTTP to providers, with limits |

mod client;
mod id_token;
mod metadata;
mod provider;

use std::sync::Arc;

use url::ParseError;

pub use self::client::ClientError;
use self::client::HttpClient;
pub use self::provider::{Answer, Beginning, Provider, Subject, Who};
use crate::clock::Clock;
use crate::config::provider::IdentityProvider;

/// The most bytes of a provider's text that go to the log.
const LOGGED_CHARS: usize = 200;

/// Every provider that players may sign in with, in the order of the settings.
#[derive(Debug, Default)]
pub struct Providers(Vec<Provider>);

impl Providers {
    /// The providers of the settings. None of them is asked anything yet.
    ///
    /// # Errors
    /// [`ProvidersError`]
    pub fn new(
        settings: &[IdentityProvider],
        auth_url: &str,
        clock: &Arc<dyn Clock>,
    ) -> Result<Self, ProvidersError> {
        if settings.is_empty() {
            return Ok(Self::default());
        }
        let over_tls = settings
            .iter()
            .any(|provider| provider.issuer.starts_with("https:"));
        let http = HttpClient::new(over_tls)?;
        settings
            .iter()
            .map(|settings| {
                Provider::new(settings, auth_url, http.clone(), Arc::clone(clock)).map_err(
                    |source| ProvidersError::Address {
                        id: settings.id.clone(),
                        source,
                    },
                )
            })
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Id and name of each, for the buttons of the sign-in page.
    pub fn list(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|provider| (provider.id(), provider.name()))
    }

    /// The provider of this id.
    #[must_use]
    pub fn find(&self, id: &str) -> Option<&Provider> {
        self.0.iter().find(|provider| provider.id() == id)
    }
}

/// Why the providers could not be made ready at the start.
#[derive(Debug, thiserror::Error)]
pub enum ProvidersError {
    /// There is no way to them.
    #[error("no identity provider can be reached from here")]
    Client(#[from] ClientError),
    /// The issuer, or the address that a provider sends players back to, is
    /// not one.
    #[error("the addresses of the identity provider `{id}` cannot be used")]
    Address {
        /// Which provider.
        id: String,
        /// What is wrong.
        source: ParseError,
    },
}

/// Why a sign-in did not come to its end. The texts are for the log: they name
/// no code, no token and no secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignInError {
    /// The provider does not answer, or not as one; later it may.
    #[error("the provider is not available: {0}")]
    Unavailable(String),
    /// What the provider answered is not to be believed.
    #[error("{0}")]
    Refused(String),
}

/// A provider's text as it may stand in a log line: short, and nothing but
/// visible characters.
fn shown(text: &str) -> String {
    text.chars()
        .take(LOGGED_CHARS)
        .map(|char| if char.is_control() { '\u{fffd}' } else { char })
        .collect()
}
