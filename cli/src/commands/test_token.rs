//! `platform test-token`: a token of one of the project's test players.

use http::{Request, header};
use platform_protocol::token::TestTokenAnswer;
use serde_json::json;

use super::Context;
use crate::client::json as json_body;
use crate::failure::Failure;
use crate::session::Session;
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
    let session = context.session(&settings)?;
    let token = issue(&session, slug, number, guest).await?;
    if !json {
        return terminal::print(&token.access_token);
    }
    terminal::print(json_of(&token)?)
}

/// Has the platform issue the token of a test player of the project `slug`.
///
/// # Errors
/// No account is signed in, or the platform refuses.
pub(super) async fn issue(
    session: &Session,
    slug: &str,
    number: u8,
    guest: bool,
) -> Result<TestTokenAnswer, Failure> {
    let origin = session.http().origin();
    let address = format!("{origin}/api/projects/{slug}/test-tokens");
    session.look_whose(slug).await?;
    let answer = session
        .ask(|| {
            let body = json_body(&json!({"number": number, "guest": guest}))?;
            let request = Request::post(&address).header(header::CONTENT_TYPE, "application/json");
            Ok((request, body))
        })
        .await?;
    answer.json()
}

/// The platform's whole response.
///
/// # Errors
/// It cannot be written as JSON, which is a fault of the program.
pub(super) fn json_of(token: &TestTokenAnswer) -> Result<String, Failure> {
    serde_json::to_string(token)
        .map_err(|error| Failure::failed(format!("The token cannot be written: {error}.")))
}
