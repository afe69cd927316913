//! `platform logout`: revokes the sign-in and forgets it.

use super::Context;
use crate::credentials::Credentials;
use crate::failure::Failure;
use crate::terminal;

/// Signs out. The local file forgets the sign-in even if the platform cannot be reached; the
/// command then reports that failure.
pub(super) async fn run(context: &Context<'_>) -> Result<(), Failure> {
    let settings = context.settings()?;
    let http = context.http(&settings)?;
    let credentials = Credentials::locate(context.environment)?;
    let locked = credentials.lock(settings.timeout * 3).await?;
    let Some(entry) = locked.sign_out(&settings.origin)? else {
        terminal::note(format_args!("Nobody was signed in at {}.", settings.origin));
        return Ok(());
    };
    let revoked = async {
        let metadata = http.metadata().await?;
        http.revoke(&metadata, &entry.refresh_token).await
    };
    if let Err(failure) = revoked.await {
        terminal::note(
            "This machine is signed out, but the sign-in could not be ended on the platform: end \
             it on your profile page.",
        );
        return Err(failure);
    }
    terminal::note(format_args!("Signed out of {}.", settings.origin));
    if settings.token.is_some() {
        terminal::warn("PLATFORM_TOKEN is set and is still used.");
    }
    Ok(())
}
