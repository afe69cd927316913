//! How every back end stores custom domains.

use platform_domain::clock::Millis;
use platform_domain::custom_domain::{CustomDomain, DomainState, DomainToken, HostedDomain};
use platform_domain::domain_name::DomainName;

use super::StoreError;
use super::stored_forms::read_environment;

/// The columns of a domain `d` of the project `p`, in the order of [`StoredDomain`].
pub const DOMAIN_COLUMNS: &str = "p.slug, d.environment, d.name, d.token, d.state, d.canonical, \
     d.detail, d.created_at, d.since, d.proven_at, d.looked_at, d.look_at";

/// The columns of a domain in service, in the order of the arguments of [`read_hosted_domain`].
pub const HOSTED_DOMAIN_COLUMNS: &str = "p.slug, d.environment, d.name, d.state, d.canonical";

/// A row of a domain.
#[derive(Clone, Debug)]
pub struct StoredDomain {
    /// The project.
    pub slug: String,
    /// The name of the environment.
    pub environment: String,
    /// The domain.
    pub name: String,
    /// The token's text.
    pub token: String,
    /// The name of the state.
    pub state: String,
    /// Whether it is canonical.
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
    /// When it is to be looked at again.
    pub look_at: Option<Millis>,
}

fn corrupt(column: &'static str, row: &str) -> StoreError {
    StoreError::Corrupt {
        table: "domains",
        column,
        row: row.to_owned(),
    }
}

/// Reads a name that was checked before it was stored. A newer list of public suffixes may have it,
/// so that alone is no reason to refuse it.
fn read_name(text: &str) -> Result<DomainName, StoreError> {
    DomainName::stored(text).ok_or_else(|| corrupt("name", text))
}

impl StoredDomain {
    /// Returns the domain of the row.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`]
    pub fn read(self) -> Result<CustomDomain, StoreError> {
        let corrupt = |column| corrupt(column, &self.name);
        Ok(CustomDomain {
            environment: read_environment(&self.environment, || self.name.clone())?,
            name: read_name(&self.name)?,
            token: DomainToken::parse(&self.token).ok_or_else(|| corrupt("token"))?,
            state: DomainState::from_name(&self.state).ok_or_else(|| corrupt("state"))?,
            slug: self.slug,
            canonical: self.canonical,
            detail: self.detail,
            created_at: self.created_at,
            since: self.since,
            proven_at: self.proven_at,
            looked_at: self.looked_at,
            look_at: self.look_at,
        })
    }
}

/// Reads a domain in service.
///
/// # Errors
/// [`StoreError::Corrupt`]
pub fn read_hosted_domain(
    slug: String,
    (environment, name, state): (&str, &str, &str),
    canonical: bool,
) -> Result<HostedDomain, StoreError> {
    let state = DomainState::from_name(state).ok_or_else(|| corrupt("state", name))?;
    Ok(HostedDomain {
        environment: read_environment(environment, || name.to_owned())?,
        name: read_name(name)?,
        leads: canonical && state == DomainState::Active,
        slug,
    })
}
