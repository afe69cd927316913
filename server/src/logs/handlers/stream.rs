//! `GET /api/projects/<slug>/logs/stream`: streams an environment's new frontend log records, as
//! server-sent events (HTML, "Server-sent events").

use std::convert::Infallible;
use std::fmt::Write as _;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use platform_protocol::log::LogLevel;
use platform_protocol::names::Environment;
use serde::{Deserialize, Deserializer, de};
use tokio::time::Instant;
use utoipa::IntoParams;

use super::search::{Level, LogView, PAGE_BYTES};
use crate::auth::project_caller::ProjectPath;
use crate::auth::scoped_caller::{LogReader, ScopedCaller};
use crate::domain::errors::chain;
use crate::domain::log::{LogId, LogTail};
use crate::logs::LogsState;
use crate::logs::streams::{Follower, Found, Sent};
use crate::store::StoreError;
use crate::web::api::query::digits;
use crate::web::api::{ApiQuery, EnvironmentName, invalid};
use crate::web::api_error::ApiError;
use crate::web::encoding::{self, Coding};
use crate::web::gzip_stream::{GzipStream, SharedChunk};
use crate::web::limiter::too_many_requests;

/// The header with the last id that a reconnecting client has seen.
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// The maximum number of records per read of the store.
const PAGE: usize = 500;
/// How far a reader may fall behind, in records. A reader that is further behind is told how many
/// were left out, and continues with the last page.
const BACKLOG: usize = 20_000;
/// How long a stream may be silent, so that no intermediary considers it dead.
const ALIVE: Duration = Duration::from_secs(15);
/// How often the stream checks whether the reader is still signed in and may read.
const CHECK: Duration = Duration::from_secs(5);
/// How often the store is read without an announcement, since another process may have written to
/// it.
const LOOK: Duration = Duration::from_secs(2);
/// The time between two reads during a flood of records, so that they are read in pages. Each
/// stream adds its own part of the same time: if all of them wrote at once, other requests would
/// have to wait.
const GATHER: Duration = Duration::from_millis(50);
/// When a player with too many streams may try again.
const LATER: Duration = Duration::from_secs(10);
/// How long a client waits after the end of the stream, in milliseconds.
static RETRY: LazyLock<SharedChunk> = LazyLock::new(|| "retry: 1000\n\n".into());
/// What a silent stream sends.
static QUIET: LazyLock<SharedChunk> = LazyLock::new(|| ": alive\n\n".into());

/// Which records are followed.
#[derive(Debug, Default, PartialEq, Eq, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct StreamQuery {
    /// The environment; default `prod`.
    #[param(value_type = Option<EnvironmentName>)]
    env: Option<Environment>,
    /// Only records with at least this severity.
    #[param(value_type = Option<Level>)]
    level: Option<LogLevel>,
    /// The same as the header `Last-Event-ID`, for clients that cannot send it.
    #[serde(deserialize_with = "last_event_id")]
    #[param(value_type = Option<String>)]
    last_event_id: Option<LogId>,
}

/// Follows the log records.
///
/// # Errors
/// `not-found`, `not-allowed`, `invalid-request`, `too-many-requests`.
#[utoipa::path(
    get,
    path = "/api/projects/{slug}/logs/stream",
    operation_id = "followLogs",
    description = "Server-sent events. Each record is an event with its id and, as data, the \
        object that a page of logs has. Without a last id the stream begins with what comes next; \
        with one it goes on behind that record. `dropped` says that the reader was too slow and how \
        many records were left out, `{\"records\": n}`; `end` is the last event and says why, \
        `{\"reason\": \"token-expired\" | \"not-allowed\" | \"stopping\"}`. A comment every 15 s \
        says that the stream lives. A player may have 10 streams open. Packed with gzip for clients \
        that take it, each record as it comes.",
    params(
        ProjectPath,
        StreamQuery,
        ("Last-Event-ID" = Option<String>, Header, description = "Continues after the record with this id."),
    ),
    responses((status = 200, description = "The records, as they come.", body = String, content_type = "text/event-stream"))
)]
pub async fn handle(
    State(state): State<Arc<LogsState>>,
    LogReader { caller, project }: LogReader,
    ApiQuery(query): ApiQuery<StreamQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let environment = query.env.unwrap_or(Environment::Prod);
    let after = query.after(&headers).map_err(invalid)?;
    let follower = state
        .streams
        .follow(&project.slug, environment, caller.counted_with())
        .ok_or_else(|| {
            too_many_requests(LATER)
                .with_detail("You already follow too many logs. Close some of them.")
        })?;
    let now = state.platform.clock.now();
    let newest = state
        .platform
        .store
        .last_log_id(&project.slug, environment, now)
        .await?;
    let tail = LogTail {
        slug: project.slug,
        environment,
        level: query.level.unwrap_or(LogLevel::Debug),
        // An id that does not exist yet would hide all records before it.
        after: after.map_or(newest, |after| after.min(newest)),
        now,
        limit: PAGE,
        bytes: PAGE_BYTES,
        backlog: None,
    };
    let takes_gzip = encoding::choose(&headers, |coding| coding == Coding::Gzip) == Coding::Gzip;
    let follow = Follow {
        state,
        caller,
        follower,
        tail,
        step: Step::Opening,
        packer: GzipStream::new(takes_gzip),
        rest_until: Instant::now(),
        said: Instant::now(),
        checked: Instant::now(),
    };
    let events = stream::unfold(follow, async |mut follow| {
        let events = follow.next().await?;
        Some((Ok::<_, Infallible>(events), follow))
    });
    let mut response = Response::new(Body::from_stream(events));
    for (name, value) in [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-store"),
        (header::VARY, "Accept-Encoding"),
        // Otherwise some proxies buffer small pieces.
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ] {
        response
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
    }
    if takes_gzip {
        let name = HeaderValue::from_static(Coding::Gzip.as_str());
        response
            .headers_mut()
            .insert(header::CONTENT_ENCODING, name);
    }
    Ok(response)
}

