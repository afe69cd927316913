//! Which games are listed, and how.

use async_trait::async_trait;
use platform_domain::audit::{AuditKind, By};
use platform_domain::clock::Millis;
use platform_domain::listing::{Listing, OwnListing};
use platform_store::stored_forms::{listing_detail, read_tags, write_tags};
use platform_store::{ListingStore, StoreError};
use tokio_postgres::Row;

use super::error::Error;
use super::rows::get;
use super::store::PostgresStore;
use super::transaction::Transaction;
use super::{audit, projects};

#[async_trait]
impl ListingStore for PostgresStore {
    async fn set_listing(
        &self,
        slug: &str,
        listed: bool,
        own: OwnListing,
        by: By,
        now: Millis,
    ) -> Result<bool, StoreError> {
        transact!(self.main, transaction => set(&transaction, slug, (listed, &own), &by, now))
    }

    async fn find_listing(&self, slug: &str) -> Result<Listing, StoreError> {
        let row = self.main.row(&one(), &[&slug]).await?;
        let found = row.as_ref().map(listing).transpose()?;
        Ok(found.map(|(_, listing)| listing).unwrap_or_default())
    }

    async fn list_listings(
        &self,
        slug: Option<&str>,
    ) -> Result<Vec<(String, Listing)>, StoreError> {
        let rows = match &slug {
            Some(slug) => self.main.rows(&one(), &[slug]).await?,
            None => self.main.rows(COLUMNS, &[]).await?,
        };
        Ok(rows.iter().map(listing).collect::<Result<_, _>>()?)
    }
}

const COLUMNS: &str =
    "SELECT p.slug, l.listed_at, l.title, l.description, l.author, l.tags, l.cover
     FROM listings l JOIN projects p ON p.id = l.project";

/// Returns the query for the listing of the project `$1`.
fn one() -> String {
    format!("{COLUMNS} WHERE p.slug = $1")
}

async fn set(
    transaction: &Transaction,
    slug: &str,
    (listed, own): (bool, &OwnListing),
    by: &By,
    now: Millis,
) -> Result<bool, Error> {
    let project = projects::lock(transaction, slug).await?;
    let before = transaction.row(&one(), &[&slug]).await?;
    let before = before.as_ref().map(listing).transpose()?;
    let before = before.map(|(_, listing)| listing).unwrap_or_default();
    let listed_at = listed.then(|| before.listed_at.unwrap_or(now));
    if before.listed_at == listed_at && before.own == *own {
        return Ok(false);
    }
    let tags = write_tags(own.tags.as_deref());
    transaction
        .execute(
            "INSERT INTO listings (project, listed_at, title, description, author, tags, cover)
             VALUES ($1, $2, $3, $4, $5, $6, $7)
             ON CONFLICT (project) DO UPDATE SET listed_at = excluded.listed_at,
                 title = excluded.title, description = excluded.description,
                 author = excluded.author, tags = excluded.tags, cover = excluded.cover",
            &[
                &project,
                &listed_at,
                &own.title,
                &own.description,
                &own.author,
                &tags,
                &own.cover,
            ],
        )
        .await?;
    let (kind, detail) = (AuditKind::SettingChanged, listing_detail(listed));
    audit::add_of_project(transaction, kind, (slug, detail), by, now).await?;
    Ok(true)
}

fn listing(row: &Row) -> Result<(String, Listing), Error> {
    let slug: String = get(row, 0)?;
    let own = OwnListing {
        title: get(row, 2)?,
        description: get(row, 3)?,
        author: get(row, 4)?,
        tags: read_tags(get(row, 5)?, &slug)?,
        cover: get(row, 6)?,
    };
    let listed_at = get(row, 1)?;
    Ok((slug, Listing { listed_at, own }))
}
