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
use rusqlite::{Connection, OptionalExtension as _, Row, params, params_from_iter};

use super::audit;
use super::error::Error;
use super::projects::project_id;
use super::rows::count;
use super::store::SqliteStore;

#[async_trait]
impl DomainStore for SqliteStore {
    async fn add_domain(&self, new: NewDomain, by: By) -> Result<AddedDomain, StoreError> {
        self.main
            .write(move |connection| add(connection, &new, by))
            .await
    }

    async fn list_domains(&self, slug: &str) -> Result<Vec<CustomDomain>, StoreError> {
        self.main.read(|connection| list(connection, slug))
    }

    async fn list_hosted_domains(
        &self,
        slug: Option<&str>,
    ) -> Result<Vec<HostedDomain>, StoreError> {
        let slug = slug.map(str::to_owned);
        self.main
            .read_much(move |connection| list_hosted(connection, slug.as_deref()))
            .await
    }

    async fn list_due_domains(
        &self,
        now: Millis,
        limit: usize,
    ) -> Result<Vec<CustomDomain>, StoreError> {
        self.main
            .read(|connection| list_due(connection, now, limit))
    }

    async fn note_domain_proof(
        &self,
        looked_at: &CustomDomain,
        proof: &DomainProof,
        fresh: DomainToken,
        by: By,
        now: Millis,
    ) -> Result<NotedProof, StoreError> {
        let (domain, proof) = (looked_at.clone(), proof.clone());
        self.main
            .write(move |connection| note(connection, &domain, &proof, fresh, (by, now)))
            .await
    }

    async fn set_canonical_domain(
        &self,
        (slug, environment, name): (&str, Environment, &DomainName),
        canonical: bool,
        by: By,
        now: Millis,
    ) -> Result<SetCanonical, StoreError> {
        let (slug, name) = (slug.to_owned(), name.clone());
        self.main
            .write(move |connection| {
                let place = (&*slug, environment, &name);
                set_canonical(connection, place, canonical, (by, now))
            })
            .await
    }

    async fn remove_domain(
        &self,
        (slug, environment, name): (&str, Environment, &DomainName),
        by: By,
        now: Millis,
    ) -> Result<bool, StoreError> {
        let (slug, name) = (slug.to_owned(), name.clone());
        self.main
            .write(move |connection| match find(connection, &slug, &name)? {
                Some((project, domain)) if domain.environment == environment => {
                    remove(connection, project, &domain, (by, now))?;
                    Ok(true)
                }
                _ => Ok(false),
            })
            .await
    }

    async fn remove_lapsed_domain(
        &self,
        since: Millis,
        now: Millis,
    ) -> Result<Option<String>, StoreError> {
        self.main
            .write(move |connection| remove_lapsed(connection, since, now))
            .await
    }
}

fn read(row: &Row<'_>) -> Result<CustomDomain, Error> {
    let stored = StoredDomain {
        slug: row.get(0)?,
        environment: row.get(1)?,
        name: row.get(2)?,
        token: row.get(3)?,
        state: row.get(4)?,
        canonical: row.get(5)?,
        detail: row.get(6)?,
        created_at: row.get(7)?,
        since: row.get(8)?,
        proven_at: row.get(9)?,
        looked_at: row.get(10)?,
        look_at: row.get(11)?,
    };
    Ok(stored.read()?)
}

fn select(rest: &str) -> String {
    format!(
        "SELECT {DOMAIN_COLUMNS}, d.project FROM domains d JOIN projects p ON p.id = d.project
         WHERE p.removed_at IS NULL AND {rest}"
    )
}

/// The domains that a query finds.
fn all(
    connection: &Connection,
    rest: &str,
    values: &[&dyn rusqlite::ToSql],
) -> Result<Vec<CustomDomain>, Error> {
    let mut statement = connection.prepare_cached(&select(rest))?;
    let mut rows = statement.query(values)?;
    let mut domains = Vec::new();
    while let Some(row) = rows.next()? {
        domains.push(read(row)?);
    }
    Ok(domains)
}

fn list(connection: &Connection, slug: &str) -> Result<Vec<CustomDomain>, Error> {
    all(connection, "p.slug = ?1 ORDER BY d.name", &[&slug])
}

fn list_due(
    connection: &Connection,
    now: Millis,
    limit: usize,
) -> Result<Vec<CustomDomain>, Error> {
    let rest = "d.look_at <= ?1 ORDER BY d.look_at LIMIT ?2";
    all(connection, rest, &[&now, &count(limit)])
}

fn list_hosted(connection: &Connection, slug: Option<&str>) -> Result<Vec<HostedDomain>, Error> {
    let of_one = if slug.is_some() {
        "AND p.slug = ?1"
    } else {
        ""
    };
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {HOSTED_DOMAIN_COLUMNS} FROM domains d JOIN projects p ON p.id = d.project
         WHERE d.state <> 'pending' {of_one}"
    ))?;
    let mut rows = statement.query(params_from_iter(slug))?;
    let mut hosted = Vec::new();
    while let Some(row) = rows.next()? {
        let slug = row.get(0)?;
        let texts: (String, String, String) = (row.get(1)?, row.get(2)?, row.get(3)?);
        let texts = (&*texts.0, &*texts.1, &*texts.2);
        hosted.push(read_hosted_domain(slug, texts, row.get(4)?)?);
    }
    Ok(hosted)
}

