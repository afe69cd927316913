//! A provider's metadata (OpenID Connect Discovery 1.0 §3) and its signing keys, cached between
//! sign-ins.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use openidconnect::core::{
    CoreAuthDisplay, CoreClaimName, CoreClaimType, CoreClient, CoreClientAuthMethod, CoreGrantType,
    CoreJsonWebKey, CoreJsonWebKeySet, CoreJweContentEncryptionAlgorithm,
    CoreJweKeyManagementAlgorithm, CoreResponseMode, CoreResponseType, CoreSubjectIdentifierType,
};
use openidconnect::{
    AdditionalProviderMetadata, AuthType, ClientId, ClientSecret, DiscoveryError, EndpointMaybeSet,
    EndpointNotSet, EndpointSet, IssuerUrl, JsonWebKeySet, JsonWebKeySetUrl, ProviderMetadata,
    RedirectUrl,
};
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;
use url::Url;

use crate::client::{HttpClient, HttpError, is_this_machine};
use crate::{SignInError, shown};
use platform_domain::clock::Clock;

/// The shortest RSA key whose signatures are believed, in bits.
const RSA_BITS: usize = 2_048;
/// How long metadata and keys are cached.
const LIFE: Duration = Duration::from_secs(600);
/// The minimum time between two fetches of the key set because of an unknown `kid`.
const KEYS_AGAIN: Duration = Duration::from_secs(30);
/// The timeout for the metadata and the key set together.
const DISCOVERY: Duration = Duration::from_secs(10);

/// Members of the metadata that are newer than OpenID Connect.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Younger {
    /// RFC 9207 §3.
    #[serde(default)]
    authorization_response_iss_parameter_supported: bool,
}

impl AdditionalProviderMetadata for Younger {}

/// A provider's metadata.
pub(super) type Metadata = ProviderMetadata<
    Younger,
    CoreAuthDisplay,
    CoreClientAuthMethod,
    CoreClaimName,
    CoreClaimType,
    CoreGrantType,
    CoreJweContentEncryptionAlgorithm,
    CoreJweKeyManagementAlgorithm,
    CoreJsonWebKey,
    CoreResponseMode,
    CoreResponseType,
    CoreSubjectIdentifierType,
>;

/// A client whose endpoints came from the metadata.
pub(super) type DiscoveredClient = CoreClient<
    EndpointSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointMaybeSet,
    EndpointMaybeSet,
>;

/// The platform's registration at the provider.
#[derive(Debug)]
pub(super) struct Registration {
    pub(super) issuer: IssuerUrl,
    pub(super) client_id: ClientId,
    pub(super) client_secret: ClientSecret,
    pub(super) redirect: RedirectUrl,
}

/// The cached information about a provider.
#[derive(Debug)]
pub(super) struct Known {
    /// The client for its endpoints.
    pub(super) client: DiscoveredClient,
    /// Whether it names itself in every response (RFC 9207 §2.3).
    pub(super) says_issuer: bool,
    keys: ArcSwap<CoreJsonWebKeySet>,
    keys_address: JsonWebKeySetUrl,
    since: Duration,
}

impl Known {
    /// Takes from the metadata, whose key set was fetched `since` the start of the clock, what a
    /// sign-in uses.
    ///
    /// # Errors
    /// [`SignInError::Unavailable`] if no sign-in can use it.
    pub(super) fn of(
        metadata: Metadata,
        registration: &Registration,
        since: Duration,
    ) -> Result<Self, SignInError> {
        let token_endpoint = metadata.token_endpoint().ok_or_else(|| {
            SignInError::Unavailable("the metadata names no token endpoint".to_owned())
        })?;
        for address in [
            metadata.authorization_endpoint().url(),
            token_endpoint.url(),
        ] {
            if !is_safe(address) {
                return Err(SignInError::Unavailable(format!(
                    "the endpoint {} is not https",
                    shown(address.as_str())
                )));
            }
        }
        let methods = metadata.token_endpoint_auth_methods_supported();
        let auth_type = auth_type(methods.map(Vec::as_slice)).ok_or_else(|| {
            SignInError::Unavailable(
                "the token endpoint supports neither client_secret_basic nor client_secret_post"
                    .to_owned(),
            )
        })?;
        let younger = metadata.additional_metadata();
        let says_issuer = younger.authorization_response_iss_parameter_supported;
        let keys = ArcSwap::from_pointee(strong(metadata.jwks()));
        let keys_address = metadata.jwks_uri().clone();
        let client = CoreClient::from_provider_metadata(
            metadata,
            registration.client_id.clone(),
            Some(registration.client_secret.clone()),
        )
        .set_redirect_uri(registration.redirect.clone())
        .set_auth_type(auth_type);
        Ok(Self {
            client,
            says_issuer,
            keys,
            keys_address,
            since,
        })
    }

