//! `PUT /api/projects/<slug>/environments/<environment>/frames`: sets who may show the game's pages
//! in a frame.

use std::sync::Arc;

use axum::extract::State;
use serde::{Deserialize, Serialize};
use url::{Host, Url};
use utoipa::ToSchema;

use super::set_environment::set_and_view;
use super::views::EnvironmentView;
use crate::auth::project_caller::{EnvironmentEditor, EnvironmentPath};
use crate::domain::environment_setting::EnvironmentSetting;
use crate::domain::project::Frames;
use crate::projects::ProjectsState;
use crate::web::api::{ApiJson, invalid};
use crate::web::api_error::ApiError;

/// The maximum number of origins of one environment.
const ORIGINS: usize = 20;
/// The maximum number of bytes of an origin.
const BYTES: usize = 256;

/// Which sites may show the game's pages in a frame.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewFrames)]
pub struct Wanted {
    /// The platform's own pages always may, for the preview.
    pub ancestors: Ancestors,
}

/// `any`, `platform`, or a list of origins.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(untagged)]
pub enum Ancestors {
    /// Any site, or only the platform's own pages.
    Word(AncestorsWord),
    /// Pages of these origins, and the platform's own pages.
    Origins(FrameOrigins),
}

/// Origins whose pages may show the game, besides the platform's own pages.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[schema(value_type = Vec<FrameOrigin>, min_items = 1, max_items = 20)]
pub struct FrameOrigins(pub Vec<String>);

/// Any site, or only the platform's own pages.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(rename_all = "lowercase")]
pub enum AncestorsWord {
    /// Pages of any site.
    Any,
    /// The platform's own pages.
    Platform,
}

/// An origin, `https://<host>[:<port>]`.
#[derive(Debug, ToSchema)]
#[schema(
    value_type = String,
    max_length = 256,
    pattern = r"^https://((?!xn--)[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?\.){1,4}[a-z]{2,20}(:[1-9][0-9]{0,3})?$",
    example = "https://portal.example"
)]
pub struct FrameOrigin(pub String);

/// Sets which sites may show the game's pages in a frame.
///
/// # Errors
/// `not-found`, `not-allowed`, `invalid-request`.
#[utoipa::path(
    put,
    path = "/api/projects/{slug}/environments/{environment}/frames",
    operation_id = "setFrames",
    params(EnvironmentPath),
    request_body = Wanted,
    responses((status = 200, description = "The environment, as it is now.", body = EnvironmentView))
)]
pub async fn handle(
    State(state): State<Arc<ProjectsState>>,
    editor: EnvironmentEditor,
    ApiJson(wanted): ApiJson<Wanted>,
) -> Result<ApiJson<EnvironmentView>, ApiError> {
    let frames = wanted.ancestors.frames().map_err(invalid)?;
    let setting = EnvironmentSetting::Frames(frames);
    let view = set_and_view(&state, &editor, setting).await?;
    Ok(ApiJson(view))
}

impl Ancestors {
    /// Returns the value to store, or a sentence with the error.
    fn frames(self) -> Result<Frames, String> {
        match self {
            Self::Word(AncestorsWord::Any) => Ok(Frames::Any),
            Self::Word(AncestorsWord::Platform) => Ok(Frames::Platform),
            Self::Origins(FrameOrigins(origins)) if (1..=ORIGINS).contains(&origins.len()) => {
                origins
                    .iter()
                    .map(|text| origin(text).ok_or_else(|| no_origin(text)))
                    .collect::<Result<Vec<_>, _>>()
                    .map(Frames::Origins)
            }
            Self::Origins(_) => {
                Err("The list must have 1 to 20 origins; write \"platform\" for none.".to_owned())
            }
        }
    }
}

impl From<Frames> for Ancestors {
    fn from(frames: Frames) -> Self {
        match frames {
            Frames::Any => Self::Word(AncestorsWord::Any),
            Frames::Platform => Self::Word(AncestorsWord::Platform),
            Frames::Origins(origins) => Self::Origins(FrameOrigins(origins)),
        }
    }
}

/// Returns a sentence that says what is wrong with this text, and what was probably meant.
fn no_origin(text: &str) -> String {
    let shown: String = text.chars().take(100).collect();
    match origin(&format!("https://{text}")) {
        Some(meant) => format!("{shown:?} has no scheme: write {meant}."),
        None => format!(
            "{shown:?} is not the origin of a site: write https:// and its host, such as \
             https://portal.example, without a path. Plain http is only allowed for localhost."
        ),
    }
}

/// Returns an origin as browsers write it. Anything else that could be in a policy, such as `*` or
/// a semicolon, is not an origin.
fn origin(text: &str) -> Option<String> {
    if text.len() > BYTES || text.contains(['*', ';', ',', '\'']) {
        return None;
    }
    let url = Url::parse(text).ok()?;
    let Some(Host::Domain(host)) = url.host() else {
        return None;
    };
    let local = host == "localhost" || host.ends_with(".localhost");
    let plain = (url.scheme() == "https" || (url.scheme() == "http" && local))
        && url.username().is_empty()
        && url.password().is_none()
        && url.path() == "/"
        && url.query().is_none()
        && url.fragment().is_none();
    plain.then(|| url.origin().ascii_serialization())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_origins_may_frame_a_game() {
        for (text, kept) in [
            ("https://portal.example", "https://portal.example"),
            ("https://Portal.Example:443/", "https://portal.example"),
            ("https://portal.example:8443", "https://portal.example:8443"),
            (
                "http://portal.localhost:3000",
                "http://portal.localhost:3000",
            ),
        ] {
            assert_eq!(origin(text).as_deref(), Some(kept), "{text}");
        }
        for text in [
            "",
            "portal.example",
            "http://portal.example",
            "https://*.example",
            "https://portal.example/path",
            "https://portal.example?a",
            "https://me@portal.example",
            "https://portal.example; script-src *",
            "https://a.example https://b.example",
            "https://192.0.2.1",
            "data:text/html,x",
            "'none'",
        ] {
            assert_eq!(origin(text), None, "{text}");
        }
    }
}
