//! Which games are listed, and how.

use async_trait::async_trait;
use platform_domain::audit::{AuditKind, By};
use platform_domain::clock::Millis;
use platform_domain::listing::{Listing, OwnListing};
use platform_store::stored_forms::{listing_detail, read_tags, write_tags};
use platform_store::{ListingStore, StoreError};
use rusqlite::{Connection, Row, params, params_from_iter};

use super::audit;
use super::error::Error;
use super::projects::project_id;
use super::store::SqliteStore;

#[async_trait]
impl ListingStore for SqliteStore {
    async fn set_listing(
        &self,
        slug: &str,
        listed: bool,
        own: OwnListing,
        by: By,
        now: Millis,
    ) -> Result<bool, StoreError> {
        let slug = slug.to_owned();
        self.main
            .write(move |connection| {
                if !set(connection, &slug, listed, own, now)? {
                    return Ok(false);
                }
                let (kind, detail) = (AuditKind::SettingChanged, listing_detail(listed));
                audit::add_of_project(connection, kind, (&slug, detail), by, now)?;
                Ok(true)
            })
            .await
    }

    async fn find_listing(&self, slug: &str) -> Result<Listing, StoreError> {
        self.main.read(|connection| find(connection, slug))
    }

    async fn list_listings(
        &self,
        slug: Option<&str>,
    ) -> Result<Vec<(String, Listing)>, StoreError> {
        let slug = slug.map(str::to_owned);
        self.main
            .read_much(move |connection| list(connection, slug.as_deref()))
            .await
    }
}

const COLUMNS: &str =
    "SELECT p.slug, l.listed_at, l.title, l.description, l.author, l.tags, l.cover
     FROM listings l JOIN projects p ON p.id = l.project";

fn set(
    connection: &Connection,
    slug: &str,
    listed: bool,
    own: OwnListing,
    now: Millis,
) -> Result<bool, Error> {
    let project = project_id(connection, slug)?;
    let before = find(connection, slug)?;
    let listed_at = listed.then(|| before.listed_at.unwrap_or(now));
    let after = Listing { listed_at, own };
    if after == before {
        return Ok(false);
    }
    let own = after.own;
    connection
        .prepare_cached(
            "INSERT INTO listings (project, listed_at, title, description, author, tags, cover)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
             ON CONFLICT (project) DO UPDATE SET listed_at = excluded.listed_at,
                 title = excluded.title, description = excluded.description,
                 author = excluded.author, tags = excluded.tags, cover = excluded.cover",
        )?
        .execute(params![
            project,
            listed_at,
            own.title,
            own.description,
            own.author,
            write_tags(own.tags.as_deref()),
            own.cover,
        ])?;
    Ok(true)
}

fn find(connection: &Connection, slug: &str) -> Result<Listing, Error> {
    let found = list(connection, Some(slug))?.pop();
    Ok(found.map(|(_, listing)| listing).unwrap_or_default())
}

fn list(connection: &Connection, slug: Option<&str>) -> Result<Vec<(String, Listing)>, Error> {
    let of_one = format!("{COLUMNS} WHERE p.slug = ?1");
    let sql = if slug.is_some() { &of_one } else { COLUMNS };
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params_from_iter(slug))?;
    let mut listings = Vec::new();
    while let Some(row) = rows.next()? {
        listings.push(listing(row)?);
    }
    Ok(listings)
}

fn listing(row: &Row<'_>) -> Result<(String, Listing), Error> {
    let slug: String = row.get(0)?;
    let tags = row.get::<_, Option<String>>(5)?;
    let own = OwnListing {
        title: row.get(2)?,
        description: row.get(3)?,
        author: row.get(4)?,
        tags: read_tags(tags.as_deref(), &slug)?,
        cover: row.get(6)?,
    };
    let listed_at = row.get(1)?;
    Ok((slug, Listing { listed_at, own }))
}
