//! `platform token`: prints the caller's own token for the project API.

use super::Context;
use crate::failure::Failure;
use crate::terminal;

/// Prints a newly issued token, so that its whole life is left.
pub(super) async fn run(context: &Context<'_>) -> Result<(), Failure> {
    let settings = context.settings()?;
    let token = context.session(&settings)?.fresh_token().await?;
    terminal::print(token.expose())
}
