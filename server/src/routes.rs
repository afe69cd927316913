//! The one table of hosts and paths, grouped by who calls.

use std::sync::Arc;

use axum::routing::{any, get, post, put};
use axum::{Extension, Router};
use platform_protocol::paths;
use platform_protocol::problem::Slug;

use crate::demo_provider::{self, DemoProvider};
use crate::handlers::{
    admin, api, build, callback, console, demo_provider as demo, device, heartbeat, icon, key_set,
    login, logs, metadata, new_guest, problem_page, profile, project, restore_guest, runtime_files,
    security_txt, sign_in, sign_out, stylesheet, token, whereabouts,
};
use crate::http::page::{ICON, STYLESHEET};
use crate::http::refusal::Refusal;
use crate::redirect::DEVICE_PAGE;
use crate::state::AppState;

/// Where browsers look for an icon that no page has named.
const FAVICON: &str = "/favicon.ico";
/// The end of the path that an archive is sent to.
const DEPLOYMENT: &str = "/deployment";

/// One router a host.
#[derive(Clone, Debug)]
pub struct Routes {
    /// `platform.localhost`
    pub console: Router,
    /// `auth.platform.localhost`
    pub auth: Router,
    /// The platform's own paths on `<slug>.platform.localhost` and
    /// `dev-<slug>.platform.localhost`; whatever else there is, is the game's.
    pub game: Router,
}

/// The routers of all hosts.
#[must_use]
pub fn routes(state: &AppState) -> Routes {
    Routes {
        console: with_state(console_routes(), state),
        auth: with_state(auth_routes(state), state),
        game: with_state(game_routes(), state),
    }
}

/// People, in a browser.
fn console_routes() -> Router<AppState> {
    Router::new()
        .route("/", get(console::handle))
        .route(paths::BUILD_PAGES, get(build::projects))
        .route(
            &format!("{}/{{slug}}", paths::BUILD_PAGES),
            get(build::project),
        )
        .route(
            &format!("{}/{{slug}}", paths::PROJECT_PAGES),
            get(project::handle),
        )
        .merge(admin::routes())
        .route("/static/console.css", get(build::stylesheet))
        .route("/static/console/{name}", get(build::module))
        .merge(api_routes())
        .merge(api::admin::routes())
        .route(STYLESHEET, get(stylesheet::handle))
        .route(ICON, get(icon::handle))
        .route(FAVICON, get(icon::handle))
        .route(security_txt::PATH, get(security_txt::handle))
        .fallback(nothing_here)
}

/// The command line, the console's own pages, and programs.
fn api_routes() -> Router<AppState> {
    let project = "/api/projects/{slug}";
    let environment = format!("{project}/environments/{{environment}}");
    Router::new()
        .route("/api/openapi.json", get(api::openapi::handle))
        .route("/api/ranking", get(api::ranking::handle))
        .route(
            "/api/projects",
            get(api::list_projects::handle).post(api::create_project::handle),
        )
        .route(
            project,
            get(api::project::handle).delete(api::standing::delete),
        )
        .route(&format!("{project}/disable"), post(api::standing::disable))
        .route(&format!("{project}/enable"), post(api::standing::enable))
        .route(&format!("{project}/restore"), post(api::standing::restore))
        .route(
            &format!("{project}/test-tokens"),
            post(api::test_token::handle),
        )
        .route(&format!("{project}/logs"), get(api::logs::handle))
        .route(
            &format!("{project}/logs/stream"),
            get(api::log_stream::handle),
        )
        .route(&format!("{project}/players"), get(api::players::handle))
        .route(
            &format!("{project}/players/chart"),
            get(api::player_chart::handle),
        )
        .route(&format!("{project}/errors"), get(api::errors::handle))
        .route(&environment, get(api::environment::handle))
        .route(
            &format!("{environment}{DEPLOYMENT}"),
            put(api::deployment::handle),
        )
        .route(
            &format!("{environment}/rollback"),
            post(api::rollback::handle),
        )
        .route(
            &format!("{environment}/deployments/{{deployment}}/file"),
            get(api::deployed_file::handle),
        )
        .route(&format!("{environment}/backend"), put(api::backend::handle))
        .route(
            &format!("{environment}/isolation"),
            put(api::isolation::handle),
        )
        .route(&format!("{environment}/frames"), put(api::frames::handle))
}

