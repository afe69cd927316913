//! Parsing of requests and building of responses for all calls of the project API.
//!
//! | module | contents |
//! |---|---|
//! | [`json`] | bodies and responses |
//! | [`query`] | queries and their errors |
//! | [`range`] | the time range of a query |

pub mod json;
pub mod query;
pub mod range;

use std::borrow::Cow;

use platform_protocol::problem::ProblemCode;
use utoipa::ToSchema;

pub use self::json::ApiJson;
pub use self::query::ApiQuery;
use super::api_error::ApiError;

/// The name of the environment.
#[derive(Clone, Copy, Debug, ToSchema)]
#[schema(rename_all = "lowercase")]
pub enum EnvironmentName {
    /// The environment for tests.
    Dev,
    /// The environment for players.
    Prod,
}

/// Returns `invalid-request` with this sentence.
pub fn invalid(sentence: impl Into<Cow<'static, str>>) -> ApiError {
    ApiError::new(ProblemCode::InvalidRequest).with_detail(sentence)
}
