//! Requests to the bucket. Each has a time limit. After a failure, requests fail at once until the
//! bucket has answered a question of the server's own, which it is asked once per second while
//! somebody needs it: so nobody waits for a bucket that does not answer.

mod outages;

use std::ops::Range;
use std::path::Path as FilePath;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::TryStreamExt as _;
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey};
use object_store::path::Path;
use object_store::prefix::PrefixStore;
use object_store::{
    BackoffConfig, GetOptions, GetRange, MultipartUpload, ObjectStore, ObjectStoreExt as _,
    PutPayload, RetryConfig,
};
use tokio::time::Instant;

use self::outages::{Outages, Passage};
use super::FileError;
use super::pieces::Pieces;
use super::shared::MARKER;
use super::transport::Transport;
use super::upload_memory::UploadMemory;
use crate::config::S3Settings;
use crate::domain::errors::chain;

/// The size of the parts of a large file. S3 refuses parts of less than 5 MiB.
pub(super) const PART: usize = 8 * 1024 * 1024;
/// The time limit for reading a piece of a file.
const READ: Duration = Duration::from_secs(15);
/// The time limit for storing a part of a file, or for joining its parts.
const WRITE: Duration = Duration::from_secs(60);
/// The time limit for a request without content.
const SMALL: Duration = Duration::from_secs(10);
/// The time limit for a list of all objects.
const LIST: Duration = Duration::from_secs(300);
/// The maximum number of characters of an error in the log.
const SHOWN: usize = 300;

/// An S3 bucket, below a prefix.
pub(super) struct Bucket {
    objects: Arc<PrefixStore<AmazonS3>>,
    /// The memory of the files that are being stored.
    memory: UploadMemory,
    outages: Arc<Outages>,
}

impl std::fmt::Debug for Bucket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The library's own output contains keys.
        f.debug_struct("Bucket").finish_non_exhaustive()
    }
}

impl Bucket {
    /// Creates the client of the bucket; nothing is sent.
    pub(super) fn new(settings: &S3Settings) -> Result<Self, FileError> {
        let wrong = |error: object_store::Error| FileError::Bucket(describe(&error));
        let mut builder = AmazonS3Builder::new();
        for (name, value) in &settings.variables {
            // As the library does with variables that it does not know.
            if let Ok(key) = name.to_ascii_lowercase().parse::<AmazonS3ConfigKey>() {
                builder = builder.with_config(key, value.expose());
            }
        }
        let plain = settings
            .endpoint()
            .is_some_and(|url| url.starts_with("http:"));
        let transport = Transport::new(!plain).map_err(|error| {
            FileError::Bucket(format!("TLS cannot be set up: {}", chain(&error)))
        })?;
        let objects = builder
            .with_bucket_name(&settings.bucket)
            .with_allow_http(plain)
            // One request for one object, which every kind of S3 knows.
            .with_disable_bulk_delete(true)
            .with_retry(RetryConfig {
                backoff: BackoffConfig {
                    init_backoff: Duration::from_millis(100),
                    max_backoff: Duration::from_secs(1),
                    base: 2.0,
                },
                max_retries: 2,
                retry_timeout: Duration::from_secs(5),
            })
            .with_http_connector(transport)
            .build()
            .map_err(wrong)?;
        Ok(Self {
            objects: Arc::new(PrefixStore::new(objects, settings.prefix.as_str())),
            memory: UploadMemory::new(),
            outages: Arc::default(),
        })
    }

    /// Returns some bytes of an object, and its length; `None` if it does not exist.
    pub(super) async fn get(
        &self,
        path: &Path,
        range: Range<u64>,
    ) -> Result<Option<(Bytes, u64)>, FileError> {
        let options = GetOptions {
            range: Some(GetRange::Bounded(range)),
            ..GetOptions::default()
        };
        let read = async {
            let found = self.objects.get_opts(path, options).await?;
            let length = found.meta.size;
            Ok((found.bytes().await?, length))
        };
        match self.call(READ, read).await {
            Ok(found) => Ok(Some(found)),
            Err(Failure::NotFound) => Ok(None),
            // RFC 9110 §15.5.17: an object without content has no range.
            Err(Failure::Other(416, _)) => Ok(Some((Bytes::new(), 0))),
            Err(Failure::Other(_, why)) => Err(FileError::Unavailable(why)),
        }
    }

