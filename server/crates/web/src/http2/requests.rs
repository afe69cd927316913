//! Makes a request of HTTP/2 look like one of HTTP/1.1: the host is in `Host`, the target is a path,
//! cookies are in one line (RFC 9113 §8.2.3, §8.3.1).

use axum::http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri, Version, header};

/// The maximum number of lines of a head, as of HTTP/1.1.
const MOST_LINES: usize = 100;
/// The bytes of a line beside its name and its value.
const AROUND_A_LINE: usize = 4;
/// The memory that a request takes beside its lines, and each line beside its name and its value: a line may
/// be one byte that refers to an earlier one (RFC 7541 §6.1).
const MEMORY: usize = 4_096;
const MEMORY_OF_A_LINE: usize = 160;

/// How large a head is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HeadSize {
    /// The bytes that it has in HTTP/1.1.
    pub(super) bytes: usize,
    /// The bytes that it takes in memory.
    pub(super) memory: usize,
}

/// Returns the request, and the size of its head.
///
/// # Errors
/// The status of what is wrong with it.
pub(super) fn like_http1<B>(mut request: Request<B>) -> Result<(Request<B>, HeadSize), StatusCode> {
    if request.method() == Method::CONNECT {
        return Err(StatusCode::METHOD_NOT_ALLOWED);
    }
    name_host(&mut request)?;
    join_cookies(request.headers_mut())?;
    *request.version_mut() = Version::HTTP_11;
    let headers = request.headers();
    if headers.len() > MOST_LINES {
        return Err(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
    }
    let lines = headers
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len() + AROUND_A_LINE);
    let target = request
        .uri()
        .path_and_query()
        .map_or(0, |target| target.as_str().len());
    let bytes = lines.sum::<usize>() + target;
    let memory = bytes + MEMORY + headers.len() * MEMORY_OF_A_LINE;
    Ok((request, HeadSize { bytes, memory }))
}

/// Moves the authority from the target to `Host`. If both are there, they must be the same.
fn name_host<B>(request: &mut Request<B>) -> Result<(), StatusCode> {
    let target = request.uri().path_and_query().cloned();
    let target = target.ok_or(StatusCode::BAD_REQUEST)?;
    if let Some(authority) = request.uri().authority().cloned() {
        let authority = authority.as_str();
        let differs =
            |host: &HeaderValue| !host.as_bytes().eq_ignore_ascii_case(authority.as_bytes());
        if request.headers().get_all(header::HOST).iter().any(differs) {
            return Err(StatusCode::BAD_REQUEST);
        }
        let host = HeaderValue::from_str(authority).map_err(|_| StatusCode::BAD_REQUEST)?;
        request.headers_mut().insert(header::HOST, host);
    }
    *request.uri_mut() = Uri::from(target);
    Ok(())
}

/// Browsers send each cookie in a line of its own, since it is compressed better.
fn join_cookies(headers: &mut HeaderMap) -> Result<(), StatusCode> {
    let mut lines = headers.get_all(header::COOKIE).iter();
    let (Some(_), Some(_)) = (lines.next(), lines.next()) else {
        return Ok(());
    };
    let lines: Vec<&[u8]> = headers
        .get_all(header::COOKIE)
        .iter()
        .map(HeaderValue::as_bytes)
        .collect();
    let joined = HeaderValue::from_bytes(&lines.join(&b"; "[..]));
    let joined = joined.map_err(|_| StatusCode::BAD_REQUEST)?;
    headers.insert(header::COOKIE, joined);
    // The map keeps room for a thousand lines otherwise, as long as the request waits.
    let mut smaller = HeaderMap::with_capacity(headers.keys_len());
    smaller.extend(std::mem::take(headers));
    *headers = smaller;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(uri: &str, lines: &[(&'static str, &str)]) -> Request<()> {
        let mut request = Request::builder().uri(uri).version(Version::HTTP_2);
        for (name, value) in lines {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap()
    }

    #[test]
    fn the_application_sees_a_path_one_host_and_one_line_of_cookies() {
        let lines = [("cookie", "a=1"), ("accept", "*/*"), ("cookie", "b=2")];
        let (read, size) = like_http1(request("https://play.example:8443/a?b", &lines)).unwrap();
        assert_eq!(read.uri().to_string(), "/a?b");
        assert_eq!(read.version(), Version::HTTP_11);
        let line = |name| read.headers().get_all(name).iter().collect::<Vec<_>>();
        assert_eq!(line("host"), ["play.example:8443"]);
        assert_eq!(line("cookie"), ["a=1; b=2"]);
        let lines = "host: play.example:8443\r\ncookie: a=1; b=2\r\naccept: */*\r\n";
        let bytes = lines.len() + "/a?b".len();
        let memory = bytes + MEMORY + 3 * MEMORY_OF_A_LINE;
        assert_eq!(size, HeadSize { bytes, memory });
    }

    #[test]
    fn a_host_that_differs_from_the_target_is_refused() {
        for (host, expected) in [
            ("play.example", None),
            ("PLAY.example", None),
            ("auth.play.example", Some(StatusCode::BAD_REQUEST)),
            ("", Some(StatusCode::BAD_REQUEST)),
        ] {
            let read = like_http1(request("https://play.example/", &[("host", host)]));
            assert_eq!(read.err(), expected, "{host}");
        }
        let (read, _) = like_http1(request("/a", &[("host", "play.example")])).unwrap();
        assert_eq!(read.headers()[header::HOST], "play.example");
    }

    #[test]
    fn a_tunnel_and_too_many_lines_are_refused() {
        let mut tunnel = request("play.example:443", &[]);
        *tunnel.method_mut() = Method::CONNECT;
        assert_eq!(
            like_http1(tunnel).err(),
            Some(StatusCode::METHOD_NOT_ALLOWED)
        );
        let lines = vec![("x-a", "1"); 101];
        let read = like_http1(request("https://play.example/", &lines));
        assert_eq!(
            read.err(),
            Some(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE)
        );
        // However many cookies there are, they are one line.
        let lines = vec![("cookie", "a=1"); 1_000];
        assert!(like_http1(request("https://play.example/", &lines)).is_ok());
    }
}
