//! The built-in demo provider: an OpenID provider for a platform on a developer's own machine, so
//! that a new checkout supports everything from guest to account.
//!
//! It asks for a name and accepts any, so it exists only if the platform's origin is under
//! `localhost` and no provider is configured. The rest of the platform uses it like any other
//! provider, over HTTP.
//!
//! | module | contents |
//! |---|---|
//! | [`grant`] | its rules: requests, grants and their exchange |
//! | [`single_use`] | values that can be used once, for a short time |

pub mod grant;
mod single_use;

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;

pub use self::grant::{Asked, Exchange, NewToken, Refused, WrongAddress};
use self::single_use::SingleUse;
use crate::auth::keys::{EphemeralKey, KeyError};
use crate::clock::Clock;
use crate::config::Secret;
use crate::config::provider::{DEMO_PROVIDER, IdentityProvider};
use crate::entropy::Entropy;
use crate::origin::PlatformOrigin;

/// The prefix of its paths on the auth service; `{auth_url}` and this prefix are its issuer.
pub const PREFIX: &str = "/demo-provider";
/// Its metadata (OpenID Connect Discovery 1.0 §4).
pub const METADATA: &str = "/demo-provider/.well-known/openid-configuration";
/// Its key set.
pub const JWKS: &str = "/demo-provider/jwks.json";
/// Its authorization endpoint.
pub const AUTHORIZE: &str = "/demo-provider/authorize";
/// Its token endpoint.
pub const TOKEN: &str = "/demo-provider/token";

/// The provider, whose data is all in memory.
#[derive(Debug)]
pub struct DemoProvider {
    auth_url: String,
    issuer: String,
    client_id: String,
    client_secret: Secret,
    redirect: String,
    key: EphemeralKey,
    requests: SingleUse<grant::Request>,
    codes: SingleUse<grant::Grant>,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
}

/// Its metadata (OpenID Connect Discovery 1.0 §3, RFC 9207 §3).
#[derive(Serialize)]
pub struct Metadata<'a> {
    issuer: &'a str,
    authorization_endpoint: String,
    token_endpoint: String,
    jwks_uri: String,
    scopes_supported: [&'static str; 1],
    response_types_supported: [&'static str; 1],
    response_modes_supported: [&'static str; 1],
    grant_types_supported: [&'static str; 1],
    subject_types_supported: [&'static str; 1],
    id_token_signing_alg_values_supported: [&'static str; 1],
    token_endpoint_auth_methods_supported: [&'static str; 1],
    code_challenge_methods_supported: [&'static str; 1],
    claims_supported: [&'static str; 7],
    authorization_response_iss_parameter_supported: bool,
}

impl DemoProvider {
    /// Returns the provider for a platform that has no other and runs only on this machine. Returns
    /// `None` for any other platform.
    ///
    /// # Errors
    /// [`KeyError`], which is not expected.
    pub fn for_platform(
        providers: &[IdentityProvider],
        origin: &PlatformOrigin,
        clock: &Arc<dyn Clock>,
        entropy: &Arc<dyn Entropy>,
    ) -> Result<Option<Arc<Self>>, KeyError> {
        if !providers.is_empty() || !origin.is_local() {
            return Ok(None);
        }
        let auth_url = origin.auth_url();
        let random = || URL_SAFE_NO_PAD.encode(entropy.bytes::<32>());
        Ok(Some(Arc::new(Self {
            issuer: format!("{auth_url}{PREFIX}"),
            client_id: random(),
            client_secret: Secret::new(random()),
            redirect: format!(
                "{auth_url}{}{DEMO_PROVIDER}",
                platform_protocol::paths::CALLBACK
            ),
            auth_url,
            key: EphemeralKey::generate(&**entropy)?,
            requests: SingleUse::new(grant::REQUEST_LIFE),
            codes: SingleUse::new(grant::CODE_LIFE),
            clock: Arc::clone(clock),
            entropy: Arc::clone(entropy),
        })))
    }

    /// Returns its registration at the platform, in the form of any provider's settings.
    #[must_use]
    pub fn registration(&self) -> IdentityProvider {
        IdentityProvider {
            id: DEMO_PROVIDER.to_owned(),
            name: "Demo".to_owned(),
            issuer: self.issuer.clone(),
            client_id: self.client_id.clone(),
            client_secret: self.client_secret.clone(),
            scopes: vec!["openid".to_owned()],
        }
    }

    /// Returns its metadata.
    #[must_use]
    pub fn metadata(&self) -> Metadata<'_> {
        let address = |path: &str| format!("{}{path}", self.auth_url);
        Metadata {
            issuer: &self.issuer,
            authorization_endpoint: address(AUTHORIZE),
            token_endpoint: address(TOKEN),
            jwks_uri: address(JWKS),
            scopes_supported: ["openid"],
            response_types_supported: ["code"],
            response_modes_supported: ["query"],
            grant_types_supported: ["authorization_code"],
            subject_types_supported: ["public"],
            id_token_signing_alg_values_supported: ["ES256"],
            token_endpoint_auth_methods_supported: ["client_secret_basic"],
            code_challenge_methods_supported: ["S256"],
            claims_supported: ["iss", "sub", "aud", "exp", "iat", "auth_time", "nonce"],
            authorization_response_iss_parameter_supported: true,
        }
    }

    /// Returns its key set as JSON.
    #[must_use]
    pub fn key_set(&self) -> &str {
        self.key.key_set()
    }

    fn random(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.entropy.bytes::<32>())
    }
}
