//! Webhooks of projects: an address that gets a signed request for each alert, in the form of the
//! Standard Webhooks specification (version 1.0.0).

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use crate::clock::Millis;
use crate::entropy::Entropy;

/// The beginning of every secret.
const PREFIX: &str = "whsec_";
/// Bytes of a secret's key.
const KEY: usize = 32;
/// How long after each failed try the next one is made, without the random part.
const DELAYS: [Millis; 7] = [
    5_000,
    5 * MINUTE,
    30 * MINUTE,
    120 * MINUTE,
    300 * MINUTE,
    600 * MINUTE,
    360 * MINUTE,
];
const MINUTE: Millis = 60 * 1_000;

/// The secret with which a project's alerts are signed. Its receiver has the same.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookSecret {
    text: String,
    key: [u8; KEY],
}

impl WebhookSecret {
    /// A new secret.
    #[must_use]
    pub fn generate(entropy: &dyn Entropy) -> Self {
        let key: [u8; KEY] = entropy.bytes();
        let text = format!("{PREFIX}{}", STANDARD.encode(key));
        Self { text, key }
    }

    /// Reads a secret that the store has kept.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = STANDARD.decode(text.strip_prefix(PREFIX)?).ok()?;
        let key = bytes.try_into().ok()?;
        let text = text.to_owned();
        Some(Self { text, key })
    }

    /// The text, only for the store and for whoever made or replaced the secret.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.text
    }

    /// Returns the value of `webhook-signature` for a message: its id, the time of sending in
    /// seconds, and its body.
    #[must_use]
    pub fn sign(&self, id: &str, seconds: i64, body: &str) -> String {
        #[expect(
            clippy::expect_used,
            reason = "HMAC takes keys of every length (RFC 2104 §2)"
        )]
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key).expect("a key of 32 bytes");
        mac.update(format!("{id}.{seconds}.").as_bytes());
        mac.update(body.as_bytes());
        format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
    }
}

impl fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookSecret(hidden)")
    }
}

/// What came of the last request to a webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookOutcome {
    /// When it ended.
    pub at: Millis,
    /// The status of the response.
    pub status: Option<u16>,
    /// Why there was no response.
    pub error: Option<String>,
}

/// What a webhook is told about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wants {
    /// Groups of errors.
    pub errors: bool,
    /// Deleted players.
    pub players: bool,
}

impl Default for Wants {
    fn default() -> Self {
        Self {
            errors: true,
            players: false,
        }
    }
}

impl Wants {
    /// Returns it in words, for the audit log.
    const fn words(self) -> &'static str {
        match (self.errors, self.players) {
            (true, true) => "errors and deleted players",
            (true, false) => "errors",
            (false, true) => "deleted players",
            (false, false) => "nothing",
        }
    }
}

/// The webhook of a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webhook {
    /// Where alerts are sent.
    pub url: String,
    /// The secret with which they are signed.
    pub secret: WebhookSecret,
    /// What it is told about.
    pub wants: Wants,
    /// When the project got it.
    pub created_at: Millis,
    /// When it was turned off, because its receiver said that it is gone.
    pub off_at: Option<Millis>,
    /// What came of the last request.
    pub last: Option<WebhookOutcome>,
}

impl Webhook {
    /// Returns the address without its path and query, which may contain a secret.
    #[must_use]
    pub fn origin(&self) -> String {
        origin(&self.url)
    }
}

/// Returns a webhook's address without its path and query.
#[must_use]
pub fn origin(url: &str) -> String {
    let parsed = url::Url::parse(url);
    parsed.map_or_else(
        |_| String::new(),
        |parsed| parsed.origin().ascii_serialization(),
    )
}

/// The webhook to set.
#[derive(Clone, Debug)]
pub struct NewWebhook {
    /// Where alerts are to be sent.
    pub url: String,
    /// The secret if there is none yet, or if it is to be replaced.
    pub secret: WebhookSecret,
    /// Whether to replace the secret.
    pub rotate: bool,
    /// What it is told about; `None` leaves that as it is, or as it is by default.
    pub wants: Option<Wants>,
}

impl NewWebhook {
    /// Returns what the audit log says about it.
    #[must_use]
    pub fn detail(&self, is_first: bool) -> String {
        let with = if self.rotate && !is_first {
            " with a new secret"
        } else {
            ""
        };
        let about = self
            .wants
            .map_or_else(String::new, |wants| format!(" about {}", wants.words()));
        format!("{}{with}{about}", origin(&self.url))
    }
}

/// Returns when to try again after `tries` failed tries, up to a tenth later than planned, so that
/// what failed at one time is not sent again at one time. `None` if it is given up, after about a
/// day.
#[must_use]
pub fn retry_at(tries: u16, now: Millis, entropy: &dyn Entropy) -> Option<Millis> {
    let delay = DELAYS.get(usize::from(tries).checked_sub(1)?)?;
    let random = Millis::from(u16::from_be_bytes(entropy.bytes()));
    Some(now + delay + delay / 10 * random / Millis::from(u16::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fills with one byte.
    #[derive(Debug)]
    struct Constant(u8);

    impl Entropy for Constant {
        fn fill(&self, bytes: &mut [u8]) {
            bytes.fill(self.0);
        }
    }

    #[test]
    fn a_signature_is_that_of_the_specification() {
        // Computed with Python's hmac and base64.
        let secret = WebhookSecret::generate(&Constant(7));
        assert_eq!(
            secret.expose(),
            "whsec_BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc="
        );
        assert_eq!(
            secret.sign("alert-1", 1_700_000_000, r#"{"type":"test"}"#),
            "v1,Z+3sLGhbzhmNh6ClWqtFVpzr8SobIAzfu9uoUQgGD6o="
        );
        assert_eq!(WebhookSecret::parse(secret.expose()), Some(secret));
    }

    #[test]
    fn a_secret_is_not_printed() {
        let secret = WebhookSecret::generate(&Constant(7));
        assert_eq!(format!("{secret:?}"), "WebhookSecret(hidden)");
        for text in ["", "whsec_", "whsec_AAAA", "BwcHBw=="] {
            assert!(WebhookSecret::parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn an_alert_is_tried_again_for_about_a_day() {
        let (mut earliest, mut latest) = (0, 0);
        let mut tries = 1;
        while let (Some(early), Some(late)) = (
            retry_at(tries, earliest, &Constant(0)),
            retry_at(tries, latest, &Constant(255)),
        ) {
            (earliest, latest) = (early, late);
            tries += 1;
        }
        assert_eq!(tries, 8);
        let hour = 60 * MINUTE;
        assert!((23 * hour..24 * hour).contains(&earliest), "{earliest}");
        assert!((25 * hour..27 * hour).contains(&latest), "{latest}");
        assert_eq!(retry_at(0, 0, &Constant(0)), None);
    }

    #[test]
    fn the_origin_of_an_address_has_no_path() {
        let url = "https://hooks.example:8443/services/SECRET?key=SECRET";
        assert_eq!(origin(url), "https://hooks.example:8443");
        assert_eq!(origin(""), "");
    }
}
