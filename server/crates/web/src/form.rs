//! Forms posted by the platform's own pages.

use axum::body::Body;
use axum::http::HeaderMap;
use platform_protocol::problem::ProblemCode;
use url::form_urlencoded;

use super::api_error::ApiError;
use super::body;

/// The maximum size of a form in bytes: a return address, a token and a name, each in the longest
/// percent-encoding.
const MAX_BYTES: usize = 8 * 1_024;

const MEDIA_TYPE: &str = "application/x-www-form-urlencoded";

/// The fields of a form.
#[derive(Debug)]
pub struct Form(Vec<(String, String)>);

impl Form {
    /// Reads a body of type `application/x-www-form-urlencoded`.
    ///
    /// # Errors
    /// `unsupported-media-type`, and the errors of [`body::read`].
    pub async fn read(headers: &HeaderMap, body: Body) -> Result<Self, ApiError> {
        if !body::is(headers, MEDIA_TYPE) {
            return Err(ProblemCode::UnsupportedMediaType.into());
        }
        let body = body::read(body, MAX_BYTES).await?;
        Ok(Self(form_urlencoded::parse(&body).into_owned().collect()))
    }

    /// Parses the query of an address, which has the same format as a form.
    #[must_use]
    pub fn of_query(query: Option<&str>) -> Self {
        let query = query.unwrap_or_default().as_bytes();
        Self(form_urlencoded::parse(query).into_owned().collect())
    }

    /// Returns the only field with this name, if there is one.
    ///
    /// # Errors
    /// `invalid-request` if there are two.
    pub fn field(&self, name: &str) -> Result<Option<&str>, ApiError> {
        let mut values = self.0.iter().filter(|(given, _)| given == name);
        match (values.next(), values.next()) {
            (value, None) => Ok(value.map(|(_, value)| value.as_str())),
            (_, Some(_)) => Err(ProblemCode::InvalidRequest.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::{HeaderValue, header};

    async fn read(kind: &'static str, body: &str) -> Result<Form, ProblemCode> {
        let headers =
            HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static(kind))]);
        Form::read(&headers, Body::from(body.to_owned()))
            .await
            .map_err(|refusal| refusal.slug())
    }

    #[tokio::test]
    async fn a_field_is_read_once_and_decoded() {
        let kind = "application/x-www-form-urlencoded; charset=UTF-8";
        let form = read(kind, "a=1+2%2f%C3%A9&b=&c=1&c=2").await.unwrap();
        assert_eq!(form.field("a").unwrap(), Some("1 2/\u{e9}"));
        assert_eq!(form.field("b").unwrap(), Some(""));
        assert_eq!(form.field("d").unwrap(), None);
        let twice = form.field("c").unwrap_err();
        assert_eq!(twice.slug(), ProblemCode::InvalidRequest);
    }

    #[tokio::test]
    async fn only_small_forms_are_forms() {
        let kind = "application/x-www-form-urlencoded";
        for other in [
            "text/plain",
            "multipart/form-data; boundary=x",
            "application/json",
            "",
        ] {
            let refused = read(other, "a=1").await.unwrap_err();
            assert_eq!(refused, ProblemCode::UnsupportedMediaType, "{other}");
        }
        assert!(read(kind, &"x".repeat(MAX_BYTES)).await.is_ok());
        let refused = read(kind, &"x".repeat(MAX_BYTES + 1)).await.unwrap_err();
        assert_eq!(refused, ProblemCode::PayloadTooLarge);
    }
}
