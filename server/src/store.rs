//! Opens the store that the settings name.

use std::path::Path;
use std::sync::Arc;

pub use platform_store::*;
pub(crate) use platform_store_sqlite::make_private_directory;
#[cfg(feature = "demo")]
pub(crate) use platform_store_sqlite::make_private_file;
pub use platform_store_sqlite::{CheckedCopy, CopyFault, SqliteStore};

/// Opens the store at `url`: `sqlite://<path>`, which is created if it does not exist, or
/// `postgres://…`, a database that exists.
///
/// # Errors
/// [`ConnectError`]; its sentence is for the operator.
pub async fn connect(url: &str, schema: SchemaPolicy) -> Result<Arc<dyn Store>, ConnectError> {
    connect_with_logs(url, None, schema).await
}

/// Opens the store at `url`, like [`connect`]. Frontend logs are in the PostgreSQL database at
/// `logs`; without it, they are next to the rest.
///
/// # Errors
/// [`ConnectError`]
pub async fn connect_with_logs(
    url: &str,
    logs: Option<&str>,
    schema: SchemaPolicy,
) -> Result<Arc<dyn Store>, ConnectError> {
    match url.split_once("://") {
        Some(("sqlite", path)) if !path.is_empty() && !path.ends_with('/') => {
            let store = SqliteStore::open(Path::new(path), schema).await?;
            Ok(Arc::new(store))
        }
        Some(("postgres" | "postgresql", _)) => connect_postgres(url, logs, schema).await,
        // An address may contain a password, so only its scheme is repeated.
        Some((scheme, _)) => Err(ConnectError::Address(format!("{scheme}://…"))),
        None => Err(ConnectError::Address("an address without a scheme".into())),
    }
}

#[cfg(feature = "cluster")]
async fn connect_postgres(
    url: &str,
    logs: Option<&str>,
    schema: SchemaPolicy,
) -> Result<Arc<dyn Store>, ConnectError> {
    let store = platform_store_postgres::PostgresStore::open(url, logs, schema).await?;
    Ok(Arc::new(store))
}

#[cfg(not(feature = "cluster"))]
async fn connect_postgres(
    _url: &str,
    _logs: Option<&str>,
    _schema: SchemaPolicy,
) -> Result<Arc<dyn Store>, ConnectError> {
    Err(ConnectError::Unsupported("PostgreSQL"))
}

/// Opens the PostgreSQL database at `url`, which may be a standby, to read its rows; `logs` for
/// those of frontend logs.
///
/// # Errors
/// [`ConnectError`]
#[cfg(feature = "cluster")]
pub async fn open_shared_rows(
    url: &str,
    logs: Option<&str>,
) -> Result<Box<dyn transfer::RowSource>, ConnectError> {
    let rows = platform_store_postgres::PostgresRows::open(url, logs).await?;
    Ok(Box::new(rows))
}

/// Creates an embedded store in `folder` to move rows into it.
///
/// # Errors
/// [`ConnectError`]
#[cfg(feature = "cluster")]
pub async fn create_embedded_rows(
    folder: &Path,
) -> Result<Box<dyn transfer::RowTarget>, ConnectError> {
    let path = folder.join("platform.db");
    let rows = platform_store_sqlite::SqliteRows::create(&path).await?;
    Ok(Box::new(rows))
}

/// Opens the embedded store at `path` to move its rows.
///
/// # Errors
/// [`ConnectError`]
#[cfg(feature = "cluster")]
pub async fn open_embedded_rows(path: &Path) -> Result<Box<dyn transfer::RowSource>, ConnectError> {
    let rows = platform_store_sqlite::SqliteRows::open(path).await?;
    Ok(Box::new(rows))
}

/// Opens PostgreSQL databases to move rows into them, `logs` for those of frontend logs.
///
/// # Errors
/// [`ConnectError`]
#[cfg(feature = "cluster")]
pub async fn create_shared_rows(
    url: &str,
    logs: Option<&str>,
) -> Result<Box<dyn transfer::RowTarget>, ConnectError> {
    let rows = platform_store_postgres::PostgresRows::create(url, logs).await?;
    Ok(Box::new(rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn addresses_of_other_stores_are_refused_without_repeating_passwords() {
        // Nobody listens on port 1.
        let url = "postgres://platform:hunter2@127.0.0.1:1/platform";
        let postgres = connect(url, SchemaPolicy::Upgrade).await.unwrap_err();
        let said = crate::domain::errors::chain(&postgres);
        assert!(!said.contains("hunter2"), "{said}");
        if cfg!(not(feature = "cluster")) {
            assert!(
                said.contains("--features platform-server/cluster"),
                "{said}"
            );
        }
        for url in [
            "mysql://platform:hunter2@localhost/x",
            "sqlite://",
            "sqlite:///x/",
            "hunter2",
        ] {
            let error = connect(url, SchemaPolicy::Upgrade).await.unwrap_err();
            assert!(matches!(error, ConnectError::Address(_)), "{url}");
            assert!(!error.to_string().contains("hunter2"), "{error}");
        }
    }
}
