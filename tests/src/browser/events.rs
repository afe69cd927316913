//! What pages logged and requested: every `console` call, uncaught error and unhandled rejection,
//! and every request of every page, from WebDriver BiDi or from the [`Proxy`](super::proxy).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::StreamExt;
use serde::Deserialize;
use serde_json::Value;
use thirtyfour::bidi::BiDi;

/// One line of a page's console, or an uncaught error.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct LogEntry {
    /// `debug`, `info`, `warn` or `error`.
    pub level: String,
    /// `console`, or `javascript` for an uncaught error.
    pub kind: String,
    /// The text.
    pub text: String,
}

/// One request that a page made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenRequest {
    /// The method.
    pub method: String,
    /// The complete URL.
    pub url: String,
}

/// Everything since the last [`Events::clear`].
#[derive(Debug, Default)]
pub struct Events {
    log: Mutex<Vec<LogEntry>>,
    requests: Mutex<Vec<SeenRequest>>,
}

impl Events {
    /// Subscribes to events and collects them until the browser closes.
    pub(super) async fn watch(events: &Arc<Self>, bidi: &BiDi) {
        let mut stream = bidi.subscribe_raw();
        for name in ["log.entryAdded", "network.beforeRequestSent"] {
            bidi.session()
                .subscribe(name)
                .await
                .expect("the driver has the event");
        }
        let collected = Arc::clone(events);
        tokio::spawn(async move {
            while let Some(event) = stream.next().await {
                collected.take_in(&event.method, &event.params);
            }
        });
    }

    fn take_in(&self, method: &str, event: &Value) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        if method == "log.entryAdded" {
            self.said(LogEntry {
                level: text(&event["level"]),
                kind: text(&event["type"]),
                text: text(&event["text"]),
            });
        } else if method == "network.beforeRequestSent" {
            self.requested(SeenRequest {
                method: text(&event["request"]["method"]),
                url: text(&event["request"]["url"]),
            });
        }
    }

    /// Adds a log entry.
    pub(super) fn said(&self, line: LogEntry) {
        locked(&self.log).push(line);
    }

    /// Adds a request.
    pub(super) fn requested(&self, request: SeenRequest) {
        locked(&self.requests).push(request);
    }

    /// Returns the log entries.
    #[must_use]
    pub fn log(&self) -> Vec<LogEntry> {
        locked(&self.log).clone()
    }

    /// Returns the requests.
    #[must_use]
    pub fn requests(&self) -> Vec<SeenRequest> {
        locked(&self.requests).clone()
    }

    /// Clears both lists.
    pub fn clear(&self) {
        locked(&self.log).clear();
        locked(&self.requests).clear();
    }
}

/// Locks a list, even if another holder of the lock panicked.
fn locked<T>(list: &Mutex<Vec<T>>) -> MutexGuard<'_, Vec<T>> {
    list.lock().unwrap_or_else(PoisonError::into_inner)
}
