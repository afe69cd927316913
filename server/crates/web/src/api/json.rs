//! JSON of the project API: bodies of requests and responses.

use axum::extract::{FromRequest, Request};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::invalid;
use crate::api_error::ApiError;
use crate::json;

/// The maximum size of a request's JSON in bytes.
const BYTES: usize = 16 * 1024;

/// The JSON object of a request, or of a response, which no cache stores.
///
/// A handler lists it after the extractors that check the caller: extractors run in order, and a
/// caller who is not allowed must not learn what is wrong with the body.
#[derive(Clone, Copy, Debug)]
pub struct ApiJson<T>(pub T);

impl<S: Sync, T: DeserializeOwned> FromRequest<S> for ApiJson<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        let (parts, body) = request.into_parts();
        let bytes = json::read(&parts.headers, body, BYTES).await?;
        // serde would read a list as the members in their order.
        if bytes.trim_ascii_start().first() != Some(&b'{') {
            return Err(invalid("The request's body must be a JSON object."));
        }
        // The body is the caller's own, so the response may say what is wrong.
        serde_json::from_slice(&bytes).map(Self).map_err(|error| {
            invalid(format!(
                "The request's JSON does not have the expected form: {error}."
            ))
        })
    }
}

impl<T: Serialize> IntoResponse for ApiJson<T> {
    fn into_response(self) -> Response {
        let bytes = match serde_json::to_vec(&self.0) {
            Ok(bytes) => bytes,
            Err(error) => return ApiError::internal(&error).into_response(),
        };
        let mut response = bytes.into_response();
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        );
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use platform_protocol::problem::ProblemCode;
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize, Serialize)]
    #[serde(deny_unknown_fields)]
    struct Wanted {
        name: String,
    }

    async fn read(kind: &'static str, body: &str) -> Result<String, (ProblemCode, String)> {
        let request = Request::post("/").header(header::CONTENT_TYPE, kind);
        let request = request.body(Body::from(body.to_owned())).unwrap();
        let read = ApiJson::<Wanted>::from_request(request, &()).await;
        read.map(|ApiJson(wanted)| wanted.name)
            .map_err(|refusal| (refusal.slug(), refusal.detail().to_owned()))
    }

    #[tokio::test]
    async fn a_body_is_one_object_of_its_type() {
        let kind = "application/json; charset=utf-8";
        assert_eq!(read(kind, "\n {\"name\":\"a\"} ").await.unwrap(), "a");
        for (body, sentence) in [
            ("", "The request's body must be a JSON object."),
            ("[\"a\"]", "The request's body must be a JSON object."),
            (
                "{\"name\":\"a\",\"more\":1}",
                "The request's JSON does not have the expected form: unknown field `more`, \
                 expected `name` at line 1 column 18.",
            ),
            (
                "{\"name\":\"a\",\"name\":\"b\"}",
                "The request's JSON does not have the expected form: duplicate field `name` at \
                 line 1 column 18.",
            ),
            (
                "{\"name\":",
                "The request's JSON does not have the expected form: EOF while parsing a value at \
                 line 1 column 8.",
            ),
        ] {
            let expected = (ProblemCode::InvalidRequest, sentence.to_owned());
            assert_eq!(read(kind, body).await.unwrap_err(), expected, "{body}");
        }
    }

    #[tokio::test]
    async fn a_body_is_small_and_json() {
        let refused = read("text/plain", "{}").await.unwrap_err();
        assert_eq!(refused.0, ProblemCode::UnsupportedMediaType);
        let large = format!("{{\"name\":\"{}\"}}", "x".repeat(BYTES));
        let refused = read("application/json", &large).await.unwrap_err();
        assert_eq!(refused.0, ProblemCode::PayloadTooLarge);
    }

    #[test]
    fn an_answer_is_json_that_no_cache_keeps() {
        let name = "a".to_owned();
        let response = ApiJson(Wanted { name }).into_response();
        assert_eq!(response.status(), 200);
        let header = |name| response.headers().get(name).cloned();
        assert_eq!(header(header::CONTENT_TYPE).unwrap(), "application/json");
        assert_eq!(header(header::CACHE_CONTROL).unwrap(), "no-store");
    }
}
