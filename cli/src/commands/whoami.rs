//! `platform whoami`: the account for which the platform accepts the caller's credentials.

use serde_json::json;

use super::Context;
use crate::failure::Failure;
use crate::session::Bearer;
use crate::terminal;

/// Prints the account. The platform is asked, so that a sign-in that was revoked elsewhere is
/// noticed, and the name is current.
pub(super) async fn run(context: &Context<'_>, json: bool) -> Result<(), Failure> {
    let settings = context.settings()?;
    let session = context.session(&settings)?;
    if session.is_deploy_token() {
        return Err(Failure::failed(
            "PLATFORM_TOKEN is a deploy token, which is nobody's account: it works for one project, \
             within its scopes. Where you are signed in, `platform tokens list` shows both.",
        ));
    }
    let token = session.fresh_token().await?;
    let bearer = Bearer::of(&token).ok_or_else(|| {
        Failure::failed("The platform's token cannot be read: this program may be too old for it.")
    })?;
    if json {
        let account = json!({
            "origin": settings.origin.to_string(),
            "sub": bearer.sub,
            "username": bearer.username,
        });
        return terminal::print_json(&account);
    }
    terminal::print(format_args!(
        "{} ({}) at {}",
        bearer.username, bearer.sub, settings.origin
    ))
}
