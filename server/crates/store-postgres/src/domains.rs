//! Custom domains of projects.

use async_trait::async_trait;
use platform_domain::audit::{Actor, AuditKind, By};
use platform_domain::clock::Millis;
use platform_domain::custom_domain::{
    AddedDomain, CustomDomain, DomainProof, DomainState, DomainToken, HostedDomain, NewDomain,
    NotedProof, SetCanonical,
};
use platform_domain::domain_name::DomainName;
use platform_protocol::names::Environment;
use platform_store::stored_domains::{
    DOMAIN_COLUMNS, HOSTED_DOMAIN_COLUMNS, StoredDomain, read_hosted_domain,
};
use platform_store::{DomainStore, StoreError};
use tokio_postgres::Row;

use super::error::Error;
use super::rows::{count, get};
use super::store::PostgresStore;
use super::transaction::Transaction;
use super::{audit, projects};

#[async_trait]
impl DomainStore for PostgresStore {
    async fn add_domain(&self, new: NewDomain, by: By) -> Result<AddedDomain, StoreError> {
        transact!(self.main, transaction => add(&transaction, &new, &by))
    }

    async fn list_domains(&self, slug: &str) -> Result<Vec<CustomDomain>, StoreError> {
        let sql = select("p.slug = $1 ORDER BY d.name");
        let rows = self.main.rows(&sql, &[&slug]).await?;
        Ok(rows.iter().map(read).collect::<Result<_, _>>()?)
    }

    async fn list_hosted_domains(
        &self,
        slug: Option<&str>,
    ) -> Result<Vec<HostedDomain>, StoreError> {
        let sql = format!(
            "SELECT {HOSTED_DOMAIN_COLUMNS} FROM domains d JOIN projects p ON p.id = d.project
             WHERE d.state <> 'pending' AND ($1::text IS NULL OR p.slug = $1)"
        );
        let rows = self.main.rows(&sql, &[&slug]).await?;
        let hosted = rows.iter().map(|row| {
            let texts = (get(row, 1)?, get(row, 2)?, get(row, 3)?);
            Ok(read_hosted_domain(get(row, 0)?, texts, get(row, 4)?)?)
        });
        Ok(hosted.collect::<Result<_, Error>>()?)
    }

    async fn list_due_domains(
        &self,
        now: Millis,
        limit: usize,
    ) -> Result<Vec<CustomDomain>, StoreError> {
        let sql = select("d.look_at <= $1 ORDER BY d.look_at LIMIT $2");
        let rows = self.main.rows(&sql, &[&now, &count(limit)]).await?;
        Ok(rows.iter().map(read).collect::<Result<_, _>>()?)
    }

    async fn note_domain_proof(
        &self,
        looked_at: &CustomDomain,
        proof: &DomainProof,
        fresh: DomainToken,
        by: By,
        now: Millis,
    ) -> Result<NotedProof, StoreError> {
        let noted = transact!(self.main, transaction =>
            note(&transaction, looked_at, proof, &fresh, (&by, now)));
        match noted {
            // Another project's transaction was a moment faster.
            Err(StoreError::Conflict {
                table: "domains", ..
            }) => Ok(NotedProof::Taken),
            noted => noted,
        }
    }

    async fn set_canonical_domain(
        &self,
        place: (&str, Environment, &DomainName),
        canonical: bool,
        by: By,
        now: Millis,
    ) -> Result<SetCanonical, StoreError> {
        transact!(self.main, transaction =>
            set_canonical(&transaction, place, canonical, (&by, now)))
    }

    async fn remove_domain(
        &self,
        place: (&str, Environment, &DomainName),
        by: By,
        now: Millis,
    ) -> Result<bool, StoreError> {
        transact!(self.main, transaction => remove_of(&transaction, place, (&by, now)))
    }

    async fn remove_lapsed_domain(
        &self,
        since: Millis,
        now: Millis,
    ) -> Result<Option<String>, StoreError> {
        transact!(self.main, transaction => remove_lapsed(&transaction, since, now))
    }
}

