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
use tokio_postgres::Row;
use uuid::Uuid;

use super::error::Error;
use super::rows::{bytes, count, get};
use super::store::PostgresStore;
use super::transaction::Transaction;
use super::{audit, projects};

#[async_trait]
impl DeployTokenStore for PostgresStore {
    async fn add_deploy_token(
        &self,
        slug: &str,
        new: NewDeployToken,
        by: By,
    ) -> Result<AddedDeployToken, StoreError> {
        transact!(self.main, transaction => add(&transaction, slug, &new, &by))
    }

    async fn list_deploy_tokens(&self, slug: &str) -> Result<Vec<DeployToken>, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM deploy_tokens t JOIN projects p ON p.id = t.project
             WHERE p.slug = $1 AND p.removed_at IS NULL AND t.revoked_at IS NULL
             ORDER BY t.created_at DESC, t.id DESC"
        );
        let rows = self.main.rows(&sql, &[&slug]).await?;
        Ok(rows.iter().map(token).collect::<Result<_, _>>()?)
    }

    async fn find_deploy_token(&self, id: Uuid) -> Result<Option<FoundDeployToken>, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS}, t.hash, p.slug, p.owner, p.created_at, o.suspended_at IS NOT NULL
             FROM deploy_tokens t JOIN projects p ON p.id = t.project
             LEFT JOIN players o ON o.id = p.owner
             WHERE t.id = $1 AND p.removed_at IS NULL"
        );
        let row = self.main.row(&sql, &[&id]).await?;
        Ok(row.as_ref().map(found).transpose()?)
    }

    async fn note_deploy_token_use(&self, id: Uuid, day: Millis) -> Result<(), StoreError> {
        self.main
            .write(
                "UPDATE deploy_tokens SET used_at = $2
                 WHERE id = $1 AND (used_at IS NULL OR used_at < $2)",
                &[&id, &day],
            )
            .await
            .map(drop)
    }

    async fn revoke_deploy_token(
        &self,
        slug: &str,
        id: Uuid,
        by: By,
        now: Millis,
    ) -> Result<Option<DeployToken>, StoreError> {
        transact!(self.main, transaction => revoke(&transaction, slug, id, &by, now))
    }
}

/// The columns that [`token`] reads.
const COLUMNS: &str = "t.id, t.name, t.scopes, t.created_by, t.created_at, t.expires_at,
    t.used_at, t.revoked_at";

fn token(row: &Row) -> Result<DeployToken, Error> {
    let id = get(row, 0)?;
    Ok(DeployToken {
        id,
        name: get(row, 1)?,
        scopes: read_scopes(get(row, 2)?, &id)?,
        created_by: get(row, 3)?,
        created_at: get(row, 4)?,
        expires_at: get(row, 5)?,
        used_at: get(row, 6)?,
        revoked_at: get(row, 7)?,
    })
}

fn found(row: &Row) -> Result<FoundDeployToken, Error> {
    Ok(FoundDeployToken {
        token: token(row)?,
        hash: TokenHash(bytes(row, 8, "deploy_tokens", "hash")?),
        project: Project {
            slug: get(row, 9)?,
            owner: get(row, 10)?,
            created_at: get(row, 11)?,
        },
        owner_is_suspended: get(row, 12)?,
    })
}

async fn add(
    transaction: &Transaction,
    slug: &str,
    new: &NewDeployToken,
    by: &By,
) -> Result<AddedDeployToken, Error> {
    // An operation that counts a project's tokens and adds one locks the project.
    let project = projects::lock(transaction, slug).await?;
    let token = &new.token;
    let row = transaction
        .row(
            "SELECT count(*), count(*) FILTER (WHERE name = $2) FROM deploy_tokens
             WHERE project = $1 AND revoked_at IS NULL AND expires_at > $3",
            &[&project, &token.name, &token.created_at],
        )
        .await?;
    let (valid, of_this_name): (i64, i64) = match &row {
        Some(row) => (get(row, 0)?, get(row, 1)?),
        None => (0, 0),
    };
    if of_this_name > 0 {
        return Ok(AddedDeployToken::NameTaken);
    }
    if valid >= count(new.most) {
        return Ok(AddedDeployToken::TooMany);
    }
    let scopes = write_scopes(&token.scopes);
    transaction
        .execute(
            "INSERT INTO deploy_tokens
                 (id, project, name, scopes, hash, created_by, created_at, expires_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
            &[
                &token.id,
                &project,
                &token.name,
                &scopes,
                &new.hash.0.as_slice(),
                &token.created_by,
                &token.created_at,
                &token.expires_at,
            ],
        )
        .await?;
    transaction
        .execute(
            "DELETE FROM deploy_tokens WHERE id = ANY(ARRAY(
                 SELECT id FROM deploy_tokens
                 WHERE project = $1 AND (revoked_at IS NOT NULL OR expires_at <= $2)
                 ORDER BY coalesce(revoked_at, expires_at) DESC, id OFFSET $3))",
            &[&project, &token.created_at, &count(ENDED_KEPT)],
        )
        .await?;
    let detail = format!("{}: {scopes}", token.name);
    let kind = AuditKind::DeployTokenCreated;
    audit::add_of_project(transaction, kind, (slug, &detail), by, token.created_at).await?;
    Ok(AddedDeployToken::Done)
}

async fn revoke(
    transaction: &Transaction,
    slug: &str,
    id: Uuid,
    by: &By,
    now: Millis,
) -> Result<Option<DeployToken>, Error> {
    let project = projects::lock(transaction, slug).await;
    let project = match project {
        Err(Error::Store(StoreError::Missing { .. })) => return Ok(None),
        project => project?,
    };
    let sql = format!(
        "UPDATE deploy_tokens t SET revoked_at = $3
         WHERE id = $1 AND project = $2 AND revoked_at IS NULL RETURNING {COLUMNS}"
    );
    let row = transaction.row(&sql, &[&id, &project, &now]).await?;
    let Some(revoked) = row.as_ref().map(token).transpose()? else {
        return Ok(None);
    };
    let kind = AuditKind::DeployTokenRevoked;
    audit::add_of_project(transaction, kind, (slug, &revoked.name), by, now).await?;
    Ok(Some(revoked))
}

/// Revokes all tokens of a project, whose owner changes. Writes no event. The caller has locked
/// the project.
pub(super) async fn revoke_all(
    transaction: &Transaction,
    slug: &str,
    now: Millis,
) -> Result<(), Error> {
    transaction
        .execute(
            "UPDATE deploy_tokens SET revoked_at = $2 WHERE revoked_at IS NULL
                 AND project = (SELECT id FROM projects WHERE slug = $1)",
            &[&slug, &now],
        )
        .await
        .map(drop)
}
