//! The host that a request names.

use axum::http::request::Parts;
use axum::http::{HeaderName, header};
use platform_protocol::problem::ProblemCode;

use crate::api_error::ApiError;

const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

/// Returns the host that a request names: the target's authority takes precedence over `Host` (RFC
/// 9112 §3.2.2), and over both what a proxy forwards, if it is trusted: most proxies forward a
/// visitor's own `X-Forwarded-Host`.
///
/// # Errors
/// `invalid-request` without exactly one host (RFC 9112 §3.2).
pub fn requested_host(parts: &Parts, believes_forwarded: bool) -> Result<String, ApiError> {
    let forwarded = believes_forwarded
        // The nearest proxy wrote the last line, and its last entry.
        .then(|| parts.headers.get_all(X_FORWARDED_HOST).iter().next_back())
        .flatten()
        .and_then(|value| value.as_bytes().rsplit(|byte| *byte == b',').next());
    if let Some(host) = forwarded {
        return std::str::from_utf8(host.trim_ascii())
            .map(str::to_owned)
            .map_err(|_| ProblemCode::UnknownHost.into());
    }
    let mut hosts = parts.headers.get_all(header::HOST).iter();
    let named = (hosts.next(), hosts.next());
    match (parts.uri.authority(), named) {
        (_, (Some(_), Some(_))) | (None, (None, _)) => {
            Err(ApiError::new(ProblemCode::InvalidRequest)
                .with_detail("The request must name exactly one host."))
        }
        (Some(authority), _) => Ok(authority.as_str().to_owned()),
        (None, (Some(host), None)) => host
            .to_str()
            .map(str::to_owned)
            .map_err(|_| ProblemCode::UnknownHost.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_forwarded_host_counts() {
        let host = |lines: &[&[u8]]| {
            let mut request = axum::http::Request::get("/").header("host", "h");
            for line in lines {
                request = request.header(X_FORWARDED_HOST, *line);
            }
            let (parts, ()) = request.body(()).unwrap().into_parts();
            requested_host(&parts, true).ok()
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(host(&[]), some("h"));
        assert_eq!(host(&[b"evil", b"good"]), some("good"));
        assert_eq!(host(&[b"evil, worse", b"also , good "]), some("good"));
        assert_eq!(host(&[b"evil", b"\xff"]), None);
    }
}
