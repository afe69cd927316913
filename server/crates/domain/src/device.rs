//! Devices without a browser: signing one in (RFC 8628), and the tokens that
//! it keeps itself signed in with (RFC 6749 §6).

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::audit::Source;
use super::player::Player;
use crate::clock::Millis;
use crate::entropy::Entropy;

/// The one client there is, by its id (RFC 6749 §2.2).
pub const CLIENT_ID: &str = "platform-cli";

/// How long both codes of a sign-in live: 15 minutes.
pub const CODE_MILLIS: Millis = 15 * 60 * 1_000;
/// How long an expired one is kept, so that its device hears that it expired.
pub const CODE_KEPT_MILLIS: Millis = 2 * CODE_MILLIS;
/// Seconds between two requests of a device (RFC 8628 §3.2).
pub const INTERVAL_SECONDS: i64 = 5;
/// Seconds that a request before its time adds to the interval (RFC 8628 §3.5).
pub const SLOW_DOWN_SECONDS: i64 = 5;
/// The longest interval.
pub const MAX_INTERVAL_SECONDS: i64 = 60;
/// How much earlier than the interval a request may come, since the delay of
/// answers varies.
const EARLY_MILLIS: Millis = 1_000;
/// Life of a device's sign-in without use: 90 days.
pub const DEVICE_MILLIS: Millis = 90 * 24 * 60 * 60 * 1_000;
/// For how long after its first use a refresh token may come once more, as
/// long as its successor was not used: the answer may have been lost.
pub const LOST_ANSWER_MILLIS: Millis = 60 * 1_000;

/// What people call a client.
#[must_use]
pub fn client_name(id: &str) -> &str {
    if id == CLIENT_ID {
        "The command line"
    } else {
        id
    }
}

/// Letters of a user code: none that make words, none that look like digits
/// (RFC 8628 §6.1).
const LETTERS: &[u8; 20] = b"BCDFGHJKLMNPQRSTVWXZ";
/// How many of them a code has: 34 bits.
const CODE_LETTERS: usize = 8;

/// What a person types: eight letters.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UserCode(String);

impl UserCode {
    /// A new code.
    #[must_use]
    pub fn generate(entropy: &dyn Entropy) -> Self {
        let mut code = String::with_capacity(CODE_LETTERS);
        while code.len() < CODE_LETTERS {
            let bytes: [u8; 16] = entropy.bytes();
            // The highest bytes would make some letters likelier than others.
            let even = bytes.iter().filter(|byte| usize::from(**byte) < 240);
            let letters = even.filter_map(|byte| LETTERS.get(usize::from(*byte) % LETTERS.len()));
            let missing = CODE_LETTERS - code.len();
            code.extend(letters.take(missing).map(|letter| char::from(*letter)));
        }
        Self(code)
    }

    /// The code that somebody typed, in either case, with hyphens and spaces
    /// or without (RFC 8628 §6.1).
    #[must_use]
    pub fn parse(typed: &str) -> Option<Self> {
        let mut code = String::with_capacity(CODE_LETTERS);
        for char in typed.chars() {
            // Phones put other hyphens in place of the one that was typed.
            if char.is_whitespace() || matches!(char, '-' | '\u{2010}'..='\u{2015}' | '\u{2212}') {
                continue;
            }
            let letter = u8::try_from(char).ok()?.to_ascii_uppercase();
            if code.len() == CODE_LETTERS || !LETTERS.contains(&letter) {
                return None;
            }
            code.push(char::from(letter));
        }
        (code.len() == CODE_LETTERS).then_some(Self(code))
    }

    /// The letters alone, as they are kept.
    #[must_use]
    pub fn letters(&self) -> &str {
        &self.0
    }
}

/// As it is shown: `BCDF-GHJK`.
impl fmt::Display for UserCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, second) = self.0.split_at(CODE_LETTERS / 2);
        write!(f, "{first}-{second}")
    }
}

/// A device code or a refresh token: 256 random bits. The store has its
/// [`TokenHash`].
#[derive(Clone, PartialEq, Eq)]
pub struct DeviceSecret(String);

impl DeviceSecret {
    /// A new device code.
    #[must_use]
    pub fn device_code(entropy: &dyn Entropy) -> Self {
        Self::generate("platform_dc_", entropy)
    }

    /// A new refresh token.
    #[must_use]
    pub fn refresh_token(entropy: &dyn Entropy) -> Self {
        Self::generate("platform_rt_", entropy)
    }

    /// The prefix shows what kind of secret a leaked text is.
    fn generate(prefix: &str, entropy: &dyn Entropy) -> Self {
        let bytes: [u8; 32] = entropy.bytes();
        Self(format!("{prefix}{}", URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// The text, for its device alone.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// What the store keeps in its place.
    #[must_use]
    pub fn hash(&self) -> TokenHash {
        TokenHash::of(&self.0)
    }
}

impl fmt::Debug for DeviceSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DeviceSecret(hidden)")
    }
}

/// SHA-256 of a device code or a refresh token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TokenHash(pub [u8; 32]);

impl TokenHash {
    /// The hash of a text as it is sent.
    #[must_use]
    pub fn of(text: &str) -> Self {
        Self(Sha256::digest(text).into())
    }
}

/// A sign-in that a device begins.
#[derive(Clone, Debug)]
pub struct NewDeviceAuthorization {
    /// Names it when the device asks.
    pub device_code: TokenHash,
    /// Codes for the person to try, best first; the first that no other
    /// sign-in has is taken.
    pub user_codes: Vec<UserCode>,
    /// The client's id.
    pub client: String,
    /// The address (IPv4, or IPv6 /64) that it came from.
    pub network: String,
    /// Now.
    pub now: Millis,
}

/// A sign-in that waits for a person's decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceAuthorization {
    /// The client's id.
    pub client: String,
    /// The address (IPv4, or IPv6 /64) that it came from.
    pub network: String,
    /// When it began.
    pub started_at: Millis,
}

