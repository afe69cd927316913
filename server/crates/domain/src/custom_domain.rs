//! Custom domains: names of its own that an environment of a project answers at, proven by its people
//! and looked at again every day.

use std::fmt;

use platform_protocol::names::Environment;

use crate::audit::AuditKind;
use crate::clock::Millis;
use crate::domain_name::DomainName;
use crate::entropy::Entropy;

/// How many domains a project may have, in both environments together.
pub const PER_PROJECT: usize = 10;
/// How long a failing domain stays in service.
pub const FAILING_MILLIS: Millis = 72 * HOUR;
/// How long a domain is claimed without being proven.
pub const PENDING_MILLIS: Millis = 7 * DAY;
/// When an active domain is looked at again.
const LOOK_ACTIVE: Millis = DAY;
/// When a domain is looked at again that is not in order.
const LOOK_FAILING: Millis = HOUR;
/// How long after its last proof a domain whose name servers do not answer is still in order.
const UNCLEAR_MILLIS: Millis = 2 * DAY;

const HOUR: Millis = 60 * 60 * 1_000;
const DAY: Millis = 24 * HOUR;

/// What precedes the token in the TXT record.
const PROOF_PREFIX: &str = "platform-verify=";

/// The token with which one project proves one domain. It is public once it is in the record; what it
/// proves is that whoever was shown it can write the records of the domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainToken(String);

impl DomainToken {
    /// A new token of 128 bits.
    #[must_use]
    pub fn generate(entropy: &dyn Entropy) -> Self {
        let bytes: [u8; 16] = entropy.bytes();
        Self(format!("{:032x}", u128::from_be_bytes(bytes)))
    }

    /// Reads a token that the store has kept.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let well_formed = text.len() == 32 && text.bytes().all(is_hex);
        well_formed.then(|| Self(text.to_owned()))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The value of the TXT record.
    #[must_use]
    pub fn record(&self) -> String {
        format!("{PROOF_PREFIX}{}", self.0)
    }
}

/// The state of a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DomainState {
    /// It is claimed, and not in service. Others may claim it as well; who proves it first gets it.
    Pending,
    /// It is in service.
    Active,
    /// It is in service, but its records no longer are as they must be.
    Failing,
}

impl DomainState {
    /// Every state.
    pub const ALL: [Self; 3] = [Self::Pending, Self::Active, Self::Failing];

    /// The name in the store and in the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Active => "active",
            Self::Failing => "failing",
        }
    }

    /// Returns the state with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == name)
    }
}

impl fmt::Display for DomainState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a look at the records of a domain found. The sentences say what was found and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DomainProof {
    /// The token is there, and the domain leads to the platform.
    Given,
    /// One of both is not so.
    Lacking(String),
    /// The name servers gave no answer, or none that says anything.
    Unclear(String),
}

/// A domain of a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CustomDomain {
    /// The project.
    pub slug: String,
    /// The environment that answers at it.
    pub environment: Environment,
    /// The name.
    pub name: DomainName,
    /// What proves it.
    pub token: DomainToken,
    /// The state.
    pub state: DomainState,
    /// Whether the environment's other addresses redirect to it while it is active.
    pub canonical: bool,
    /// What the last look found, if it was not in order.
    pub detail: Option<String>,
    /// When it was claimed.
    pub created_at: Millis,
    /// Since when it has its state.
    pub since: Millis,
    /// When it was last proven.
    pub proven_at: Option<Millis>,
    /// When it was last looked at.
    pub looked_at: Option<Millis>,
    /// When it is to be looked at again; `None` if only its people decide.
    pub look_at: Option<Millis>,
}

impl CustomDomain {
    /// A claim that nobody has proven yet.
    #[must_use]
    pub fn claimed(new: &NewDomain) -> Self {
        Self {
            slug: new.slug.clone(),
            environment: new.environment,
            name: new.name.clone(),
            token: new.token.clone(),
            state: DomainState::Pending,
            canonical: false,
            detail: None,
            created_at: new.now,
            since: new.now,
            proven_at: None,
            looked_at: None,
            look_at: None,
        }
    }

