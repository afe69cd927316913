//! Custom domains: the part of the store that knows which names of its own a project has.

use async_trait::async_trait;
use platform_domain::audit::By;
use platform_domain::clock::Millis;
use platform_domain::custom_domain::{
    AddedDomain, CustomDomain, DomainProof, DomainToken, HostedDomain, NewDomain, NotedProof,
    SetCanonical,
};
use platform_domain::domain_name::DomainName;
use platform_protocol::names::Environment;

use super::StoreError;

/// Operations on custom domains. [`Store`](super::Store) documents what every method guarantees.
///
/// Several projects may claim one domain, but only one has it in service: who proved it first.
#[async_trait]
pub trait DomainStore: Send + Sync {
    /// Claims a domain.
    ///
    /// # Errors
    /// [`StoreError::Missing`] on `projects` if there is no such project.
    async fn add_domain(&self, new: NewDomain, by: By) -> Result<AddedDomain, StoreError>;

    /// Returns the domains of a project that was not removed, by name.
    async fn list_domains(&self, slug: &str) -> Result<Vec<CustomDomain>, StoreError>;

    /// Returns the domains in service of all projects, or of one, for the catalogue of games.
    async fn list_hosted_domains(
        &self,
        slug: Option<&str>,
    ) -> Result<Vec<HostedDomain>, StoreError>;

    /// Returns the domains that are to be looked at, those that wait longest first.
    async fn list_due_domains(
        &self,
        now: Millis,
        limit: usize,
    ) -> Result<Vec<CustomDomain>, StoreError>;

    /// Notes what a look at the records of this domain found, unless it was removed or has another
    /// token by now. `fresh` is its next token, if it needs one ([`CustomDomain::after`]).
    async fn note_domain_proof(
        &self,
        looked_at: &CustomDomain,
        proof: &DomainProof,
        fresh: DomainToken,
        by: By,
        now: Millis,
    ) -> Result<NotedProof, StoreError>;

    /// Makes a domain the only canonical address of its environment, or takes that back.
    async fn set_canonical_domain(
        &self,
        place: (&str, Environment, &DomainName),
        canonical: bool,
        by: By,
        now: Millis,
    ) -> Result<SetCanonical, StoreError>;

    /// Removes a domain of an environment. Returns whether there was one.
    async fn remove_domain(
        &self,
        place: (&str, Environment, &DomainName),
        by: By,
        now: Millis,
    ) -> Result<bool, StoreError>;

    /// Removes one of the claims that nobody has proven since `since`. Returns its project; `None` if
    /// there is none left.
    async fn remove_lapsed_domain(
        &self,
        since: Millis,
        now: Millis,
    ) -> Result<Option<String>, StoreError>;
}
