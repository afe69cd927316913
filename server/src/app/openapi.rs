//! `GET /api/openapi.json`: the description of the project API (OpenAPI 3.1).

use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;
use utoipa::{OpenApi, ToSchema};

mod common;

use self::common::Common;
use crate::admin::{
    events, guests, keys, owner, player, players as found_players, projects, sessions, suspension,
};
use crate::http::api::{EnvironmentName, answer};
use crate::http::api_error::ApiError;
use crate::logs::handlers::search::{Level, Source};
use crate::logs::handlers::{errors, search as logs, stream as log_stream};
use crate::players::handlers::player_chart::{Chart, Theme};
use crate::players::handlers::{player_chart, players, ranking};
use crate::projects::handlers::{
    backend, create_project, deployed_file, deployment, environment, frames, isolation,
    list_projects, project, rollback, standing, test_token,
};

/// Problem Details (RFC 9457).
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "type": "https://auth.play.example/problems/not-allowed",
    "title": "Not allowed",
    "status": 403,
    "detail": "This project is somebody else's.",
    "request_id": "5ac1f0e2b7d94d0c"
}))]
pub struct Problem {
    /// Which problem it is: an address with a page that explains it. Its last
    /// segment is the slug by which this document names problems.
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
    paths(
        create_project::handle,
        list_projects::handle,
        project::handle,
        standing::disable,
        standing::enable,
        standing::delete,
        standing::restore,
        environment::handle,
        deployment::handle,
        deployed_file::handle,
        rollback::handle,
        backend::handle,
        isolation::handle,
        frames::handle,
        test_token::handle,
        logs::handle,
        log_stream::handle,
        players::handle,
        player_chart::handle,
        errors::handle,
        ranking::handle,
        found_players::handle,
        player::handle,
        suspension::suspend,
        suspension::lift,
        sessions::end,
        events::handle,
        keys::list,
        keys::rotate,
        keys::revoke,
        guests::handle,
        projects::handle,
        owner::handle,
        handle,
    ),
    components(schemas(Problem, EnvironmentName, Level, Source, Chart, Theme)),
    modifiers(&Common),
    security(("token" = []))
)]
struct Api;

/// The description.
#[must_use]
pub fn description() -> utoipa::openapi::OpenApi {
    Api::openapi()
}

/// Answers this description. It takes no token: everybody may read it.
///
/// # Errors
/// None that is expected.
#[utoipa::path(
    get,
    path = "/api/openapi.json",
    operation_id = "describe",
    security(()),
    responses((status = 200, description = "The description (OpenAPI 3.1).", body = Object))
)]
pub async fn handle() -> Result<Response, ApiError> {
    answer(StatusCode::OK, &description())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_description_is_what_was_looked_at() {
        // Whether serde_json keeps the order of maps depends on what else is built.
        insta::with_settings!({ sort_maps => true }, {
            insta::assert_json_snapshot!(description());
        });
    }
}