    /// Returns the domain after a look at its records, and the event that this is. A domain that
    /// failed for too long is taken off: it is a claim again, with the token `fresh`, because a record
    /// that was forgotten must not give it to anybody.
    #[must_use]
    pub fn after(
        self,
        proof: &DomainProof,
        fresh: DomainToken,
        now: Millis,
    ) -> (Self, Option<AuditKind>) {
        let before = self.state;
        let looked = Self {
            looked_at: Some(now),
            ..self
        };
        let detail = match proof {
            DomainProof::Given => return looked.proven(now),
            DomainProof::Lacking(detail) | DomainProof::Unclear(detail) => detail.clone(),
        };
        let is_clear = matches!(proof, DomainProof::Lacking(_));
        let known_for = now - looked.proven_at.unwrap_or(looked.since);
        match before {
            DomainState::Pending => (looked.with(detail, None), None),
            DomainState::Active if !is_clear && known_for < UNCLEAR_MILLIS => {
                (looked.with(detail, Some(now + LOOK_FAILING)), None)
            }
            DomainState::Active => {
                let failing = Self {
                    state: DomainState::Failing,
                    since: now,
                    ..looked.with(detail, Some(now + LOOK_FAILING))
                };
                (failing, Some(AuditKind::DomainFailing))
            }
            DomainState::Failing if now - looked.since < FAILING_MILLIS => {
                let next = (now + LOOK_FAILING).min(looked.since + FAILING_MILLIS);
                (looked.with(detail, Some(next)), None)
            }
            DomainState::Failing => (
                looked.taken_off(&detail, fresh, now),
                Some(AuditKind::DomainTakenOff),
            ),
        }
    }

    fn with(self, detail: String, look_at: Option<Millis>) -> Self {
        Self {
            detail: Some(detail),
            look_at,
            ..self
        }
    }

    fn proven(self, now: Millis) -> (Self, Option<AuditKind>) {
        let is_new = self.state != DomainState::Active;
        let active = Self {
            state: DomainState::Active,
            detail: None,
            since: if is_new { now } else { self.since },
            proven_at: Some(now),
            look_at: Some(now + LOOK_ACTIVE),
            ..self
        };
        (active, is_new.then_some(AuditKind::DomainActivated))
    }

    fn taken_off(self, detail: &str, fresh: DomainToken, now: Millis) -> Self {
        let hours = FAILING_MILLIS / HOUR;
        let detail = format!(
            "It was taken off after {hours} hours, and needs the record with its new value. {detail}"
        );
        Self {
            state: DomainState::Pending,
            token: fresh,
            canonical: false,
            since: now,
            proven_at: None,
            ..self.with(detail, None)
        }
    }

    /// Returns the detail of an event about it.
    #[must_use]
    pub fn event(&self) -> String {
        format!("{} {}", self.environment.as_str(), self.name)
    }
}

/// A domain to claim.
#[derive(Clone, Debug)]
pub struct NewDomain {
    /// The project.
    pub slug: String,
    /// The environment that will answer at it.
    pub environment: Environment,
    /// The name.
    pub name: DomainName,
    /// What will prove it.
    pub token: DomainToken,
    /// How many domains the project may have with this one.
    pub most: usize,
    /// When.
    pub now: Millis,
}

/// The result of claiming a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddedDomain {
    /// It is claimed.
    Done(CustomDomain),
    /// It is in service for another project.
    Taken,
    /// The project has it already, in this environment.
    Known(Environment),
    /// The project has as many domains as it may.
    TooMany,
}

/// The result of noting what a look at a domain found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotedProof {
    /// The domain, as it is now.
    Done(CustomDomain),
    /// It is proven, but in service for another project.
    Taken,
    /// The project does not have it any more, or has claimed it anew.
    Gone,
}

/// The result of making a domain canonical, or of taking that back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetCanonical {
    /// The domain, as it is now.
    Done(CustomDomain),
    /// It is not active.
    NotActive,
    /// The environment does not have it.
    Missing,
}

