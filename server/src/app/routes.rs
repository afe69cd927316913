//! The table of hosts and paths, grouped by callers.

use std::sync::Arc;

use axum::http::HeaderValue;
use axum::middleware::{from_fn, from_fn_with_state, map_response};
use axum::response::Response;
use axum::routing::{MethodRouter, any, get, post};
use axum::{Extension, Router};
use platform_protocol::command_line::VERSION_HEADER;
use platform_protocol::paths;
use platform_protocol::problem::ProblemCode;
use tower::util::MapFutureLayer;

use crate::app::matched_route::NoteRoute;
use crate::app::state::AppState;
use crate::app::{guard, openapi};
use crate::auth::demo_provider::{self, DemoProvider};
use crate::auth::handlers::{
    callback, demo_provider as demo, device, frame, game_continue, game_token, hand_off, key_set,
    metadata, new_guest, pane, profile, restore_guest, sign_in_page, sign_out, sign_out_page,
    start_sign_in, token,
};
use crate::console::files;
use crate::console::handlers::{
    admin as admin_pages, build, command_line, console, documents, game_page, icon, invitation,
    problem_page, project, security_txt, stylesheet,
};
use crate::games::GamesState;
use crate::hosting::handlers::{platform_json, runtime_files};
use crate::logs::handlers as logs;
use crate::platform::metrics::requests::HostKind;
use crate::players::handlers as players;
use crate::projects;
use crate::web::api_error::ApiError;
use crate::web::cors;
use crate::web::page::{ICON, STYLESHEET};
use crate::web::return_address::DEVICE_PAGE;

/// The path of the icon for pages that do not name one.
const FAVICON: &str = "/favicon.ico";

/// One router per host.
#[derive(Clone, Debug)]
pub struct Routes {
    /// `platform.localhost`
    pub console: Router,
    /// `auth.platform.localhost`
    pub auth: Router,
    /// The platform's own paths on `<slug>.platform.localhost` and `dev-<slug>.platform.localhost`;
    /// all other paths belong to the game.
    pub game: Router,
    /// The platform's own paths on the address of a pane of the Build page.
    pub pane: Router,
}

/// Returns the routers of all hosts.
#[must_use]
pub fn routes(state: &AppState) -> Routes {
    routes_with(state, openapi::calls().into())
}

/// Returns the routers of all hosts, with the endpoints of the project API.
pub(super) fn routes_with(state: &AppState, api: Router<AppState>) -> Routes {
    let version = state.console.command_line.release.as_ref();
    let version = version.map(|release| release.header.clone());
    let note = |host| NoteRoute::of(host, &state.platform.metrics);
    let (console, auth) = (note(HostKind::Console), note(HostKind::Auth));
    let (game, pane) = (note(HostKind::Game), note(HostKind::Pane));
    Routes {
        console: in_time(
            console_routes(naming(version.clone(), api)),
            console.clone(),
        )
        .merge(naming(version, upload_routes(console)))
        .with_state(state.clone()),
        auth: in_time(auth_routes(state), auth.clone())
            .merge(cookie_routes(&state.games, auth))
            .with_state(state.clone()),
        game: in_time(
            game_routes(get(runtime_files::script)).merge(session_routes()),
            game,
        )
        .with_state(state.clone()),
        pane: in_time(pane_routes(&state.games), pane).with_state(state.clone()),
    }
}

/// For people in a browser, and the project API for the command line, the console's own pages, and
/// programs.
fn console_routes(api: Router<AppState>) -> Router<AppState> {
    Router::new()
        .route("/", get(console::handle))
        .route(
            &format!("{}/{{slug}}", paths::GAME_PAGES),
            get(game_page::handle),
        )
        .route(paths::BUILD_PAGES, get(build::projects))
        .route(paths::INVITATION_PAGE, get(invitation::handle))
        .route(
            &format!("{}/{{slug}}", paths::BUILD_PAGES),
            get(build::project),
        )
        .merge(project::routes())
        .merge(admin_pages::routes())
        .route(paths::CLI_PAGES, get(command_line::page))
        .route(
            &format!("{}/{{name}}", paths::CLI_PAGES),
            get(command_line::file),
        )
        .route(
            &format!("{}/{{version}}/{{name}}", files::FOLDERS),
            get(build::file),
        )
        .route(paths::DOCUMENT_PAGES, get(documents::index))
        .route(
            &format!("{}/{{name}}", paths::DOCUMENT_PAGES),
            get(documents::document),
        )
        .merge(api)
        .route(STYLESHEET, get(stylesheet::handle))
        .route(ICON, get(icon::handle))
        .route(FAVICON, get(icon::handle))
        .route(security_txt::PATH, get(security_txt::handle))
        .fallback(nothing_here)
}

