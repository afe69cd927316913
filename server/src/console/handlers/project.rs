//! `/projects/<slug>` on the platform origin, and paths below it: the page of a project, in tabs that
//! are addresses, and that of one group of errors. Like the [Build page](super::build), they contain no data.

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::{FromRef, Path, State};
use axum::response::Response;
use axum::routing::get;
use platform_protocol::names::{Environment, check_slug_form};
use platform_protocol::paths;
use platform_protocol::problem::ProblemCode;

use super::build::sign_in;
use crate::console::ConsoleState;
use crate::console::files::Scripts;
use crate::domain::error_group::ErrorGroupId;
use crate::web::api_error::ApiError;
use crate::web::page::{self, Layout, Runs};

/// A tab of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tab {
    Overview,
    Errors,
    Logs,
    Players,
    Deployments,
    Settings,
}

impl Tab {
    /// The tabs in their order on the page.
    const ALL: [Self; 6] = [
        Self::Overview,
        Self::Errors,
        Self::Logs,
        Self::Players,
        Self::Deployments,
        Self::Settings,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Overview => "Overview",
            Self::Errors => "Errors",
            Self::Logs => "Logs",
            Self::Players => "Players",
            Self::Deployments => "Deployments",
            Self::Settings => "Settings",
        }
    }

    /// Returns its name in its address; the first tab has the address of the project.
    const fn segment(self) -> Option<&'static str> {
        let [errors, logs, players, deployments, settings] = paths::PROJECT_TABS;
        match self {
            Self::Overview => None,
            Self::Errors => Some(errors),
            Self::Logs => Some(logs),
            Self::Players => Some(players),
            Self::Deployments => Some(deployments),
            Self::Settings => Some(settings),
        }
    }

    fn path(self, slug: &str) -> String {
        let project = format!("{}/{slug}", paths::PROJECT_PAGES);
        match self.segment() {
            None => project,
            Some(tab) => format!("{project}/{tab}"),
        }
    }

    /// Returns the name of the tab's own script.
    const fn script(self) -> &'static str {
        match self {
            Self::Overview => "project_overview",
            Self::Errors => "project_errors",
            Self::Logs => "project_logs",
            Self::Players => "project_players",
            Self::Deployments => "project_deployments",
            Self::Settings => "project_settings",
        }
    }

    /// Returns what the tab's scripts may run: those with an upload prepare it with a module.
    const fn runs(self) -> Runs {
        match self {
            Self::Overview | Self::Deployments => Runs::Module,
            Self::Errors | Self::Logs | Self::Players | Self::Settings => Runs::Scripts,
        }
    }

    /// Whether the viewer chooses a period on this tab.
    const fn has_period(self) -> bool {
        matches!(self, Self::Errors | Self::Players)
    }
}

#[derive(Template)]
#[template(path = "project.html")]
struct Project<'a> {
    frame: Layout,
    scripts: Scripts,
    auth_url: &'a str,
    sign_in: String,
    slug: &'a str,
    tab: Tab,
    /// The group of errors that the page is about, on an address below that of the errors.
    group: Option<ErrorGroupId>,
}

/// Returns the routes of the tabs.
pub fn routes<S>() -> Router<S>
where
    S: Clone + Send + Sync + 'static,
    Arc<ConsoleState>: FromRef<S>,
{
    let tabs = Tab::ALL.into_iter().fold(Router::new(), |router, tab| {
        let handler = async move |State(state): State<Arc<ConsoleState>>,
                                  Path(slug): Path<String>| {
            show(&state, &slug, tab, None)
        };
        router.route(&tab.path("{slug}"), get(handler))
    });
    let group = async |State(state): State<Arc<ConsoleState>>,
                       Path((slug, group)): Path<(String, String)>| {
        let group = ErrorGroupId::parse(&group).ok_or(ProblemCode::NotFound)?;
        show(&state, &slug, Tab::Errors, Some(group))
    };
    let path = format!("{}/{{group}}", Tab::Errors.path("{slug}"));
    tabs.route(&path, get(group))
}

/// Returns a tab of a project's page, even if the project does not exist: only who may see it
/// learns that.
///
/// # Errors
/// `not-found`
fn show(
    state: &ConsoleState,
    slug: &str,
    tab: Tab,
    group: Option<ErrorGroupId>,
) -> Result<Response, ApiError> {
    check_slug_form(slug).map_err(|_| ApiError::from(ProblemCode::NotFound))?;
    let (script, path) = match group {
        Some(group) => ("project_error", format!("{}/{group}", tab.path(slug))),
        None => (tab.script(), tab.path(slug)),
    };
    let page = Project {
        frame: Layout::new(&state.platform.origin),
        scripts: state.files.scripts(script),
        auth_url: &state.platform.auth_url,
        sign_in: sign_in(state, &path),
        slug,
        tab,
        group,
    };
    let address = |environment: Environment| {
        state
            .platform
            .games_origin
            .sub_domain(&environment.label(slug))
    };
    let (dev, prod) = (address(Environment::Dev), address(Environment::Prod));
    Ok(page::render_project(
        &page,
        &state.platform.auth_url,
        [&dev, &prod],
        tab.runs(),
    ))
}
