//! The storage that deployments use, and its limits.
//!
//! Only what is really stored counts: each content once for each project, in whole disk blocks,
//! however many deployments share it; and each deployment's list of files, whose paths the store
//! has twice.

use crate::project::FileEntry;

/// Files use whole blocks of the disk.
pub const BLOCK: u64 = 4_096;
/// Bytes of a file's row in the store, without its path.
pub const ROW: u64 = 200;

/// Bytes that a content uses on the disk.
#[must_use]
pub const fn content_bytes(size: u64) -> u64 {
    size.div_ceil(BLOCK).saturating_mul(BLOCK)
}

/// Bytes that a file's entry in a deployment uses in the store.
#[must_use]
pub const fn entry_bytes(path: &str) -> u64 {
    (path.len() as u64).saturating_mul(2).saturating_add(ROW)
}

/// The storage that a project takes together with a new deployment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Measured {
    /// With all deployments that are kept now.
    pub with_all: u64,
    /// With only the current deployments.
    pub with_shown: u64,
    /// The storage of its owner's other projects.
    pub others: u64,
}

/// Limits in bytes; `None` for no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoomLimits {
    /// For one project.
    pub project: Option<u64>,
    /// For all projects of one account.
    pub account: Option<u64>,
}

/// Whether a new deployment fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// There is room.
    Fits,
    /// It fits once earlier deployments are removed, so that the project uses no more than this.
    FitsWithin(u64),
    /// It does not fit: the project would exceed its limit.
    ProjectFull {
        /// The least that it would use.
        needed: u64,
        /// The limit.
        limit: u64,
    },
    /// It does not fit: the account would exceed its limit.
    AccountFull {
        /// The least that it would use.
        needed: u64,
        /// The limit.
        limit: u64,
    },
}

impl RoomLimits {
    /// Decides whether a new deployment with this measurement fits.
    #[must_use]
    pub fn judge(self, measured: Measured) -> Verdict {
        let Measured {
            with_all,
            with_shown,
            others,
        } = measured;
        if let Some(limit) = self.project
            && with_shown > limit
        {
            let needed = with_shown;
            return Verdict::ProjectFull { needed, limit };
        }
        let needed = others.saturating_add(with_shown);
        if let Some(limit) = self.account
            && needed > limit
        {
            return Verdict::AccountFull { needed, limit };
        }
        let of_account = self.account.map(|limit| limit.saturating_sub(others));
        let most = self.project.into_iter().chain(of_account).min();
        match most {
            Some(most) if with_all > most => Verdict::FitsWithin(most),
            _ => Verdict::Fits,
        }
    }
}

/// Bytes that the entries of one deployment use, without the contents.
pub fn listing_bytes<'a>(files: impl Iterator<Item = (&'a String, &'a FileEntry)>) -> u64 {
    files.map(|(path, _)| entry_bytes(path)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_takes_whole_blocks_and_its_path_counts_twice() {
        assert_eq!(content_bytes(0), 0);
        assert_eq!(content_bytes(1), 4_096);
        assert_eq!(content_bytes(4_097), 8_192);
        assert_eq!(entry_bytes("index.html"), 220);
        // The most that an archive of 2.9 MB can hold: 20,000 files of one byte with very long
        // paths.
        let path = "a".repeat(4_000);
        let all = 20_000 * (content_bytes(1) + entry_bytes(&path));
        assert_eq!(all / (1024 * 1024), 234);
    }

    #[test]
    fn earlier_deployments_go_before_a_new_one_is_refused() {
        let limits = RoomLimits {
            project: Some(100),
            account: Some(150),
        };
        let judge = |with_all, with_shown, others| {
            limits.judge(Measured {
                with_all,
                with_shown,
                others,
            })
        };
        assert_eq!(judge(100, 60, 50), Verdict::Fits);
        assert_eq!(judge(101, 60, 0), Verdict::FitsWithin(100));
        assert_eq!(judge(100, 60, 70), Verdict::FitsWithin(80));
        let (needed, limit) = (101, 100);
        assert_eq!(judge(120, 101, 0), Verdict::ProjectFull { needed, limit });
        let (needed, limit) = (160, 150);
        assert_eq!(judge(90, 60, 100), Verdict::AccountFull { needed, limit });
        let any = RoomLimits::default();
        let much = Measured {
            with_all: u64::MAX,
            with_shown: u64::MAX,
            others: u64::MAX,
        };
        assert_eq!(any.judge(much), Verdict::Fits);
    }
}
