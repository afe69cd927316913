//! `platform whoami`: the account for which the platform accepts the caller's credentials.

use serde_json::json;

use super::Context;
use crate::failure::Failure;
use crate::session::Bearer;
use crate::terminal::{self, plain};

/// Prints the account. The platform is asked, so that a sign-in that was revoked elsewhere is
/// noticed, and the name is current.
pub(super) async fn run(context: &Context<'_>, json: bool) -> Result<(), Failure> {
    let settings = context.settings()?;
    let token = context.session(&settings)?.fresh_token().await?;
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
    let (name, sub) = (plain(&bearer.username), plain(&bearer.sub));
    terminal::print(&format!("{name} ({sub}) at {}\n", settings.origin))
}
