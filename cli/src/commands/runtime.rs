//! `platform runtime`: the script that the game's dev address serves, for a
//! local dev server.

use http::Request;
use platform_protocol::names::Environment;
use platform_protocol::paths::RUNTIME_JS;

use super::Context;
use crate::client::{empty, finish};
use crate::failure::Failure;
use crate::terminal;

/// Prints the script. It is public, so no sign-in is needed.
pub(super) async fn run(context: &Context<'_>) -> Result<(), Failure> {
    let settings = context.settings()?;
    let dev = settings
        .origin
        .game_url(settings.project()?, Environment::Dev);
    let request = finish(Request::get(format!("{dev}{RUNTIME_JS}")), empty())?;
    let answer = context.http(&settings)?.send(request).await?.done()?;
    // A proxy in front of the platform may respond with a page of its own.
    if !answer.is_of_type("text/javascript") {
        return Err(answer.not_understood());
    }
    terminal::print_bytes(&answer.body)
}
