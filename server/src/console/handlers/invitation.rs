//! `GET /invitations` on the platform origin: the page on which an account accepts an invitation to
//! a project. The invitation's secret is the fragment of its address, which only the page's script
//! reads.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use platform_protocol::paths;

use super::build::sign_in;
use crate::console::ConsoleState;
use crate::console::files::Scripts;
use crate::web::page::{self, Layout};

#[derive(Template)]
#[template(path = "invitation.html")]
struct Invitation<'a> {
    frame: Layout,
    scripts: Scripts,
    auth_url: &'a str,
    sign_in: String,
}

/// Returns the page, which is the same for every invitation.
pub async fn handle(State(state): State<Arc<ConsoleState>>) -> Response {
    let page = Invitation {
        frame: Layout::new(&state.platform.origin),
        scripts: state.files.scripts("invitation"),
        auth_url: &state.platform.auth_url,
        sign_in: sign_in(&state, paths::INVITATION_PAGE),
    };
    page::render_console(&page, &state.platform.auth_url, None)
}
