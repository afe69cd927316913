//! Signing in with OpenID Connect (OpenID Connect Core 1.0, authorization code with PKCE). The
//! platform only requests the player's identity at the provider: issuer and subject.
//!
//! | module | contents |
//! |---|---|
//! | `provider` | one provider: starting and completing a sign-in |
//! | `metadata` | a provider's metadata, and its keys |
//! | `id_token` | verification of ID tokens |
//! | `client` | the HTTP client for providers, with limits |
//! | `settings` | the settings of a provider |
//! | [`returned`] | the parameters with which a browser returns from a provider |
//! | [`documents`] | a provider's documents without the provider, for the fuzz targets |

mod client;
pub mod documents;
mod id_token;
mod metadata;
mod provider;
pub mod returned;
mod settings;

use std::sync::Arc;

use url::ParseError;

pub use self::client::ClientError;
use self::client::HttpClient;
pub use self::provider::{Answer, Beginning, Provider, Subject, Who};
pub use self::settings::IdentityProvider;
use platform_domain::clock::Clock;

/// The maximum number of characters of a provider's text in the log.
const LOGGED_CHARS: usize = 200;

/// Every provider for sign-ins, in the order of the settings.
#[derive(Debug, Default)]
pub struct Providers(Vec<Provider>);

impl Providers {
    /// Creates the providers of the settings, without any request to them.
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

    /// Returns id and name of each, for the buttons of the sign-in page.
    pub fn list(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|provider| (provider.id(), provider.name()))
    }

    /// Returns all of them.
    pub fn all(&self) -> impl Iterator<Item = &Provider> {
        self.0.iter()
    }

    /// Returns the provider with this id.
    #[must_use]
    pub fn find(&self, id: &str) -> Option<&Provider> {
        self.0.iter().find(|provider| provider.id() == id)
    }
}

/// Why the providers could not be created at the start.
#[derive(Debug, thiserror::Error)]
pub enum ProvidersError {
    /// The HTTP client could not be created.
    #[error("no identity provider can be reached from here")]
    Client(#[from] ClientError),
    /// The issuer, or the callback address, is not a valid address.
    #[error("the addresses of the identity provider `{id}` cannot be used")]
    Address {
        /// The id of the provider.
        id: String,
        /// The error.
        source: ParseError,
    },
}

/// Why a sign-in could not be completed. The texts are for the log: they contain no code, no token
/// and no secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignInError {
    /// The provider does not respond, or not correctly; it may work later.
    #[error("the provider is not available: {0}")]
    Unavailable(String),
    /// The provider's response is invalid or an error.
    #[error("{0}")]
    Refused(String),
}

/// Returns a provider's text for a log line: short, and only visible characters.
fn shown(text: &str) -> String {
    text.chars()
        .take(LOGGED_CHARS)
        .map(|char| if char.is_control() { '\u{fffd}' } else { char })
        .collect()
}