/// What the catalogue of games has of a domain in service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostedDomain {
    /// The project.
    pub slug: String,
    /// The environment that answers at it.
    pub environment: Environment,
    /// The name.
    pub name: DomainName,
    /// Whether the environment's other addresses redirect to it: it is canonical, and active. To one
    /// that fails, nobody is sent.
    pub leads: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entropy::SystemEntropy;

    const NOW: Millis = 1_800_000_000_000;

    fn token() -> DomainToken {
        DomainToken::generate(&SystemEntropy)
    }

    fn claimed() -> CustomDomain {
        CustomDomain::claimed(&NewDomain {
            slug: "game".into(),
            environment: Environment::Prod,
            name: DomainName::parse("game.example").unwrap(),
            token: token(),
            most: PER_PROJECT,
            now: NOW,
        })
    }

    fn lacking() -> DomainProof {
        DomainProof::Lacking("Nothing is there.".into())
    }

    fn unclear() -> DomainProof {
        DomainProof::Unclear("Nobody answers.".into())
    }

    fn active() -> CustomDomain {
        let (domain, event) = claimed().after(&DomainProof::Given, token(), NOW);
        assert_eq!(event, Some(AuditKind::DomainActivated));
        assert_eq!(domain.state, DomainState::Active);
        domain
    }

    #[test]
    fn a_token_comes_back_from_its_text() {
        let token = token();
        assert_eq!(DomainToken::parse(token.as_str()), Some(token.clone()));
        assert_eq!(
            token.record(),
            format!("platform-verify={}", token.as_str())
        );
        for bad in ["", "0", &"g".repeat(32), &"A".repeat(32), &"0".repeat(33)] {
            assert_eq!(DomainToken::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_claim_stays_one_until_it_is_proven() {
        for proof in [lacking(), unclear()] {
            let before = claimed();
            let (domain, event) = before.clone().after(&proof, token(), NOW + HOUR);
            assert_eq!((domain.state, event), (DomainState::Pending, None));
            assert_eq!((domain.token, domain.since), (before.token, NOW));
            assert_eq!((domain.look_at, domain.looked_at), (None, Some(NOW + HOUR)));
            assert!(domain.detail.is_some());
        }
        assert_eq!(active().look_at, Some(NOW + DAY));
    }

    #[test]
    fn an_active_domain_that_is_proven_again_is_only_looked_at_later() {
        let (domain, event) = active().after(&DomainProof::Given, token(), NOW + DAY);
        assert_eq!((domain.state, event), (DomainState::Active, None));
        assert_eq!((domain.since, domain.proven_at), (NOW, Some(NOW + DAY)));
        assert_eq!(domain.look_at, Some(NOW + 2 * DAY));
    }

    #[test]
    fn name_servers_that_do_not_answer_count_after_two_days() {
        let (domain, event) = active().after(&unclear(), token(), NOW + DAY);
        assert_eq!((domain.state, event), (DomainState::Active, None));
        assert_eq!(domain.look_at, Some(NOW + DAY + HOUR));
        let (domain, event) = domain.after(&unclear(), token(), NOW + 2 * DAY);
        assert_eq!(domain.state, DomainState::Failing);
        assert_eq!(event, Some(AuditKind::DomainFailing));
    }

    #[test]
    fn a_domain_that_fails_for_72_hours_is_taken_off_with_a_new_token() {
        let before = CustomDomain {
            canonical: true,
            ..active()
        };
        let old = before.token.clone();
        let began = NOW + DAY;
        let (domain, event) = before.after(&lacking(), token(), began);
        assert_eq!(event, Some(AuditKind::DomainFailing));
        assert_eq!((domain.state, domain.since), (DomainState::Failing, began));
        let last = began + FAILING_MILLIS - 1;
        let (domain, event) = domain.after(&unclear(), token(), last);
        assert_eq!((domain.state, event), (DomainState::Failing, None));
        assert_eq!(domain.look_at, Some(last + 1), "the last look is in time");
        assert!(domain.canonical);

        let (again, event) = domain.clone().after(&DomainProof::Given, token(), last);
        assert_eq!(event, Some(AuditKind::DomainActivated));
        assert_eq!((again.token, again.canonical), (old.clone(), true));

        let (domain, event) = domain.after(&lacking(), token(), last + 1);
        assert_eq!(event, Some(AuditKind::DomainTakenOff));
        assert_eq!(
            (domain.state, domain.since),
            (DomainState::Pending, last + 1)
        );
        assert_ne!(domain.token, old);
        assert_eq!((domain.canonical, domain.look_at), (false, None));
        let detail = domain.detail.unwrap();
        assert!(detail.contains("72 hours"), "{detail}");
        assert!(detail.ends_with("Nothing is there."), "{detail}");
    }
}