fn read(row: &Row) -> Result<CustomDomain, Error> {
    let stored = StoredDomain {
        slug: get(row, 0)?,
        environment: get(row, 1)?,
        name: get(row, 2)?,
        token: get(row, 3)?,
        state: get(row, 4)?,
        canonical: get(row, 5)?,
        detail: get(row, 6)?,
        created_at: get(row, 7)?,
        since: get(row, 8)?,
        proven_at: get(row, 9)?,
        looked_at: get(row, 10)?,
        look_at: get(row, 11)?,
    };
    Ok(stored.read()?)
}

fn select(rest: &str) -> String {
    format!(
        "SELECT {DOMAIN_COLUMNS}, d.project FROM domains d JOIN projects p ON p.id = d.project
         WHERE p.removed_at IS NULL AND {rest}"
    )
}

/// Locks a project and finds a domain of it. Returns the project's row as well; `None` if there is no
/// such project or domain.
async fn find(
    transaction: &Transaction,
    slug: &str,
    name: &DomainName,
) -> Result<Option<(i64, CustomDomain)>, Error> {
    let project = match projects::lock(transaction, slug).await {
        Err(Error::Store(StoreError::Missing { .. })) => return Ok(None),
        project => project?,
    };
    let sql = select("d.project = $1 AND d.name = $2");
    let row = transaction.row(&sql, &[&project, &name.as_str()]).await?;
    let domain = row.as_ref().map(read).transpose()?;
    Ok(domain.map(|domain| (project, domain)))
}

/// Whether another project has this domain in service.
async fn is_taken(
    transaction: &Transaction,
    project: i64,
    name: &DomainName,
) -> Result<bool, Error> {
    let sql = "SELECT 1 FROM domains WHERE name = $1 AND state <> 'pending' AND project <> $2";
    let row = transaction.row(sql, &[&name.as_str(), &project]).await?;
    Ok(row.is_some())
}

async fn add(transaction: &Transaction, new: &NewDomain, by: &By) -> Result<AddedDomain, Error> {
    // An operation that counts a project's domains and adds one locks the project.
    let project = projects::lock(transaction, &new.slug).await?;
    let row = transaction
        .row(
            "SELECT count(*), max(environment) FILTER (WHERE name = $2) FROM domains
             WHERE project = $1",
            &[&project, &new.name.as_str()],
        )
        .await?
        .ok_or(Error::Changed)?;
    let (known, here): (i64, Option<&str>) = (get(&row, 0)?, get(&row, 1)?);
    let here = here.and_then(|name| {
        Environment::ALL
            .into_iter()
            .find(|one| one.as_str() == name)
    });
    if let Some(environment) = here {
        return Ok(AddedDomain::Known(environment));
    }
    if is_taken(transaction, project, &new.name).await? {
        return Ok(AddedDomain::Taken);
    }
    if known >= count(new.most) {
        return Ok(AddedDomain::TooMany);
    }
    let domain = CustomDomain::claimed(new);
    transaction
        .execute(
            "INSERT INTO domains (project, environment, name, token, state, canonical, created_at,
                 since) VALUES ($1, $2, $3, $4, $5, false, $6, $6)",
            &[
                &project,
                &domain.environment.as_str(),
                &domain.name.as_str(),
                &domain.token.as_str(),
                &domain.state.as_str(),
                &domain.created_at,
            ],
        )
        .await?;
    let act = (by, new.now);
    tell(transaction, AuditKind::DomainAdded, &domain, act).await?;
    Ok(AddedDomain::Done(domain))
}

/// Writes an event about a domain.
async fn tell(
    transaction: &Transaction,
    kind: AuditKind,
    domain: &CustomDomain,
    (by, now): (&By, Millis),
) -> Result<(), Error> {
    let detail = domain.event();
    audit::add_of_project(transaction, kind, (&domain.slug, &detail), by, now).await
}

