//! The operator's commands, which can run while the server runs.

pub(crate) mod admin;
pub(crate) mod backup;
pub(crate) mod deploy_token;
pub(crate) mod doctor;
pub(crate) mod events;
pub(crate) mod keys;
pub(crate) mod moving;
pub(crate) mod output;
pub(crate) mod player;
#[cfg(feature = "cluster")]
pub(crate) mod progress;
pub(crate) mod project;
pub(crate) mod ready;
pub(crate) mod restore;
pub(crate) mod setup;

/// Returns why the store that options name could not be opened, with the option. `names` are those of
/// its database and of the one of log records.
#[cfg(feature = "cluster")]
pub(crate) fn not_opened(names: [&str; 2], error: &platform_server::store::ConnectError) -> String {
    use platform_server::domain::errors::chain;
    use platform_server::store::ConnectError;

    let [main, logs] = names;
    match error {
        // These name settings of the server.
        ConnectError::Database(cause) => {
            format!(
                "{main}: the database could not be opened: {}",
                chain(&**cause)
            )
        }
        ConnectError::Logs(cause) => {
            format!(
                "{logs}: the database of log records could not be opened: {}",
                chain(&**cause)
            )
        }
        other => format!("{main}: {}", chain(other)),
    }
}