    /// Returns the length of an object; `None` if it does not exist.
    pub(super) async fn length(&self, path: &Path) -> Result<Option<u64>, FileError> {
        match self.call(SMALL, self.objects.head(path)).await {
            Ok(found) => Ok(Some(found.size)),
            Err(Failure::NotFound) => Ok(None),
            Err(failure) => Err(failure.into()),
        }
    }

    /// Stores an object.
    pub(super) async fn put(&self, path: &Path, content: Bytes) -> Result<(), FileError> {
        let put = self.objects.put(path, PutPayload::from(content));
        Ok(self.call(WRITE, put).await.map(drop)?)
    }

    /// Stores an object with the content of the file at `from`, which has `size` bytes: a large one
    /// in parts. If it fails, there is no such object. Little of all files together is in memory.
    pub(super) async fn put_file(
        &self,
        path: &Path,
        from: &FilePath,
        size: u64,
    ) -> Result<(), FileError> {
        let pieces = Pieces::open(from, PART)?;
        if size <= PART as u64 {
            self.put_whole(path, pieces, from).await
        } else {
            self.put_in_parts(path, pieces, from).await
        }
    }

    async fn put_whole(
        &self,
        path: &Path,
        mut pieces: Pieces,
        from: &FilePath,
    ) -> Result<(), FileError> {
        let _reserved = self.memory.reserve(pieces.next_size()).await;
        let content = pieces.next(from).await?;
        self.put(path, content).await
    }

    async fn put_in_parts(
        &self,
        path: &Path,
        pieces: Pieces,
        from: &FilePath,
    ) -> Result<(), FileError> {
        let begun = self.call(SMALL, self.objects.put_multipart(path)).await;
        let mut upload = begun?;
        let sent = self.send_parts(&mut *upload, pieces, from).await;
        if sent.is_err() {
            // If this fails, a rule of the bucket removes the parts.
            let _ = tokio::time::timeout(SMALL, upload.abort()).await;
        }
        sent
    }

    async fn send_parts(
        &self,
        upload: &mut dyn MultipartUpload,
        mut pieces: Pieces,
        from: &FilePath,
    ) -> Result<(), FileError> {
        while pieces.next_size() > 0 {
            let _reserved = self.memory.reserve(pieces.next_size()).await;
            let part = pieces.next(from).await?;
            if part.is_empty() {
                break;
            }
            let sent = upload.put_part(PutPayload::from(part));
            self.call(WRITE, sent).await?;
        }
        Ok(self.call(WRITE, upload.complete()).await.map(drop)?)
    }

    /// Removes an object, if it exists.
    pub(super) async fn remove(&self, path: &Path) -> Result<(), FileError> {
        match self.call(SMALL, self.objects.delete(path)).await {
            Ok(()) | Err(Failure::NotFound) => Ok(()),
            Err(failure) => Err(failure.into()),
        }
    }

    /// Returns the paths of all objects.
    pub(super) async fn list(&self) -> Result<Vec<Path>, FileError> {
        let listed = self.objects.list(None).map_ok(|object| object.location);
        Ok(self.call(LIST, listed.try_collect()).await?)
    }

    /// Stores an object and reads it back, when the server starts.
    ///
    /// # Errors
    /// [`FileError::Bucket`] if the bucket answers that it does not accept it;
    /// [`FileError::Unavailable`] if it does not answer.
    pub(super) async fn prove(&self, path: &Path, content: &'static [u8]) -> Result<(), FileError> {
        let content = Bytes::from_static(content);
        let put = self.objects.put(path, PutPayload::from(content.clone()));
        self.call(SMALL, put).await.map_err(Failure::at_start)?;
        let read = async { self.objects.get(path).await?.bytes().await };
        let read = self.call(SMALL, read).await.map_err(Failure::at_start)?;
        if read == content {
            Ok(())
        } else {
            Err(FileError::Bucket(
                "it does not return what was stored".to_owned(),
            ))
        }
    }