    /// Returns its keys, as fetched last.
    pub(super) fn keys(&self) -> Arc<CoreJsonWebKeySet> {
        self.keys.load_full()
    }
}

/// The metadata of one provider, fetched when needed.
#[derive(Debug)]
pub(super) struct Discovery {
    registration: Registration,
    http: HttpClient,
    clock: Arc<dyn Clock>,
    known: ArcSwapOption<Known>,
    /// Held while the provider is asked, so that one request serves all who wait; then contains the
    /// error, if it failed.
    asking: Mutex<Option<SignInError>>,
    /// The number of requests to the provider.
    asked: AtomicU64,
    /// When the keys were last fetched again.
    keys_again: Mutex<Option<Duration>>,
}

impl Discovery {
    pub(super) fn new(registration: Registration, http: HttpClient, clock: Arc<dyn Clock>) -> Self {
        Self {
            registration,
            http,
            clock,
            known: ArcSwapOption::empty(),
            asking: Mutex::new(None),
            asked: AtomicU64::new(0),
            keys_again: Mutex::new(None),
        }
    }

    pub(super) const fn registration(&self) -> &Registration {
        &self.registration
    }

    pub(super) const fn http(&self) -> &HttpClient {
        &self.http
    }

    pub(super) fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    /// Returns the information about the provider, from the cache if it is recent.
    ///
    /// # Errors
    /// [`SignInError::Unavailable`]
    pub(super) async fn known(&self) -> Result<Arc<Known>, SignInError> {
        if let Some(known) = self.fresh() {
            return Ok(known);
        }
        let asked = self.asked.load(Ordering::Acquire);
        let mut failure = self.asking.lock().await;
        if let Some(known) = self.fresh() {
            return Ok(known);
        }
        // The request of another task was for everyone who waited.
        if self.asked.load(Ordering::Acquire) != asked
            && let Some(failure) = &*failure
        {
            return Err(failure.clone());
        }
        let answer = match tokio::time::timeout(DISCOVERY, self.discover()).await {
            Ok(answer) => answer,
            Err(_) => Err(SignInError::Unavailable(
                "the metadata took too long".to_owned(),
            )),
        };
        self.asked.fetch_add(1, Ordering::Release);
        match answer {
            Ok(known) => {
                *failure = None;
                let known = Arc::new(known);
                self.known.store(Some(Arc::clone(&known)));
                Ok(known)
            }
            Err(error) => {
                *failure = Some(error.clone());
                Err(error)
            }
        }
    }

    fn fresh(&self) -> Option<Arc<Known>> {
        let known = self.known.load_full()?;
        (self.age(&known) < LIFE).then_some(known)
    }

    fn age(&self, known: &Known) -> Duration {
        self.clock.elapsed().saturating_sub(known.since)
    }

    /// Records an error that new metadata may fix: the next sign-in fetches it, unless it was
    /// fetched just now.
    pub(super) fn doubt(&self, known: &Known) {
        if self.age(known) >= KEYS_AGAIN {
            self.known.store(None);
        }
    }

    /// Fetches the keys again, after a token named one that is not among `seen`: providers change
    /// their keys (OpenID Connect Core 1.0 §10.1.1). Returns `None` if they were fetched just now,
    /// so that nobody can cause unlimited requests.
    ///
    /// # Errors
    /// [`SignInError::Unavailable`]
    pub(super) async fn keys_again(
        &self,
        known: &Known,
        seen: &Arc<CoreJsonWebKeySet>,
    ) -> Result<Option<Arc<CoreJsonWebKeySet>>, SignInError> {
        let mut last = self.keys_again.lock().await;
        let current = known.keys();
        if !Arc::ptr_eq(seen, &current) {
            return Ok(Some(current));
        }
        let now = self.clock.elapsed();
        if last.is_some_and(|last| now.saturating_sub(last) < KEYS_AGAIN) {
            return Ok(None);
        }
        *last = Some(now);
        let keys = JsonWebKeySet::fetch_async(&known.keys_address, &self.http)
            .await
            .map_err(|error| unavailable("the key set", &error))?;
        known.keys.store(Arc::new(strong(&keys)));
        Ok(Some(known.keys()))
    }

    async fn discover(&self) -> Result<Known, SignInError> {
        let registration = &self.registration;
        // The library checks that the document's issuer is this one, character by character (OpenID
        // Connect Discovery 1.0 §4.3).
        let metadata = Metadata::discover_async(registration.issuer.clone(), &self.http)
            .await
            .map_err(|error| unavailable("the metadata", &error))?;
        Known::of(metadata, registration, self.clock.elapsed())
    }
}

