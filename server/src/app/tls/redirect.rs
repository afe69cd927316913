//! The listener for plain HTTP: pages of the platform are redirected to https, and nothing else is answered. What
//! a program sends is refused, so that it is noticed that secrets went over the network (OWASP ASVS 5.0, 4.1.2).

use std::net::{IpAddr, SocketAddr};

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, Request, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use platform_protocol::problem::ProblemCode;

use crate::app::state::AppState;
use crate::origin::PlatformOrigin;
use crate::web::api_error::ApiError;
use crate::web::request_id::{RequestId, X_REQUEST_ID};
use crate::web::requested_host::requested_host;
use crate::web::serve::Application;

/// Redirects to https.
#[derive(Clone, Debug)]
pub(super) struct Redirect(AppState);

impl Redirect {
    /// Redirects to the addresses of this platform.
    pub(super) const fn new(state: AppState) -> Self {
        Self(state)
    }

    /// Returns the origin of a game's own domain.
    fn at_domain(&self, host: &str) -> Option<String> {
        let name = host.split(':').next()?.to_ascii_lowercase();
        let game = self.0.games.catalogue.at_domain(&name)?;
        Some(game.origin.clone())
    }
}

impl Application for Redirect {
    async fn answer(&self, _peer: SocketAddr, request: Request<Body>) -> Response {
        let platform = &self.0.platform;
        let id = RequestId::generate(&*platform.entropy);
        let (parts, _) = request.into_parts();
        let target = parts
            .uri
            .path_and_query()
            .map_or("/", |target| target.as_str());
        let found = requested_host(&parts, false)
            .and_then(|host| {
                let own = address(&platform.origin, &platform.games_origin, &host);
                let address = own.or_else(|| self.at_domain(&host));
                Ok(address.ok_or(ProblemCode::UnknownHost)?)
            })
            .and_then(|address| {
                if is_for_page(&parts) {
                    return Ok(address);
                }
                let refused = ApiError::from(ProblemCode::InvalidRequest);
                Err(refused.with_detail(
                    "This address needs https. What was sent could be read on the way.",
                ))
            })
            .and_then(|address| {
                HeaderValue::try_from(format!("{address}{target}"))
                    .map_err(|_| ProblemCode::InvalidRequest.into())
            });
        let mut response = match found {
            Ok(address) => {
                let to = [(header::LOCATION, address)];
                (StatusCode::PERMANENT_REDIRECT, to).into_response()
            }
            Err(refusal) => {
                let mut response = ApiError::into_response(refusal);
                if let Some(error) = response.extensions_mut().remove::<ApiError>() {
                    *response.body_mut() = error.body(&platform.auth_url, &id);
                    response.headers_mut().remove(header::CONTENT_LENGTH);
                }
                response
            }
        };
        let headers = response.headers_mut();
        headers.insert(X_REQUEST_ID, id.header().clone());
        headers.insert(
            header::X_CONTENT_TYPE_OPTIONS,
            HeaderValue::from_static("nosniff"),
        );
        response
    }

    fn explain_unread(&self, status: StatusCode) -> (RequestId, Vec<u8>) {
        let platform = &self.0.platform;
        let id = RequestId::generate(&*platform.entropy);
        let body = ApiError::unread(status).problem(&platform.auth_url, &id);
        (id, body)
    }

    fn trusts(&self, address: IpAddr) -> bool {
        self.0.platform.config.trusts(address)
    }
}

/// Whether a browser may have sent this for a page. Programs have to use https from the beginning.
fn is_for_page(parts: &Parts) -> bool {
    let reads = parts.method == Method::GET || parts.method == Method::HEAD;
    reads
        && !parts.headers.contains_key(header::AUTHORIZATION)
        && !parts.uri.path().starts_with("/api/")
}

/// Returns the origin with https of a host, if it is one of the platform's. Whether there is such a
/// game is said over https.
fn address(origin: &PlatformOrigin, games: &PlatformOrigin, host: &str) -> Option<String> {
    let name = host.split(':').next()?.to_ascii_lowercase();
    let own = name.strip_suffix(origin.host());
    let (origin, label) = match own.filter(|label| label.is_empty() || label.ends_with('.')) {
        Some(label) => (origin, label),
        // There is nothing at the games' origin itself.
        None => (
            games,
            name.strip_suffix(games.host())
                .filter(|label| !label.is_empty())?,
        ),
    };
    match label.strip_suffix('.') {
        None if label.is_empty() => Some(origin.to_string()),
        Some(label) => {
            let valid =
                |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
            let is_label = !label.is_empty() && label.bytes().all(valid);
            is_label.then(|| origin.sub_domain(label))
        }
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_platforms_own_hosts_have_an_address() {
        let origin: PlatformOrigin = "https://play.example:8443".parse().unwrap();
        for (host, expected) in [
            ("play.example", Some("https://play.example:8443")),
            ("play.example:80", Some("https://play.example:8443")),
            (
                "Demo.Play.example:8080",
                Some("https://demo.play.example:8443"),
            ),
            ("a--b.play.example", Some("https://a--b.play.example:8443")),
            ("a.b.play.example", None),
            ("notplay.example", None),
            (".play.example", None),
            ("play.example.", None),
            ("play.example@evil.example", None),
            ("evil.example/.play.example", None),
            ("evil.example", None),
            ("", None),
        ] {
            assert_eq!(
                address(&origin, &origin, host).as_deref(),
                expected,
                "{host}"
            );
        }
        let games: PlatformOrigin = "https://games.example".parse().unwrap();
        for (host, expected) in [
            ("demo.games.example", Some("https://demo.games.example")),
            ("games.example", None),
            ("auth.play.example", Some("https://auth.play.example:8443")),
        ] {
            assert_eq!(
                address(&origin, &games, host).as_deref(),
                expected,
                "{host}"
            );
        }
    }
}