async fn note(
    transaction: &Transaction,
    looked_at: &CustomDomain,
    proof: &DomainProof,
    fresh: &DomainToken,
    act: (&By, Millis),
) -> Result<NotedProof, Error> {
    let found = find(transaction, &looked_at.slug, &looked_at.name).await?;
    let same = found.filter(|(_, found)| found.token == looked_at.token);
    let Some((project, domain)) = same else {
        return Ok(NotedProof::Gone);
    };
    let (domain, event) = domain.after(proof, fresh.clone(), act.1);
    if event == Some(AuditKind::DomainActivated)
        && is_taken(transaction, project, &domain.name).await?
    {
        return Ok(NotedProof::Taken);
    }
    write(transaction, project, &domain).await?;
    if let Some(kind) = event {
        tell(transaction, kind, &domain, act).await?;
    }
    Ok(NotedProof::Done(domain))
}

/// Writes everything of a domain that a look may change.
async fn write(
    transaction: &Transaction,
    project: i64,
    domain: &CustomDomain,
) -> Result<(), Error> {
    transaction
        .execute(
            "UPDATE domains SET token = $3, state = $4, canonical = $5, detail = $6, since = $7,
                 proven_at = $8, looked_at = $9, look_at = $10
             WHERE project = $1 AND name = $2",
            &[
                &project,
                &domain.name.as_str(),
                &domain.token.as_str(),
                &domain.state.as_str(),
                &domain.canonical,
                &domain.detail,
                &domain.since,
                &domain.proven_at,
                &domain.looked_at,
                &domain.look_at,
            ],
        )
        .await
        .map(drop)
}

async fn set_canonical(
    transaction: &Transaction,
    (slug, environment, name): (&str, Environment, &DomainName),
    canonical: bool,
    (by, now): (&By, Millis),
) -> Result<SetCanonical, Error> {
    let found = find(transaction, slug, name).await?;
    let here = found.filter(|(_, found)| found.environment == environment);
    let Some((project, mut domain)) = here else {
        return Ok(SetCanonical::Missing);
    };
    if domain.canonical == canonical {
        return Ok(SetCanonical::Done(domain));
    }
    if canonical && domain.state != DomainState::Active {
        return Ok(SetCanonical::NotActive);
    }
    transaction
        .execute(
            "UPDATE domains SET canonical = false
             WHERE project = $1 AND environment = $2 AND canonical",
            &[&project, &environment.as_str()],
        )
        .await?;
    domain.canonical = canonical;
    write(transaction, project, &domain).await?;
    let state = if canonical { "" } else { " off" };
    let detail = format!("{}{state}", domain.event());
    let kind = AuditKind::DomainCanonical;
    audit::add_of_project(transaction, kind, (slug, &detail), by, now).await?;
    Ok(SetCanonical::Done(domain))
}

async fn remove_of(
    transaction: &Transaction,
    (slug, environment, name): (&str, Environment, &DomainName),
    act: (&By, Millis),
) -> Result<bool, Error> {
    match find(transaction, slug, name).await? {
        Some((project, domain)) if domain.environment == environment => {
            remove(transaction, project, &domain, act).await?;
            Ok(true)
        }
        _ => Ok(false),
    }
}

async fn remove(
    transaction: &Transaction,
    project: i64,
    domain: &CustomDomain,
    act: (&By, Millis),
) -> Result<(), Error> {
    transaction
        .execute(
            "DELETE FROM domains WHERE project = $1 AND name = $2",
            &[&project, &domain.name.as_str()],
        )
        .await?;
    tell(transaction, AuditKind::DomainRemoved, domain, act).await
}

async fn remove_lapsed(
    transaction: &Transaction,
    since: Millis,
    now: Millis,
) -> Result<Option<String>, Error> {
    let sql = select(
        "d.state = 'pending' AND d.since <= $1 ORDER BY d.since LIMIT 1
         FOR NO KEY UPDATE OF p, d SKIP LOCKED",
    );
    let Some(row) = transaction.row(&sql, &[&since]).await? else {
        return Ok(None);
    };
    let (project, domain) = (get(&row, 12)?, read(&row)?);
    let by = By::from(Actor::Own);
    remove(transaction, project, &domain, (&by, now)).await?;
    Ok(Some(domain.slug))
}
