//! What precedes every act of a developer on groups of errors: it is counted, and recorded in the
//! audit log. The groups lie in another database than that log, so the event is written first.

use crate::auth::project_caller::ProjectEditor;
use crate::domain::audit::AuditKind;
use crate::logs::LogsState;
use crate::projects::settings_limits::Act;
use crate::web::api_error::ApiError;

/// Counts an act against the limits of the caller.
///
/// # Errors
/// `too-many-requests`.
pub(super) async fn count(state: &LogsState, editor: &ProjectEditor) -> Result<(), ApiError> {
    let ProjectEditor {
        caller,
        project,
        access,
        ..
    } = editor;
    state
        .projects
        .count(Act::ErrorDecision, caller, project, *access)
        .await
}

/// Records an act.
///
/// # Errors
/// Errors of the store; the act must then not happen.
pub(super) async fn record(
    state: &LogsState,
    editor: &ProjectEditor,
    kind: AuditKind,
    detail: &str,
) -> Result<(), ApiError> {
    let act = (editor.project.slug.as_str(), detail);
    let now = state.platform.clock.now();
    let store = &state.platform.store;
    store
        .note_project_act(kind, act, editor.by(), now)
        .await
        .map_err(ApiError::from)
}
