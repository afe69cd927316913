//! The built-in demo provider: an OpenID provider for a platform on a developer's own machine, so
//! that a new checkout supports everything from guest to account.
//!
//! It asks for a name and accepts any, so it exists only if the platform's origin is under
//! `localhost` and no provider is configured. The rest of the platform uses it like any other
//! provider, over HTTP.
//!
//! | module | contents |
//! |---|---|
//! | [`derived`] | its keys, which every node derives from one secret |
//! | [`grant`] | its rules: requests, grants and their exchange |
//! | [`sealed`] | values that the browser carries, for a short time |

mod derived;
pub mod grant;
mod sealed;

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;

use self::derived::Derived;
pub use self::grant::{Asked, Exchange, NewToken, Refused, WrongAddress};
use self::sealed::Sealed;
use crate::auth::keys::{EphemeralKey, KeyError};
use crate::clock::Clock;
use crate::config::Secret;
use platform_openid::IdentityProvider;

use crate::config::provider::DEMO_PROVIDER;
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

/// The name of its secret in the store.
pub const SECRET: &str = "demo-provider";

/// The provider. It keeps nothing but which codes were used: on another node a code can be used
/// once more, by the platform itself, whose secret and verifier (RFC 7636) the exchange needs.
#[derive(Debug)]
pub struct DemoProvider {
    auth_url: String,
    issuer: String,
    client_id: String,
    client_secret: Secret,
    redirect: String,
    key: EphemeralKey,
    requests: Sealed<grant::Request>,
    codes: Sealed<grant::Grant>,
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
    claims_supported: [&'static str; 8],
    authorization_response_iss_parameter_supported: bool,
}

impl DemoProvider {
    /// Whether a platform has the provider: it has no other, and runs only on this machine.
    #[must_use]
    pub fn is_for(providers: &[IdentityProvider], origin: &PlatformOrigin) -> bool {
        providers.is_empty() && origin.is_local()
    }

    /// Returns the provider with this secret. All nodes of a platform have the same, so that each
    /// can answer for the others.
    ///
    /// # Errors
    /// [`KeyError`], which is not expected.
    pub fn new(
        secret: &[u8; 32],
        origin: &PlatformOrigin,
        clock: &Arc<dyn Clock>,
        entropy: &Arc<dyn Entropy>,
    ) -> Result<Self, KeyError> {
        let auth_url = origin.auth_url();
        let derived: &dyn Entropy = &Derived::new(secret);
        let text = || URL_SAFE_NO_PAD.encode(derived.bytes::<32>());
        Ok(Self {
            issuer: format!("{auth_url}{PREFIX}"),
            client_id: text(),
            client_secret: Secret::new(text()),
            redirect: format!(
                "{auth_url}{}{DEMO_PROVIDER}",
                platform_protocol::paths::CALLBACK
            ),
            auth_url,
            requests: Sealed::new(derived.bytes(), grant::REQUEST_LIFE),
            codes: Sealed::new(derived.bytes(), grant::CODE_LIFE),
            key: EphemeralKey::generate(derived)?,
            clock: Arc::clone(clock),
            entropy: Arc::clone(entropy),
        })
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
            claims_supported: [
                "iss",
                "sub",
                "aud",
                "exp",
                "iat",
                "auth_time",
                "nonce",
                "preferred_username",
            ],
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
