//! `GET /api/projects/<slug>/error-groups/<id>`: everything that is known about the errors of one
//! cause.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use platform_protocol::log::LogLevel;
use platform_protocol::names::Environment;
use platform_protocol::problem::ProblemCode;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::error_groups::{GroupView, by_hour, first_hour};
use super::search::LogView;
use crate::auth::project_caller::ProjectPath;
use crate::auth::scoped_caller::LogReader;
use crate::clock::Millis;
use crate::domain::counting::HOUR;
use crate::domain::date::rfc3339;
use crate::domain::error_group::{
    CountedGroup, ErrorGroupId, Excerpt, GroupDeployment, HOURS_KNOWN, SourceFrame,
};
use crate::domain::log::{LogId, LogQuery};
use crate::logs::LogsState;
use crate::web::api::{ApiJson, ApiQuery, EnvironmentName};
use crate::web::api_error::ApiError;

/// The maximum number of bytes of the records.
const RECORD_BYTES: usize = 64 * 1024;

/// A path that names a group of errors.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub struct GroupPath {
    /// The group.
    #[param(pattern = "^[0-9a-f]{32}$")]
    pub group: String,
}

/// The environment of a group.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct GroupQuery {
    /// The environment; default `prod`.
    #[param(value_type = Option<EnvironmentName>)]
    env: Option<Environment>,
}

impl GroupQuery {
    /// The environment.
    pub(super) fn environment(&self) -> Environment {
        self.env.unwrap_or(Environment::Prod)
    }
}

/// Errors with one cause, with everything that is known about them.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ErrorGroupDetail)]
pub struct GroupDetailView {
    /// What the list shows of it.
    #[serde(flatten)]
    pub group: GroupView,
    /// When it was resolved or ignored (RFC 3339); null if it is open.
    #[schema(required, format = DateTime)]
    pub decided_at: Option<String>,
    /// The deployment that had the first error; null if none was current.
    #[schema(required, format = "uuid")]
    pub first_deployment: Option<String>,
    /// The deployments with the errors, at most 20, the one with the latest error first.
    pub deployments: Vec<GroupDeploymentView>,
    /// The number of errors by browser.
    pub browsers: Vec<BrowserView>,
    /// The number of errors in each of the last 168 hours, in UTC.
    #[schema(min_items = 168, max_items = 168)]
    pub week: Vec<u64>,
    /// The stack of the newest error, in the game's sources as far as there are source maps.
    pub frames: Vec<FrameView>,
    /// The source around its place; null if it is not known.
    #[schema(required)]
    pub excerpt: Option<ExcerptView>,
    /// The newest records that are kept, at most 10, newest first.
    pub records: Vec<LogView>,
}

/// The errors of a group in one deployment.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ErrorGroupDeployment)]
pub struct GroupDeploymentView {
    /// Its id.
    #[schema(format = "uuid")]
    pub id: String,
    /// The number of errors.
    pub count: u64,
    /// When the last one arrived (RFC 3339).
    #[schema(format = DateTime)]
    pub last_at: String,
}

/// The errors of a group in one kind of browser.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ErrorGroupBrowser)]
pub struct BrowserView {
    /// `chromium`, `firefox` or `safari`: the form of the stack says which engine it was.
    pub name: String,
    /// The number of errors.
    pub count: u64,
}

/// A frame of a stack.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ErrorFrame)]
pub struct FrameView {
    /// The function; empty if it has no name.
    pub call: String,
    /// The source, or the script.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
    /// Whether a source map named the place.
    pub mapped: bool,
}

/// The lines around a place.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SourceExcerpt)]
pub struct ExcerptView {
    /// The source.
    pub file: String,
    /// The number of the first line, from 1.
    pub first: u32,
    /// The number of the line with the error.
    pub line: u32,
    /// The lines. Long ones are cut.
    pub lines: Vec<String>,
}

/// Returns a group.
///
/// # Errors
/// `not-found`, `not-allowed`, `invalid-request`.
#[utoipa::path(
    get,
    path = "/api/projects/{slug}/error-groups/{group}",
    operation_id = "showErrorGroup",
    params(ProjectPath, GroupPath, GroupQuery),
    responses((status = 200, description = "The group.", body = GroupDetailView))
)]
pub async fn handle(
    State(state): State<Arc<LogsState>>,
    reader: LogReader,
    path: Result<Path<GroupPath>, PathRejection>,
    ApiQuery(query): ApiQuery<GroupQuery>,
) -> Result<ApiJson<GroupDetailView>, ApiError> {
    let id = id_of(path)?;
    let view = view(&state, &reader.project.slug, query.environment(), id).await?;
    Ok(ApiJson(view))
}

