//! Project slugs, environments and audiences.

use serde::{Deserialize, Serialize};

/// One of the two environments that every project has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Environment {
    /// `dev-<slug>.<platform>`, audience `game:dev-<slug>`.
    Dev,
    /// `<slug>.<platform>`, audience `game:<slug>`.
    Prod,
}

impl Environment {
    /// Both environments.
    pub const ALL: [Environment; 2] = [Environment::Dev, Environment::Prod];

    /// `dev` or `prod`, as in paths and settings.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Environment::Dev => "dev",
            Environment::Prod => "prod",
        }
    }

    /// The prefix of the slug in the host name and in the audience.
    #[must_use]
    pub const fn prefix(self) -> &'static str {
        match self {
            Environment::Dev => "dev-",
            Environment::Prod => "",
        }
    }

    /// The host label of a game in this environment: `demo` or `dev-demo`.
    #[must_use]
    pub fn label(self, slug: &str) -> String {
        format!("{}{slug}", self.prefix())
    }

    /// Splits a host label into environment and slug. It does not check the
    /// slug.
    #[must_use]
    pub fn split_label(label: &str) -> (Environment, &str) {
        match label.strip_prefix(Environment::Dev.prefix()) {
            Some(slug) => (Environment::Dev, slug),
            None => (Environment::Prod, label),
        }
    }

    /// The audience of a game's tokens: `game:<slug>` or `game:dev-<slug>`.
    #[must_use]
    pub fn audience(self, slug: &str) -> String {
        format!("{GAME_AUDIENCE}{}{slug}", self.prefix())
    }
}

/// What the audience of a game's tokens begins with. The host label of the game follows.
const GAME_AUDIENCE: &str = "game:";

/// Returns the host label of the game with this audience; `None` for the console. It does not check the
/// label.
#[must_use]
pub fn label_of_audience(audience: &str) -> Option<&str> {
    audience.strip_prefix(GAME_AUDIENCE)
}

/// The audience of tokens for the platform's own console.
pub const CONSOLE_AUDIENCE: &str = "platform:console";

/// Host labels that the platform keeps for itself.
pub const RESERVED_SLUGS: [&str; 10] = [
    "auth", "www", "api", "admin", "console", "build", "static", "docs", "mail", "status",
];

/// Host labels that no new project may have: those that look like the platform's own, and those
/// that programs look up by themselves, such as for a network's proxy (`wpad`) or for mail delivery
/// (RFC 8461 §3.3). Existing projects keep theirs.
pub const RESERVED_FOR_NEW: [&str; 64] = [
    // Places where people enter a password, or pay.
    "login",
    "logout",
    "signin",
    "sign-in",
    "signup",
    "sign-up",
    "sign-out",
    "account",
    "accounts",
    "profile",
    "identity",
    "oauth",
    "sso",
    "password",
    "verify",
    "secure",
    "security",
    "billing",
    "pay",
    "payment",
    "payments",
    "checkout",
    "invoice",
    "wallet",
    // Names that seem to speak for the platform.
    "support",
    "help",
    "helpdesk",
    "contact",
    "abuse",
    "legal",
    "privacy",
    "terms",
    "official",
    "staff",
    "platform",
    "blog",
    "root",
    "system",
    "internal",
    "administrator",
    "operator",
    "moderator",
    "postmaster",
    "hostmaster",
    "webmaster",
    "noreply",
    "no-reply",
    // Names that programs look up.
    "mta-sts",
    "autodiscover",
    "autoconfig",
    "wpad",
    "isatap",
    "localhost",
    "smtp",
    "imap",
    "pop3",
    "webmail",
    "email",
    "ftp",
    "dns",
    "ns1",
    "ns2",
    // Names that the platform may need.
    "cdn",
    "assets",
];

/// Why a slug was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlugError {
    /// It is not 3 to 40 lower-case letters, digits or hyphens, or it starts
    /// or ends with a hyphen.
    Form,
    /// It starts with `dev-`, which means the dev environment of another slug.
    DevPrefix,
    /// It starts with `xn--`, the prefix of names in other scripts (RFC 5890): browsers do not open
    /// such an address if the rest is not validly encoded.
    Encoded,
    /// It contains `--`, which separates the two names in a preview's address.
    DoubleHyphen,
    /// It is in [`RESERVED_SLUGS`] or in [`RESERVED_FOR_NEW`].
    Reserved,
}

