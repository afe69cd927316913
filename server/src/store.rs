//! Opens the store that the settings name.

use std::path::Path;
use std::sync::Arc;

pub use platform_store::*;
use platform_store_sqlite::SqliteStore;
pub(crate) use platform_store_sqlite::make_private_directory;
#[cfg(feature = "demo")]
pub(crate) use platform_store_sqlite::make_private_file;

/// Opens the store at `url`: `sqlite://<path>`, which is created if it does not exist.
///
/// # Errors
/// [`ConnectError`]; its sentence is for the operator.
pub async fn connect(url: &str, schema: SchemaPolicy) -> Result<Arc<dyn Store>, ConnectError> {
    match url.split_once("://") {
        Some(("sqlite", path)) if !path.is_empty() && !path.ends_with('/') => {
            let store = SqliteStore::open(Path::new(path), schema).await?;
            Ok(Arc::new(store))
        }
        Some(("postgres" | "postgresql", _)) => Err(ConnectError::Unsupported("PostgreSQL")),
        // An address may contain a password, so only its scheme is repeated.
        Some((scheme, _)) => Err(ConnectError::Address(format!("{scheme}://…"))),
        None => Err(ConnectError::Address("an address without a scheme".into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn addresses_of_other_stores_are_refused_without_repeating_passwords() {
        let postgres = connect(
            "postgres://platform:hunter2@localhost/platform",
            SchemaPolicy::Upgrade,
        )
        .await
        .unwrap_err();
        assert!(matches!(postgres, ConnectError::Unsupported("PostgreSQL")));
        assert!(
            postgres
                .to_string()
                .contains("not supported by this build yet")
        );
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