/// Returns the id of the group in the path.
pub(super) fn id_of(
    path: Result<Path<GroupPath>, PathRejection>,
) -> Result<ErrorGroupId, ApiError> {
    let id = path
        .ok()
        .and_then(|Path(path)| ErrorGroupId::parse(&path.group));
    id.ok_or_else(missing)
}

/// The answer if there is no such group.
pub(super) fn missing() -> ApiError {
    ApiError::new(ProblemCode::NotFound).with_detail(
        "This environment has no errors with this id. Those of 90 days ago are removed.",
    )
}

/// Returns what is known about a group.
pub(super) async fn view(
    state: &LogsState,
    slug: &str,
    environment: Environment,
    id: ErrorGroupId,
) -> Result<GroupDetailView, ApiError> {
    let now = state.platform.clock.now();
    let hours = hours_known();
    let store = &state.platform.store;
    let found = store
        .find_error_group(slug, environment, id, first_hour(now, hours))
        .await?;
    let counted = found.ok_or_else(missing)?;
    let records = records(state, slug, environment, &counted).await?;
    Ok(GroupDetailView::of(&counted, now, records))
}

/// For how many hours errors are counted by the hour.
fn hours_known() -> usize {
    usize::try_from(HOURS_KNOWN / HOUR).unwrap_or_default()
}

/// Returns the newest records of a group that are still kept.
async fn records(
    state: &LogsState,
    slug: &str,
    environment: Environment,
    counted: &CountedGroup,
) -> Result<Vec<LogView>, ApiError> {
    let (mut records, mut bytes) = (Vec::new(), RECORD_BYTES);
    for id in &counted.group.detail.records {
        let query = LogQuery {
            slug: slug.to_owned(),
            environment,
            level: LogLevel::Error,
            before: Some(LogId(id.saturating_add(1))),
            limit: 1,
            bytes,
        };
        let page = state.platform.store.list_log_records(query).await?;
        // Without this record, the one before it is found.
        let found = page.records.into_iter().find(|record| record.id.0 == *id);
        if let Some(record) = found {
            let entry = &record.entry;
            let texts = entry.message.len() + entry.stack.as_ref().map_or(0, String::len);
            bytes = bytes.saturating_sub(texts);
            records.push(LogView::from(record));
        }
        if bytes == 0 {
            break;
        }
    }
    Ok(records)
}

impl GroupDetailView {
    fn of(counted: &CountedGroup, now: Millis, records: Vec<LogView>) -> Self {
        let detail = &counted.group.detail;
        let browsers = detail.engines.iter();
        Self {
            group: GroupView::of(counted, now),
            decided_at: detail.decided_at.map(rfc3339),
            first_deployment: detail.first_deployment.map(|id| id.to_string()),
            deployments: detail.deployments.iter().map(Into::into).collect(),
            browsers: browsers
                .map(|(engine, count)| BrowserView {
                    name: engine.as_str().to_owned(),
                    count: *count,
                })
                .collect(),
            week: by_hour(&counted.hours, now, hours_known()),
            frames: detail.frames.iter().map(Into::into).collect(),
            excerpt: detail.excerpt.as_ref().map(Into::into),
            records,
        }
    }
}

impl From<&GroupDeployment> for GroupDeploymentView {
    fn from(deployment: &GroupDeployment) -> Self {
        Self {
            id: deployment.id.to_string(),
            count: deployment.count,
            last_at: rfc3339(deployment.last_at),
        }
    }
}

impl From<&SourceFrame> for FrameView {
    fn from(frame: &SourceFrame) -> Self {
        Self {
            call: frame.call.clone(),
            file: frame.file.clone(),
            line: frame.line,
            column: frame.column,
            mapped: frame.mapped,
        }
    }
}

impl From<&Excerpt> for ExcerptView {
    fn from(excerpt: &Excerpt) -> Self {
        Self {
            file: excerpt.file.clone(),
            first: excerpt.first,
            line: excerpt.line,
            lines: excerpt.lines.clone(),
        }
    }
}
