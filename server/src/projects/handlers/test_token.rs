//! `POST /api/projects/<slug>/test-tokens`: a token of one of the project's
//! test players, for the dev environment alone.

use std::sync::Arc;

use axum::extract::State;
use platform_protocol::limits::{TEST_TOKEN_SECONDS, TEST_USERS};
use platform_protocol::names::Environment;
use platform_protocol::problem::ProblemCode;
use platform_protocol::token::{BEARER, TestTokenAnswer};
use serde::Deserialize;
use serde_json::Number;
use utoipa::ToSchema;

use crate::auth::panes;
use crate::auth::project_caller::{ProjectEditor, ProjectPath};
use crate::platform::metrics::TokenKind;
use crate::projects::ProjectsState;
use crate::store::StoreError;
use crate::web::api::{ApiJson, invalid};
use crate::web::api_error::ApiError;

/// A test player.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TestPlayer {
    /// The number of the test player, 1 to 10.
    #[schema(value_type = u8, minimum = 1, maximum = 10, example = 3)]
    pub number: Number,
    /// Whether it is a test guest instead of a test user.
    #[serde(default)]
    pub guest: bool,
}

impl TestPlayer {
    fn number(&self) -> Option<u8> {
        one_of(&self.number, TEST_USERS)
    }
}

/// Returns a number from 1 to `last`. JSON can represent integers in several ways, such as `3` and
/// `3.0` (RFC 8259 §6).
pub(super) fn one_of(number: &Number, last: u8) -> Option<u8> {
    let number = number.as_f64()?;
    (1..=last).find(|known| (f64::from(*known) - number).abs() < f64::EPSILON)
}

/// A test player's token.
#[derive(Debug, ToSchema)]
#[expect(
    dead_code,
    reason = "it describes the answer, which another crate defines"
)]
pub struct TestToken {
    /// The game token, a compact JWS.
    access_token: String,
    /// Always `Bearer`.
    token_type: String,
    /// Seconds from now until the token ends.
    expires_in: u64,
    /// The test player's id.
    #[schema(format = "uuid")]
    sub: String,
    /// `test-user-<n>` or `test-guest-<n>`.
    username: String,
}

/// Mints a test player's token.
///
/// # Errors
/// `not-deployed`, `project-disabled`, `not-found`, `not-allowed`,
/// `invalid-request`.
#[utoipa::path(
    post,
    path = "/api/projects/{slug}/test-tokens",
    operation_id = "mintTestToken",
    params(ProjectPath),
    request_body = TestPlayer,
    responses(
        (status = 200, description = "The token.", body = TestToken),
        (status = 409, description = "`not-deployed`."),
    )
)]
pub async fn handle(
    State(state): State<Arc<ProjectsState>>,
    editor: ProjectEditor,
    wanted: Result<ApiJson<TestPlayer>, ApiError>,
) -> Result<ApiJson<TestTokenAnswer>, ApiError> {
    let slug = &editor.project.slug;
    let player = test_player(&state, &editor, wanted).await?;
    let issued = u64::try_from(state.platform.clock.now() / 1_000).unwrap_or(0);
    let audience = Environment::Dev.audience(slug);
    let times = (issued, TEST_TOKEN_SECONDS);
    let claims = panes::test_claims(&state.auth, &player, audience, times);
    let access_token = state
        .auth
        .keys
        .sign(&claims)
        .map_err(|error| ApiError::internal(&error))?;
    state.platform.metrics.token(TokenKind::Game);
    Ok(ApiJson(TestTokenAnswer {
        access_token,
        token_type: BEARER.to_owned(),
        expires_in: TEST_TOKEN_SECONDS,
        sub: claims.sub,
        username: claims.username,
    }))
}

/// Returns a test player of the caller's project.
///
/// # Errors
/// `not-deployed`, `project-disabled`, `invalid-request`.
pub(super) async fn test_player(
    state: &ProjectsState,
    editor: &ProjectEditor,
    wanted: Result<ApiJson<TestPlayer>, ApiError>,
) -> Result<panes::TestPlayer, ApiError> {
    let project = &editor.project;
    let standing = state.platform.store.find_standing(&project.slug).await?;
    if standing.is_some_and(|standing| standing.is_down()) {
        return Err(ApiError::new(ProblemCode::ProjectDisabled)
            .with_detail("This project is disabled, so no tokens are issued for its game."));
    }
    let ApiJson(wanted) = wanted?;
    let number = wanted
        .number()
        .ok_or_else(|| invalid("The number of a test player must be from 1 to 10."))?;
    let now = state.platform.clock.now();
    let fresh = state.platform.entropy.uuid_v7(now);
    let known = state.platform.store.ensure_test_player(
        &project.slug,
        wanted.guest,
        number,
        fresh,
        editor.by(),
        now,
    );
    let id = match known.await {
        Err(StoreError::Missing {
            table: "deployments",
        }) => {
            // Game developers read this, in a terminal or on a page of their own machine.
            return Err(ApiError::new(ProblemCode::NotDeployed).with_detail(
                "Test players exist after the first deploy: build the game and run \"platform \
                 deploy\" once.",
            ));
        }
        known => known?,
    };
    let kind = if wanted.guest { "guest" } else { "user" };
    Ok(panes::TestPlayer {
        id,
        username: format!("test-{kind}-{number}"),
        is_guest: wanted.guest,
    })
}
