//! Custom domains: what their records must be, and the daily look at them.
//!
//! A domain is in order if a TXT record has the token of the project, and if the domain leads to the
//! platform: it is an alias of a game's address, or all its addresses are those of games.
//!
//! | module | contents |
//! |---|---|
//! | [`records`] | reading DNS records |
//! | [`findings`] | what the records say, in words |

pub mod findings;
pub mod records;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ipnet::IpNet;
use tokio::task::JoinSet;

use self::findings::{Destination, Findings};
use self::records::Records;
use crate::domain::audit::{Actor, By};
use crate::domain::custom_domain::{
    CustomDomain, DomainProof, DomainToken, NotedProof, PENDING_MILLIS,
};
use crate::domain::domain_name::DomainName;
use crate::platform::jobs::{Job, JobError, Schedule};
use crate::projects::ProjectsState;
use crate::store::StoreError;

/// The interval of looking for domains to look at.
const LOOK: Duration = Duration::from_secs(60);
/// The maximum number of domains that are looked at together.
const DOMAINS: usize = 32;
/// The time limit of one look, which asks several questions.
const LIMIT: Duration = Duration::from_secs(10);

/// Why a name cannot be a domain of a project on this platform; `None` if it can.
#[must_use]
pub fn refusal(state: &ProjectsState, name: &DomainName) -> Option<&'static str> {
    let name = name.as_str();
    for origin in [&state.platform.origin, &state.platform.games_origin] {
        if origin.holds(name) {
            return Some("This name belongs to the platform. Write a name of your own.");
        }
        let own = origin.host().strip_suffix(name);
        if own.is_some_and(|before| before.ends_with('.')) {
            return Some(
                "The platform's own name is below this one, so that pages there could set cookies \
                 for the platform. Write another name, such as one below it.",
            );
        }
    }
    if name.ends_with(".localhost") && !state.platform.origin.is_local() {
        return Some("Names under localhost never leave a player's own machine.");
    }
    None
}

/// Returns the name to which the records of a domain lead: the address of its environment.
#[must_use]
pub fn target(state: &ProjectsState, domain: &CustomDomain) -> String {
    let label = domain.environment.label(&domain.slug);
    format!("{label}.{}", state.platform.games_origin.host())
}

/// Looks at the records of a domain, and notes what was found.
///
/// # Errors
/// Errors of the store.
pub async fn check(
    state: &ProjectsState,
    domain: &CustomDomain,
    by: By,
) -> Result<NotedProof, StoreError> {
    let proof = look(state, domain).await;
    let platform = &state.platform;
    let fresh = DomainToken::generate(&*platform.entropy);
    let now = platform.clock.now();
    let noted = platform
        .store
        .note_domain_proof(domain, &proof, fresh, by, now);
    noted.await
}

/// Looks at the records of a domain.
async fn look(state: &ProjectsState, domain: &CustomDomain) -> DomainProof {
    let records = &state.records;
    let target = target(state, domain);
    let proof_name = domain.name.proof_name();
    let looks = async {
        tokio::join!(
            records.texts(&proof_name),
            records.way(domain.name.as_str()),
            own_addresses(state, records, &target),
        )
    };
    let Ok((texts, way, own)) = tokio::time::timeout(LIMIT, looks).await else {
        return DomainProof::Unclear(format!(
            "The name servers of {} did not answer in time. Try again in some minutes.",
            domain.name
        ));
    };
    let findings = Findings {
        domain,
        destination: Destination {
            target: &target,
            games: &state.platform.games_origin,
            own: &own,
        },
    };
    findings.proof(texts, way)
}

/// Returns the addresses to which a domain may lead.
async fn own_addresses(state: &ProjectsState, records: &Records, target: &str) -> Vec<IpNet> {
    let set = &state.platform.config.domain_addresses;
    if !set.is_empty() {
        return set.clone();
    }
    // Without an answer, an alias of a game's address is still recognised.
    let way = records.way(target).await.unwrap_or_default();
    way.addresses.into_iter().map(IpNet::from).collect()
}

/// Looks at the domains whose time has come, takes those off that failed for too long, and removes
/// claims that nobody has proven. Returns how many were looked at.
///
/// # Errors
/// The first error of the store. The other domains are looked at all the same.
pub async fn look_at_domains(state: &Arc<ProjectsState>) -> Result<usize, StoreError> {
    let (store, now) = (&state.platform.store, state.platform.clock.now());
    // Dropped with this future, if another node takes over.
    let mut looking = JoinSet::new();
    for domain in store.list_due_domains(now, DOMAINS).await? {
        let state = Arc::clone(state);
        looking.spawn(async move { look_again(&state, &domain).await });
    }
    let (mut looked, mut failed) = (0, None);
    while let Some(one) = looking.join_next().await {
        match one {
            Ok(Ok(())) => looked += 1,
            Ok(Err(error)) => failed = Some(error),
            // The panic hook has logged a panic, and the domain is still due.
            Err(_) => {}
        }
    }
    let lapsed = now - PENDING_MILLIS;
    while store.remove_lapsed_domain(lapsed, now).await?.is_some() {}
    failed.map_or(Ok(looked), Err)
}

async fn look_again(state: &ProjectsState, before: &CustomDomain) -> Result<(), StoreError> {
    let noted = check(state, before, Actor::Own.into()).await?;
    if let NotedProof::Done(now) = noted
        && now.state != before.state
    {
        tracing::info!(
            slug = before.slug,
            domain = before.name.as_str(),
            state = now.state.as_str(),
            "a domain has another state"
        );
        state.hosting.read(&before.slug).await?;
    }
    Ok(())
}

/// The job that looks at domains.
#[derive(Debug)]
pub(crate) struct LookAtDomains(pub(crate) Arc<ProjectsState>);

#[async_trait]
impl Job for LookAtDomains {
    fn schedule(&self) -> Schedule {
        Schedule::from_start("look-at-domains", LOOK).on_one_node()
    }

    async fn run(&mut self) -> Result<(), JobError> {
        let looked = look_at_domains(&self.0).await;
        looked
            .map(drop)
            .map_err(JobError::because("domains could not be looked at"))
    }
}