/// What became of a person's decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decided {
    /// It stands.
    Done,
    /// No sign-in of this code waits: never begun, decided already, too old.
    Unknown,
    /// A guest has nothing to sign a device in to.
    Guest,
    /// The account is suspended.
    Suspended {
        /// What the player may be told.
        reason: Option<String>,
    },
}

/// What a device is given, should it get anything.
#[derive(Clone, Debug)]
pub struct FreshDevice {
    /// The device's id, where it is new.
    pub device: Uuid,
    /// Its next refresh token.
    pub refresh_token: TokenHash,
    /// Where it asks from; none in a test.
    pub source: Option<Source>,
    /// Now.
    pub now: Millis,
}

/// What a device hears that asks with its device code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Redeemed {
    /// It is signed in as this account. The code is used up.
    Given(Player),
    /// Nobody has decided yet.
    Pending,
    /// Nobody has decided yet, and it asks too often.
    SlowDown,
    /// The person said no.
    Denied,
    /// The code has expired.
    Expired,
    /// There is no such code, or not any more.
    Unknown,
    /// The account is suspended.
    Suspended {
        /// What the player may be told.
        reason: Option<String>,
    },
}

/// What a device hears that asks with a refresh token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refreshed {
    /// It stays signed in as this account, and has the next token.
    Given {
        /// The account.
        player: Player,
        /// The device.
        device: Uuid,
    },
    /// There is no such token, or the device is not signed in any more.
    Unknown,
    /// The token was used before: somebody has a copy, so the device's
    /// sign-in has ended (RFC 9700 §4.14.2).
    Reused,
    /// The account is suspended. The token is as good as it was.
    Suspended {
        /// What the player may be told.
        reason: Option<String>,
    },
}

/// A device that is signed in, as its player may see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// Which one.
    pub id: Uuid,
    /// The client's id.
    pub client: String,
    /// The address (IPv4, or IPv6 /64) that its sign-in began from.
    pub network: String,
    /// When it was signed in.
    pub signed_in_at: Millis,
    /// When it last got a token.
    pub used_at: Millis,
}

/// Whether a question at `now` comes too early after the one at `before`. A
/// clock that was set back says nothing about it.
#[must_use]
pub fn is_too_early(before: Option<Millis>, interval_seconds: i64, now: Millis) -> bool {
    let least = interval_seconds * 1_000 - EARLY_MILLIS;
    before.is_some_and(|before| (0..least).contains(&(now - before)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entropy::SystemEntropy;

    #[test]
    fn a_code_is_read_however_it_was_typed() {
        let code = UserCode::parse("BCDFGHJK").unwrap();
        assert_eq!(code.to_string(), "BCDF-GHJK");
        for typed in [
            "BCDF-GHJK",
            "bcdf-ghjk",
            " bCdF ghJk\t",
            "B-C-D-F-G-H-J-K",
            "BCDF\u{2013}GHJK",
            "BCDF\u{a0}-\u{2011}GHJK\n",
        ] {
            assert_eq!(UserCode::parse(typed), Some(code.clone()), "{typed:?}");
        }
        for other in [
            "",
            "BCDF-GHJ",
            "BCDF-GHJKL",
            "BCDF-GHJA",
            "BCDF-GHJ1",
            "BCDF_GHJK",
            "\u{412}CDFGHJK",
            "BCDFGHJ\u{212a}",
            "BCDFGHJK\0",
        ] {
            assert_eq!(UserCode::parse(other), None, "{other:?}");
        }
    }

    #[test]
    fn every_code_can_be_typed_and_no_two_are_the_same() {
        let codes: std::collections::HashSet<_> = (0..1_000)
            .map(|_| UserCode::generate(&SystemEntropy))
            .inspect(|code| assert_eq!(UserCode::parse(&code.to_string()).as_ref(), Some(code)))
            .collect();
        assert_eq!(codes.len(), 1_000);
    }

    #[test]
    fn a_secret_is_not_shown() {
        let secret = DeviceSecret::refresh_token(&SystemEntropy);
        assert_eq!(secret.expose().len(), "platform_rt_".len() + 43);
        assert_eq!(format!("{secret:?}"), "DeviceSecret(hidden)");
        assert_eq!(secret.hash(), TokenHash::of(secret.expose()));
    }

    #[test]
    fn a_question_is_too_early_within_the_interval_and_a_second_of_grace() {
        for (before, now, early) in [
            (None, 0, false),
            (Some(10_000), 10_000, true),
            (Some(10_000), 13_999, true),
            (Some(10_000), 14_000, false),
            (Some(10_000), 9_000, false),
        ] {
            assert_eq!(is_too_early(before, 5, now), early, "{before:?} {now}");
        }
    }
}
