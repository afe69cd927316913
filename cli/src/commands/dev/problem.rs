//! Why a request is refused, as Problem Details (RFC 9457), or as a page for people.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use platform_protocol::problem::{MEDIA_TYPE, ProblemCode};
use serde_json::{Value, json};

use crate::client::{Body, full};
use crate::failure::Failure;
use crate::origin::PlatformOrigin;

/// Nothing of a dev server is stored: the next request must get what is there then.
pub(super) const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

/// Makes a response that no browser stores.
pub(super) fn respond(status: StatusCode, kind: &str, body: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(full(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    if let Ok(kind) = HeaderValue::try_from(kind) {
        headers.insert(header::CONTENT_TYPE, kind);
    }
    headers.insert(header::CACHE_CONTROL, NO_STORE);
    response
}

/// A refusal: which problem it is, and what to do about it.
#[derive(Debug)]
pub(super) struct Problem {
    status: StatusCode,
    body: Value,
    allow: Option<&'static str>,
}

impl Problem {
    /// A problem of this program.
    pub(super) fn new(
        origin: &PlatformOrigin,
        code: ProblemCode,
        detail: impl Into<String>,
    ) -> Self {
        let detail: String = detail.into();
        let body = json!({
            "type": format!("{}/problems/{}", origin.auth_url(), code.as_str()),
            "title": code.title(),
            "status": code.status(),
            "detail": detail,
        });
        Self::from_value(body)
    }

    /// A failed call to the platform: its problem, with the sentence that says what to do. `None` if
    /// the failure has none.
    pub(super) fn of(failure: Failure) -> Option<(Self, String)> {
        let Failure::Told(told) = failure else {
            return None;
        };
        let mut body = told.problem.unwrap_or_default();
        if !body.is_object() {
            body = json!({ "type": "about:blank" });
        }
        // The sentence is the platform's, followed by what a developer can do.
        body["detail"] = Value::from(told.sentence.clone());
        Some((Self::from_value(body), told.sentence))
    }

    fn from_value(mut body: Value) -> Self {
        let status = body["status"].as_u64();
        let status = status.and_then(|status| u16::try_from(status).ok());
        let status = status.and_then(|status| StatusCode::from_u16(status).ok());
        let status = status
            .filter(|status| status.is_client_error() || status.is_server_error())
            .unwrap_or(StatusCode::BAD_GATEWAY);
        body["status"] = Value::from(status.as_u16());
        Self {
            status,
            body,
            allow: None,
        }
    }

    /// Names the methods that the path accepts.
    pub(super) const fn allowing(mut self, methods: &'static str) -> Self {
        self.allow = Some(methods);
        self
    }

    /// The response for a program.
    pub(super) fn into_response(self) -> Response<Body> {
        let mut response = respond(self.status, MEDIA_TYPE, self.body.to_string());
        if let Some(allow) = self.allow {
            let headers = response.headers_mut();
            headers.insert(header::ALLOW, HeaderValue::from_static(allow));
        }
        response
    }

    /// The response for whoever sent these headers: a page if a browser will show it. The page is
    /// requested again every second, because the other server may only be starting.
    pub(super) fn shown_to(self, headers: &HeaderMap) -> Response<Body> {
        if !wants_page(headers) {
            return self.into_response();
        }
        let detail = self.body["detail"].as_str().unwrap_or_default();
        let escaped = detail
            .replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('>', "&gt;");
        let page = format!(
            "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width\">\n\
             <meta http-equiv=\"refresh\" content=\"1\">\n<title>platform dev</title>\n\
             <style>:root {{ color-scheme: light dark; font: 1rem/1.5 system-ui, sans-serif }} \
             body {{ max-width: 40rem; margin: 3rem auto; padding: 0 1rem }}</style>\n\
             <p>{escaped}\n"
        );
        respond(self.status, "text/html; charset=utf-8", page)
    }
}

/// Whether a browser will show the response as a page: it says so (Fetch Metadata), or, without that
/// header, accepts HTML.
pub(super) fn wants_page(headers: &HeaderMap) -> bool {
    match headers.get("sec-fetch-dest") {
        Some(destination) => destination == "document" || destination == "iframe",
        None => headers
            .get(header::ACCEPT)
            .and_then(|accept| accept.to_str().ok())
            .is_some_and(|accept| accept.contains("text/html")),
    }
}
