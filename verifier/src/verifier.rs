//! The verifier: one for each backend, shared by all its requests.

use std::sync::Arc;

use platform_protocol::claims::{ASSERTION_TYPE, GameTokenClaims};

use crate::assertion::KnownAssertions;
use crate::check::{check_signature, check_with};
use crate::claims::{Expected, check_assertion};
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
    assertions: KnownAssertions,
}

impl Verifier {
    /// Makes a verifier on the machine's clock. It fetches nothing before the first token arrives,
    /// so that a backend starts without the auth service.
    ///
    /// # Errors
    /// [`ConfigError`] names the invalid setting.
    pub fn new(config: VerifierConfig) -> Result<Self, ConfigError> {
        Self::with_clock(config, Arc::new(SystemClock))
    }

    /// Makes a verifier on the given clock.
    ///
    /// # Errors
    /// [`ConfigError`] names the invalid setting.
    pub fn with_clock(config: VerifierConfig, clock: Arc<dyn Clock>) -> Result<Self, ConfigError> {
        let fetcher = Fetcher::new(&config.check()?)?;
        let keys = KeySource::new(fetcher, Arc::clone(&clock));
        Ok(Self {
            config,
            clock,
            keys,
            assertions: KnownAssertions::default(),
        })
    }

    /// Verifies a compact game token and returns its claims.
    ///
    /// Guests (`is_anon`) are players like any other.
    ///
    /// # Errors
    /// [`VerifyError`] says which check failed. Respond with 401, or with 503 if
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

    /// Verifies the platform's assertion, the value of the header
    /// [`ASSERTION_HEADER`](platform_protocol::claims::ASSERTION_HEADER): the request came through
    /// the platform. It does not identify the player.
    ///
    /// # Errors
    /// [`VerifyError`] says which check failed. Respond with 403, or with 503 if
    /// [`VerifyError::is_unavailable`].
    pub async fn verify_assertion(&self, assertion: &str) -> Result<(), VerifyError> {
        let now = self.clock.now().as_secs();
        if self.assertions.knows(assertion, now) {
            return Ok(());
        }
        let jws = Jws::parse_typed(assertion, ASSERTION_TYPE)?;
        let key = self.keys.key(&jws.key_id).await?;
        check_signature(&jws, &key)?;
        let expected = Expected {
            issuer: &self.config.issuer,
            audience: &self.config.audience,
            now,
        };
        let claims = check_assertion(&jws.payload, expected)?;
        self.assertions.remember(assertion, claims.exp);
        Ok(())
    }

    /// What this verifier expects.
    #[must_use]
    pub fn config(&self) -> &VerifierConfig {
        &self.config
    }
}
