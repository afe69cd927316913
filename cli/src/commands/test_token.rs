//! `platform test-token`: a token of one of the project's test players.

use http::{Request, header};
use platform_protocol::token::TestTokenAnswer;
use serde_json::json;

use super::Context;
use crate::client::json as json_body;
use crate::failure::Failure;
use crate::terminal;

/// Prints the token, or the platform's whole response.
pub(super) async fn run(
    context: &Context<'_>,
    number: u8,
    guest: bool,
    json: bool,
) -> Result<(), Failure> {
    let settings = context.settings()?;
    let slug = settings.project()?;
    let address = format!("{}/api/projects/{slug}/test-tokens", settings.origin);
    let session = context.session(&settings)?;
    session.look_whose(slug).await?;
    let answer = session
        .ask(|| {
            let body = json_body(&json!({"number": number, "guest": guest}))?;
            let request = Request::post(&address).header(header::CONTENT_TYPE, "application/json");
            Ok((request, body))
        })
        .await?;
    let token: TestTokenAnswer = answer.json()?;
    if !json {
        return terminal::print(&format!("{}\n", token.access_token));
    }
    let line = serde_json::to_string(&token)
        .map_err(|error| Failure::failed(format!("The token cannot be written: {error}.")))?;
    terminal::print(&format!("{line}\n"))
}
