//! Deploy tokens: secrets with which a program without a person, such as a pipeline, deploys one
//! project or reads its logs.
//!
//! A token is `pdt_` and 40 bytes in base32: its id, a secret, and a CRC-32 of both, by which a
//! damaged token and a false alarm of a scanner are recognised without the store. The id selects
//! the row; only the whole text's hash decides.

use std::fmt;

use data_encoding::BASE32_DNSSEC;
use platform_protocol::deploy_token::{MAX_DAYS, NAME_CHARS, PREFIX, Scope, is_well_formed};
use subtle::ConstantTimeEq as _;
use uuid::Uuid;

use crate::clock::Millis;
use crate::date::Date;
use crate::device::TokenHash;
use crate::entropy::Entropy;
use crate::player::parse_reason;
use crate::project::Project;

/// A day: the precision with which the last use is kept.
const DAY: Millis = 24 * 60 * 60 * 1_000;
/// Bytes of an id.
const ID: usize = 16;
/// Bytes of an id and a secret of 160 bits.
const SIGNIFICANT: usize = ID + 20;
/// How many revoked and expired tokens of a project are kept, so that their users learn why they
/// are refused.
pub const ENDED_KEPT: usize = 100;

/// The creator of tokens that the operator made by a command of the server. No player has this id.
pub const OPERATOR: Uuid = Uuid::nil();

/// The text of a deploy token. The store has its [`TokenHash`].
#[derive(Clone, PartialEq, Eq)]
pub struct DeploySecret {
    id: Uuid,
    text: String,
}

impl DeploySecret {
    /// A new token with this id.
    #[must_use]
    pub fn generate(id: Uuid, entropy: &dyn Entropy) -> Self {
        let secret: [u8; SIGNIFICANT - ID] = entropy.bytes();
        let mut bytes = [id.as_bytes().as_slice(), &secret].concat();
        let checksum = crc32fast::hash(&bytes);
        bytes.extend(checksum.to_be_bytes());
        let text = format!("{PREFIX}{}", BASE32_DNSSEC.encode(&bytes));
        Self { id, text }
    }

    /// Reads a token that a client sent. Returns `None` for every text that was never issued as it
    /// is, such as one that was not copied completely.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if !is_well_formed(text) {
            return None;
        }
        let bytes = BASE32_DNSSEC.decode(text.strip_prefix(PREFIX)?.as_bytes());
        let bytes = bytes.ok()?;
        let (significant, checksum) = bytes.split_at_checked(SIGNIFICANT)?;
        if crc32fast::hash(significant).to_be_bytes() != checksum {
            return None;
        }
        let id = Uuid::from_slice(significant.get(..ID)?).ok()?;
        Some(Self {
            id,
            text: text.to_owned(),
        })
    }

    /// The id, which is not secret.
    #[must_use]
    pub const fn id(&self) -> Uuid {
        self.id
    }

    /// The text, only for whoever created the token.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.text
    }

    /// The hash that the store keeps.
    #[must_use]
    pub fn hash(&self) -> TokenHash {
        TokenHash::of(&self.text)
    }
}

impl fmt::Debug for DeploySecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeploySecret({}, hidden)", self.id)
    }
}

/// A deploy token as its project's owner may see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeployToken {
    /// Its id.
    pub id: Uuid,
    /// Its name, which no other valid token of the project has.
    pub name: String,
    /// What it allows.
    pub scopes: Vec<Scope>,
    /// The player who created it, or [`OPERATOR`].
    pub created_by: Uuid,
    /// When it was created.
    pub created_at: Millis,
    /// When it expires.
    pub expires_at: Millis,
    /// The beginning of the day on which it was last used.
    pub used_at: Option<Millis>,
    /// When it was revoked.
    pub revoked_at: Option<Millis>,
}

impl DeployToken {
    /// The player who created it; `None` for the operator.
    #[must_use]
    pub fn creator(&self) -> Option<Uuid> {
        Some(self.created_by).filter(|player| *player != OPERATOR)
    }

    /// Whether it is valid at `now`.
    #[must_use]
    pub const fn is_valid(&self, now: Millis) -> bool {
        self.revoked_at.is_none() && now < self.expires_at
    }

    /// Returns why it is not valid at `now`, as a sentence.
    #[must_use]
    pub fn fault(&self, now: Millis) -> Option<String> {
        let name = &self.name;
        match self.revoked_at {
            Some(at) => {
                let day = Date::of(at).words;
                Some(format!("The deploy token “{name}” was revoked on {day}."))
            }
            None if now >= self.expires_at => {
                let day = Date::of(self.expires_at).words;
                Some(format!("The deploy token “{name}” expired on {day}."))
            }
            None => None,
        }
    }

    /// Returns the day to record if it is used at `now`, unless that day is already recorded.
    #[must_use]
    pub fn new_use(&self, now: Millis) -> Option<Millis> {
        let day = now - now.rem_euclid(DAY);
        self.used_at.is_none_or(|used| used < day).then_some(day)
    }
}