impl StreamQuery {
    /// Returns the record after which the stream continues.
    fn after(&self, headers: &HeaderMap) -> Result<Option<LogId>, &'static str> {
        let Some(value) = headers.get(LAST_EVENT_ID) else {
            return Ok(self.last_event_id);
        };
        // This takes precedence: a client that reconnects still uses its first address.
        Ok(id(value.to_str().unwrap_or("?"))?.or(self.last_event_id))
    }
}

fn last_event_id<'de, D: Deserializer<'de>>(from: D) -> Result<Option<LogId>, D::Error> {
    id(&String::deserialize(from)?).map_err(de::Error::custom)
}

/// Parses the id of a record. A client that has seen none may send an empty one.
fn id(text: &str) -> Result<Option<LogId>, &'static str> {
    if text.is_empty() {
        return Ok(None);
    }
    digits(text)
        .map(|id| Some(LogId(id)))
        .ok_or("The id of the last event must be the id of a record.")
}

/// The state of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Opening,
    Reading,
    Ended,
}

/// Why a stream ends.
#[derive(Clone, Copy, Debug)]
enum Reason {
    TokenExpired,
    NotAllowed,
    Stopping,
}

impl Reason {
    const fn as_str(self) -> &'static str {
        match self {
            Self::TokenExpired => "token-expired",
            Self::NotAllowed => "not-allowed",
            Self::Stopping => "stopping",
        }
    }
}

/// An open stream. It is only polled when the connection can take more data, so that a slow reader
/// only delays itself.
struct Follow {
    state: Arc<LogsState>,
    caller: ScopedCaller,
    follower: Follower,
    tail: LogTail,
    step: Step,
    packer: GzipStream,
    rest_until: Instant,
    said: Instant,
    checked: Instant,
}

impl Follow {
    /// Returns the next bytes; `None` at the end.
    async fn next(&mut self) -> Option<Bytes> {
        let events = match self.step {
            Step::Ended => None,
            Step::Opening => {
                self.step = Step::Reading;
                Some(RETRY.clone())
            }
            Step::Reading => self.read().await,
        };
        let Some(events) = events else {
            self.step = Step::Ended;
            return self.packer.end();
        };
        self.said = Instant::now();
        Some(self.packer.pack(&events).await)
    }

    async fn read(&mut self) -> Option<SharedChunk> {
        loop {
            if let Some(reason) = self.ends().await {
                self.step = Step::Ended;
                let reason = reason.as_str();
                let end = format!("event: end\ndata: {{\"reason\":\"{reason}\"}}\n\n");
                return Some(end.into());
            }
            self.follower.rest(self.rest_until).await;
            self.follower.begin_to_read();
            let sent = match self.sent().await {
                Ok(sent) => sent,
                Err(error) => {
                    // The client reconnects, and continues at the same position.
                    tracing::warn!(error = chain(&*error), "a log stream was cut off");
                    return None;
                }
            };
            // From the first time that a reader has caught up, its backlog is limited; before that,
            // it requested older records on purpose.
            if sent.as_ref().is_none_or(|sent| !sent.full) {
                self.tail.backlog = Some(BACKLOG);
            }
            if let Some(sent) = sent {
                self.tail.after = sent.last;
                if !sent.full {
                    self.rest_until = sent.at + GATHER + self.follower.share_of(GATHER);
                }
                return Some(sent.events);
            }
            self.wait().await;
            if self.said.elapsed() >= ALIVE {
                return Some(QUIET.clone());
            }
        }
    }

