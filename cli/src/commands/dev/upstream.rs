//! Another dev server behind this one. It sees requests as if the browser had asked it itself, so
//! that its checks of `Host` and `Origin`, and its own reloading of the page, work unchanged.

use std::net::IpAddr;

use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, header};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use platform_protocol::problem::ProblemCode;
use tokio::sync::watch;

use super::forward::{self, Address, Connections, Visit};
use super::own_page::is_origin_of;
use super::problem::Problem;
use crate::client::Body;
use crate::origin::PlatformOrigin;

/// A dev server. Its address is not known before it listens, if this program starts it.
pub(super) struct Upstream {
    connections: Connections,
    address: watch::Receiver<Option<Address>>,
    origin: PlatformOrigin,
}

impl Upstream {
    pub(super) const fn new(
        connections: Connections,
        address: watch::Receiver<Option<Address>>,
        origin: PlatformOrigin,
    ) -> Self {
        Self {
            connections,
            address,
            origin,
        }
    }

    /// Passes a request on, and its response back.
    pub(super) async fn answer(
        &self,
        request: Request<Incoming>,
        visit: Visit<'_>,
        client: IpAddr,
    ) -> Response<Body> {
        let address = self.address.borrow().clone();
        let shown_to = request.headers().clone();
        let problem = |detail: String| {
            Problem::new(&self.origin, ProblemCode::BackendUnreachable, detail).shown_to(&shown_to)
        };
        let Some(address) = address else {
            return problem("The dev server is starting.".to_owned());
        };
        let prepare = |headers: &mut HeaderMap| introduce(headers, &address, visit.host, client);
        let body = |body: Incoming| body.map_err(Into::into).boxed_unsync();
        let sent = forward::send(
            &self.connections,
            &address,
            visit.via,
            request,
            body,
            prepare,
        );
        match sent.await {
            Ok(mut response) => {
                forward::lead_back(response.headers_mut(), &address, visit.host);
                response
            }
            Err(_) => problem(format!(
                "The dev server at {address} does not answer. Is it running?"
            )),
        }
    }
}

/// Sets `Host` and `Origin` to the server's own, and says for whom the request is. The `Origin` of
/// another site stays: the server has to see and refuse it.
fn introduce(headers: &mut HeaderMap, address: &Address, host: &str, client: IpAddr) {
    let is_own = headers
        .get(header::ORIGIN)
        .is_some_and(|origin| is_origin_of(host, origin.as_bytes()));
    let lines = [
        (header::HOST, Some(address.authority())),
        (header::ORIGIN, is_own.then(|| address.to_string())),
        (
            HeaderName::from_static("x-forwarded-for"),
            Some(client.to_string()),
        ),
        (
            HeaderName::from_static("x-forwarded-host"),
            Some(host.to_owned()),
        ),
        (
            HeaderName::from_static("x-forwarded-proto"),
            Some("http".to_owned()),
        ),
    ];
    for (name, value) in lines {
        if let Some(Ok(value)) = value.map(HeaderValue::try_from) {
            headers.insert(name, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_games_own_origin_becomes_the_servers() {
        let introduced = |origin: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, HeaderValue::from_static("localhost:5174"));
            headers.insert(header::ORIGIN, HeaderValue::from_static(origin));
            let client = IpAddr::from([127, 0, 0, 1]);
            introduce(
                &mut headers,
                &Address::local(5173),
                "localhost:5174",
                client,
            );
            assert_eq!(headers[header::HOST], "localhost:5173");
            assert_eq!(headers["x-forwarded-host"], "localhost:5174");
            headers[header::ORIGIN].to_str().unwrap().to_owned()
        };
        assert_eq!(introduced("http://localhost:5174"), "http://localhost:5173");
        for other in ["http://evil.example", "null", "http://localhost:8080"] {
            assert_eq!(introduced(other), other);
        }
    }
}
