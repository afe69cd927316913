//! `PUT /api/projects/<slug>/environments/<environment>/backend`: sets the backend to which
//! requests under some paths of the game are forwarded.

use std::borrow::Cow;
use std::sync::Arc;

use axum::extract::State;
use platform_serving::paths::is_reserved;
use serde::Deserialize;
use url::Url;
use utoipa::ToSchema;

use super::set_environment::set;
use super::views::{EnvironmentView, TriedEnvironmentView};
use crate::auth::project_caller::{EnvironmentEditor, EnvironmentPath};
use crate::domain::environment_setting::EnvironmentSetting;
use crate::domain::project::BackendSettings;
use crate::hosting::backends::AddressPolicy;
use crate::projects::ProjectsState;
use crate::web::api::{ApiJson, invalid};
use crate::web::api_error::ApiError;

/// The maximum number of paths of one backend.
const PATHS: usize = 20;
/// The maximum number of bytes of a path, and of the address.
const BYTES: usize = 256;

/// The game's own backend.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewBackend)]
pub struct Wanted {
    /// `http://<host>[:<port>]` or `https://<host>[:<port>]`; null removes the backend.
    #[schema(
        max_length = 256,
        pattern = r"^https?://([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?/?$",
        example = "http://127.0.0.1:3000"
    )]
    #[serde(deserialize_with = "Option::deserialize")]
    #[schema(required)]
    pub url: Option<String>,
    /// Requests to paths that begin with one of these are sent to it.
    #[serde(default = "api")]
    #[schema(value_type = Vec<BackendPath>, min_items = 1, max_items = 20, example = json!(["/api/"]))]
    pub paths: Vec<String>,
}

/// A path, or the beginning of paths: plain ASCII, without empty segments, `.`
/// and `..`, and not under `/__platform`.
#[derive(Debug, ToSchema)]
#[schema(
    value_type = String,
    max_length = 256,
    pattern = r#"^/(?!__platform(/|;|$))((?!\.\.?(/|$))[!"$&-.0->@-\[\]-~]+(/|$))*$"#
)]
pub struct BackendPath(pub String);

fn api() -> Vec<String> {
    vec!["/api/".to_owned()]
}

/// Sets the backend.
///
/// # Errors
/// `not-found`, `not-allowed`, `invalid-request`.
#[utoipa::path(
    put,
    path = "/api/projects/{slug}/environments/{environment}/backend",
    operation_id = "setBackend",
    params(EnvironmentPath),
    request_body = Wanted,
    responses((status = 200, description = "The environment, as it is now, and whether the backend responded.", body = TriedEnvironmentView))
)]
pub async fn handle(
    State(state): State<Arc<ProjectsState>>,
    editor: EnvironmentEditor,
    ApiJson(wanted): ApiJson<Wanted>,
) -> Result<ApiJson<TriedEnvironmentView>, ApiError> {
    let backend = wanted
        .settings(state.hosting.backends.reach())
        .map_err(invalid)?;
    let setting = EnvironmentSetting::Backend(backend.clone());
    set(&state, &editor, setting).await?;
    let trial = match &backend {
        Some(settings) => Some(state.hosting.backends.try_out(settings).await.into()),
        None => None,
    };
    let environment = EnvironmentView::of(&state, &editor.project.slug, editor.environment).await?;
    Ok(ApiJson(TriedEnvironmentView { environment, trial }))
}

impl Wanted {
    /// Returns the settings, or a sentence with the error.
    fn settings(self, reach: &AddressPolicy) -> Result<Option<BackendSettings>, Cow<'static, str>> {
        let Some(url) = self.url else { return Ok(None) };
        let url = address(&url, reach).map_err(|form| match with_scheme(&url, reach) {
            Some(meant) => {
                format!("A backend's address begins with its scheme: write {meant}.").into()
            }
            None => Cow::Borrowed(form),
        })?;
        if !(1..=PATHS).contains(&self.paths.len()) {
            return Err("A backend has 1 to 20 paths.".into());
        }
        if !self.paths.iter().all(|path| is_path(path)) {
            return Err(
                "A backend's path begins with a slash, is plain ASCII without . and .. segments, and is not under /__platform/.".into(),
            );
        }
        Ok(Some(BackendSettings {
            url,
            paths: self.paths,
        }))
    }
}

