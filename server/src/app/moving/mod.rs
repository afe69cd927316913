//! Moves a platform from one back end into another: everything in its store, and its deployed files.
//!
//! All of it can be killed at any moment and started again: rows are added in the order of their
//! keys, and the target remembers the last one. At the end, every row and every file of the target
//! is read again and compared with the source. Until then no server opens the target.
//!
//! | module | contents |
//! |---|---|
//! | `rows` | copies and compares rows |
//! | `files` | copies and compares deployed files |
//! | `progress` | says what is done, and how long the rest takes |

mod files;
mod progress;
mod rows;

use std::path::Path;

pub use self::files::{BadFile, list as list_files};
use self::progress::Progress;
pub use self::progress::Teller;
use crate::games::files::FileError;
use crate::games::files::copies::BucketCopies;
use crate::store::StoreError;
use crate::store::transfer::{BeginError, Begun, RowSource, RowTarget};

/// How many bad files an error names.
const NAMED: usize = 10;

/// Deployed files that are moved, too.
#[derive(Debug)]
pub struct FilesMove<'a> {
    /// Where they are.
    pub folder: &'a Path,
    /// Where they shall be.
    pub bucket: &'a BucketCopies,
    /// Whether those that are damaged or missing are left out.
    pub leave_bad_out: bool,
}

/// What was moved.
#[derive(Debug, Default)]
pub struct Done {
    /// The number of rows.
    pub rows: u64,
    /// The number of deployed files.
    pub files: usize,
    /// Deployed files that were left out.
    pub left_out: Vec<BadFile>,
}

/// Why a platform could not be moved; a line for the operator.
#[derive(Debug, thiserror::Error)]
pub enum MoveError {
    /// The target cannot take it.
    #[error(transparent)]
    Begin(#[from] BeginError),
    /// One of the stores failed.
    #[error("the rows could not be copied; run the same command again, which goes on from here")]
    Store(#[from] StoreError),
    /// The bucket or the folder failed.
    #[error(
        "the deployed files could not be copied; run the same command again, which goes on from \
         here"
    )]
    Files(#[from] FileError),
    /// The bucket belongs to another platform.
    #[error(
        "the bucket has {0} deployed files under this prefix that this platform does not have, so \
         another platform uses it, and each would remove the other's files; choose another prefix"
    )]
    ForeignFiles(usize),
    /// Files are not what their names say.
    #[error(
        "deployed files are damaged or missing: {}; put the right files there, for example from a \
         backup, or leave them out with --leave-damaged-files-out, and run the command again",
        listed(.0)
    )]
    BadFiles(Vec<BadFile>),
    /// The bucket returns other bytes than were stored.
    #[error("the bucket does not return what was stored: {}; look into its log", listed(.0))]
    BadCopies(Vec<BadFile>),
    /// The target has other rows than the source.
    #[error(
        "{part} differ: the source has {source_rows} rows, the target {target_rows}, or their \
         content is another; the source was changed during the move, or something else writes into \
         the target. Stop both, and move into another empty database"
    )]
    Differs {
        /// The table.
        part: &'static str,
        /// The number of rows in the source.
        source_rows: u64,
        /// The number of rows in the target.
        target_rows: u64,
    },
}

/// Returns the first of these files as a list for people.
fn listed(files: &[BadFile]) -> String {
    let mut names: Vec<String> = files.iter().take(NAMED).map(ToString::to_string).collect();
    if files.len() > NAMED {
        names.push(format!("and {} more", files.len() - NAMED));
    }
    names.join(", ")
}

/// Moves everything from `source` to `target`, or goes on with it.
///
/// # Errors
/// [`MoveError`]
pub async fn run(
    source: &dyn RowSource,
    target: &dyn RowTarget,
    moved_files: Option<FilesMove<'_>>,
    teller: &dyn Teller,
) -> Result<Done, MoveError> {
    let fingerprint = source.fingerprint().await?;
    let mut done = Done::default();
    if target.begin(&fingerprint).await? == Begun::Compared {
        target.end().await?;
        return Ok(done);
    }
    if let Some(moved) = moved_files {
        let listed = files::list(source).await?;
        let copied = files::copy(&listed, &moved, teller).await?;
        (done.files, done.left_out) = (copied.files, copied.left_out);
    }
    let total = rows::count(source).await?;
    let mut progress = Progress::new("copying rows", total, teller);
    rows::copy(source, target, &mut progress).await?;
    target.complete().await?;
    let progress = Progress::new("comparing rows", total, teller);
    done.rows = rows::compare(source, target, &progress).await?;
    target.end().await?;
    Ok(done)
}
