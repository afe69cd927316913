//! Archives that are being uploaded: their number, their folders, and their time limits.
//!
//! The body is written to the disk in pieces, as fast as the disk allows, so that it does not need
//! more memory.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, header};
use bytes::Bytes;
use http_body_util::BodyExt as _;
use platform_checks::limits::MAX_ARCHIVE_BYTES;
use platform_protocol::problem::ProblemCode;
use tokio::sync::{Semaphore, SemaphorePermit, mpsc};
use uuid::Uuid;

use super::spool::{Room, Spool, Spooled};
use crate::platform::disk;
use crate::store::make_private_directory;
use crate::web::api_error::ApiError;
use crate::web::fair_shares::{Share, Shares};

/// The number of archives that are unpacked concurrently.
const UNPACKED_AT_ONCE: usize = 4;
/// The maximum number of uploads of one player, so that nobody uses up all slots by being slow.
const AT_ONCE_OF_ONE: usize = 2;
/// When a refused client may try again, in seconds.
const COME_AGAIN: HeaderValue = HeaderValue::from_static("10");
/// The number of pieces that wait to be written.
const WAITING: usize = 4;
/// How long the rest of a rejected archive is still read, and how much of it.
const LINGER: (Duration, usize) = (Duration::from_secs(5), 64 * 1024 * 1024);

/// The uploads, and the folder in which they are unpacked.
#[derive(Debug)]
pub struct UploadQueue {
    folder: PathBuf,
    spool: Spool,
    turns: Semaphore,
    players: Shares<Uuid>,
}

impl UploadQueue {
    /// Creates the queue with `folder`, which is emptied: files of an earlier process are useless.
    /// This function blocks.
    ///
    /// # Errors
    /// The folder could not be created.
    pub fn new(folder: PathBuf) -> std::io::Result<Self> {
        match std::fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => make_private_directory(&folder)?,
        }
        Ok(Self {
            folder,
            spool: Spool::new(Room::default()),
            turns: Semaphore::new(UNPACKED_AT_ONCE),
            players: Shares::default(),
        })
    }

    /// Returns a slot for another archive of `player`, and a folder for it.
    ///
    /// # Errors
    /// `too-many-requests` if the player has reached the limit; `unavailable` if there is no
    /// capacity, and no upload is slow enough to be cancelled; `internal`.
    pub async fn admit(&self, player: Uuid) -> Result<Upload, ApiError> {
        let share = self.players.take(player, AT_ONCE_OF_ONE).ok_or_else(|| {
            ApiError::new(ProblemCode::TooManyRequests)
                .with_detail(
                    "You already have a deploy in progress. Please wait until it has finished.",
                )
                .with_header(header::RETRY_AFTER, COME_AGAIN)
        })?;
        let spooled = self
            .spool
            .enter()
            .ok_or_else(|| no_room("Too many games are being deployed. Please try again soon."))?;
        let folder = self.folder().await;
        Ok(Upload {
            folder: folder.map_err(|error| disk::failed(&error))?,
            spooled,
            _share: share,
        })
    }
}

fn no_room(detail: &'static str) -> ApiError {
    ApiError::new(ProblemCode::Unavailable)
        .with_detail(detail)
        .with_header(header::RETRY_AFTER, COME_AGAIN)
}

impl UploadQueue {
    /// Creates a folder for the files of one deployment.
    pub(super) async fn folder(&self) -> std::io::Result<Arc<Folder>> {
        let parent = self.folder.clone();
        let made = tokio::task::spawn_blocking(move || {
            let folder = tempfile::tempdir_in(parent)?;
            std::fs::create_dir(folder.path().join(FILES))?;
            Ok(Arc::new(Folder(Some(folder))))
        });
        made.await
            .unwrap_or_else(|error| Err(std::io::Error::other(error)))
    }

    /// Waits until a complete archive may be unpacked and stored. During its turn, nothing depends
    /// on a client.
    pub(super) async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        // It is never closed.
        self.turns.acquire().await.ok()
    }
}

/// The folder for the files of a deployment, next to its archive.
const FILES: &str = "files";

/// The limits for receiving an archive.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The maximum number of bytes of the archive.
    pub bytes: u64,
    /// How long `least` bytes of it may take to arrive.
    pub quiet: Duration,
    /// The minimum number of bytes in that time, or the rest: otherwise a client that sends one
    /// byte at a time would hold a slot for an hour.
    pub least: u64,
    /// How long the whole archive may take.
    pub whole: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bytes: MAX_ARCHIVE_BYTES,
            quiet: Duration::from_secs(30),
            least: 64 * 1024,
            whole: Duration::from_secs(3_600),
        }
    }
}

