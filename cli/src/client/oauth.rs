//! The auth service's endpoints for a device without a browser (RFC 8628), for refreshing (RFC 6749
//! §6) and for revoking (RFC 7009).

use http::{Request, header};
use platform_protocol::paths::{METADATA, PLATFORM};
use serde::Deserialize;
use url::Url;
use url::form_urlencoded::Serializer;

use super::answer::{Answer, Caller};
use super::{Http, empty, finish, full};
use crate::failure::Failure;
use crate::origin::PlatformOrigin;
use crate::secret::Secret;

/// This program's client id at the auth service.
const CLIENT_ID: &str = "platform-cli";
const DEVICE_GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";
/// The interval if the server names none (RFC 8628 §3.2).
const DEFAULT_INTERVAL: u64 = 5;

/// Where the endpoints are (RFC 8414).
#[derive(Debug, Deserialize)]
pub(crate) struct Metadata {
    issuer: String,
    device_authorization_endpoint: String,
    token_endpoint: String,
    revocation_endpoint: String,
}

/// Which platform an address belongs to, as the address itself reports.
#[derive(Debug, Deserialize)]
struct Whereabouts {
    origin: String,
    /// The origin below which games have their addresses; an older platform does not name it.
    games_origin: Option<String>,
}

/// The response that starts a sign-in (RFC 8628 §3.2).
#[derive(Debug, Deserialize)]
pub(crate) struct DeviceAuthorization {
    /// The secret code: only this program knows it.
    pub(crate) device_code: Secret,
    /// The code that the person enters.
    pub(crate) user_code: String,
    /// Where the person enters it.
    pub(crate) verification_uri: String,
    /// The same with the code included.
    pub(crate) verification_uri_complete: Option<String>,
    /// Seconds until the codes expire.
    pub(crate) expires_in: u64,
    /// Seconds between two requests.
    #[serde(default = "default_interval")]
    pub(crate) interval: u64,
}

const fn default_interval() -> u64 {
    DEFAULT_INTERVAL
}

/// The tokens of one sign-in or refresh.
#[derive(Debug, Deserialize)]
pub(crate) struct Tokens {
    /// Gives access to the project API.
    pub(crate) access_token: Secret,
    /// Its life in seconds.
    pub(crate) expires_in: i64,
    /// Works once, to get new tokens.
    pub(crate) refresh_token: Secret,
}

/// An error of the token endpoint (RFC 6749 §5.2, RFC 8628 §3.5).
#[derive(Debug, Deserialize)]
struct OauthError {
    error: String,
    error_description: Option<String>,
}

/// The result of a request to the token endpoint.
#[derive(Debug)]
pub(crate) enum Grant {
    /// The tokens.
    Given(Tokens),
    /// Refused: the error's code, and the failure that it makes.
    Refused(String, Failure),
}

impl Http {
    /// Fetches the addresses of the auth service's endpoints.
    ///
    /// # Errors
    /// No response, or one of another issuer.
    pub(crate) async fn metadata(&self) -> Result<Metadata, Failure> {
        let auth_url = self.origin().auth_url();
        let request = Request::get(format!("{auth_url}{METADATA}"));
        let answer = self.send(finish(request, empty())?).await?.done()?;
        let metadata: Metadata =
            serde_json::from_slice(&answer.body).map_err(|_| answer.not_understood())?;
        // RFC 8414 §3.3: the issuer must be the server that was asked. Codes and tokens must not be
        // sent anywhere else either.
        let ours = |endpoint: &String| is_at(endpoint, &auth_url);
        let endpoints = [
            &metadata.device_authorization_endpoint,
            &metadata.token_endpoint,
            &metadata.revocation_endpoint,
        ];
        if metadata.issuer != auth_url || !endpoints.into_iter().all(ours) {
            return Err(answer.not_understood());
        }
        Ok(metadata)
    }

    /// For an address that is no platform itself: the platform that it reports as its own. The
    /// report is accepted only if the address is a sub-domain of that platform, so that a foreign
    /// address cannot redirect a sign-in.
    ///
    /// # Errors
    /// `not_one` if the address names no platform; a sentence with the correct command if it names
    /// a platform that it does not belong to.
    pub(crate) async fn platform_of_address(
        &self,
        not_one: Failure,
    ) -> Result<PlatformOrigin, Failure> {
        match self.named_platform().await {
            Some(platform) if platform.is_above(self.origin()) => Ok(platform),
            Some(platform) => Err(Failure::failed(format!(
                "{} says that it belongs to the platform {platform}. If you trust that platform, \
                 run {}.",
                self.origin(),
                platform.login_command()
            ))),
            None => Err(not_one),
        }
    }

    /// Returns the platform that an address of a game or of an auth service names as its own. A
    /// platform's own address names none.
    pub(crate) async fn named_platform(&self) -> Option<PlatformOrigin> {
        let request = Request::get(format!("{}{PLATFORM}", self.origin()));
        let answer = self.send(finish(request, empty()).ok()?).await.ok()?;
        let named = serde_json::from_slice::<Whereabouts>(&answer.body).ok();
        named
            .filter(|_| answer.status.is_success())?
            .origin
            .parse()
            .ok()
    }