    /// Returns the next records; `None` if there are none yet. Readers at the same position share
    /// the result, and only one of them reads the store.
    async fn sent(&self) -> Result<Option<Sent>, Arc<StoreError>> {
        let LogTail {
            slug,
            environment,
            level,
            after,
            ..
        } = self.tail.clone();
        let streams = &self.state.streams;
        let place = (slug, environment, level, after);
        let read = || self.read_store();
        streams.look(place, &self.follower, read).await
    }

    /// Reads them from the store.
    async fn read_store(&self) -> Result<Found, StoreError> {
        let at = Instant::now();
        let tail = LogTail {
            now: self.state.platform.clock.now(),
            ..self.tail.clone()
        };
        let page = self
            .state
            .platform
            .store
            .list_log_records_after(tail)
            .await?;
        let Some(last) = page.records.last() else {
            return Ok(Found::Nothing);
        };
        let (last, full) = (last.id, page.full);
        let mut events = String::new();
        // Writing to a string cannot fail.
        if page.skipped > 0 {
            let skipped = page.skipped;
            let _ = write!(
                events,
                "event: dropped\ndata: {{\"records\":{skipped}}}\n\n"
            );
        }
        for record in page.records {
            let id = record.id.0;
            let json = serde_json::to_string(&LogView::from(record));
            let json = json.map_err(|error| StoreError::Database(Box::new(error)))?;
            let _ = write!(events, "id: {id}\ndata: {json}\n\n");
        }
        let sent = Sent {
            events: events.into(),
            last,
            full,
            at,
        };
        // A result with left-out records is only for this reader.
        Ok(if page.skipped > 0 {
            Found::Own(sent)
        } else {
            Found::Shared(sent)
        })
    }

    /// Waits for new records, or until it is time to read anyway.
    async fn wait(&mut self) {
        let news = tokio::time::timeout(LOOK, self.follower.news()).await;
        if news.is_ok() {
            self.rest_until = Instant::now() + self.follower.share_of(GATHER);
        }
    }

    /// Returns the reason if the stream ends here.
    async fn ends(&mut self) -> Option<Reason> {
        if self.follower.is_stopping() {
            return Some(Reason::Stopping);
        }
        if self.state.platform.clock.now() >= self.caller.expires_at() {
            return Some(Reason::TokenExpired);
        }
        let suspensions = &self.state.auth.suspensions;
        let maker = self.caller.maker();
        if maker.is_some_and(|player| suspensions.contains(&player)) {
            return Some(Reason::NotAllowed);
        }
        if self.checked.elapsed() >= CHECK {
            self.checked = Instant::now();
            let refused = |refusal: ApiError| refusal.status().is_client_error();
            if self.may_still().await.is_err_and(refused) {
                return Some(Reason::NotAllowed);
            }
        }
        None
    }

    /// Returns an error if the caller may not see the project any more.
    async fn may_still(&mut self) -> Result<(), ApiError> {
        let (auth, slug) = (&self.state.auth, &self.tail.slug);
        self.caller.may_still_read(auth, slug).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::web::api::query::read;

    #[test]
    fn the_header_says_where_to_go_on_and_wins_over_the_query() {
        let headers = |text: &'static str| {
            HeaderMap::from_iter([(LAST_EVENT_ID, HeaderValue::from_static(text))])
        };
        let after = |query: &str, headers: &HeaderMap| {
            let query: StreamQuery = read(query).map_err(|error| error.to_string())?;
            let after = query.after(headers).map_err(str::to_owned)?;
            Ok::<_, String>(after.map(|id| id.0))
        };
        let none = HeaderMap::new();
        assert_eq!(after("", &none), Ok(None));
        assert_eq!(after("last_event_id=7", &none), Ok(Some(7)));
        assert_eq!(after("last_event_id=", &none), Ok(None));
        assert_eq!(after("last_event_id=7", &headers("9")), Ok(Some(9)));
        assert_eq!(after("last_event_id=7", &headers("")), Ok(Some(7)));
        for wrong in ["x", "-1", "+1", "1.5", "99999999999999999999"] {
            assert!(after("", &headers(wrong)).is_err(), "{wrong}");
        }
        for wrong in ["env=test", "level=fatal", "before=1", "last_event_id=x"] {
            assert!(after(wrong, &none).is_err(), "{wrong}");
        }
    }
}