/// An upload with its slot and its folder. Dropping it removes the folder once nobody writes to it
/// any more.
#[derive(Debug)]
#[must_use = "dropping it removes the archive"]
pub struct Upload {
    folder: Arc<Folder>,
    spooled: Spooled,
    _share: Share<Uuid>,
}

impl Upload {
    /// Returns the path of the archive.
    #[must_use]
    pub fn archive(&self) -> PathBuf {
        self.folder.path().join("archive.tar.gz")
    }

    /// Keeps the folder as long as the returned value exists.
    pub(super) fn hold(&self) -> Arc<Folder> {
        Arc::clone(&self.folder)
    }

    /// Writes the body into the archive's file.
    ///
    /// # Errors
    /// 408, `payload-too-large`, `invalid-request` if the connection breaks, `unavailable` if it is
    /// cancelled in favour of faster uploads or the disk is full, `internal`.
    pub async fn receive(&self, body: &mut Body, limits: Limits) -> Result<(), ApiError> {
        let (pieces, waiting) = mpsc::channel::<Bytes>(WAITING);
        let (path, held) = (self.archive(), self.hold());
        let writer = tokio::task::spawn_blocking(move || {
            let written = write(&path, waiting);
            drop(held);
            written
        });
        let sent = tokio::select! {
            biased;
            () = self.spooled.given_up() => Err(no_room(
                "Too many games are being deployed, so the slowest upload, yours, was stopped. \
                 Please try again soon.",
            )),
            sent = send(body, limits, pieces, &self.spooled) => sent,
        };
        if sent.is_ok() {
            self.spooled.whole();
        }
        let written = writer
            .await
            .unwrap_or_else(|error| Err(std::io::Error::other(error)));
        sent?;
        written.map_err(|error| disk::failed(&error))
    }

    /// Removes the folder now.
    pub async fn remove(self) {
        Folder::remove(self.folder).await;
    }
}

/// Sends the pieces of the body to the writer, within the time limits. Dropping `pieces` ends the
/// writer.
async fn send(
    body: &mut Body,
    limits: Limits,
    pieces: mpsc::Sender<Bytes>,
    spooled: &Spooled,
) -> Result<(), ApiError> {
    let all = send_all(body, limits, pieces, spooled);
    let all = tokio::time::timeout(limits.whole, all);
    all.await
        .unwrap_or_else(|_| Err(ApiError::request_timeout()))
}

async fn send_all(
    body: &mut Body,
    limits: Limits,
    pieces: mpsc::Sender<Bytes>,
    spooled: &Spooled,
) -> Result<(), ApiError> {
    let mut left = limits.bytes;
    loop {
        let some = send_some(body, &mut left, limits, (&pieces, spooled));
        let ended = tokio::time::timeout(limits.quiet, some).await;
        if ended.map_err(|_| ApiError::request_timeout())?? {
            return Ok(());
        }
    }
}

/// Sends the part of the body that must arrive within one period. Returns whether that was the
/// rest.
async fn send_some(
    body: &mut Body,
    left: &mut u64,
    limits: Limits,
    (pieces, spooled): (&mpsc::Sender<Bytes>, &Spooled),
) -> Result<bool, ApiError> {
    let mut arrived = 0;
    while arrived < limits.least {
        let Some(frame) = body.frame().await else {
            return Ok(true);
        };
        let frame = frame.map_err(|_| {
            ApiError::new(ProblemCode::InvalidRequest).with_detail("The request was cut off.")
        })?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        let length = data.len() as u64;
        *left = left
            .checked_sub(length)
            .ok_or_else(|| too_large(limits.bytes))?;
        arrived += length;
        spooled.grow(length);
        if pieces.send(data).await.is_err() {
            // The writer has failed, and returns its own error.
            return Ok(true);
        }
    }
    Ok(false)
}

/// Writes the pieces until there are no more. This function blocks.
fn write(path: &Path, mut pieces: mpsc::Receiver<Bytes>) -> std::io::Result<()> {
    use std::io::Write as _;
    let mut file = std::fs::File::create_new(path)?;
    while let Some(piece) = pieces.blocking_recv() {
        file.write_all(&piece)?;
    }
    Ok(())
}

/// Returns the error for an archive that is larger than `bytes`.
#[must_use]
pub(super) fn too_large(bytes: u64) -> ApiError {
    ApiError::new(ProblemCode::PayloadTooLarge).with_detail(format!(
        "An archive may have at most {} MiB.",
        bytes / (1024 * 1024)
    ))
}

