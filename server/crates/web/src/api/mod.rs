//! What every call of the project API is read with and answered with.
//!
//! | module | holds |
//! |---|---|
//! | [`json`] | bodies and answers |
//! | [`query`] | queries, and what is wrong with them |
//! | [`range`] | the time that a query asks about |

pub mod json;
pub mod query;
pub mod range;

use std::borrow::Cow;

use platform_protocol::problem::ProblemCode;
use utoipa::ToSchema;

pub use self::json::ApiJson;
pub use self::query::ApiQuery;
use super::api_error::ApiError;

/// Which environment.
#[derive(Clone, Copy, Debug, ToSchema)]
#[schema(rename_all = "lowercase")]
pub enum EnvironmentName {
    /// Where it is tried.
    Dev,
    /// Where it is played.
    Prod,
}

/// Says what is wrong with a request.
pub fn invalid(sentence: impl Into<Cow<'static, str>>) -> ApiError {
    ApiError::new(ProblemCode::InvalidRequest).with_detail(sentence)
}
