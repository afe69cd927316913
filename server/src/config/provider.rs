//! `[[identity_provider]]`: the identity providers (OpenID Connect Core 1.0). The tables are read
//! and checked here, without any request to a provider.

use std::collections::HashMap;
use std::path::PathBuf;

use platform_openid::IdentityProvider;
use serde::Deserialize;
use url::{Host, Url};

use super::{Secret, SettingError, names};
use crate::origin::PlatformOrigin;

/// The id of the built-in provider of a platform under `localhost`.
pub const DEMO_PROVIDER: &str = "demo";

/// The maximum number of characters of a name on a button.
const MAX_NAME_CHARS: usize = 64;

/// The table as it is written in the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Written {
    id: String,
    name: String,
    issuer: String,
    client_id: String,
    client_secret: Option<String>,
    client_secret_env: Option<String>,
    client_secret_file: Option<PathBuf>,
    #[serde(default = "openid_alone")]
    scopes: Vec<String>,
}

fn openid_alone() -> Vec<String> {
    vec!["openid".to_owned()]
}

/// Checks the tables, and reads secrets from their sources.
pub(super) fn check(
    written: Vec<Written>,
    environment: &HashMap<String, String>,
) -> Result<Vec<IdentityProvider>, SettingError> {
    let mut providers: Vec<IdentityProvider> = Vec::with_capacity(written.len());
    for table in written {
        let id = table.id.clone();
        if providers.iter().any(|known| known.id == id) {
            return Err(SettingError::new(
                format!("{}.id", names::IDENTITY_PROVIDER),
                format!("`{id}` is used twice; give each provider its own id"),
            ));
        }
        let provider = check_one(table, environment).map_err(|(member, problem)| {
            SettingError::new(
                format!("{}.{member} of `{id}`", names::IDENTITY_PROVIDER),
                problem,
            )
        })?;
        providers.push(provider);
    }
    Ok(providers)
}

/// Rejects providers on this machine for a public platform, since players could not reach them.
pub(super) fn check_for(
    origin: Option<&PlatformOrigin>,
    providers: &[IdentityProvider],
) -> Result<(), SettingError> {
    let Some(origin) = origin.filter(|origin| !origin.is_local()) else {
        return Ok(());
    };
    let plain = |provider: &&IdentityProvider| provider.issuer.starts_with("http:");
    match providers.iter().find(plain) {
        None => Ok(()),
        Some(provider) => Err(SettingError::new(
            format!("{}.issuer of `{}`", names::IDENTITY_PROVIDER, provider.id),
            format!("plain http is only allowed for a platform under localhost, not for {origin}"),
        )),
    }
}

fn check_one(
    table: Written,
    environment: &HashMap<String, String>,
) -> Result<IdentityProvider, (&'static str, String)> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if table.id.is_empty() || table.id.len() > 32 || !table.id.bytes().all(plain) {
        return Err((
            "id",
            "use 1 to 32 lower-case letters, digits or hyphens".to_owned(),
        ));
    }
    if table.id == DEMO_PROVIDER {
        return Err((
            "id",
            "`demo` is the built-in provider; choose another".to_owned(),
        ));
    }
    let is_name = |name: &str| {
        let length = name.chars().count();
        !name.trim().is_empty() && length <= MAX_NAME_CHARS && !name.chars().any(char::is_control)
    };
    if !is_name(&table.name) {
        return Err((
            "name",
            format!("write the text of the button, with 1 to {MAX_NAME_CHARS} characters"),
        ));
    }
    if table.client_id.is_empty() {
        return Err((
            "client_id",
            "write the client id that the provider gave".to_owned(),
        ));
    }
    if !table.scopes.iter().any(|scope| scope == "openid") {
        return Err(("scopes", "the scopes must contain `openid`".to_owned()));
    }
    if let Some(scope) = table.scopes.iter().find(|scope| !is_scope(scope)) {
        return Err(("scopes", format!("`{scope}` is not a valid scope")));
    }
    check_issuer(&table.issuer).map_err(|problem| ("issuer", problem))?;
    let client_secret = client_secret(&table, environment)?;
    Ok(IdentityProvider {
        id: table.id,
        name: table.name,
        issuer: table.issuer,
        client_id: table.client_id,
        client_secret,
        scopes: table.scopes,
    })
}

/// A scope consists of visible ASCII without quote and backslash (RFC 6749 §3.3).
fn is_scope(scope: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\');
    !scope.is_empty() && scope.bytes().all(allowed)
}

/// Checks that an issuer is an https URL without query and fragment (OpenID Connect Discovery 1.0
/// §3); plain http is only allowed for this machine, for testing.
fn check_issuer(text: &str) -> Result<(), String> {
    let refusal = || format!("`{text}` is not an https address without query");
    let url = Url::parse(text).map_err(|_| refusal())?;
    let local = match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    // The issuer is compared as a text, so a parser must not drop or move any part of it.
    let is_plain = url.username().is_empty()
        && url.password().is_none()
        && text.bytes().all(|byte| byte.is_ascii_graphic());
    let scheme_is_right = url.scheme() == "https" || (url.scheme() == "http" && local);
    if is_plain && scheme_is_right && url.query().is_none() && url.fragment().is_none() {
        Ok(())
    } else {
        Err(refusal())
    }
}

fn client_secret(
    table: &Written,
    environment: &HashMap<String, String>,
) -> Result<Secret, (&'static str, String)> {
    let secret = match (
        &table.client_secret,
        &table.client_secret_env,
        &table.client_secret_file,
    ) {
        (Some(secret), None, None) => secret.clone(),
        (None, Some(variable), None) => environment.get(variable).cloned().ok_or_else(|| {
            (
                "client_secret_env",
                format!("the variable {variable} is not set; set it"),
            )
        })?,
        (None, None, Some(path)) => std::fs::read_to_string(path)
            .map(|text| text.trim_end_matches(['\r', '\n']).to_owned())
            .map_err(|error| {
                (
                    "client_secret_file",
                    format!("cannot read {}: {error}", path.display()),
                )
            })?,
        _ => {
            return Err((
                "client_secret",
                "write exactly one of client_secret, client_secret_env, client_secret_file"
                    .to_owned(),
            ));
        }
    };
    if secret.is_empty() {
        return Err(("client_secret", "it is empty".to_owned()));
    }
    Ok(Secret::new(secret))
}