/// A new deploy token.
#[derive(Clone, Debug)]
pub struct NewDeployToken {
    /// The token, which is neither used nor revoked.
    pub token: DeployToken,
    /// The hash of its text.
    pub hash: TokenHash,
    /// How many valid tokens the project may have with this one.
    pub most: usize,
}

/// The result of adding a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddedDeployToken {
    /// It was added.
    Done,
    /// A valid token of the project has this name.
    NameTaken,
    /// The project has as many valid tokens as it may.
    TooMany,
}

/// A deploy token with all that decides about a request with it, read at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundDeployToken {
    /// The token.
    pub token: DeployToken,
    /// The hash of its text.
    pub hash: TokenHash,
    /// Its project, which was not removed.
    pub project: Project,
    /// Whether the project's owner is suspended.
    pub owner_is_suspended: bool,
}

impl FoundDeployToken {
    /// Whether this is the token that the client sent. The comparison takes constant time.
    #[must_use]
    pub fn is(&self, sent: &DeploySecret) -> bool {
        self.hash.0.ct_eq(&sent.hash().0).into()
    }
}

/// Parses a token's name: one line of visible text.
#[must_use]
pub fn parse_name(text: &str) -> Option<&str> {
    parse_reason(text).filter(|name| name.chars().count() <= NAME_CHARS)
}

/// Returns when a token that is created at `now` for so many days expires; `None` if that is too
/// long, or no time at all.
#[must_use]
pub fn expiry(now: Millis, days: u16) -> Option<Millis> {
    let allowed = (1..=MAX_DAYS).contains(&days);
    allowed.then(|| now + Millis::from(days) * DAY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entropy::SystemEntropy;

    fn secret() -> DeploySecret {
        let entropy: &dyn Entropy = &SystemEntropy;
        DeploySecret::generate(entropy.uuid_v4(), entropy)
    }

    #[test]
    fn a_token_is_read_back_and_a_damaged_one_is_not() {
        let secret = secret();
        let text = secret.expose();
        assert!(is_well_formed(text), "{text}");
        assert_eq!(DeploySecret::parse(text), Some(secret.clone()));
        for at in PREFIX.len()..text.len() {
            let other = if text.as_bytes()[at] == b'0' {
                "1"
            } else {
                "0"
            };
            let mut damaged = text.to_owned();
            damaged.replace_range(at..=at, other);
            assert_eq!(DeploySecret::parse(&damaged), None, "{damaged}");
        }
        for other in [&text[1..], &text[..text.len() - 1], "", "pdt_"] {
            assert_eq!(DeploySecret::parse(other), None, "{other}");
        }
        assert_eq!(DeploySecret::parse(&text.to_uppercase()), None);
    }

    #[test]
    fn a_secret_is_not_shown() {
        let secret = secret();
        let shown = format!("{secret:?}");
        let body = &secret.expose()[PREFIX.len() + 26..];
        assert!(!shown.contains(body), "{shown}");
    }

    #[test]
    fn a_token_ends_when_it_expires_or_is_revoked_and_says_which() {
        let mut token = DeployToken {
            id: Uuid::nil(),
            name: "ci".into(),
            scopes: vec![Scope::Logs],
            created_by: Uuid::nil(),
            created_at: 0,
            expires_at: expiry(0, 2).unwrap(),
            used_at: None,
            revoked_at: None,
        };
        assert!(token.is_valid(2 * DAY - 1) && token.fault(2 * DAY - 1).is_none());
        let expired = "The deploy token “ci” expired on 3 January 1970.";
        assert_eq!(token.fault(2 * DAY).as_deref(), Some(expired));
        assert!(!token.is_valid(2 * DAY));
        token.revoked_at = Some(DAY);
        let revoked = "The deploy token “ci” was revoked on 2 January 1970.";
        assert_eq!(token.fault(2 * DAY).as_deref(), Some(revoked));
        assert!(!token.is_valid(DAY));
    }

    #[test]
    fn a_use_is_recorded_once_a_day() {
        let mut token = DeployToken {
            id: Uuid::nil(),
            name: "ci".into(),
            scopes: vec![Scope::Logs],
            created_by: Uuid::nil(),
            created_at: 0,
            expires_at: Millis::MAX,
            used_at: None,
            revoked_at: None,
        };
        assert_eq!(token.new_use(DAY + 5), Some(DAY));
        token.used_at = Some(DAY);
        assert_eq!(token.new_use(2 * DAY - 1), None);
        assert_eq!(token.new_use(DAY - 1), None, "by another node's clock");
        assert_eq!(token.new_use(2 * DAY), Some(2 * DAY));
    }

    #[test]
    fn a_name_is_a_short_line_and_a_life_at_most_a_year() {
        assert_eq!(parse_name(" GitHub Actions "), Some("GitHub Actions"));
        let long = "a".repeat(NAME_CHARS + 1);
        for text in ["", " ", "a\nb", &long] {
            assert_eq!(parse_name(text), None, "{text:?}");
        }
        assert_eq!(expiry(5, 90), Some(5 + 90 * DAY));
        assert_eq!(expiry(5, 365), Some(5 + 365 * DAY));
        assert_eq!((expiry(5, 0), expiry(5, 366)), (None, None));
    }
}
