//! `POST /api/projects/<slug>/panes`: a session of one of the Build page's panes, in which a test
//! player plays the dev environment.

use std::sync::Arc;

use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::Number;
use utoipa::ToSchema;

use super::test_token::{TestPlayer, one_of, test_player};
use crate::auth::panes::{self, Condition, SESSION_SECONDS};
use crate::auth::project_caller::{ProjectEditor, ProjectPath};
use crate::games::panes::{PANES, label};
use crate::projects::ProjectsState;
use crate::web::api::{ApiJson, invalid};
use crate::web::api_error::ApiError;

/// A pane, who plays in it, and what happens there.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PaneWish {
    /// The number of the pane, 1 to 4.
    #[schema(value_type = u8, minimum = 1, maximum = 4, example = 1)]
    pub pane: Number,
    /// The number of the test player, 1 to 10.
    #[schema(value_type = u8, minimum = 1, maximum = 10, example = 3)]
    pub number: Number,
    /// Whether it is a test guest instead of a test user.
    #[serde(default)]
    pub guest: bool,
    /// What happens in the pane.
    #[serde(default)]
    pub condition: Condition,
}

/// A session of a pane.
#[derive(Debug, Serialize, ToSchema)]
pub struct PaneAnswer {
    /// The pane's address, without a trailing slash.
    #[schema(example = "http://pane-1--dev-my-game.platform.localhost:8787")]
    origin: String,
    /// The session, which the page posts to `/__platform/pane` on the pane's address.
    session: String,
    /// Seconds from now until the session ends.
    expires_in: u64,
    /// The test player's id.
    #[schema(format = "uuid")]
    sub: String,
    /// `test-user-<n>` or `test-guest-<n>`.
    username: String,
}

/// Begins or renews a pane's session.
///
/// # Errors
/// `not-deployed`, `project-disabled`, `not-found`, `not-allowed`,
/// `invalid-request`.
#[utoipa::path(
    post,
    path = "/api/projects/{slug}/panes",
    operation_id = "openPane",
    params(ProjectPath),
    request_body = PaneWish,
    responses(
        (status = 200, description = "The session.", body = PaneAnswer),
        (status = 409, description = "`not-deployed`."),
    )
)]
pub async fn handle(
    State(state): State<Arc<ProjectsState>>,
    editor: ProjectEditor,
    wish: Result<ApiJson<PaneWish>, ApiError>,
) -> Result<ApiJson<PaneAnswer>, ApiError> {
    let ApiJson(wish) = wish?;
    let pane = one_of(&wish.pane, PANES)
        .ok_or_else(|| invalid("The number of a pane must be from 1 to 4."))?;
    let wanted = TestPlayer {
        number: wish.number,
        guest: wish.guest,
    };
    let player = test_player(&state, &editor, Ok(ApiJson(wanted))).await?;
    let label = label(pane, &editor.project.slug);
    let now = state.platform.clock.now();
    let content = (&player, wish.condition);
    let opener = editor.caller.opener();
    let session = panes::seal(&state.auth, &label, content, &opener, now)?;
    Ok(ApiJson(PaneAnswer {
        origin: state.platform.games_origin.sub_domain(&label),
        session,
        expires_in: SESSION_SECONDS,
        sub: player.id.to_string(),
        username: player.username,
    }))
}