/// Reads a little more of a rejected archive and discards it. If the connection were closed at
/// once, many clients that are still writing would see a reset, and never the response (RFC 9112
/// §9.6).
pub fn linger(mut body: Body) {
    let (time, mut left) = LINGER;
    tokio::spawn(tokio::time::timeout(time, async move {
        while let Some(Ok(frame)) = body.frame().await {
            let length = frame.data_ref().map_or(0, Bytes::len);
            let Some(rest) = left.checked_sub(length) else {
                return;
            };
            left = rest;
        }
    }));
}

/// A folder that is removed with its last owner, outside of the threads that handle requests. If
/// this fails, it is removed at the next start.
#[derive(Debug)]
pub(super) struct Folder(Option<tempfile::TempDir>);

impl Folder {
    /// Returns an empty folder in which files are staged.
    pub(super) fn files(&self) -> PathBuf {
        self.path().join(FILES)
    }

    /// Removes it now, unless it has another owner.
    pub(super) async fn remove(self: Arc<Self>) {
        let removed = match Arc::into_inner(self).and_then(|mut folder| folder.0.take()) {
            Some(folder) => tokio::task::spawn_blocking(move || folder.close()).await,
            None => return,
        };
        if let Ok(Err(error)) = removed {
            tracing::warn!(%error, "staged files could not be removed");
        }
    }

