//! The settings of a provider.

use platform_domain::secret::Secret;

/// An OpenID Connect provider for sign-ins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentityProvider {
    /// Path segment of its addresses.
    pub id: String,
    /// The text of its button.
    pub name: String,
    /// Its issuer (OpenID Connect Discovery 1.0 §3), unmodified, since issuers are compared
    /// character by character.
    pub issuer: String,
    /// The platform's client id there.
    pub client_id: String,
    /// The platform's client secret there.
    pub client_secret: Secret,
    /// The requested scopes, including `openid`.
    pub scopes: Vec<String>,
}
