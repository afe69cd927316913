//! A signing key that is not stored: it exists as long as the process.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use platform_protocol::claims::{ALGORITHM, GameTokenHeader};
use serde::Serialize;

use super::signer::{PrivateKey, Signer};
use super::{KeyError, KeySet};
use crate::entropy::Entropy;

/// One ES256 key and its key set. It is independent of game tokens.
#[derive(Debug)]
pub struct EphemeralKey {
    header: String,
    signer: Box<dyn Signer>,
    key_set: String,
}

impl EphemeralKey {
    /// Generates a new key.
    ///
    /// # Errors
    /// [`KeyError::Json`], which does not happen in practice.
    pub fn generate(entropy: &dyn Entropy) -> Result<Self, KeyError> {
        let private = PrivateKey::generate(entropy);
        let public = private.public();
        let header = serde_json::to_vec(&GameTokenHeader {
            alg: ALGORITHM.into(),
            typ: "JWT".into(),
            kid: public.kid().to_owned(),
        })?;
        let keys = vec![&public];
        Ok(Self {
            header: URL_SAFE_NO_PAD.encode(header),
            key_set: serde_json::to_string(&KeySet { keys })?,
            signer: private.into_signer(),
        })
    }

    /// Returns the key set (RFC 7517 §5) as JSON.
    #[must_use]
    pub fn key_set(&self) -> &str {
        &self.key_set
    }

    /// Returns a JWT with these claims, in compact form (RFC 7515 §3.1).
    ///
    /// # Errors
    /// [`KeyError::Signing`] or [`KeyError::Json`]; neither happens in practice.
    pub fn sign(&self, claims: &impl Serialize) -> Result<String, KeyError> {
        let payload = URL_SAFE_NO_PAD.encode(serde_json::to_vec(claims)?);
        let mut token = format!("{}.{payload}", self.header);
        let signature = self.signer.sign(token.as_bytes());
        token.push('.');
        URL_SAFE_NO_PAD.encode_string(signature.ok_or(KeyError::Signing)?, &mut token);
        Ok(token)
    }
}
