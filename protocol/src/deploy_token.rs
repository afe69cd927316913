//! Deploy tokens: what each scope allows, and their limits.

use serde::{Deserialize, Serialize};

/// What every deploy token begins with, so that people and programs recognise one.
pub const PREFIX: &str = "pdt_";
/// The number of characters behind the prefix; each is one of `0-9a-v`.
pub const BODY_CHARS: usize = 64;
/// How long a token is valid if nothing else is said, in days.
pub const DEFAULT_DAYS: u16 = 90;
/// The longest validity of a token, in days.
pub const MAX_DAYS: u16 = 365;
/// How many valid tokens a project may have.
pub const PER_PROJECT: usize = 20;
/// The maximum number of characters of a token's name.
pub const NAME_CHARS: usize = 60;

/// What a deploy token allows, on its one project.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// Deploying to the dev environment.
    DeployDev,
    /// Deploying to the production environment.
    DeployProd,
    /// Reading frontend logs and errors of both environments, with the files that they refer to.
    Logs,
}

impl Scope {
    /// Every scope.
    pub const ALL: [Self; 3] = [Self::DeployDev, Self::DeployProd, Self::Logs];

    /// The name, as in the API and on the command line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::DeployDev => "deploy-dev",
            Self::DeployProd => "deploy-prod",
            Self::Logs => "logs",
        }
    }

    /// Returns the scope with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == name)
    }
}

/// Whether a text looks like a deploy token. Only the platform knows whether it is one.
#[must_use]
pub fn is_well_formed(text: &str) -> bool {
    let known = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'v');
    text.strip_prefix(PREFIX)
        .is_some_and(|body| body.len() == BODY_CHARS && body.bytes().all(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_has_the_same_name_everywhere() {
        for scope in Scope::ALL {
            assert_eq!(Scope::from_name(scope.as_str()), Some(scope));
            let json = serde_json::to_string(&scope).unwrap();
            assert_eq!(json, format!("\"{}\"", scope.as_str()));
        }
        assert_eq!(Scope::from_name("deploy"), None);
    }

    #[test]
    fn a_token_is_recognised_by_its_form() {
        let body = "0123456789abcdefghijklmnopqrstuv".repeat(2);
        assert!(is_well_formed(&format!("pdt_{body}")));
        for other in [
            "pdt_".to_owned(),
            format!("pdt_{body}0"),
            format!("pdt_{}", &body[1..]),
            format!("pdt_{}w", &body[1..]),
            format!("PDT_{body}"),
            body,
        ] {
            assert!(!is_well_formed(&other), "{other}");
        }
    }
}