/// Names the version of the command line that the platform hands out in every answer, so that the
/// command line need not ask for it.
fn naming(version: Option<HeaderValue>, routes: Router<AppState>) -> Router<AppState> {
    let Some(version) = version else {
        return routes;
    };
    routes.layer(map_response(move |mut response: Response| {
        let headers = response.headers_mut();
        headers.insert(VERSION_HEADER, version.clone());
        std::future::ready(response)
    }))
}

/// Endpoints that receive archives.
fn upload_routes(note: NoteRoute) -> Router<AppState> {
    Router::from(projects::upload_routes())
        .method_not_allowed_fallback(wrong_method)
        .layer((note, from_fn(guard::upload)))
}

/// Endpoints that games' pages request with the player's cookie.
fn cookie_routes(games: &Arc<GamesState>, note: NoteRoute) -> Router<AppState> {
    let routes = Router::new()
        .route(paths::TOKEN, post(token::handle).options(token::preflight))
        .route(
            paths::SIGN_OUT,
            get(sign_out_page::show)
                .post(sign_out::handle)
                .options(token::preflight),
        );
    // CORS is the outer layer, so that the page may read every response.
    let origins = from_fn_with_state(Arc::clone(games), cors::with_cookie::<GamesState>);
    in_time(routes, note.clone()).layer((note, origins))
}

/// For the runtime of every game, verifiers, and people.
fn auth_routes(state: &AppState) -> Router<AppState> {
    let routes = Router::new()
        .route(paths::JWKS, get(key_set::handle))
        .route(paths::METADATA, get(metadata::handle))
        .route(paths::PLATFORM, get(platform_json::handle))
        .route(
            &format!("{}{{slug}}", paths::PROBLEMS),
            get(problem_page::handle),
        )
        .route(paths::LOGIN, get(sign_in_page::handle))
        .route(
            &format!("{}/{{provider}}", paths::LOGIN),
            post(start_sign_in::handle),
        )
        .route(paths::CONTINUE, get(hand_off::handle))
        .route(paths::FRAME, get(frame::show).post(frame::submit))
        .route(frame::SCRIPT, get(frame::script))
        .route(sign_out_page::FORM, post(sign_out_page::submit))
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
        .route(profile::data::PATH, post(profile::data::handle))
        .route(
            profile::deletion::PATH,
            get(profile::deletion::show).post(profile::deletion::change),
        )
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

/// For the command line, and its user in a browser.
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

/// For the platform itself, and for people on this machine.
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

/// Paths on a game's address that its page requests from the platform.
fn game_routes(script: MethodRouter<AppState>) -> Router<AppState> {
    Router::new()
        .route(paths::RUNTIME_JS, script)
        .route(paths::RUNTIME_MAP, get(runtime_files::source_map))
        .route(paths::PLATFORM, get(platform_json::handle))
        .route(paths::HEARTBEAT, post(players::heartbeat::handle))
        .route(paths::LOGS, post(logs::ingest::handle))
        .route("/__platform", any(nothing_here))
        .route(paths::PREFIX, any(nothing_here))
        .route(&format!("{}{{*path}}", paths::PREFIX), any(nothing_here))
}

/// The session of a game that is apart, on its own address.
fn session_routes() -> Router<AppState> {
    Router::new()
        .route(paths::GAME_TOKEN, post(game_token::handle))
        .route(paths::GAME_SIGN_OUT, post(game_token::sign_out))
        .route(
            paths::GAME_CONTINUE,
            get(game_continue::handle).post(game_continue::redeem_in_frame),
        )
}

/// The same on the address of a pane, which issues the tokens of its player itself.
fn pane_routes(games: &Arc<GamesState>) -> Router<AppState> {
    let console = Arc::new(pane::ConsoleAlone(Arc::clone(games)));
    let begin = post(pane::begin);
    let begin = begin.layer(from_fn_with_state(
        console,
        cors::with_cookie::<pane::ConsoleAlone>,
    ));
    let below = |path: &str| format!("{}{path}", paths::PANE);
    game_routes(get(runtime_files::script_of_pane))
        .route(paths::PANE, begin)
        .route(&below(paths::TOKEN), post(pane::token))
        .route(&below(paths::SIGN_OUT), post(pane::sign_out))
        .route(&below(paths::LOGIN), get(pane::back))
        .route(&below(paths::PROFILE), get(pane::back))
}

/// Adds responses for handlers that take too long, and for methods that a path does not support.
fn in_time(routes: Router<AppState>, note: NoteRoute) -> Router<AppState> {
    // One layer of two parts, since each layer boxes every request once more.
    routes
        .method_not_allowed_fallback(wrong_method)
        .layer((note, MapFutureLayer::new(guard::in_time)))
}

async fn nothing_here() -> ApiError {
    ProblemCode::NotFound.into()
}

/// The router adds `Allow` (RFC 9110 §15.5.6) to this response.
async fn wrong_method() -> ApiError {
    ProblemCode::MethodNotAllowed.into()
}
