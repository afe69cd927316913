//! Reloads the pages of a folder when one of its files changes.
//!
//! The folder is looked through again and again, which works on every file system, also on those of
//! containers and networks, and leaves out what a deploy leaves out. A page has a WebSocket open:
//! browsers allow few other connections to one address, and a tab for each test player would use
//! them up.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use platform_serving::websocket::{is_websocket, upgrade};
use tokio::sync::watch;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;
use walkdir::WalkDir;

use super::problem::respond;
use crate::archive::is_deployed;
use crate::client::{Body, empty};
use crate::clock::{Stopwatch, pause};

/// The script of a page.
const SCRIPT: &str = include_str!("reload.js");
const SCRIPT_PATH: &str = "/__platform/dev/reload.js";
const CHANGES_PATH: &str = "/__platform/dev/changes";
/// The pause between two looks at the folder.
const LOOK: Duration = Duration::from_millis(300);
/// The pause is so many times longer than a look, at least: a large folder must not keep a processor
/// busy.
const SHARE: u32 = 40;

/// The number of changes so far.
pub(super) struct Reload(watch::Sender<u64>);

impl Reload {
    /// Looks at the folder from now on, until the program ends.
    pub(super) fn watch(folder: &Path) -> Self {
        let (changes, _) = watch::channel(0);
        tokio::spawn(look(folder.to_owned(), changes.clone()));
        Self(changes)
    }

    /// The tag to put at the end of a page that is read after this call.
    pub(super) fn tag(&self) -> String {
        let seen = *self.0.borrow();
        format!("\n<script src=\"{SCRIPT_PATH}?{seen}\"></script>\n")
    }

    /// Responds if the path is one of these. The page's own origin was checked.
    pub(super) fn answer(&self, request: &mut Request<Incoming>) -> Option<Response<Body>> {
        match request.uri().path() {
            SCRIPT_PATH => {
                let kind = "text/javascript; charset=utf-8";
                Some(respond(StatusCode::OK, kind, SCRIPT))
            }
            CHANGES_PATH => Some(self.open(request)),
            _ => None,
        }
    }

    /// Opens the WebSocket of a page, which says in its query which change it has seen.
    fn open(&self, request: &mut Request<Incoming>) -> Response<Body> {
        let Some(accept) = accept_of(request.headers()) else {
            let sentence = "This path is for a WebSocket.\n";
            return respond(StatusCode::UPGRADE_REQUIRED, "text/plain", sentence);
        };
        let seen = request.uri().query().and_then(|seen| seen.parse().ok());
        let mut changes = self.0.subscribe();
        let upgraded = hyper::upgrade::on(request);
        tokio::spawn(async move {
            let Ok(stream) = upgraded.await else { return };
            let stream = TokioIo::new(stream);
            let mut page = WebSocketStream::from_raw_socket(stream, Role::Server, None).await;
            let changed = async {
                let changed = changes.wait_for(|now| Some(*now) != seen).await;
                changed.is_ok()
            };
            let changed = tokio::select! {
                changed = changed => changed,
                // The page sends nothing; this ends when it goes.
                () = async { while let Some(Ok(_)) = page.next().await {} } => false,
            };
            if changed {
                // A page that is gone needs no message.
                let _ = page.send(Message::text("changed")).await;
            }
            let _ = page.close(None).await;
        });
        let mut response = Response::new(empty());
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        upgrade(response.headers_mut());
        let headers = response.headers_mut();
        headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
        response
    }
}

/// The answer to the key of a WebSocket's handshake (RFC 6455 §4.2.2); `None` if this is none.
fn accept_of(headers: &HeaderMap) -> Option<HeaderValue> {
    let key = headers.get(header::SEC_WEBSOCKET_KEY)?;
    let key = is_websocket(headers).then(|| derive_accept_key(key.as_bytes()))?;
    HeaderValue::try_from(key).ok()
}

/// Counts changes. A build writes many files: it is over once two looks see the same.
async fn look(folder: PathBuf, changes: watch::Sender<u64>) {
    let mut reported = None;
    let mut last = None;
    loop {
        let folder = folder.clone();
        let begun = Stopwatch::start();
        let seen = tokio::task::spawn_blocking(move || fingerprint(&folder)).await;
        let Ok(seen) = seen else { return };
        if reported.is_none() {
            reported = Some(seen);
        } else if reported != Some(seen) && last == Some(seen) {
            reported = Some(seen);
            changes.send_modify(|count| *count += 1);
        }
        last = Some(seen);
        pause(LOOK.max(begun.elapsed() * SHARE)).await;
    }
}

/// A number that differs if a file was added, removed or written.
fn fingerprint(folder: &Path) -> u64 {
    let mut hasher = DefaultHasher::new();
    let walk = WalkDir::new(folder).min_depth(1);
    let entries = walk.sort_by_file_name().into_iter();
    for entry in entries.filter_entry(is_deployed).flatten() {
        entry.path().hash(&mut hasher);
        let Ok(metadata) = entry.metadata() else {
            continue;
        };
        if metadata.is_file() {
            metadata.len().hash(&mut hasher);
            metadata.modified().ok().hash(&mut hasher);
        }
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_deploy_sends_changes_the_fingerprint() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("index.html", "a");
        write("node_modules/a.js", "");
        let first = fingerprint(folder.path());
        assert_eq!(fingerprint(folder.path()), first);
        write("node_modules/a.js", "longer");
        write(".git/index", "");
        assert_eq!(fingerprint(folder.path()), first, "never deployed");
        write("index.html", "ab");
        let second = fingerprint(folder.path());
        assert_ne!(second, first);
        write("assets/b.png", "");
        let third = fingerprint(folder.path());
        assert_ne!(third, second);
        std::fs::remove_file(folder.path().join("assets/b.png")).unwrap();
        assert_ne!(fingerprint(folder.path()), third);
    }
}