    /// Whether the last request failed.
    pub(super) fn is_out_of_reach(&self) -> bool {
        self.outages.is_lasting()
    }

    /// Sends a request, unless the bucket is out of reach.
    async fn call<T>(
        &self,
        limit: Duration,
        request: impl Future<Output = object_store::Result<T>>,
    ) -> Result<T, Failure> {
        match self.outages.pass(Instant::now(), SMALL) {
            Passage::Free => {}
            Passage::Closed(why) => return Err(Failure::Other(0, why)),
            Passage::AfterQuestion => self.ask().await?,
        }
        let answer = within(limit, request).await;
        self.outages.note(Instant::now(), answer.as_ref().err());
        answer
    }

    /// Asks whether the bucket answers again. The question has its own task, because whoever waits
    /// for it may leave, such as a deploy of which another file has just failed.
    async fn ask(&self) -> Result<(), Failure> {
        let (objects, outages) = (Arc::clone(&self.objects), Arc::clone(&self.outages));
        let question = tokio::spawn(async move {
            let answer = within(SMALL, objects.head(&Path::from(MARKER))).await;
            outages.note(Instant::now(), answer.as_ref().err());
            match answer {
                Ok(_) | Err(Failure::NotFound) => Ok(()),
                Err(failure) => Err(failure),
            }
        });
        match question.await {
            Ok(answer) => answer,
            Err(error) => Err(Failure::Other(0, error.to_string())),
        }
    }
}

/// Sends a request to the bucket, and gives it up after `limit`.
async fn within<T>(
    limit: Duration,
    request: impl Future<Output = object_store::Result<T>>,
) -> Result<T, Failure> {
    match tokio::time::timeout(limit, request).await {
        Ok(answer) => answer.map_err(Failure::from),
        Err(_) => {
            let why = format!("no answer within {} s", limit.as_secs());
            Err(Failure::Other(0, why))
        }
    }
}

/// Why a request failed.
#[derive(Debug)]
enum Failure {
    /// There is no such object, or no such bucket.
    NotFound,
    /// The status, or 0 if there was no response; and why, for the log.
    Other(u16, String),
}

impl Failure {
    /// The error when the server starts: what the bucket refuses now, it refuses later, too.
    fn at_start(self) -> FileError {
        match self {
            Self::NotFound => FileError::Bucket("there is no such bucket".to_owned()),
            Self::Other(429 | 0, why) => FileError::Unavailable(why),
            Self::Other(status, why) if status < 500 => FileError::Bucket(why),
            Self::Other(_, why) => FileError::Unavailable(why),
        }
    }
}

impl From<Failure> for FileError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::NotFound => Self::Unavailable("there is no such bucket".to_owned()),
            Failure::Other(_, why) => Self::Unavailable(why),
        }
    }
}

impl From<object_store::Error> for Failure {
    fn from(error: object_store::Error) -> Self {
        match error {
            object_store::Error::NotFound { .. } => Self::NotFound,
            error => Self::Other(status(&error), describe(&error)),
        }
    }
}

/// Returns the status of the response, or 0. The library does not return it in another way.
fn status(error: &object_store::Error) -> u16 {
    let text = error.to_string();
    let after = text.split_once("status code: ").map(|(_, after)| after);
    after
        .and_then(|after| after.get(..3)?.parse().ok())
        .unwrap_or(0)
}

/// Describes an error for the log. The bucket's own response may repeat a request with its
/// credentials, so only its code and its message are shown.
fn describe(error: &object_store::Error) -> String {
    let text = error.to_string();
    let element = |name: &str| {
        let (_, after) = text.split_once(&format!("<{name}>"))?;
        Some(after.split_once("</")?.0)
    };
    let said = match (element("Code"), status(error)) {
        (Some(code), status) => {
            let message = element("Message").unwrap_or_default();
            format!("status {status}, {code}: {message}")
        }
        (None, 0) if !text.contains('<') => chain(error),
        (None, status) => format!("status {status}"),
    };
    said.chars().take(SHOWN).collect()
}

#[cfg(test)]
mod tests;
