//! Inspects deployments whose files are in the file store. A deploy inspects the files and stores the
//! result with the deployment; a deployment of an older version of the program is inspected when the
//! catalogue first reads it.

use std::sync::Arc;

use platform_checks::folder::INDEX;
use platform_game_pages::inspection::inspect;

use crate::domain::project::{Deployment, Inspection};
use crate::games::files::{FileError, FileStore};

/// The number of bytes of the page that are searched for the tag that loads the runtime.
pub const PAGE_BYTES: u64 = 4 * 1024 * 1024;

/// Inspects a deployment whose files are in the file store.
///
/// # Errors
/// Returns an error if its page cannot be read.
pub(super) async fn inspect_kept(
    deployment: &Arc<Deployment>,
    address: String,
    files: &FileStore,
) -> Result<Inspection, FileError> {
    let page = match deployment.files.get(INDEX) {
        // An empty file has no range to read.
        Some(page) if page.size > 0 => {
            let range = 0..page.size.min(PAGE_BYTES);
            files.read_range(page, range, &deployment.slug).await?
        }
        _ => bytes::Bytes::new(),
    };
    let deployment = Arc::clone(deployment);
    let inspected =
        tokio::task::spawn_blocking(move || inspect(&page, &address, &deployment.files, &|_| None));
    // This fails only while the process ends, and nobody reads the result then.
    Ok(inspected.await.unwrap_or_default())
}
