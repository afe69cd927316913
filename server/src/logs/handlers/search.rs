//! `GET /api/projects/<slug>/logs`: a page of an environment's frontend log
//! records, newest first, and looking for some of them.

use std::borrow::Cow;
use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use platform_protocol::log::LogSource;
use platform_protocol::names::Environment;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::auth::caller::ApiCaller;
use crate::domain::date::rfc3339;
use crate::domain::log::{LogId, LogQuery, LogSearch, LogSearchPage, StoredLogRecord};
use crate::http::api::query::{Range, digits, level, limit};
use crate::http::api::{EnvironmentName, PathParams, answer, invalid};
use crate::http::api_error::ApiError;
use crate::logs::LogsState;

/// Records of one answer where nothing else is asked for.
const RECORDS: usize = 100;
/// Records of one answer, at most.
const MAX_RECORDS: usize = 1_000;
/// Bytes of records' texts after which an answer ends: it waits in memory for
/// whoever reads slowly.
pub(super) const PAGE_BYTES: usize = 1024 * 1024;
/// Characters of what is looked for, at most.
const TEXT: usize = 200;

/// Some log records.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LogPage)]
pub struct LogsView {
    /// Newest first.
    pub records: Vec<LogView>,
    /// What to give as `before` for the page behind this one; null at the end.
    /// A search looks at 1,500 records at a time, so its page may
    /// have few of them or none and not be the last.
    #[schema(required)]
    pub before: Option<String>,
}

/// How grave a record is.
#[derive(Clone, Copy, Debug, ToSchema)]
#[schema(as = LogLevel, rename_all = "lowercase")]
pub enum Level {
    /// For who looks for something.
    Debug,
    /// What happened.
    Info,
    /// What should not happen.
    Warn,
    /// What broke.
    Error,
}

/// What made a record.
#[derive(Clone, Copy, Debug, ToSchema)]
#[schema(as = LogSource, rename_all = "lowercase")]
pub enum Source {
    /// The page's console.
    Console,
    /// An error that nothing caught.
    Error,
    /// A promise whose rejection nothing handled.
    UnhandledRejection,
    /// A file that could not be loaded.
    Resource,
    /// `platform.reportError`.
    Report,
}

/// One log record.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LogRecord)]
pub struct LogView {
    /// Its id.
    pub id: String,
    /// When it came up, by the page's clock (RFC 3339).
    #[schema(format = DateTime)]
    pub time: String,
    /// When it arrived (RFC 3339).
    #[schema(format = DateTime)]
    pub received_at: String,
    /// `debug`, `info`, `warn` or `error`.
    pub level: String,
    /// `console`, `error`, `unhandledrejection`, `resource` or `report`.
    pub source: String,
    /// What is shown.
    pub message: String,
    /// The stack of an error.
    #[schema(required)]
    pub stack: Option<String>,
    /// The file or resource.
    #[schema(required)]
    pub url: Option<String>,
    /// Line in that file.
    #[schema(required)]
    pub line: Option<u32>,
    /// Column in that line.
    #[schema(required)]
    pub column: Option<u32>,
    /// What the game added, any JSON; null if nothing.
    #[schema(value_type = serde_json::Value, required)]
    pub metadata: Option<Box<RawValue>>,
    /// How many equal records it stands for.
    pub count: u32,
    /// The player, if known.
    #[schema(required, format = "uuid")]
    pub player: Option<String>,
    /// What was deployed then.
    #[schema(required, format = "uuid")]
    pub deployment: Option<String>,
}