/// A domain of a project, and the project's row.
fn find(
    connection: &Connection,
    slug: &str,
    name: &DomainName,
) -> Result<Option<(i64, CustomDomain)>, Error> {
    let mut statement = connection.prepare_cached(&select("p.slug = ?1 AND d.name = ?2"))?;
    let mut rows = statement.query([slug, name.as_str()])?;
    match rows.next()? {
        Some(row) => Ok(Some((row.get(12)?, read(row)?))),
        None => Ok(None),
    }
}

/// Whether another project has this domain in service.
fn is_taken(connection: &Connection, project: i64, name: &DomainName) -> Result<bool, Error> {
    let taken = connection
        .prepare_cached(
            "SELECT 1 FROM domains WHERE name = ?1 AND state <> 'pending' AND project <> ?2",
        )?
        .exists(params![name.as_str(), project])?;
    Ok(taken)
}

fn add(connection: &Connection, new: &NewDomain, by: By) -> Result<AddedDomain, Error> {
    let project = project_id(connection, &new.slug)?;
    let known = list(connection, &new.slug)?;
    if let Some(one) = known.iter().find(|one| one.name == new.name) {
        return Ok(AddedDomain::Known(one.environment));
    }
    if is_taken(connection, project, &new.name)? {
        return Ok(AddedDomain::Taken);
    }
    if known.len() >= new.most {
        return Ok(AddedDomain::TooMany);
    }
    let domain = CustomDomain::claimed(new);
    connection
        .prepare_cached(
            "INSERT INTO domains (project, environment, name, token, state, canonical, created_at,
                 since) VALUES (?1, ?2, ?3, ?4, ?5, 0, ?6, ?6)",
        )?
        .execute(params![
            project,
            domain.environment.as_str(),
            domain.name.as_str(),
            domain.token.as_str(),
            domain.state.as_str(),
            domain.created_at
        ])?;
    tell(connection, AuditKind::DomainAdded, &domain, (by, new.now))?;
    Ok(AddedDomain::Done(domain))
}

/// Writes an event about a domain.
fn tell(
    connection: &Connection,
    kind: AuditKind,
    domain: &CustomDomain,
    (by, now): (By, Millis),
) -> Result<(), Error> {
    let detail = domain.event();
    audit::add_of_project(connection, kind, (&domain.slug, &detail), by, now)
}

fn note(
    connection: &Connection,
    looked_at: &CustomDomain,
    proof: &DomainProof,
    fresh: DomainToken,
    act: (By, Millis),
) -> Result<NotedProof, Error> {
    let found = find(connection, &looked_at.slug, &looked_at.name)?;
    let same = found.filter(|(_, found)| found.token == looked_at.token);
    let Some((project, domain)) = same else {
        return Ok(NotedProof::Gone);
    };
    let (domain, event) = domain.after(proof, fresh, act.1);
    if event == Some(AuditKind::DomainActivated) && is_taken(connection, project, &domain.name)? {
        return Ok(NotedProof::Taken);
    }
    write(connection, project, &domain)?;
    if let Some(kind) = event {
        tell(connection, kind, &domain, act)?;
    }
    Ok(NotedProof::Done(domain))
}

/// Writes everything of a domain that a look may change.
fn write(connection: &Connection, project: i64, domain: &CustomDomain) -> Result<(), Error> {
    connection
        .prepare_cached(
            "UPDATE domains SET token = ?3, state = ?4, canonical = ?5, detail = ?6, since = ?7,
                 proven_at = ?8, looked_at = ?9, look_at = ?10
             WHERE project = ?1 AND name = ?2",
        )?
        .execute(params![
            project,
            domain.name.as_str(),
            domain.token.as_str(),
            domain.state.as_str(),
            domain.canonical,
            domain.detail,
            domain.since,
            domain.proven_at,
            domain.looked_at,
            domain.look_at
        ])?;
    Ok(())
}

fn set_canonical(
    connection: &Connection,
    (slug, environment, name): (&str, Environment, &DomainName),
    canonical: bool,
    act: (By, Millis),
) -> Result<SetCanonical, Error> {
    let found = find(connection, slug, name)?;
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
    connection
        .prepare_cached(
            "UPDATE domains SET canonical = 0
             WHERE project = ?1 AND environment = ?2 AND canonical = 1",
        )?
        .execute(params![project, environment.as_str()])?;
    domain.canonical = canonical;
    write(connection, project, &domain)?;
    let state = if canonical { "" } else { " off" };
    let detail = format!("{}{state}", domain.event());
    let kind = AuditKind::DomainCanonical;
    audit::add_of_project(connection, kind, (slug, &detail), act.0, act.1)?;
    Ok(SetCanonical::Done(domain))
}

fn remove(
    connection: &Connection,
    project: i64,
    domain: &CustomDomain,
    act: (By, Millis),
) -> Result<(), Error> {
    connection
        .prepare_cached("DELETE FROM domains WHERE project = ?1 AND name = ?2")?
        .execute(params![project, domain.name.as_str()])?;
    tell(connection, AuditKind::DomainRemoved, domain, act)
}

fn remove_lapsed(
    connection: &Connection,
    since: Millis,
    now: Millis,
) -> Result<Option<String>, Error> {
    let sql = select("d.state = 'pending' AND d.since <= ?1 ORDER BY d.since LIMIT 1");
    let found = connection
        .prepare_cached(&sql)?
        .query_row([since], |row| Ok((row.get(12)?, read(row))))
        .optional()?;
    let Some((project, domain)) = found else {
        return Ok(None);
    };
    let domain = domain?;
    remove(connection, project, &domain, (Actor::Own.into(), now))?;
    Ok(Some(domain.slug))
}
