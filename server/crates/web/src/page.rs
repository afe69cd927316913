//! HTML pages: all except the console's pages for developers work without scripts, and their policy
//! forbids scripts.

use askama::Template;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};

use super::api_error::ApiError;
use platform_domain::origin::PlatformOrigin;

/// The path of the stylesheet of all pages, on every host that has pages.
pub const STYLESHEET: &str = "/static/platform.css";

/// The path of the icon of all pages, on every host that has pages.
pub const ICON: &str = "/static/platform.svg";

/// Allows only our own stylesheet and icon, and no frame around the page.
const POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; \
                      base-uri 'none'; frame-ancestors 'none'";

/// What every page shows around its own content.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The prefix of the paths of stylesheet and icon: empty, or an origin.
    pub assets: String,
    /// The address of the platform's home page.
    pub home: String,
    /// The platform's name: its host.
    pub host: String,
}

impl Layout {
    /// For pages on a host that serves stylesheet and icon itself.
    #[must_use]
    pub fn new(origin: &PlatformOrigin) -> Self {
        Self {
            assets: String::new(),
            home: format!("{origin}/"),
            host: origin.host().to_owned(),
        }
    }

    /// For pages on any host, which load stylesheet and icon from the platform.
    #[must_use]
    pub fn anywhere(origin: &PlatformOrigin) -> Self {
        Self {
            assets: origin.to_string(),
            ..Self::new(origin)
        }
    }
}

/// The final target of the forms of a page. Chromium checks every redirect after a form against the
/// page's policy, not only the form's own address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FormTarget {
    /// Only this host.
    Own,
    /// A provider's pages, and then a game: any address over https.
    Providers,
    /// The same on a platform without TLS, under `localhost`.
    PlainProviders,
}

impl FormTarget {
    /// Returns the target of forms that begin a sign-in.
    #[must_use]
    pub const fn of_sign_in(origin: &PlatformOrigin) -> Self {
        if origin.is_secure() {
            Self::Providers
        } else {
            Self::PlainProviders
        }
    }

    const fn policy(self) -> &'static str {
        match self {
            Self::Own => POLICY,
            Self::Providers => {
                "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self' https:; \
                 base-uri 'none'; frame-ancestors 'none'"
            }
            Self::PlainProviders => {
                "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self' https: \
                 http:; base-uri 'none'; frame-ancestors 'none'"
            }
        }
    }
}

/// Which pages may show a page in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// None.
    Nobody,
    /// The platform's own pages: the Build page shows panes.
    Console,
}

/// Returns the policy for a page that loads its stylesheet from `home`, the platform's own address.
fn policy_from(home: &str, framing: Framing) -> Option<HeaderValue> {
    let ancestors = match framing {
        Framing::Nobody => "'none'",
        Framing::Console => home,
    };
    let policy = format!(
        "default-src 'none'; style-src {home}; img-src {home}; form-action 'none'; base-uri \
         'none'; frame-ancestors {ancestors}"
    );
    HeaderValue::from_str(&policy).ok()
}

/// Renders a page.
#[must_use]
pub fn render(status: StatusCode, template: &impl Template) -> Response {
    match template.render() {
        Ok(html) => answer(status, html, HeaderValue::from_static(POLICY)),
        Err(error) => ApiError::internal(&error).into_response(),
    }
}

/// Renders a page of the platform that shows games' images. Its own script asks the auth service,
/// at `auth_url`, and the project API who visits it and what they play.
#[must_use]
pub fn render_games(
    status: StatusCode,
    template: &impl Template,
    (games, auth_url): (&PlatformOrigin, &str),
) -> Response {
    let html = match template.render() {
        Ok(html) => html,
        Err(error) => return ApiError::internal(&error).into_response(),
    };
    let games = games.sub_domain("*");
    let policy = POLICY.replace("img-src 'self'", &format!("img-src 'self' {games}"));
    let policy = format!(
        "{policy}; script-src 'self'; connect-src 'self' {auth_url}; require-trusted-types-for \
         'script'; trusted-types 'none'"
    );
    match HeaderValue::from_str(&policy) {
        Ok(policy) => answer(status, html, policy),
        Err(error) => ApiError::internal(&error).into_response(),
    }
}

