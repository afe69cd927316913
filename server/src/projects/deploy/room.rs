//! The storage limits of a project's deployments, and freeing space for a new one.

use std::collections::BTreeMap;

use super::DeployError;
use crate::domain::project::FileEntry;
use crate::domain::room::{RoomLimits, Verdict};
use crate::platform::Platform;
use crate::store::StoreError;

/// Whether there is space for a new deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// There is.
    There,
    /// There is once earlier deployments are removed.
    ToBeMade,
}

/// Looks whether there is space for `files` of a new deployment, and removes nothing.
pub(super) async fn look_for_room(
    platform: &Platform,
    slug: &str,
    files: &BTreeMap<String, FileEntry>,
) -> Result<Room, DeployError> {
    let bytes = files.values().map(|file| file.size).sum();
    if !platform.disk.has_room(bytes) {
        return Err(DeployError::DiskFull);
    }
    if platform.config.room_limits() == RoomLimits::default() {
        return Ok(Room::There);
    }
    match judge(platform, slug, files).await? {
        Verdict::Fits => Ok(Room::There),
        Verdict::FitsWithin(_) => Ok(Room::ToBeMade),
        full => Err(DeployError::NoRoom(no_room(full))),
    }
}

/// Frees space for `files` of a new deployment: removes earlier deployments of the project that neither
/// an environment nor a preview shows, the oldest first. Returns how many; if that is not enough, none is removed.
pub(super) async fn make_room(
    platform: &Platform,
    slug: &str,
    files: &BTreeMap<String, FileEntry>,
) -> Result<usize, DeployError> {
    let mut removed = 0;
    loop {
        match judge(platform, slug, files).await? {
            Verdict::Fits => return Ok(removed),
            Verdict::FitsWithin(_) => {
                let oldest = platform.store.remove_oldest_deployment(slug).await;
                if !oldest.map_err(DeployError::Store)? {
                    // Another task has just removed it.
                    return Ok(removed);
                }
                removed += 1;
            }
            full => return Err(DeployError::NoRoom(no_room(full))),
        }
    }
}

async fn judge(
    platform: &Platform,
    slug: &str,
    files: &BTreeMap<String, FileEntry>,
) -> Result<Verdict, DeployError> {
    let measured = platform.store.measure_room(slug, files.clone()).await;
    match measured {
        Err(StoreError::Missing { .. }) => Err(DeployError::UnknownProject(slug.to_owned())),
        measured => {
            let measured = measured.map_err(DeployError::Store)?;
            Ok(platform.config.room_limits().judge(measured))
        }
    }
}

/// Returns a sentence with the used space, the limit, and what to do.
fn no_room(verdict: Verdict) -> String {
    let mib = |bytes: u64| bytes.div_ceil(1024 * 1024);
    let (what, needed, limit, advice) = match verdict {
        Verdict::AccountFull { needed, limit } => (
            "your projects",
            needed,
            limit,
            "delete a project that you no longer need",
        ),
        Verdict::ProjectFull { needed, limit } => (
            "this project",
            needed,
            limit,
            "make the game smaller, remove a preview, or deploy a smaller one to its other environment",
        ),
        Verdict::Fits | Verdict::FitsWithin(_) => return String::new(),
    };
    format!(
        "With this deployment, {what} would use {} MiB, more than the limit of {} MiB. Earlier \
         deployments that are not current are not counted, because they would be removed first. \
         Please {advice}, or ask the platform's operator for more.",
        mib(needed),
        mib(limit)
    )
}
