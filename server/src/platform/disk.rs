//! The free disk space. Below a limit, no new deploys and frontend logs are accepted, so that
//! essential data can still be written: players, sessions, and data of existing games.

use std::error::Error;
use std::fmt::Debug;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::http::{HeaderValue, header};
use platform_protocol::problem::ProblemCode;
use rustix::io::Errno;

use crate::domain::errors::chain;
use crate::web::api_error::ApiError;

/// When to retry: disks are not freed within seconds.
const COME_AGAIN: HeaderValue = HeaderValue::from_static("60");

/// Returns how much of a disk is free.
pub trait FreeSpace: Debug + Send + Sync {
    /// Returns how many bytes this process may still write to the disk of `folder`.
    ///
    /// # Errors
    /// Errors of the system.
    fn free(&self, folder: &Path) -> io::Result<u64>;
}

/// The disks of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemDisk;

impl FreeSpace for SystemDisk {
    fn free(&self, folder: &Path) -> io::Result<u64> {
        let found = rustix::fs::statvfs(folder)?;
        Ok(found.f_bavail.saturating_mul(found.f_frsize))
    }
}

/// A disk whose free space a test sets.
#[derive(Debug)]
pub struct ManualDisk(AtomicU64);

impl ManualDisk {
    /// Creates one with this free space.
    #[must_use]
    pub const fn new(free: u64) -> Self {
        Self(AtomicU64::new(free))
    }

    /// Sets the free space.
    pub fn set(&self, free: u64) {
        self.0.store(free, Ordering::SeqCst);
    }
}

impl FreeSpace for ManualDisk {
    fn free(&self, _: &Path) -> io::Result<u64> {
        Ok(self.0.load(Ordering::SeqCst))
    }
}

/// The disks of the platform's data, and how much must stay free.
#[derive(Debug)]
pub struct DiskFloor {
    disk: Arc<dyn FreeSpace>,
    folders: [PathBuf; 2],
    floor: u64,
}

impl DiskFloor {
    /// Keeps `floor` bytes free on the disks of `folders`.
    #[must_use]
    pub fn new(disk: Arc<dyn FreeSpace>, folders: [PathBuf; 2], floor: u64) -> Self {
        Self {
            disk,
            folders,
            floor,
        }
    }

    /// Returns the number of bytes that stay free.
    #[must_use]
    pub const fn floor(&self) -> u64 {
        self.floor
    }

    /// Returns the free space on the disk of the data folder, and on that of deployed files; `None`
    /// where it cannot be determined.
    #[must_use]
    pub fn free(&self) -> [Option<u64>; 2] {
        self.folders
            .each_ref()
            .map(|folder| self.disk.free(folder).ok())
    }

    /// Whether `more` bytes can be written above the floor.
    #[must_use]
    pub fn has_room(&self, more: u64) -> bool {
        self.refuse(more).is_ok()
    }

    /// Whether `more` bytes can be written to the disk of `folder`, which may be another one, above
    /// the same floor. If the free space cannot be determined, they can.
    #[must_use]
    pub fn has_room_in(&self, folder: &Path, more: u64) -> bool {
        let wanted = self.floor.saturating_add(more);
        self.disk.free(folder).map_or(true, |free| free >= wanted)
    }

    /// Returns an error if `more` bytes would not fit above the floor. If the free space cannot be
    /// determined, nothing is rejected.
    ///
    /// # Errors
    /// `unavailable`
    pub fn refuse(&self, more: u64) -> Result<(), ApiError> {
        if self.floor == 0 {
            return Ok(());
        }
        let wanted = self.floor.saturating_add(more);
        for folder in &self.folders {
            match self.disk.free(folder) {
                Ok(free) if free < wanted => return Err(full()),
                Ok(_) => {}
                Err(error) => {
                    tracing::warn!(folder = %folder.display(), %error, "free space is not known");
                }
            }
        }
        Ok(())
    }
}

/// Returns the error for a disk that is almost full.
#[must_use]
pub fn full() -> ApiError {
    ApiError::new(ProblemCode::Unavailable)
        .with_detail(
            "The platform's disk is almost full, so nothing new can be stored now; deployed games \
             continue to work. Please try again later, or tell the platform's operator.",
        )
        .with_header(header::RETRY_AFTER, COME_AGAIN)
}

/// Returns the error for a file that could not be written or read. `unavailable` if the reason may pass:
/// the disk is full or read-only, or this process may open no more files. Only the log has the cause.
#[must_use]
pub fn failed(error: &(dyn Error + 'static)) -> ApiError {
    let (mut number, mut cause) = (None, Some(error));
    while let (None, Some(error)) = (number, cause) {
        let shared = || error.downcast_ref::<Arc<io::Error>>().map(|error| &**error);
        let system = error.downcast_ref::<io::Error>().or_else(shared);
        number = system.and_then(Errno::from_io_error);
        cause = error.source();
    }
    match number {
        Some(Errno::NOSPC | Errno::DQUOT) => full().with_cause(chain(error)),
        Some(Errno::ROFS | Errno::IO | Errno::MFILE | Errno::NFILE | Errno::NOMEM) => {
            ApiError::unavailable(error)
        }
        _ => ApiError::internal(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::StoreError;

    #[test]
    fn nothing_is_kept_below_the_floor() {
        let disk = Arc::new(ManualDisk::new(100));
        let folders = || [PathBuf::from("/"), PathBuf::from("/")];
        let floor = DiskFloor::new(disk.clone(), folders(), 60);
        assert!(floor.refuse(40).is_ok());
        assert_eq!(
            floor.refuse(41).unwrap_err().slug(),
            ProblemCode::Unavailable
        );
        disk.set(59);
        assert!(floor.refuse(0).is_err());
        let elsewhere = Path::new("/elsewhere");
        disk.set(100);
        assert!(floor.has_room_in(elsewhere, 40) && !floor.has_room_in(elsewhere, 41));
        let any = DiskFloor::new(disk, folders(), 0);
        assert!(any.refuse(u64::MAX).is_ok());
    }

    #[test]
    fn what_may_pass_is_unavailable_and_the_rest_is_internal() {
        let of = |number: Errno| failed(&io::Error::from(number));
        let retry = |error: &ApiError| {
            let response = axum::response::IntoResponse::into_response(error.clone());
            let after = response.headers().get(header::RETRY_AFTER);
            after.map(|after| after.to_str().unwrap().to_owned())
        };
        let full = of(Errno::NOSPC);
        assert_eq!(full.slug(), ProblemCode::Unavailable);
        assert_eq!(retry(&full).as_deref(), Some("60"));
        assert!(full.detail().contains("disk is almost full"));
        assert!(full.cause().is_some());
        for number in [Errno::ROFS, Errno::IO, Errno::MFILE, Errno::NFILE] {
            let error = of(number);
            assert_eq!(error.slug(), ProblemCode::Unavailable, "{number:?}");
            assert_eq!(retry(&error).as_deref(), Some("1"), "{number:?}");
        }
        assert_eq!(of(Errno::ACCESS).slug(), ProblemCode::Internal);
        // Wherever in the chain of causes it is.
        let inside = StoreError::Database(Box::new(io::Error::from(Errno::NOSPC)));
        assert_eq!(retry(&failed(&inside)).as_deref(), Some("60"));
        assert_eq!(failed(&StoreError::Busy).slug(), ProblemCode::Internal);
    }

    #[test]
    fn this_machine_has_a_disk() {
        let folder = tempfile::tempdir().unwrap();
        assert!(SystemDisk.free(folder.path()).unwrap() > 0);
        assert!(SystemDisk.free(&folder.path().join("nowhere")).is_err());
    }
}
