//! Deploy tokens.

use async_trait::async_trait;
use platform_domain::audit::{AuditKind, By};
use platform_domain::clock::Millis;
use platform_domain::deploy_token::{
    AddedDeployToken, DeployToken, ENDED_KEPT, FoundDeployToken, NewDeployToken,
};
use platform_domain::device::TokenHash;
use platform_domain::project::Project;
use platform_store::stored_forms::{read_scopes, write_scopes};
use platform_store::{DeployTokenStore, StoreError};
use rusqlite::{Connection, Row, params};
use uuid::Uuid;

use super::audit;
use super::error::Error;
use super::projects::project_id;
use super::rows::{count, uuid};
use super::store::SqliteStore;

#[async_trait]
impl DeployTokenStore for SqliteStore {
    async fn add_deploy_token(
        &self,
        slug: &str,
        new: NewDeployToken,
        by: By,
    ) -> Result<AddedDeployToken, StoreError> {
        let slug = slug.to_owned();
        self.main
            .write(move |connection| add(connection, &slug, &new, by))
            .await
    }

    async fn list_deploy_tokens(&self, slug: &str) -> Result<Vec<DeployToken>, StoreError> {
        self.main.read(|connection| list(connection, slug))
    }

    async fn find_deploy_token(&self, id: Uuid) -> Result<Option<FoundDeployToken>, StoreError> {
        self.main.read(|connection| find(connection, id))
    }

    async fn note_deploy_token_use(&self, id: Uuid, day: Millis) -> Result<(), StoreError> {
        self.main
            .write(move |connection| note_use(connection, id, day))
            .await
    }

    async fn revoke_deploy_token(
        &self,
        slug: &str,
        id: Uuid,
        by: By,
        now: Millis,
    ) -> Result<Option<DeployToken>, StoreError> {
        let slug = slug.to_owned();
        self.main
            .write(move |connection| revoke(connection, &slug, id, by, now))
            .await
    }
}

/// The columns that [`token`] reads.
const COLUMNS: &str = "t.id, t.name, t.scopes, t.created_by, t.created_at, t.expires_at,
    t.used_at, t.revoked_at";

fn token(row: &Row<'_>) -> Result<DeployToken, Error> {
    let bytes = |index| -> Result<Vec<u8>, Error> { Ok(row.get(index)?) };
    let id = uuid(&bytes(0)?, "deploy_tokens", "id", String::new)?;
    let scopes: String = row.get(2)?;
    Ok(DeployToken {
        id,
        name: row.get(1)?,
        scopes: read_scopes(&scopes, &id)?,
        created_by: uuid(&bytes(3)?, "deploy_tokens", "created_by", || id.to_string())?,
        created_at: row.get(4)?,
        expires_at: row.get(5)?,
        used_at: row.get(6)?,
        revoked_at: row.get(7)?,
    })
}