/// Returns the probable address if only the scheme is missing: plain http for a local address,
/// https for a public name.
fn with_scheme(text: &str, reach: &AddressPolicy) -> Option<String> {
    if text.contains("//") {
        return None;
    }
    let near = address(&format!("http://{text}"), reach).ok()?;
    let host = Url::parse(&near).ok()?;
    let is_near = match host.host()? {
        url::Host::Domain(name) => {
            name == "localhost" || !name.contains('.') || name.ends_with(".localhost")
        }
        url::Host::Ipv4(_) | url::Host::Ipv6(_) => true,
    };
    Some(if is_near {
        near
    } else {
        format!("https://{text}")
    })
}

/// Returns a backend's address in the parser's form.
fn address(text: &str, reach: &AddressPolicy) -> Result<String, &'static str> {
    const FORM: &str =
        "A backend's address is http://<host>:<port> or https://<host>, without a path.";
    if text.len() > BYTES {
        return Err(FORM);
    }
    let url = Url::parse(text).map_err(|_| FORM)?;
    let plain = matches!(url.scheme(), "http" | "https")
        && url.username().is_empty()
        && url.password().is_none()
        && url.path() == "/"
        && url.query().is_none()
        && url.fragment().is_none();
    if !plain {
        return Err(FORM);
    }
    let (Some(host), Some(port)) = (url.host(), url.port_or_known_default()) else {
        return Err(FORM);
    };
    reach.check_host(&host, port)?;
    Ok(url.origin().ascii_serialization())
}

fn is_path(path: &str) -> bool {
    path.starts_with('/')
        && path.len() <= BYTES
        && path.bytes().all(|byte| byte.is_ascii_graphic())
        && !path.contains(['?', '#', '\\', '%'])
        && !path.contains("//")
        && !path.split('/').any(|segment| matches!(segment, "." | ".."))
        && !is_reserved(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosting::backends::OwnSockets;
    use crate::origin::PlatformOrigin;

    fn local() -> AddressPolicy {
        let listening = vec!["127.0.0.1:8787".parse().unwrap()];
        let own = OwnSockets::new(listening, Vec::new());
        AddressPolicy::new(None, &PlatformOrigin::local(8787), own)
    }

    #[test]
    fn only_plain_addresses_are_backends() {
        for (text, kept) in [
            ("http://127.0.0.1:3000", "http://127.0.0.1:3000"),
            ("http://127.0.0.1:3000/", "http://127.0.0.1:3000"),
            ("HTTP://Game.Example:80", "http://game.example"),
            ("https://Game.Example:443", "https://game.example"),
            ("http://[::1]:3000", "http://[::1]:3000"),
        ] {
            assert_eq!(address(text, &local()).as_deref(), Ok(kept));
        }
        for text in [
            "",
            "127.0.0.1:3000",
            "ftp://game.example",
            "ws://game.example",
            "file:///etc/passwd",
            "http://user@game.example",
            "http://user:word@game.example",
            "http://game.example/path",
            "http://game.example/?a",
            "http://game.example/#a",
            "http://",
            "http://127.0.0.1:8787",
        ] {
            assert!(address(text, &local()).is_err(), "{text}");
        }
    }

    #[test]
    fn an_address_without_a_scheme_is_answered_with_the_one_that_was_meant() {
        let said = |url: &str| {
            let wanted = Wanted {
                url: Some(url.to_owned()),
                paths: api(),
            };
            wanted.settings(&local()).unwrap_err()
        };
        for (url, meant) in [
            ("127.0.0.1:3000", "http://127.0.0.1:3000"),
            ("localhost:3000", "http://localhost:3000"),
            ("[::1]:3000", "http://[::1]:3000"),
            ("game.example", "https://game.example"),
        ] {
            assert!(
                said(url).ends_with(&format!("write {meant}.")),
                "{url}: {}",
                said(url)
            );
        }
        assert!(said("ftp://game.example").contains("without a path"));
    }

    #[test]
    fn a_path_stays_below_itself() {
        for good in ["/", "/api/", "/api", "/a/b.c/"] {
            assert!(is_path(good), "{good}");
        }
        for bad in [
            "",
            "api/",
            "/a/../b",
            "/./",
            "//x",
            "/a?b",
            "/a#b",
            "/%2e%2e/",
            "/a\\b",
            "/a b",
            "/é",
            "/__platform",
            "/__platform/x",
            "/__PLATFORM/",
        ] {
            assert!(!is_path(bad), "{bad}");
        }
    }
}
