//! `platform token`: a token of one's own for the project API.

use super::Context;
use crate::failure::Failure;
use crate::terminal;

/// Prints a token that was given just now, so that all of its life is left.
pub(super) async fn run(context: &Context<'_>) -> Result<(), Failure> {
    let settings = context.settings()?;
    let token = context.session(&settings)?.fresh_token().await?;
    terminal::print(&format!("{}\n", token.expose()))
}
