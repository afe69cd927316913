//! Listings: the part of the store that knows which games the public page lists, and what is set in
//! place of the metadata of their pages.

use async_trait::async_trait;
use platform_domain::audit::By;
use platform_domain::clock::Millis;
use platform_domain::listing::{Listing, OwnListing};

use super::StoreError;

/// Operations on listings. [`Store`](super::Store) documents what every method guarantees.
#[async_trait]
pub trait ListingStore: Send + Sync {
    /// Sets whether a game is listed, and what is shown of it. A game that is listed already stays
    /// listed since then. Returns whether that is a change; if not, nothing is written.
    ///
    /// # Errors
    /// [`StoreError::Missing`] on `projects` if there is no such project.
    async fn set_listing(
        &self,
        slug: &str,
        listed: bool,
        own: OwnListing,
        by: By,
        now: Millis,
    ) -> Result<bool, StoreError>;

    /// Returns how a project is listed. A project for which nothing was set, or that does not
    /// exist, is not listed.
    async fn find_listing(&self, slug: &str) -> Result<Listing, StoreError>;

    /// Returns the listings of all projects for which something was set, or that of one, with their
    /// slugs, for the catalogue of games.
    async fn list_listings(&self, slug: Option<&str>)
    -> Result<Vec<(String, Listing)>, StoreError>;
}