/// Returns how the platform authenticates at the token endpoint. The default is the first method
/// (OpenID Connect Discovery 1.0 §3).
fn auth_type(methods: Option<&[CoreClientAuthMethod]>) -> Option<AuthType> {
    let Some(methods) = methods else {
        return Some(AuthType::BasicAuth);
    };
    if methods.contains(&CoreClientAuthMethod::ClientSecretBasic) {
        Some(AuthType::BasicAuth)
    } else if methods.contains(&CoreClientAuthMethod::ClientSecretPost) {
        Some(AuthType::RequestBody)
    } else {
        None
    }
}

fn is_safe(address: &Url) -> bool {
    match address.scheme() {
        "https" => true,
        "http" => address.host_str().is_some_and(is_this_machine),
        _ => false,
    }
}

/// Returns the error without the response's body.
fn unavailable(what: &str, error: &DiscoveryError<HttpError>) -> SignInError {
    let problem = match error {
        DiscoveryError::Request(error) => error.to_string(),
        DiscoveryError::Response(status, ..) => format!("the answer has status {status}"),
        DiscoveryError::Parse(error) => format!("`{}` cannot be read", error.path()),
        DiscoveryError::Validation(problem) => shown(problem),
        _ => "the address cannot be used".to_owned(),
    };
    SignInError::Unavailable(format!("{what}: {problem}"))
}

/// Returns the keys without RSA keys that are too short (RFC 7518 §3.3): who has factored one can sign
/// in as anybody.
fn strong(keys: &CoreJsonWebKeySet) -> CoreJsonWebKeySet {
    let (strong, weak): (Vec<_>, Vec<_>) = keys.keys().iter().cloned().partition(is_strong);
    if !weak.is_empty() {
        tracing::warn!(
            keys = weak.len(),
            "the provider has RSA keys with fewer than {RSA_BITS} bits; tokens that they sign are refused"
        );
    }
    JsonWebKeySet::new(strong)
}

/// Whether a key is none of RSA, or long enough.
fn is_strong(key: &CoreJsonWebKey) -> bool {
    // The library has no other way to the parts of a key.
    let key = serde_json::to_value(key).unwrap_or_default();
    let Some(modulus) = key.get("n").and_then(serde_json::Value::as_str) else {
        return true;
    };
    let Ok(modulus) = URL_SAFE_NO_PAD.decode(modulus) else {
        return false;
    };
    let zeros = modulus.iter().take_while(|byte| **byte == 0).count();
    let first = modulus
        .get(zeros)
        .map_or(0, |byte| byte.leading_zeros() as usize);
    (modulus.len() - zeros) * 8 - first >= RSA_BITS
}

#[cfg(test)]
mod tests {
    use super::*;
    use CoreClientAuthMethod::{ClientSecretBasic, ClientSecretPost, PrivateKeyJwt};
    use openidconnect::JsonWebKey as _;

    #[test]
    fn a_short_rsa_key_is_left_out() {
        let key = |id: &str, bits: usize| {
            let mut modulus = vec![0; bits.div_ceil(8) + 1];
            modulus[1] = 1 << ((bits - 1) % 8);
            let modulus = URL_SAFE_NO_PAD.encode(modulus);
            serde_json::json!({ "kty": "RSA", "kid": id, "n": modulus, "e": "AQAB" })
        };
        let all = [key("long", 2_048), key("short", 2_047), key("tiny", 1_024)];
        let keys = serde_json::json!({ "keys": all });
        let keys: CoreJsonWebKeySet = serde_json::from_value(keys).unwrap();
        let strong = strong(&keys);
        let names: Vec<_> = strong.keys().iter().map(|key| key.key_id()).collect();
        assert_eq!(names.len(), 1);
        assert_eq!(names[0].map(|id| id.as_str()), Some("long"));
    }

    #[test]
    fn the_client_says_who_it_is_in_a_way_that_the_provider_takes() {
        let basic = Some(AuthType::BasicAuth);
        let post = Some(AuthType::RequestBody);
        for (methods, expected) in [
            (None, basic.clone()),
            (Some(&[ClientSecretBasic][..]), basic.clone()),
            (Some(&[ClientSecretPost, ClientSecretBasic]), basic),
            (Some(&[PrivateKeyJwt, ClientSecretPost]), post),
            (Some(&[PrivateKeyJwt]), None),
            (Some(&[]), None),
        ] {
            let found = auth_type(methods);
            assert_eq!(format!("{found:?}"), format!("{expected:?}"), "{methods:?}");
        }
    }
}