fn add(
    connection: &Connection,
    slug: &str,
    new: &NewDeployToken,
    by: By,
) -> Result<AddedDeployToken, Error> {
    let project = project_id(connection, slug)?;
    let token = &new.token;
    let (valid, of_this_name): (i64, i64) = connection
        .prepare_cached(
            "SELECT count(*), count(*) FILTER (WHERE name = ?2) FROM deploy_tokens
             WHERE project = ?1 AND revoked_at IS NULL AND expires_at > ?3",
        )?
        .query_row(params![project, token.name, token.created_at], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?;
    if of_this_name > 0 {
        return Ok(AddedDeployToken::NameTaken);
    }
    if valid >= count(new.most) {
        return Ok(AddedDeployToken::TooMany);
    }
    let scopes = write_scopes(&token.scopes);
    connection
        .prepare_cached(
            "INSERT INTO deploy_tokens
                 (id, project, name, scopes, hash, created_by, created_at, expires_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )?
        .execute(params![
            token.id.as_bytes(),
            project,
            token.name,
            scopes,
            new.hash.0,
            token.created_by.as_bytes(),
            token.created_at,
            token.expires_at
        ])?;
    connection
        .prepare_cached(
            "DELETE FROM deploy_tokens WHERE id IN
                 (SELECT id FROM deploy_tokens
                  WHERE project = ?1 AND (revoked_at IS NOT NULL OR expires_at <= ?2)
                  ORDER BY coalesce(revoked_at, expires_at) DESC, id LIMIT -1 OFFSET ?3)",
        )?
        .execute(params![project, token.created_at, count(ENDED_KEPT)])?;
    let detail = format!("{}: {scopes}", token.name);
    let kind = AuditKind::DeployTokenCreated;
    audit::add_of_project(connection, kind, (slug, &detail), by, token.created_at)?;
    Ok(AddedDeployToken::Done)
}

fn list(connection: &Connection, slug: &str) -> Result<Vec<DeployToken>, Error> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM deploy_tokens t JOIN projects p ON p.id = t.project
         WHERE p.slug = ?1 AND p.removed_at IS NULL AND t.revoked_at IS NULL
         ORDER BY t.created_at DESC, t.id DESC",
    ))?;
    let mut rows = statement.query([slug])?;
    let mut tokens = Vec::new();
    while let Some(row) = rows.next()? {
        tokens.push(token(row)?);
    }
    Ok(tokens)
}

fn find(connection: &Connection, id: Uuid) -> Result<Option<FoundDeployToken>, Error> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {COLUMNS}, t.hash, p.slug, p.owner, p.created_at, o.suspended_at IS NOT NULL
         FROM deploy_tokens t JOIN projects p ON p.id = t.project
         LEFT JOIN players o ON o.id = p.owner
         WHERE t.id = ?1 AND p.removed_at IS NULL",
    ))?;
    let mut rows = statement.query([id.as_bytes().as_slice()])?;
    let Some(row) = rows.next()? else {
        return Ok(None);
    };
    let owner: Option<Vec<u8>> = row.get(10)?;
    let owner = owner
        .map(|bytes| uuid(&bytes, "projects", "owner", || id.to_string()))
        .transpose()?;
    Ok(Some(FoundDeployToken {
        token: token(row)?,
        hash: TokenHash(row.get(8)?),
        project: Project {
            slug: row.get(9)?,
            owner,
            created_at: row.get(11)?,
        },
        owner_is_suspended: row.get(12)?,
    }))
}

fn note_use(connection: &Connection, id: Uuid, day: Millis) -> Result<(), Error> {
    connection
        .prepare_cached(
            "UPDATE deploy_tokens SET used_at = ?2
             WHERE id = ?1 AND (used_at IS NULL OR used_at < ?2)",
        )?
        .execute(params![id.as_bytes(), day])?;
    Ok(())
}

fn revoke(
    connection: &Connection,
    slug: &str,
    id: Uuid,
    by: By,
    now: Millis,
) -> Result<Option<DeployToken>, Error> {
    let known = list(connection, slug)?;
    let Some(mut token) = known.into_iter().find(|token| token.id == id) else {
        return Ok(None);
    };
    connection
        .prepare_cached("UPDATE deploy_tokens SET revoked_at = ?2 WHERE id = ?1")?
        .execute(params![id.as_bytes(), now])?;
    token.revoked_at = Some(now);
    let kind = AuditKind::DeployTokenRevoked;
    audit::add_of_project(connection, kind, (slug, &token.name), by, now)?;
    Ok(Some(token))
}

/// Revokes all tokens of a project, whose owner changes. Writes no event.
pub(super) fn revoke_all(connection: &Connection, slug: &str, now: Millis) -> Result<(), Error> {
    connection
        .prepare_cached(
            "UPDATE deploy_tokens SET revoked_at = ?2 WHERE revoked_at IS NULL
                 AND project = (SELECT id FROM projects WHERE slug = ?1)",
        )?
        .execute(params![slug, now])?;
    Ok(())
}
