//! `platform runtime`: the script that the game's dev address serves, for a
//! local dev server.

use bytes::Bytes;
use http::Request;
use platform_protocol::names::Environment;
use platform_protocol::paths::RUNTIME_JS;

use super::Context;
use crate::client::{Http, empty, finish};
use crate::failure::Failure;
use crate::terminal;

/// Prints the script. It is public, so no sign-in is needed.
pub(super) async fn run(context: &Context<'_>) -> Result<(), Failure> {
    let settings = context.settings()?;
    let script = fetch(&context.http(&settings)?, settings.project()?).await?;
    terminal::print_file(&script)
}

/// Fetches the script of the game `slug`.
///
/// # Errors
/// No response, or one that is no script.
pub(super) async fn fetch(http: &Http, slug: &str) -> Result<Bytes, Failure> {
    let dev = http.games_origin().await.game_url(slug, Environment::Dev);
    let request = finish(Request::get(format!("{dev}{RUNTIME_JS}")), empty())?;
    let answer = http.send(request).await?.done()?;
    // A proxy in front of the platform may respond with a page of its own.
    if !answer.is_of_type("text/javascript") {
        return Err(answer.not_understood());
    }
    Ok(answer.body)
}
