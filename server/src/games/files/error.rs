//! Why files could not be written, read or swept. Several callers may wait for one file, so errors
//! can be cloned.

use std::sync::Arc;
use std::time::Duration;

use axum::http::header;
use platform_protocol::problem::ProblemCode;

use crate::domain::errors::chain;
use crate::platform::disk;
use crate::store::StoreError;
use crate::web::api_error::ApiError;
use crate::web::limiter::retry_after;

/// When to ask again for a file that is out of reach.
const COME_AGAIN: Duration = Duration::from_secs(5);

/// Why a file could not be written or read.
#[derive(Clone, Debug, thiserror::Error)]
pub enum FileError {
    /// The setting is valid, but this program was built without such a store.
    #[error(
        "this program was built without {0}; use the program of a release, or build it with \
         `cargo build --release --bin platform-server --features platform-server/cluster`"
    )]
    Unsupported(&'static str),
    /// The bucket cannot be used as the settings say.
    #[error("the bucket that PLATFORM_FILES_URL names cannot be used: {0}")]
    Bucket(String),
    /// A name that is not a SHA-256 in lower-case hex.
    #[error("a file is named by its SHA-256 in lower-case hex")]
    Name,
    /// There is no such file.
    #[error("there is no file {0}")]
    Missing(String),
    /// The directory could not be created.
    #[error("{path} could not be made; set PLATFORM_FILES_URL or PLATFORM_DATA to another folder")]
    Directory {
        /// The directory.
        path: String,
        /// The cause.
        source: Arc<std::io::Error>,
    },
    /// A file to be stored could not be read.
    #[error("{path} could not be read")]
    Read {
        /// The file.
        path: String,
        /// The cause.
        source: Arc<std::io::Error>,
    },
    /// The file store failed.
    #[error("the file store failed")]
    Backend(#[source] Arc<object_store::Error>),
    /// A file of the cache could not be written or read.
    #[error("the cache of deployed files failed")]
    Cache(#[source] Arc<std::io::Error>),
    /// The bucket does not answer, or answers with an error.
    #[error("the bucket is not available: {0}")]
    Unavailable(String),
    /// The bucket has no file of this name, although a deployment refers to it.
    #[error("the bucket has no file {0}, which a deployment has")]
    Absent(String),
    /// The bucket has other bytes under this name.
    #[error("the bucket's file {0} is damaged: its SHA-256 is another one")]
    Damaged(String),
    /// A sweep is removing a file that is to be stored.
    #[error("a file that is to be stored is just being removed")]
    BeingRemoved,
    /// The store could not record that files are used.
    #[error("the files could not be recorded")]
    Record(#[source] Arc<StoreError>),
}

impl FileError {
    /// Creates an error of the file store.
    pub(super) fn backend(error: object_store::Error) -> Self {
        Self::Backend(Arc::new(error))
    }

    /// Creates an error of this machine's disk.
    pub(super) fn of_disk(error: std::io::Error) -> Self {
        Self::Cache(Arc::new(error))
    }

    /// Returns the error for a client. `what` follows from it, as the end of a sentence.
    #[must_use]
    pub fn refusal(&self, what: &str) -> ApiError {
        match self {
            // The log had it when the bucket failed, or the file was fetched.
            Self::Unavailable(_) | Self::Absent(_) | Self::Damaged(_) | Self::BeingRemoved => {
                out_of_reach(what)
            }
            Self::Cache(_) | Self::Record(_) => {
                tracing::error!(error = chain(self), "deployed files cannot be used");
                out_of_reach(what)
            }
            error => disk::failed(error),
        }
    }
}

fn out_of_reach(what: &str) -> ApiError {
    ApiError::new(ProblemCode::Unavailable)
        .with_detail(format!(
            "The platform cannot reach the files of games just now, {what}."
        ))
        .with_header(header::RETRY_AFTER, retry_after(COME_AGAIN))
}

/// Why files were not swept.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// The file store failed.
    #[error("the files could not be swept")]
    Files(#[from] FileError),
    /// The store failed.
    #[error("the files that are referred to could not be read")]
    Store(#[from] StoreError),
}
