//! The verifier: one for each backend, shared by all its requests.

use std::sync::Arc;

use platform_protocol::claims::GameTokenClaims;

use crate::check::check_with;
use crate::claims::Expected;
use crate::clock::{Clock, SystemClock};
use crate::config::{ConfigError, VerifierConfig};
use crate::error::VerifyError;
use crate::fetch::Fetcher;
use crate::jws::Jws;
use crate::source::KeySource;

/// Verifies game tokens for one issuer and one audience.
///
/// It keeps the key set, so make one and share it.
#[derive(Debug)]
pub struct Verifier {
    config: VerifierConfig,
    clock: Arc<dyn Clock>,
    keys: KeySource,
}

impl Verifier {
    /// A verifier on the machine's clock. Nothing is fetched before the first
    /// token arrives, so that a backend starts without the auth service.
    ///
    /// # Errors
    /// [`ConfigError`] names the setting that it cannot work with.
    pub fn new(config: VerifierConfig) -> Result<Self, ConfigError> {
        Self::with_clock(config, Arc::new(SystemClock))
    }

    /// A verifier on the given clock.
    ///
    /// # Errors
    /// [`ConfigError`] names the setting that it cannot work with.
    pub fn with_clock(config: VerifierConfig, clock: Arc<dyn Clock>) -> Result<Self, ConfigError> {
        let fetcher = Fetcher::new(&config.check()?)?;
        let keys = KeySource::new(fetcher, Arc::clone(&clock));
        Ok(Self {
            config,
            clock,
            keys,
        })
    }

    /// Verifies a compact game token and returns what it says.
    ///
    /// Guests (`is_anon`) are players like any other.
    ///
    /// # Errors
    /// [`VerifyError`] says which check failed: answer 401, or 503 where
    /// [`VerifyError::is_unavailable`].
    pub async fn verify(&self, token: &str) -> Result<GameTokenClaims, VerifyError> {
        let jws = Jws::parse(token)?;
        let key = self.keys.key(&jws.key_id).await?;
        let expected = Expected {
            issuer: &self.config.issuer,
            audience: &self.config.audience,
            now: self.clock.now().as_secs(),
        };
        check_with(&jws, &key, expected)
    }

    /// What this verifier expects.
    #[must_use]
    pub fn config(&self) -> &VerifierConfig {
        &self.config
    }
}