    fn path(&self) -> &Path {
        // Only the last owner takes it.
        self.0
            .as_ref()
            .map_or(Path::new(""), tempfile::TempDir::path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let (Some(folder), Ok(runtime)) = (self.0.take(), tokio::runtime::Handle::try_current())
        {
            runtime.spawn_blocking(move || drop(folder));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::stream;

    const LIMITS: Limits = Limits {
        bytes: 100,
        quiet: Duration::from_secs(30),
        least: 1,
        whole: Duration::from_secs(600),
    };
    const PLAYER: Uuid = Uuid::nil();

    /// A body of `pieces` pieces of ten bytes, one every `pause`; if it `stays`, it then stalls
    /// without an end.
    fn body(pieces: u32, pause: Duration, stays: bool) -> Body {
        let ticks = tokio::time::interval(pause);
        let stream = stream::unfold((ticks, pieces), move |(mut ticks, left)| async move {
            ticks.tick().await;
            if left == 0 && stays {
                std::future::pending::<()>().await;
            }
            let piece = Ok::<_, std::io::Error>(Bytes::from_static(&[7; 10]));
            Some((piece, (ticks, left.checked_sub(1)?)))
        });
        Body::from_stream(stream)
    }

    fn deploys() -> (tempfile::TempDir, UploadQueue) {
        let directory = tempfile::tempdir().unwrap();
        let deploys = UploadQueue::new(directory.path().join("uploads")).unwrap();
        (directory, deploys)
    }

    fn left_over(deploys: &UploadQueue) -> usize {
        std::fs::read_dir(&deploys.folder).unwrap().count()
    }

    /// Returns how many bytes of a body arrive in time.
    async fn arrived(body: Body) -> Result<usize, ApiError> {
        arrived_within(body, LIMITS).await
    }

    async fn arrived_within(mut body: Body, limits: Limits) -> Result<usize, ApiError> {
        let (pieces, mut waiting) = mpsc::channel::<Bytes>(WAITING);
        let counting = async {
            let mut count = 0;
            while let Some(piece) = waiting.recv().await {
                count += piece.len();
            }
            count
        };
        let spooled = Spool::new(Room::default()).enter().unwrap();
        let sending = send(&mut body, limits, pieces, &spooled);
        let (sent, count) = tokio::join!(sending, counting);
        sent.map(|()| count)
    }

    /// Receives a body, and asserts that nothing is left behind.
    async fn received(mut body: Body) -> Result<u64, ApiError> {
        let (_directory, deploys) = deploys();
        let incoming = deploys.admit(PLAYER).await.unwrap();
        let received = incoming.receive(&mut body, LIMITS).await;
        let length = received.map(|()| std::fs::metadata(incoming.archive()).unwrap().len());
        incoming.remove().await;
        assert_eq!(left_over(&deploys), 0);
        length
    }

    #[tokio::test(start_paused = true)]
    async fn an_archive_that_flows_may_take_its_time() {
        let slow = body(10, Duration::from_secs(25), false);
        assert_eq!(arrived(slow).await.unwrap(), 100);
    }

    #[tokio::test(start_paused = true)]
    async fn an_archive_that_dribbles_is_given_up() {
        let limits = Limits {
            least: 20,
            ..LIMITS
        };
        let steady = body(10, Duration::from_secs(14), false);
        assert_eq!(arrived_within(steady, limits).await.unwrap(), 100);
        let dribbling = body(10, Duration::from_secs(20), false);
        let refusal = arrived_within(dribbling, limits).await.unwrap_err();
        assert_eq!(refusal.status(), 408);
    }

    #[tokio::test(start_paused = true)]
    async fn an_archive_that_stops_or_never_ends_is_given_up() {
        for slow in [
            body(3, Duration::from_secs(1), true),
            body(3, Duration::from_secs(31), false),
        ] {
            assert_eq!(arrived(slow).await.unwrap_err().status(), 408);
        }
        // Every piece arrives in time, but there is no end.
        let drops = stream::unfold(
            tokio::time::interval(Duration::from_secs(29)),
            async |mut ticks| {
                ticks.tick().await;
                Some((Ok::<_, std::io::Error>(Bytes::from_static(b"x")), ticks))
            },
        );
        let refusal = arrived(Body::from_stream(drops)).await.unwrap_err();
        assert_eq!(refusal.status(), 408);
    }

    #[tokio::test]
    async fn an_archive_is_written_whole_or_not_at_all() {
        let pieces = |count| {
            let piece = |_| Ok::<_, std::io::Error>(Bytes::from_static(&[7; 10]));
            Body::from_stream(stream::iter((0..count).map(piece)))
        };
        assert_eq!(received(pieces(10)).await.unwrap(), 100);
        let large = received(pieces(11)).await.unwrap_err();
        assert_eq!(large.slug(), ProblemCode::PayloadTooLarge);
        let broken = stream::iter([Ok(Bytes::from_static(b"x")), Err("gone")]);
        let broken = received(Body::from_stream(broken)).await.unwrap_err();
        assert_eq!(broken.slug(), ProblemCode::InvalidRequest);
    }

    #[tokio::test]
    async fn who_goes_away_leaves_nothing_behind() {
        let (_directory, deploys) = deploys();
        let incoming = deploys.admit(PLAYER).await.unwrap();
        let mut body = Body::from_stream(stream::pending::<Result<Bytes, std::io::Error>>());
        let receiving = incoming.receive(&mut body, LIMITS);
        let receiving = tokio::time::timeout(Duration::from_millis(1), receiving).await;
        assert!(receiving.is_err(), "the body never ends");
        assert_eq!(left_over(&deploys), 1);
        drop(incoming);
        while left_over(&deploys) > 0 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn places_are_few_and_given_back() {
        let (_directory, deploys) = deploys();
        let mut held = Vec::new();
        for _ in 0..AT_ONCE_OF_ONE {
            held.push(deploys.admit(PLAYER).await.unwrap());
        }
        let refusal = deploys.admit(PLAYER).await.unwrap_err();
        assert_eq!(refusal.slug(), ProblemCode::TooManyRequests);
        held.pop();
        held.push(deploys.admit(PLAYER).await.unwrap());
        let most = u128::try_from(Room::default().arriving).unwrap();
        for other in (1..most).take_while(|other| *other < most - 1) {
            held.push(deploys.admit(Uuid::from_u128(other)).await.unwrap());
        }
        let late = deploys.admit(Uuid::max()).await.unwrap_err();
        assert_eq!(late.slug(), ProblemCode::Unavailable);
        held.clear();
        drop(deploys.admit(Uuid::max()).await.unwrap());
        assert!(deploys.players.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn an_upload_that_gives_way_is_told_so() {
        let (_directory, deploys) = deploys();
        let incoming = deploys.admit(PLAYER).await.unwrap();
        let mut body = Body::from_stream(stream::pending::<Result<Bytes, std::io::Error>>());
        let most = u128::try_from(Room::default().arriving).unwrap();
        let mut others = Vec::new();
        let crowd = async {
            tokio::time::advance(Duration::from_secs(10)).await;
            for other in 1..=most {
                others.push(deploys.admit(Uuid::from_u128(other)).await.unwrap());
            }
        };
        let (received, ()) = tokio::join!(incoming.receive(&mut body, LIMITS), crowd);
        let refusal = received.unwrap_err();
        assert_eq!(refusal.slug(), ProblemCode::Unavailable);
        assert!(refusal.detail().contains("slowest"), "{}", refusal.detail());
    }
}
