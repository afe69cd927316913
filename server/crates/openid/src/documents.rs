//! A provider's documents that are at hand, read as a sign-in reads those that it fetches. The fuzz
//! targets use it, and nothing else: it needs no provider and no network.

use std::time::Duration;

use openidconnect::core::{CoreJsonWebKeySet, CoreTokenResponse};
use openidconnect::{ClientId, ClientSecret, IssuerUrl, Nonce, RedirectUrl, TokenResponse as _};
use url::Url;

use crate::Answer;
use crate::id_token::{self, Expected, Proved};
use crate::metadata::{Known, Metadata, Registration};
use platform_domain::clock::Millis;

/// The metadata and the key set of a provider.
#[derive(Debug)]
pub struct Documents {
    known: Known,
    registration: Registration,
}

impl Documents {
    /// Reads the metadata of `issuer` and its key set, for the client with this id. Returns `None` if
    /// no sign-in could use them.
    #[must_use]
    pub fn read(issuer: &str, client_id: &str, metadata: &[u8], key_set: &[u8]) -> Option<Self> {
        let registration = Registration {
            issuer: IssuerUrl::new(issuer.to_owned()).ok()?,
            client_id: ClientId::new(client_id.to_owned()),
            client_secret: ClientSecret::new(String::new()),
            redirect: RedirectUrl::new(issuer.to_owned()).ok()?,
        };
        let metadata: Metadata = serde_json::from_slice(metadata).ok()?;
        let keys: CoreJsonWebKeySet = serde_json::from_slice(key_set).ok()?;
        if *metadata.issuer() != registration.issuer {
            return None;
        }
        let metadata = metadata.set_jwks(keys);
        let known = Known::of(metadata, &registration, Duration::ZERO).ok()?;
        Some(Self {
            known,
            registration,
        })
    }

    /// Returns the addresses to which the browser and the server send codes and secrets.
    #[must_use]
    pub fn endpoints(&self) -> Vec<&Url> {
        let client = &self.known.client;
        let token = client.token_uri().map(|address| address.url());
        std::iter::once(client.auth_uri().url())
            .chain(token)
            .collect()
    }

    /// Returns the keys whose signatures are believed, as JSON (RFC 7517 §5).
    #[must_use]
    pub fn key_set(&self) -> String {
        serde_json::to_string(&*self.known.keys()).unwrap_or_default()
    }

    /// Returns the subject, and the time of the authentication, that a response of the token endpoint
    /// proves at `now`; `None` if it proves none.
    #[must_use]
    pub fn subject(
        &self,
        response: &[u8],
        answer: Answer<'_>,
        now: Millis,
    ) -> Option<(String, Option<Millis>)> {
        let response: CoreTokenResponse = serde_json::from_slice(response).ok()?;
        let expected = Expected {
            issuer: &self.registration.issuer,
            client_id: &self.registration.client_id,
            nonce: &Nonce::new(answer.nonce.to_owned()),
            started_at: answer.started_at,
            again: answer.again,
            now,
        };
        let proved = id_token::verify(response.id_token()?, &self.known.keys(), expected);
        let Proved {
            subject,
            authenticated_at,
            ..
        } = proved.ok()?;
        Some((subject, authenticated_at))
    }
}