/// Renders a page for developers, whose own scripts call the project API. The page may show `games`,
/// origins with spaces between them, in frames and read their files, and nothing else.
#[must_use]
pub fn render_console(template: &impl Template, auth_url: &str, games: Option<&str>) -> Response {
    let html = match template.render() {
        Ok(html) => html,
        Err(error) => return ApiError::internal(&error).into_response(),
    };
    let frames = games.unwrap_or("'none'");
    // Source maps are files of the game.
    let sources = games.map_or_else(String::new, |games| format!(" {games}"));
    let policy = format!(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src \
         'self' {auth_url}{sources}; frame-src {frames}; form-action 'none'; base-uri 'none'; \
         frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    );
    match HeaderValue::from_str(&policy) {
        Ok(policy) => answer(StatusCode::OK, html, policy),
        Err(error) => ApiError::internal(&error).into_response(),
    }
}

/// What the scripts of a page may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runs {
    /// Scripts alone.
    Scripts,
    /// A WebAssembly module, too.
    Module,
}

/// Renders a project's page, whose own scripts call the project API. It shows images from the
/// responses, and reads the files of the game's two `addresses` because of source maps.
#[must_use]
pub fn render_project(
    template: &impl Template,
    auth_url: &str,
    addresses: [&str; 2],
    runs: Runs,
) -> Response {
    let html = match template.render() {
        Ok(html) => html,
        Err(error) => return ApiError::internal(&error).into_response(),
    };
    let [dev, prod] = addresses;
    let module = match runs {
        Runs::Scripts => "",
        Runs::Module => " 'wasm-unsafe-eval'",
    };
    let policy = format!(
        "default-src 'none'; script-src 'self'{module}; style-src 'self'; img-src 'self' blob:; \
         connect-src 'self' {auth_url} {dev} {prod}; form-action 'none'; base-uri 'none'; \
         frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    );
    match HeaderValue::from_str(&policy) {
        Ok(policy) => answer(StatusCode::OK, html, policy),
        Err(error) => ApiError::internal(&error).into_response(),
    }
}

/// Renders a page with forms: it is about one player, so it is never cached.
#[must_use]
pub fn render_form(status: StatusCode, template: &impl Template, target: FormTarget) -> Response {
    let html = match template.render() {
        Ok(html) => html,
        Err(error) => return ApiError::internal(&error).into_response(),
    };
    let mut response = answer(status, html, HeaderValue::from_static(target.policy()));
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // With `no-referrer` a browser would send `Origin: null` with the form's request (Fetch,
    // "append a request `Origin` header"), and we could not distinguish our own pages from others.
    headers.insert(
        header::REFERRER_POLICY,
        HeaderValue::from_static("same-origin"),
    );
    response
}

/// Renders a page that a page of another site has opened, and whose own script says something to it:
/// it keeps its opener. It is about one player, so it is never cached.
#[must_use]
pub fn render_opened(template: &impl Template) -> Response {
    let html = match template.render() {
        Ok(html) => html,
        Err(error) => return ApiError::internal(&error).into_response(),
    };
    let policy = format!("{POLICY}; script-src 'self'");
    let mut response = match HeaderValue::from_str(&policy) {
        Ok(policy) => answer(StatusCode::OK, html, policy),
        Err(error) => return ApiError::internal(&error).into_response(),
    };
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    keep_opener(headers);
    response
}

/// Lets a page keep the page of another site that opened it (HTML, "cross-origin opener policies").
pub fn keep_opener(headers: &mut HeaderMap) {
    headers.remove("cross-origin-opener-policy");
}

/// Renders a page for any host, with the stylesheet from `home`, an origin. Returns `None` if this
/// fails.
#[must_use]
pub fn render_from(
    home: &str,
    status: StatusCode,
    template: &impl Template,
    framing: Framing,
) -> Option<Response> {
    let policy = policy_from(home, framing)?;
    Some(answer(status, template.render().ok()?, policy))
}

fn answer(status: StatusCode, html: String, policy: HeaderValue) -> Response {
    let mut response = (status, html).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    let fixed = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CACHE_CONTROL, "no-cache"),
        (header::REFERRER_POLICY, "no-referrer"),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
        // Other sites cannot load it as an image or a script.
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
        // Other hosts of the site do not share memory or `document.domain` with it (HTML,
        // "origin-keyed agent clusters").
        (HeaderName::from_static("origin-agent-cluster"), "?1"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}