    /// Returns the origin below which games of this platform have their addresses. A platform that
    /// does not say so, or does not answer now, has them below its own.
    pub(crate) async fn games_origin(&self) -> PlatformOrigin {
        let own = self.origin().clone();
        let request = Request::get(format!("{}{PLATFORM}", own.auth_url()));
        let Ok(request) = finish(request, empty()) else {
            return own;
        };
        let Ok(answer) = self.send(request).await else {
            return own;
        };
        let named = serde_json::from_slice::<Whereabouts>(&answer.body).ok();
        let named =
            named.filter(|named| answer.status.is_success() && named.origin == own.to_string());
        let games = named.and_then(|named| named.games_origin?.parse().ok());
        games.unwrap_or(own)
    }

    /// Starts a sign-in (RFC 8628 §3.1).
    ///
    /// # Errors
    /// The auth service refuses, or names an address that is not its own.
    pub(crate) async fn authorize_device(
        &self,
        metadata: &Metadata,
    ) -> Result<DeviceAuthorization, Failure> {
        let form = [("client_id", CLIENT_ID)];
        let endpoint = &metadata.device_authorization_endpoint;
        let answer = self.post_form(endpoint, &form).await?;
        if !answer.status.is_success() {
            return Err(refusal(&answer).1);
        }
        let started: DeviceAuthorization =
            serde_json::from_slice(&answer.body).map_err(|_| answer.not_understood())?;
        // The person is about to sign in at this address.
        let ours = |address: &String| is_at(address, &metadata.issuer);
        let complete = started.verification_uri_complete.as_ref();
        if !(ours(&started.verification_uri) && complete.is_none_or(ours)) {
            return Err(answer.not_understood());
        }
        Ok(started)
    }

    /// Asks whether the person has agreed yet (RFC 8628 §3.4).
    ///
    /// # Errors
    /// No response that can be understood.
    pub(crate) async fn redeem_device_code(
        &self,
        metadata: &Metadata,
        code: &Secret,
    ) -> Result<Grant, Failure> {
        let form = [
            ("grant_type", DEVICE_GRANT),
            ("device_code", code.expose()),
            ("client_id", CLIENT_ID),
        ];
        grant(self.post_form(&metadata.token_endpoint, &form).await?)
    }

    /// Gets new tokens (RFC 6749 §6). The old refresh token cannot be used again.
    ///
    /// # Errors
    /// No response that can be understood.
    pub(crate) async fn refresh(
        &self,
        metadata: &Metadata,
        refresh_token: &Secret,
    ) -> Result<Grant, Failure> {
        let form = [
            ("grant_type", "refresh_token"),
            ("refresh_token", refresh_token.expose()),
            ("client_id", CLIENT_ID),
        ];
        grant(self.post_form(&metadata.token_endpoint, &form).await?)
    }

    /// Revokes all tokens of one sign-in (RFC 7009). An unknown token counts as revoked (§2.2).
    ///
    /// # Errors
    /// No response, or a refusal.
    pub(crate) async fn revoke(
        &self,
        metadata: &Metadata,
        refresh_token: &Secret,
    ) -> Result<(), Failure> {
        let form = [
            ("token", refresh_token.expose()),
            ("token_type_hint", "refresh_token"),
            ("client_id", CLIENT_ID),
        ];
        let answer = self.post_form(&metadata.revocation_endpoint, &form).await?;
        if answer.status.is_success() {
            Ok(())
        } else {
            Err(refusal(&answer).1)
        }
    }

    async fn post_form(&self, endpoint: &str, form: &[(&str, &str)]) -> Result<Answer, Failure> {
        let body = Serializer::new(String::new()).extend_pairs(form).finish();
        let request = Request::post(endpoint)
            .header(header::ACCEPT, "application/json")
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
        self.send(finish(request, full(body))?).await
    }
}

fn grant(answer: Answer) -> Result<Grant, Failure> {
    if answer.status.is_success() {
        return answer.json().map(Grant::Given);
    }
    let (code, failure) = refusal(&answer);
    Ok(Grant::Refused(code, failure))
}

/// The error's code, empty if there is none, and the failure that it makes.
fn refusal(answer: &Answer) -> (String, Failure) {
    let Ok(error) = serde_json::from_slice::<OauthError>(&answer.body) else {
        return (String::new(), answer.failure(Caller::Account));
    };
    let sentence = match &error.error_description {
        Some(description) => format!("The auth service refused: {description}"),
        None => format!("The auth service refused with {}.", error.error),
    };
    let failure = Failure::failed(sentence).with_request_id(answer.request_id());
    (error.error, failure)
}

/// Whether an address is at the origin `origin`.
fn is_at(address: &str, origin: &str) -> bool {
    Url::parse(address).is_ok_and(|url| {
        url.origin().is_tuple()
            && url.username().is_empty()
            && url.origin().ascii_serialization() == origin
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_elsewhere_is_not_the_auth_services() {
        let auth = "https://auth.games.example";
        assert!(is_at(
            "https://auth.games.example/device?user_code=A-B",
            auth
        ));
        for other in [
            "https://auth.games.example.evil.example/device",
            "http://auth.games.example/device",
            "https://auth.games.example:8443/device",
            "https://me@auth.games.example/device",
            "javascript:alert(1)",
            "/device",
        ] {
            assert!(!is_at(other, auth), "{other}");
        }
    }
}