/// Answers a page of log records.
///
/// # Errors
/// `not-found`, `not-allowed`, `invalid-request`.
#[utoipa::path(
    get,
    path = "/api/projects/{slug}/logs",
    operation_id = "listLogs",
    params(
        ("slug" = String, Path, description = "The project.", example = "my-game"),
        ("env" = Option<EnvironmentName>, Query, description = "`prod` if not given."),
        ("level" = Option<Level>, Query, description = "Only records as grave as this, or graver."),
        ("source" = Option<Source>, Query, description = "Only records that this made."),
        ("player" = Option<String>, Query, format = "uuid", description = "Only records of this player's pages."),
        ("q" = Option<String>, Query, max_length = 200, description = "Only records with this in message, stack, address or metadata, in whatever case."),
        ("from" = Option<String>, Query, format = DateTime, description = "Only records that arrived then or later."),
        ("to" = Option<String>, Query, format = DateTime, description = "Only records that arrived before then."),
        ("before" = Option<String>, Query, description = "Only records before the one of this id.", pattern = "^[0-9]{1,18}$"),
        ("limit" = Option<u32>, Query, description = "100 if not given.", minimum = 1, maximum = 1000),
    ),
    responses((status = 200, description = "The records.", body = LogsView))
)]
pub async fn handle(
    State(state): State<Arc<LogsState>>,
    caller: ApiCaller,
    names: PathParams,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let project = caller.project(&state.auth, names.slug()).await?;
    let search = parse(query.as_deref().unwrap_or_default(), project.slug).map_err(invalid)?;
    let page = find(&state, search).await?;
    let view = LogsView {
        records: page.records.into_iter().map(LogView::from).collect(),
        before: page.next.map(|next| next.0.to_string()),
    };
    answer(StatusCode::OK, &view)
}

/// What is asked for. Where nothing is looked for among the records, their
/// order alone leads to them.
async fn find(state: &LogsState, search: LogSearch) -> Result<LogSearchPage, ApiError> {
    let looks = search.source.is_some()
        || search.player.is_some()
        || search.text.is_some()
        || search.from.is_some();
    if looks {
        return Ok(state.platform.store.search_log_records(search).await?);
    }
    let query = LogQuery {
        slug: search.slug,
        environment: search.environment,
        level: search.level,
        before: search.before,
        limit: search.limit,
        bytes: search.bytes,
    };
    Ok(state.platform.store.list_log_records(query).await?)
}

fn parse(query: &str, slug: String) -> Result<LogSearch, Cow<'static, str>> {
    let mut parsed = LogSearch::all(slug, Environment::Prod, RECORDS, PAGE_BYTES);
    let mut range = Range::default();
    for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
        match &*name {
            "level" => parsed.level = level(&value)?,
            "source" => parsed.source = Some(source(&value)?),
            "player" => {
                let id = Uuid::try_parse(&value);
                parsed.player = Some(id.map_err(
                    |_| "A player's id is a UUID, as the details of their records have it.",
                )?);
            }
            "q" => {
                if value.chars().count() > TEXT {
                    return Err("`q` has 200 characters at most.".into());
                }
                parsed.text = Some(value.into_owned()).filter(|text| !text.is_empty());
            }
            "before" => {
                let id = digits(&value).ok_or("`before` is the id of a record.")?;
                parsed.before = Some(LogId(id));
            }
            "limit" => parsed.limit = limit(&value, MAX_RECORDS)?,
            name if range.take(name, &value)? => {}
            _ => {
                return Err(
                    "The query may have env, level, source, player, q, from, to, before and limit."
                        .into(),
                );
            }
        }
    }
    let range = range.in_order()?;
    (parsed.environment, parsed.from) = (range.environment, range.from);
    let end = range.to.map(LogId::first_of);
    parsed.before = parsed.before.into_iter().chain(end).min();
    Ok(parsed)
}

fn source(name: &str) -> Result<LogSource, &'static str> {
    LogSource::ALL
        .into_iter()
        .find(|source| source.as_str() == name)
        .ok_or("`source` is console, error, unhandledrejection, resource or report.")
}

impl From<StoredLogRecord> for LogView {
    fn from(record: StoredLogRecord) -> Self {
        let entry = record.entry;
        Self {
            id: record.id.0.to_string(),
            time: rfc3339(entry.time),
            received_at: rfc3339(record.id.received_at()),
            level: entry.level.as_str().to_owned(),
            source: entry.source.as_str().to_owned(),
            message: entry.message,
            stack: entry.stack,
            url: entry.url,
            line: entry.line,
            column: entry.column,
            metadata: entry
                .metadata
                .and_then(|text| RawValue::from_string(text).ok()),
            count: entry.count,
            player: record.player.map(|player| player.to_string()),
            deployment: record.deployment.map(|deployment| deployment.to_string()),
        }
    }
}
