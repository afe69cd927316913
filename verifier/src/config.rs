//! The three settings of a game's backend.

use platform_loopback::is_localhost;
use url::{Host, Url};

/// The environment variable with the expected `iss`.
pub const AUTH_ISSUER: &str = "AUTH_ISSUER";
/// The environment variable with the expected `aud`.
pub const AUTH_AUDIENCE: &str = "AUTH_AUDIENCE";
/// The environment variable with the address of the key set.
pub const AUTH_JWKS_URL: &str = "AUTH_JWKS_URL";

/// What a verifier expects of a token, and where the keys are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifierConfig {
    /// The expected `iss`, compared byte by byte.
    pub issuer: String,
    /// The expected `aud`, compared byte by byte: `game:<slug>` or `game:dev-<slug>`. Without this
    /// check a token for another game would be accepted.
    pub audience: String,
    /// The absolute http or https address of the key set.
    pub jwks_url: String,
}

/// A setting that a verifier cannot work with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The variable is not set, is empty, or is not UTF-8.
    #[error("{0} is not set")]
    Missing(&'static str),
    /// The address of the key set is not an absolute http or https URL, or it
    /// carries a user name or a password, which would end up in logs.
    #[error("AUTH_JWKS_URL must be an absolute http or https address without credentials")]
    JwksUrl,
    /// The address is https, but the crate was built without its `tls` feature.
    #[error("AUTH_JWKS_URL is https, but this program was built without the `tls` feature")]
    WithoutTls,
    /// The machine's certificates could not be loaded.
    #[error("TLS could not be set up: {0}")]
    Client(String),
}

impl VerifierConfig {
    /// Reads `AUTH_ISSUER`, `AUTH_AUDIENCE` and `AUTH_JWKS_URL` from the
    /// environment.
    ///
    /// # Errors
    /// [`ConfigError::Missing`] names the first variable that is not set.
    pub fn from_env() -> Result<Self, ConfigError> {
        #[expect(
            clippy::disallowed_methods,
            reason = "the one place that reads the environment"
        )]
        Self::from_lookup(|name| std::env::var(name).ok())
    }

    /// Takes the three settings from `lookup`, which gets the names of the environment variables.
    ///
    /// # Errors
    /// [`ConfigError::Missing`] names the first one that is absent or empty.
    pub fn from_lookup(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        let required = |name| {
            lookup(name)
                .filter(|value| !value.is_empty())
                .ok_or(ConfigError::Missing(name))
        };
        Ok(Self {
            issuer: required(AUTH_ISSUER)?,
            audience: required(AUTH_AUDIENCE)?,
            jwks_url: required(AUTH_JWKS_URL)?,
        })
    }

    /// Checks the settings and returns the parsed address of the key set.
    pub(crate) fn check(&self) -> Result<Url, ConfigError> {
        // An empty expectation would match a token with an empty claim.
        if self.issuer.is_empty() {
            return Err(ConfigError::Missing(AUTH_ISSUER));
        }
        if self.audience.is_empty() {
            return Err(ConfigError::Missing(AUTH_AUDIENCE));
        }
        let url = Url::parse(&self.jwks_url).map_err(|_| ConfigError::JwksUrl)?;
        let credentials = !url.username().is_empty() || url.password().is_some();
        if credentials || url.host().is_none() {
            return Err(ConfigError::JwksUrl);
        }
        match url.scheme() {
            "https" if cfg!(feature = "tls") => Ok(url),
            "https" => Err(ConfigError::WithoutTls),
            "http" => Ok(url),
            _ => Err(ConfigError::JwksUrl),
        }
    }
}

/// Whether the address stays on this machine: a loopback address or a name under `localhost` (RFC
/// 6761 §6.3).
pub(crate) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => is_localhost(name),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(jwks_url: &str) -> VerifierConfig {
        VerifierConfig {
            issuer: "https://auth.example".into(),
            audience: "game:demo".into(),
            jwks_url: jwks_url.into(),
        }
    }

    #[test]
    fn each_missing_variable_is_named() {
        let all = [AUTH_ISSUER, AUTH_AUDIENCE, AUTH_JWKS_URL];
        for missing in all {
            let unset = VerifierConfig::from_lookup(|name| {
                (name != missing).then(|| "https://auth.example/keys".to_owned())
            });
            assert_eq!(unset, Err(ConfigError::Missing(missing)));
            let empty = VerifierConfig::from_lookup(|name| {
                Some(if name == missing {
                    String::new()
                } else {
                    "value".to_owned()
                })
            });
            assert_eq!(empty, Err(ConfigError::Missing(missing)));
        }
        let found = VerifierConfig::from_lookup(|name| Some(format!("value of {name}"))).unwrap();
        assert_eq!(found.issuer, "value of AUTH_ISSUER");
        assert_eq!(found.audience, "value of AUTH_AUDIENCE");
        assert_eq!(found.jwks_url, "value of AUTH_JWKS_URL");
    }

    #[test]
    fn only_plain_http_addresses_are_taken_for_the_key_set() {
        for bad in [
            "",
            "/jwks.json",
            "file:///etc/passwd",
            "data:application/json,{}",
            "http://user@auth.example/jwks",
            "http://user:secret@auth.example/jwks",
        ] {
            assert_eq!(config(bad).check(), Err(ConfigError::JwksUrl), "{bad:?}");
        }
        assert!(
            config("http://auth.platform.localhost:8787/.well-known/jwks.json")
                .check()
                .is_ok()
        );
        let https = config("https://auth.example/.well-known/jwks.json").check();
        assert_eq!(https.is_ok(), cfg!(feature = "tls"));
    }

    #[test]
    fn an_empty_expectation_is_refused() {
        let url = "http://localhost/keys";
        let without_issuer = VerifierConfig {
            issuer: String::new(),
            ..config(url)
        };
        assert_eq!(
            without_issuer.check(),
            Err(ConfigError::Missing(AUTH_ISSUER))
        );
        let without_audience = VerifierConfig {
            audience: String::new(),
            ..config(url)
        };
        assert_eq!(
            without_audience.check(),
            Err(ConfigError::Missing(AUTH_AUDIENCE))
        );
    }
}
