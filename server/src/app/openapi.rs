//! The project API as a whole: its endpoints, and `GET /api/openapi.json`, their description
//! (OpenAPI 3.1).

use std::sync::LazyLock;

use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use serde::Serialize;
use utoipa::{Modify as _, OpenApi, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

mod common;

use self::common::Common;
use crate::app::state::AppState;
use crate::logs::handlers::search::{Level, Source};
use crate::players::handlers::player_chart::{Chart, Theme};
use crate::web::api::EnvironmentName;
use crate::web::api_error::ApiError;
use crate::{admin, logs, players, projects};

/// Problem Details (RFC 9457).
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "type": "https://auth.play.example/problems/not-allowed",
    "title": "Not allowed",
    "status": 403,
    "detail": "This project belongs to another account.",
    "request_id": "5ac1f0e2b7d94d0c"
}))]
pub struct Problem {
    /// The type of the problem: an address with a page that explains it. Its last segment is the
    /// slug that this document uses.
    #[schema(format = "uri")]
    r#type: String,
    /// The same short phrase for every occurrence of this problem.
    title: String,
    /// The HTTP status, repeated.
    #[schema(minimum = 400, maximum = 599)]
    status: u16,
    /// One sentence that says what is wrong.
    detail: String,
    /// The id under which the request was logged.
    request_id: String,
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Project API",
        description = "Projects, deploys, backends, test players and logs; under `/api/admin/`, administration. \
            The address is that of the platform itself. Every refusal is a problem (RFC 9457); one player may \
            make 20 calls a second.",
        version = "1"
    ),
    servers((url = "/", description = "The platform's own origin.")),
    components(schemas(Problem, EnvironmentName, Level, Source, Chart, Theme)),
    security(("token" = []))
)]
struct Api;

/// Returns the endpoints of all slices, with their descriptions, except for those that receive
/// archives.
pub fn calls() -> OpenApiRouter<AppState> {
    OpenApiRouter::with_openapi(Api::openapi())
        .routes(routes!(handle))
        .merge(projects::routes())
        .merge(players::routes())
        .merge(logs::routes())
        .merge(admin::routes())
}

/// Returns the description.
#[must_use]
pub fn description() -> &'static utoipa::openapi::OpenApi {
    static DESCRIPTION: LazyLock<utoipa::openapi::OpenApi> = LazyLock::new(|| {
        let calls = calls().merge(projects::upload_routes());
        let mut description = calls.into_openapi();
        Common.modify(&mut description);
        description
    });
    &DESCRIPTION
}

/// Returns this description. No token is needed: everybody may read it.
#[utoipa::path(
    get,
    path = "/api/openapi.json",
    operation_id = "describe",
    security(()),
    responses((status = 200, description = "The description (OpenAPI 3.1).", body = Object))
)]
pub async fn handle() -> Response {
    // All responses share it: it is large, and any visitor may ask for it.
    static TEXT: LazyLock<serde_json::Result<Bytes>> =
        LazyLock::new(|| serde_json::to_vec(description()).map(Bytes::from));
    match &*TEXT {
        Ok(text) => {
            let headers = [
                (header::CONTENT_TYPE, "application/json"),
                (header::CACHE_CONTROL, "no-store"),
            ];
            (headers, text.clone()).into_response()
        }
        Err(error) => ApiError::internal(error).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_description_is_what_was_looked_at() {
        // The order of maps in serde_json depends on the features of the build.
        insta::with_settings!({ sort_maps => true }, {
            insta::assert_json_snapshot!(description());
        });
    }
}
