//! How the pages of games that are deployed load the runtime, and should not, and
//! which of their files should hardly be public.
//!
//! A deployment says so once, when it is made; whoever looks later is told the
//! same, computed anew from the page that was deployed.

use std::sync::Arc;

use moka::sync::Cache;
use platform_checks::{Warning, name_warnings, warnings_at};
use uuid::Uuid;

use crate::domain::project::Deployment;
use crate::games::files::{FileError, FileStore};

/// Bytes of a page that are looked at for its tag.
pub const PAGE_BYTES: u64 = 4 * 1024 * 1024;
/// Deployments that are remembered, at most.
const REMEMBERED: u64 = 10_000;

/// The warnings of deployments, each of which is read once: none ever changes.
#[derive(Clone, Debug)]
pub struct PageWarnings(Cache<Uuid, Arc<Vec<Warning>>>);

impl Default for PageWarnings {
    fn default() -> Self {
        Self(Cache::new(REMEMBERED))
    }
}

impl PageWarnings {
    /// The warnings of the deployment `id`, if they are known already.
    #[must_use]
    pub fn known(&self, id: &Uuid) -> Option<Arc<Vec<Warning>>> {
        self.0.get(id)
    }

    /// The warnings of `deployment`, which is shown at `address`.
    ///
    /// # Errors
    /// The page cannot be read.
    pub async fn of(
        &self,
        deployment: &Deployment,
        address: String,
        files: &FileStore,
    ) -> Result<Arc<Vec<Warning>>, FileError> {
        let page = match deployment.files.get("index.html") {
            // Of an empty file there is nothing to be read.
            Some(page) if page.size > 0 => {
                let range = 0..page.size.min(PAGE_BYTES);
                files.read_range(&page.sha256, range).await?
            }
            _ => bytes::Bytes::new(),
        };
        // A page of megabytes takes milliseconds, which others need not wait.
        let looked = tokio::task::spawn_blocking(move || {
            warnings_at(&String::from_utf8_lossy(&page), &address)
        });
        let Ok(mut warnings) = looked.await else {
            // The process ends; nobody reads the answer.
            return Ok(Arc::default());
        };
        warnings.extend(name_warnings(deployment.files.keys().map(String::as_str)));
        let warnings = Arc::new(warnings);
        self.0.insert(deployment.id, Arc::clone(&warnings));
        Ok(warnings)
    }
}
