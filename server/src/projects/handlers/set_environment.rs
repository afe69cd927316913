//! What the endpoints that change a setting of an environment have in common.

use super::views::EnvironmentView;
use crate::auth::project_caller::EnvironmentEditor;
use crate::domain::environment_setting::EnvironmentSetting;
use crate::projects::ProjectsState;
use crate::projects::settings_limits::Act;
use crate::web::api_error::ApiError;

/// Stores a setting and has the games follow it.
///
/// # Errors
/// `too-many-requests`; errors of the store.
pub(super) async fn set(
    state: &ProjectsState,
    editor: &EnvironmentEditor,
    setting: EnvironmentSetting,
) -> Result<(), ApiError> {
    let (slug, environment, by) = (&editor.project.slug, editor.environment, editor.by());
    state
        .count(Act::Setting, &editor.caller, &editor.project, editor.access)
        .await?;
    let platform = &state.platform;
    let changed = platform
        .store
        .set_environment(slug, environment, setting, by, platform.clock.now())
        .await?;
    if changed {
        state.hosting.refresh(slug).await?;
    }
    Ok(())
}

/// Does the same, and returns the environment as it is then.
///
/// # Errors
/// Those of [`set`].
pub(super) async fn set_and_view(
    state: &ProjectsState,
    editor: &EnvironmentEditor,
    setting: EnvironmentSetting,
) -> Result<EnvironmentView, ApiError> {
    set(state, editor, setting).await?;
    EnvironmentView::of(state, &editor.project.slug, editor.environment).await
}
