//! Devices without a browser: signing one in (RFC 8628), and its refresh tokens (RFC 6749 §6).

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::audit::Source;
use super::player::Player;
use crate::clock::{CLOCKS_DIFFER, Millis};
use crate::entropy::Entropy;

/// The id of the only client (RFC 6749 §2.2).
pub const CLIENT_ID: &str = "platform-cli";

/// How long both codes of a sign-in live: ten minutes, as OWASP ASVS 5.0 (6.5.5) asks for.
pub const CODE_MILLIS: Millis = 10 * 60 * 1_000;
/// How long an expired sign-in is kept, so that its device learns that it expired.
pub const CODE_KEPT_MILLIS: Millis = 2 * CODE_MILLIS;
/// Seconds between two requests of a device (RFC 8628 §3.2).
pub const INTERVAL_SECONDS: i64 = 5;
/// Seconds that a request which comes too early adds to the interval (RFC 8628 §3.5).
pub const SLOW_DOWN_SECONDS: i64 = 5;
/// The longest interval.
pub const MAX_INTERVAL_SECONDS: i64 = 60;
/// How much too early a request may come, since network delays vary.
const EARLY_MILLIS: Millis = 1_000;
/// Life of a device's sign-in without use: 90 days.
pub const DEVICE_MILLIS: Millis = 90 * 24 * 60 * 60 * 1_000;
/// Life of a device's sign-in in any case: a year (OWASP ASVS 5.0, 10.4.8).
pub const DEVICE_LIFE_MILLIS: Millis = 365 * 24 * 60 * 60 * 1_000;
/// For how long after its first use a refresh token works once more, if its successor was not used:
/// the response may have been lost.
pub const LOST_ANSWER_MILLIS: Millis = 60 * 1_000;

/// A client's name for people.
#[must_use]
pub fn client_name(id: &str) -> &str {
    if id == CLIENT_ID {
        "The command line"
    } else {
        id
    }
}

/// The letters of user codes: they form no words, and none looks like a digit (RFC 8628 §6.1).
const LETTERS: &[u8; 20] = b"BCDFGHJKLMNPQRSTVWXZ";
/// How many letters a code has: 34 bits.
const CODE_LETTERS: usize = 8;

/// The code that a person types: eight letters.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UserCode(String);

impl UserCode {
    /// A new code.
    #[must_use]
    pub fn generate(entropy: &dyn Entropy) -> Self {
        let mut code = String::with_capacity(CODE_LETTERS);
        while code.len() < CODE_LETTERS {
            let bytes: [u8; 16] = entropy.bytes();
            // Bytes from 240 on would make some letters more likely than others.
            let even = bytes.iter().filter(|byte| usize::from(**byte) < 240);
            let letters = even.filter_map(|byte| LETTERS.get(usize::from(*byte) % LETTERS.len()));
            let missing = CODE_LETTERS - code.len();
            code.extend(letters.take(missing).map(|letter| char::from(*letter)));
        }
        Self(code)
    }

    /// Parses a typed code, in either case, with or without hyphens and spaces (RFC 8628 §6.1).
    #[must_use]
    pub fn parse(typed: &str) -> Option<Self> {
        let mut code = String::with_capacity(CODE_LETTERS);
        for char in typed.chars() {
            // Phones replace a typed hyphen by other ones.
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

    /// The letters alone, as stored.
    #[must_use]
    pub fn letters(&self) -> &str {
        &self.0
    }
}

/// The form for people: `BCDF-GHJK`.
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

    /// The prefix tells the kind of secret if it leaks.
    fn generate(prefix: &str, entropy: &dyn Entropy) -> Self {
        let bytes: [u8; 32] = entropy.bytes();
        Self(format!("{prefix}{}", URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// The text, only for its device.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The hash that the store keeps.
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

/// A new sign-in of a device.
#[derive(Clone, Debug)]
pub struct NewDeviceAuthorization {
    /// The hash by which it is found when the device polls.
    pub device_code: TokenHash,
    /// Codes to try, in this order. The sign-in gets the first that no other has.
    pub user_codes: Vec<UserCode>,
    /// The client's id.
    pub client: String,
    /// The address (IPv4, or IPv6 /64) of the request.
    pub network: String,
    /// Now.
    pub now: Millis,
}

/// A sign-in that waits for a person's decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceAuthorization {
    /// The client's id.
    pub client: String,
    /// The address (IPv4, or IPv6 /64) of the device's request.
    pub network: String,
    /// When it began.
    pub started_at: Millis,
}

/// The result of a person's decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decided {
    /// It was recorded.
    Done,
    /// No sign-in with this code is waiting: it never began, was decided already, or is too old.
    Unknown,
    /// A guest cannot sign a device in.
    Guest,
    /// The account is suspended.
    Suspended {
        /// The reason for the player.
        reason: Option<String>,
    },
}

/// The new device and its tokens, in case the request succeeds.
#[derive(Clone, Debug)]
pub struct FreshDevice {
    /// The id for a new device.
    pub device: Uuid,
    /// Its next refresh token.
    pub refresh_token: TokenHash,
    /// The origin of the request; `None` in tests.
    pub source: Option<Source>,
    /// Now.
    pub now: Millis,
}

/// The result of a device's request with its device code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Redeemed {
    /// Approved: it is signed in as this account. The code cannot be used again.
    Given(Player),
    /// Not decided yet.
    Pending,
    /// Not decided yet, and the device polls too often.
    SlowDown,
    /// The person denied it.
    Denied,
    /// The code has expired.
    Expired,
    /// There is no such code, or no longer.
    Unknown,
    /// The account is suspended.
    Suspended {
        /// The reason for the player.
        reason: Option<String>,
    },
}

/// The result of a device's request with a refresh token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refreshed {
    /// It stays signed in as this account, with the next token.
    Given {
        /// The account.
        player: Player,
        /// The device.
        device: Uuid,
    },
    /// There is no such token, or the device is no longer signed in.
    Unknown,
    /// The token was used before, so it may have been stolen. The device's sign-in has ended (RFC
    /// 9700 §4.14.2).
    Reused,
    /// The account is suspended. The token stays valid.
    Suspended {
        /// The reason for the player.
        reason: Option<String>,
    },
}

/// A signed-in device, as its player may see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// Its id.
    pub id: Uuid,
    /// The client's id.
    pub client: String,
    /// The address (IPv4, or IPv6 /64) from which its sign-in began.
    pub network: String,
    /// When it was signed in.
    pub signed_in_at: Millis,
    /// When it last got a token.
    pub used_at: Millis,
}

/// Whether a refresh token that was first used `passed` milliseconds ago works once more, if its
/// successor was not used. The first use may lie in the future by the clock of this server.
#[must_use]
pub fn may_ask_again(passed: Millis) -> bool {
    (-CLOCKS_DIFFER..LOST_ANSWER_MILLIS).contains(&passed)
}

/// Whether the sign-in of a device has ended by itself: it was not used for [`DEVICE_MILLIS`], or is older
/// than [`DEVICE_LIFE_MILLIS`].
#[must_use]
pub const fn has_ended(signed_in_at: Millis, used_at: Millis, now: Millis) -> bool {
    now - used_at >= DEVICE_MILLIS || now - signed_in_at >= DEVICE_LIFE_MILLIS
}

/// Whether a request at `now` comes too early after the one at `before`. False if the clock was set
/// back.
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