/// The runtime of every game, verifiers, and people.
fn auth_routes(state: &AppState) -> Router<AppState> {
    let routes = Router::new()
        .route(paths::TOKEN, post(token::handle).options(token::preflight))
        .route(
            paths::SIGN_OUT,
            post(sign_out::handle).options(token::preflight),
        )
        .route(paths::JWKS, get(key_set::handle))
        .route(paths::METADATA, get(metadata::handle))
        .route(paths::PLATFORM, get(whereabouts::handle))
        .route(
            &format!("{}{{slug}}", paths::PROBLEMS),
            get(problem_page::handle),
        )
        .route(paths::LOGIN, get(login::handle))
        .route(
            &format!("{}/{{provider}}", paths::LOGIN),
            post(sign_in::handle),
        )
        .route(new_guest::PATH, post(new_guest::handle))
        .route(
            restore_guest::PATH,
            get(restore_guest::show).post(restore_guest::restore),
        )
        .route(
            &format!("{}{{provider}}", paths::CALLBACK),
            get(callback::handle),
        )
        .route(paths::PROFILE, get(profile::show).post(profile::change))
        .merge(device_routes())
        .route(STYLESHEET, get(stylesheet::handle))
        .route(ICON, get(icon::handle))
        .route(FAVICON, get(icon::handle))
        .route(security_txt::PATH, get(security_txt::handle))
        .fallback(nothing_here);
    match &state.auth.demo_provider {
        Some(provider) => routes.merge(demo_provider_routes(provider)),
        None => routes,
    }
}

/// The command line, and its person in a browser.
fn device_routes() -> Router<AppState> {
    Router::new()
        .route(
            DEVICE_PAGE,
            get(device::page::show).post(device::page::decide),
        )
        .route(device::AUTHORIZATION, post(device::authorization::handle))
        .route(device::TOKEN, post(device::token::handle))
        .route(device::REVOKE, post(device::revoke::handle))
}

/// The platform itself, and people on this machine who try it out.
fn demo_provider_routes(provider: &Arc<DemoProvider>) -> Router<AppState> {
    Router::new()
        .route(demo_provider::METADATA, get(demo::metadata))
        .route(demo_provider::JWKS, get(demo::key_set))
        .route(
            demo_provider::AUTHORIZE,
            get(demo::authorize::page).post(demo::authorize::answer),
        )
        .route(demo_provider::TOKEN, post(demo::token::handle))
        .layer(Extension(Arc::clone(provider)))
}

/// A game's page asks the platform.
fn game_routes() -> Router<AppState> {
    Router::new()
        .route(paths::RUNTIME_JS, get(runtime_files::script))
        .route(paths::RUNTIME_MAP, get(runtime_files::source_map))
        .route(paths::PLATFORM, get(whereabouts::handle))
        .route(paths::HEARTBEAT, post(heartbeat::handle))
        .route(paths::LOGS, post(logs::handle))
        .route("/__platform", any(nothing_here))
        .route(paths::PREFIX, any(nothing_here))
        .route(&format!("{}{{*path}}", paths::PREFIX), any(nothing_here))
}

/// Whether the game itself answers at this path of its address, by its files or
/// its backend, and not the platform.
#[must_use]
pub fn is_the_games(path: &str) -> bool {
    !path.starts_with(paths::PREFIX) && path != "/__platform"
}

/// The paths that ask with the player's cookie from a game's page, and so
/// answer with CORS headers.
#[must_use]
pub fn asks_with_cookie(path: &str) -> bool {
    matches!(path, paths::TOKEN | paths::SIGN_OUT)
}

/// The console's path that takes archives: as long as one flows, it may take
/// any time.
#[must_use]
pub fn takes_uploads(path: &str) -> bool {
    path.starts_with("/api/") && path.ends_with(DEPLOYMENT)
}

fn with_state(routes: Router<AppState>, state: &AppState) -> Router {
    routes
        .method_not_allowed_fallback(wrong_method)
        .with_state(state.clone())
}

async fn nothing_here() -> Refusal {
    Slug::NotFound.into()
}

/// The router adds `Allow` (RFC 9110 §15.5.6) to what this answers.
async fn wrong_method() -> Refusal {
    Slug::MethodNotAllowed.into()
}
