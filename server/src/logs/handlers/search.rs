//! `GET /api/projects/<slug>/logs`: lists an environment's frontend log records, newest first, and
//! searches them.

use std::sync::Arc;

use axum::extract::State;
use platform_protocol::log::{LogLevel, LogSource};
use platform_protocol::names::Environment;
use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::auth::project_caller::ProjectPath;
use crate::auth::scoped_caller::LogReader;
use crate::domain::date::rfc3339;
use crate::domain::log::{LogId, LogQuery, LogSearch, LogSearchPage, StoredLogRecord};
use crate::logs::LogsState;
use crate::web::api::query::{Within, digits, value};
use crate::web::api::range::{Range, Time};
use crate::web::api::{ApiJson, ApiQuery, EnvironmentName, invalid};
use crate::web::api_error::ApiError;

/// The default number of records in a response.
const RECORDS: usize = 100;
/// The number of bytes of records' texts after which a response ends, since it stays in memory for
/// slow readers.
pub(super) const PAGE_BYTES: usize = 1024 * 1024;
/// The maximum number of characters of the search text.
const TEXT: usize = 200;

/// Which records are looked for.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct LogsQuery {
    /// The environment; default `prod`.
    #[param(value_type = Option<EnvironmentName>)]
    env: Option<Environment>,
    /// Only records with at least this severity.
    #[param(value_type = Option<Level>)]
    level: Option<LogLevel>,
    /// Only records from this source.
    #[param(value_type = Option<Source>)]
    source: Option<LogSource>,
    /// Only records of this player's pages.
    #[serde(deserialize_with = "player")]
    #[param(value_type = Option<String>, format = "uuid")]
    player: Option<Uuid>,
    /// Only records with this text in message, stack, address or metadata, case-insensitive.
    #[serde(deserialize_with = "text")]
    #[param(max_length = 200)]
    q: Option<String>,
    /// Only records that arrived then or later.
    #[param(inline)]
    from: Option<Time>,
    /// Only records that arrived before then.
    #[param(inline)]
    to: Option<Time>,
    /// Only records before the one with this id.
    #[serde(deserialize_with = "before")]
    #[param(value_type = Option<String>, pattern = "^[0-9]{1,18}$")]
    before: Option<LogId>,
    /// The maximum number of entries; default 100.
    #[param(inline)]
    limit: Option<Within<1, 1_000>>,
}

/// A page of log records.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LogPage)]
pub struct LogsView {
    /// Newest first.
    pub records: Vec<LogView>,
    /// The value of `before` for the next page; null on the last page. A search examines 1,500
    /// records per request, so a page may contain few records or none although more pages follow.
    #[schema(required)]
    pub before: Option<String>,
}

/// The severity of a record.
#[derive(Clone, Copy, Debug, ToSchema)]
#[schema(as = LogLevel, rename_all = "lowercase")]
pub enum Level {
    /// For who looks for something.
    Debug,
    /// A security event.
    Info,
    /// What should not happen.
    Warn,
    /// What broke.
    Error,
}

/// The source of a record.
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
    /// When it occurred, by the page's clock (RFC 3339).
    #[schema(format = DateTime)]
    pub time: String,
    /// When it arrived (RFC 3339).
    #[schema(format = DateTime)]
    pub received_at: String,
    /// `debug`, `info`, `warn` or `error`.
    pub level: String,
    /// `console`, `error`, `unhandledrejection`, `resource` or `report`.
    pub source: String,
    /// The text of the record.
    pub message: String,
    /// The stack of an error.
    #[schema(required)]
    pub stack: Option<String>,
    /// The file or resource.
    #[schema(required)]
    pub url: Option<String>,
    /// The line in that file.
    #[schema(required)]
    pub line: Option<u32>,
    /// The column in that line.
    #[schema(required)]
    pub column: Option<u32>,
    /// Data that the game added, any JSON; null if there is none.
    #[schema(value_type = serde_json::Value, required)]
    pub metadata: Option<Box<RawValue>>,
    /// The number of equal records that this one stands for.
    pub count: u32,
    /// The player, if known.
    #[schema(required, format = "uuid")]
    pub player: Option<String>,
    /// The deployment that was current then.
    #[schema(required, format = "uuid")]
    pub deployment: Option<String>,
}

/// Returns a page of log records.
///
/// # Errors
/// `not-found`, `not-allowed`, `invalid-request`.
#[utoipa::path(
    get,
    path = "/api/projects/{slug}/logs",
    operation_id = "listLogs",
    params(ProjectPath, LogsQuery),
    responses((status = 200, description = "The records.", body = LogsView))
)]
pub async fn handle(
    State(state): State<Arc<LogsState>>,
    reader: LogReader,
    ApiQuery(query): ApiQuery<LogsQuery>,
) -> Result<ApiJson<LogsView>, ApiError> {
    let search = query.of(reader.project.slug).map_err(invalid)?;
    let page = find(&state, search).await?;
    Ok(ApiJson(LogsView {
        records: page.records.into_iter().map(LogView::from).collect(),
        before: page.next.map(|next| next.0.to_string()),
    }))
}

/// Runs a search. Without a search text, the records are found by their order alone.
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

impl LogsQuery {
    /// Returns the query to the store for the project.
    fn of(self, slug: String) -> Result<LogSearch, &'static str> {
        let range = Range::new(self.from, self.to).in_order()?;
        let end = range.to.map(LogId::first_of);
        let environment = self.env.unwrap_or(Environment::Prod);
        let limit = self.limit.map_or(RECORDS, Within::count);
        Ok(LogSearch {
            level: self.level.unwrap_or(LogLevel::Debug),
            source: self.source,
            player: self.player,
            text: self.q.filter(|text| !text.is_empty()),
            from: range.from,
            before: self.before.into_iter().chain(end).min(),
            ..LogSearch::all(slug, environment, limit, PAGE_BYTES)
        })
    }
}

fn player<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Uuid>, D::Error> {
    let player = Uuid::try_parse(&String::deserialize(from)?);
    let sentence = "A player's id must be a UUID, as in the details of a record.";
    player.map(Some).map_err(|_| de::Error::custom(sentence))
}

fn text<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(from)?;
    if text.chars().count() > TEXT {
        return Err(de::Error::custom("`q` must have at most 200 characters."));
    }
    Ok(Some(text))
}

fn before<'de, D: Deserializer<'de>>(from: D) -> Result<Option<LogId>, D::Error> {
    value(from, |text| digits(text).map(LogId), "the id of a record")
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
