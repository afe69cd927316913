//! Sends an archive while it is packed. The whole archive is never in memory or on the disk.

use std::io::{self, BufWriter, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http::{Request, StatusCode, header};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;
use indicatif::{ProgressBar, ProgressStyle};
use tokio::sync::mpsc;

use crate::archive::Folder;
use crate::client::answer::Answer;
use crate::client::{Body, BoxError, Http};
use crate::clock::pause;
use crate::failure::Failure;
use crate::secret::Secret;
use crate::session::{Session, signed};

/// The size of one piece.
const PIECE_BYTES: usize = 64 * 1024;
/// How many pieces may wait for the network.
const PIECES: usize = 8;
/// The platform unpacks and stores everything before it responds. So the time limit is multiplied
/// by this.
const PATIENCE: u32 = 4;

/// Sends a folder's files. Repeats it once with a new token if the first is refused.
///
/// # Errors
/// A file cannot be read, or there is no response, or a bad one.
pub(super) async fn run(
    session: &Session,
    address: &str,
    folder: Folder,
) -> Result<Answer, Failure> {
    let folder = Arc::new(folder);
    let token = session.token().await?;
    let answer = send(session.http(), address, &folder, &token).await?;
    if answer.status != StatusCode::UNAUTHORIZED || session.is_given() {
        return session.done(answer);
    }
    let token = session.another_than(&token).await?;
    send(session.http(), address, &folder, &token).await?.done()
}

async fn send(
    http: &Http,
    address: &str,
    folder: &Arc<Folder>,
    token: &Secret,
) -> Result<Answer, Failure> {
    let bar = progress_bar(folder.bytes());
    let sent = Arc::new(AtomicU64::new(0));
    let (broken, body) = pack(Arc::clone(folder), bar.clone(), Arc::clone(&sent))?;
    let request = Request::put(address).header(header::CONTENT_TYPE, "application/gzip");
    let request = signed((request, body), token)?;
    let exchange = async {
        let response = http.open_in_any_time(request).await?;
        let reading = tokio::time::timeout(http.timeout(), http.read(response));
        reading
            .await
            .unwrap_or_else(|_| Err(http.no_answer_in_time()))
    };
    let outcome = tokio::select! {
        outcome = exchange => outcome,
        () = stalled(http.timeout() * PATIENCE, &sent) => Err(http.unavailable(format!(
            "The upload to {} makes no progress: try again.",
            http.origin()
        ))),
    };
    bar.finish_and_clear();
    outcome.map_err(|failure| match broken.get() {
        Some(error) => Failure::failed(format!("The files cannot be packed: {error}.")),
        None => failure,
    })
}

/// Completes when nothing was sent for a while.
async fn stalled(patience: Duration, sent: &AtomicU64) {
    let mut before = None;
    loop {
        let now = sent.load(Ordering::Relaxed);
        if before == Some(now) {
            return;
        }
        before = Some(now);
        pause(patience).await;
    }
}

/// Packs on a separate thread; the body yields the pieces at the speed of the network. A packing
/// error, which breaks off the request, is reported separately.
fn pack(
    folder: Arc<Folder>,
    bar: ProgressBar,
    sent: Arc<AtomicU64>,
) -> Result<(Arc<OnceLock<String>>, Body), Failure> {
    let (pieces, taken) = mpsc::channel::<Result<Bytes, BoxError>>(PIECES);
    let broken = Arc::new(OnceLock::new());
    let tell = Arc::clone(&broken);
    let packing = std::thread::Builder::new().spawn(move || {
        let sink = BufWriter::with_capacity(PIECE_BYTES, Pieces(pieces.clone()));
        match folder.write(sink, |count| bar.inc(count)) {
            // The receiver is gone, and has reported why.
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                let _ = tell.set(error.to_string());
                // An archive that breaks off must not look complete.
                let _ = pieces.blocking_send(Err(error.into()));
            }
            _ => {}
        }
    });
    packing.map_err(|error| Failure::failed(format!("The files cannot be packed: {error}.")))?;
    let frames = stream::unfold((taken, sent), |(mut taken, sent)| async move {
        let piece = taken.recv().await?;
        if let Ok(piece) = &piece {
            sent.fetch_add(piece.len() as u64, Ordering::Relaxed);
        }
        Some((piece.map(Frame::data), (taken, sent)))
    });
    Ok((broken, StreamBody::new(frames).boxed_unsync()))
}

/// The channel that the archive is written to.
struct Pieces(mpsc::Sender<Result<Bytes, BoxError>>);

impl Write for Pieces {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let piece = Bytes::copy_from_slice(buffer);
        self.0
            .blocking_send(Ok(piece))
            .map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
        Ok(buffer.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A progress bar on standard error, if that is a terminal.
fn progress_bar(bytes: u64) -> ProgressBar {
    let bar = ProgressBar::new(bytes);
    let template = "{bar:30} {decimal_bytes:>9} of {decimal_total_bytes}, {eta} left";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}