impl SlugError {
    /// What is wrong, as a sentence.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            SlugError::Form => {
                "A slug has 3 to 40 lower-case letters, digits or hyphens, and starts and ends with a letter or digit."
            }
            SlugError::DevPrefix => {
                "A slug must not start with dev-, because that names the dev environment."
            }
            SlugError::Encoded => {
                "A slug must not start with xn--, because browsers read that as an encoded name in \
                 another alphabet."
            }
            SlugError::DoubleHyphen => "A slug must not contain two hyphens in a row.",
            SlugError::Reserved => "This slug is reserved for the platform.",
        }
    }
}

/// Checks the slug of a new project: the form of [`check_slug_form`], without `--`, and not
/// reserved.
///
/// # Errors
/// The first rule that it breaks.
pub fn check_slug(slug: &str) -> Result<(), SlugError> {
    check_slug_form(slug)?;
    if slug.starts_with("xn--") {
        Err(SlugError::Encoded)
    } else if slug.contains("--") {
        Err(SlugError::DoubleHyphen)
    } else if RESERVED_FOR_NEW.contains(&slug) {
        Err(SlugError::Reserved)
    } else {
        Ok(())
    }
}

/// Checks the slug of an existing project: `[a-z0-9](?:[a-z0-9-]{1,38}[a-z0-9])`, not starting with
/// `dev-` and not in [`RESERVED_SLUGS`].
///
/// # Errors
/// The first rule that it breaks.
pub fn check_slug_form(slug: &str) -> Result<(), SlugError> {
    let bytes = slug.as_bytes();
    let plain = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let well_formed = (3..=40).contains(&bytes.len())
        && bytes.iter().all(|byte| plain(byte) || *byte == b'-')
        && bytes.first().is_some_and(plain)
        && bytes.last().is_some_and(plain);
    if !well_formed {
        Err(SlugError::Form)
    } else if slug.starts_with(Environment::Dev.prefix()) {
        Err(SlugError::DevPrefix)
    } else if RESERVED_SLUGS.contains(&slug) {
        Err(SlugError::Reserved)
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs_follow_the_pattern() {
        let forty = "a".repeat(40);
        for good in ["abc", "demo", "a-b", "0x0", "my-game-2", forty.as_str()] {
            assert_eq!(check_slug(good), Ok(()), "{good}");
        }
        let long = "a".repeat(41);
        for bad in [
            "",
            "a",
            "ab",
            "-ab",
            "ab-",
            "Demo",
            "a_b",
            "a.b",
            "a b",
            "é11",
            long.as_str(),
        ] {
            assert_eq!(check_slug(bad), Err(SlugError::Form), "{bad}");
        }
        assert_eq!(check_slug("dev-demo"), Err(SlugError::DevPrefix));
        assert_eq!(check_slug("xn--ab"), Err(SlugError::Encoded));
        assert_eq!(check_slug("a--b"), Err(SlugError::DoubleHyphen));
        for reserved in RESERVED_SLUGS.into_iter().chain(RESERVED_FOR_NEW) {
            assert_eq!(check_slug(reserved), Err(SlugError::Reserved));
        }
    }

    #[test]
    fn a_project_of_before_keeps_a_slug_that_no_new_one_may_have() {
        for slug in ["login", "wpad", "a--b", "xn--ab"] {
            assert!(check_slug(slug).is_err(), "{slug}");
            assert_eq!(check_slug_form(slug), Ok(()), "{slug}");
        }
        assert!(check_slug_form("dev-demo").is_err());
        let mut names = RESERVED_FOR_NEW.to_vec();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), RESERVED_FOR_NEW.len(), "one stands twice");
        for name in RESERVED_FOR_NEW {
            assert_eq!(check_slug_form(name), Ok(()), "{name}");
        }
    }

    #[test]
    fn audiences_and_labels_tell_the_environments_apart() {
        assert_eq!(Environment::Prod.audience("demo"), "game:demo");
        assert_eq!(Environment::Dev.audience("demo"), "game:dev-demo");
        assert_eq!(label_of_audience("game:dev-demo"), Some("dev-demo"));
        assert_eq!(label_of_audience(CONSOLE_AUDIENCE), None);
        assert_eq!(
            Environment::split_label("dev-demo"),
            (Environment::Dev, "demo")
        );
        assert_eq!(
            Environment::split_label("demo"),
            (Environment::Prod, "demo")
        );
    }
}
