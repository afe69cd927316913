//! Connections of HTTP/2 (RFC 9113), over TLS alone. The application sees their requests as it sees
//! those of HTTP/1.1, and the same limits hold:
//!
//! | limit | where |
//! |---|---|
//! | a connection without a request is closed after a while; it holds its slot only until a new one needs it | here |
//! | a peer that does not read is cut off: by the connection, and by the request, since each has a window of its own | [`frames`], [`streams`] |
//! | requests that take long have their part of all, per network and per game | [`streams`] |
//! | responses that wait for the peer have a budget of memory | [`unread`] |
//! | heads have a budget of memory, while they arrive and while their request is answered | [`frames`], [`requests`] |
//! | a head has a maximum number of fields | [`fields`] |
//!
//! And those that only HTTP/2 needs: [`MOST_STREAMS`] requests at a time; resets and frames that carry
//! nothing in proportion to the requests ([`frames`]). `h2` limits the number of CONTINUATION frames,
//! of small DATA frames, and of resets that it has not yet handled.

mod fields;
pub(super) mod frames;
mod requests;
mod streams;
pub(super) mod unread;

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::body::Body as _;
use hyper::server::conn::http2::Builder;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use platform_protocol::problem::MEDIA_TYPE;
use tokio::io::{AsyncRead, AsyncWrite};

use self::frames::{Frames, Transfer};
use self::requests::{HeadSize, like_http1};
use self::streams::{Answer, Open, Streams};
use self::unread::Unread;
use super::head_budget::{HeadMeter, MAX_HEAD};
use super::rarely::Rarely;
use super::request_id::X_REQUEST_ID;
use super::serve::{Application, Visitor};

/// How many requests a peer may have in progress, on one connection (RFC 9113 §6.5.2 recommends at
/// least 100).
const MOST_STREAMS: u32 = 100;
/// The size of a head above which `h2` answers by itself: larger than what is allowed, so that what
/// is too large has our answer.
const MAX_HEAD_LIST: u32 = 1_024 * 1_024;
/// How much of a request's body may be on its way, and of those of all requests of a connection. As
/// much is in memory if nobody reads it.
const BODY_WINDOW: u32 = 256 * 1_024;
const CONNECTION_WINDOW: u32 = 512 * 1_024;
/// How much of an answer is kept for a peer that has yet to read it.
const ANSWER_BUFFER: usize = 64 * 1_024;
/// How many requests that the peer has reset may wait to be noticed; and how many it may break by
/// errors of its own, or have refused. (The defaults of `h2`.)
const PENDING_RESETS: usize = 20;
const BROKEN: usize = 1_024;
/// How long a peer that has no request in progress may take to close when the server stops.
const GOODBYE: Duration = Duration::from_secs(1);

/// Responds to the requests of one connection, and to no further one after the shutdown has begun.
pub(super) async fn connection<S, A>(stream: S, visitor: Visitor<A>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    A: Application,
{
    let Visitor {
        peer,
        place,
        meter,
        answers,
        limits,
        app,
        mut stopping,
        shown,
    } = visitor;
    let pace = limits.pace();
    let transfer = Arc::new(Transfer::new(meter.arrived()));
    let unread = Unread::new(answers, Arc::clone(&transfer));
    let streams = Streams::new(place.clone(), Arc::clone(&transfer), limits, pace, unread);
    let frames = Frames::new(stream, Arc::clone(&meter), transfer, pace);
    let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
        let (app, meter) = (Arc::clone(&app), Arc::clone(&meter));
        // In a box: a connection may have a hundred requests that wait.
        let is_misdirected = shown
            .as_ref()
            .is_some_and(|shown| shown.is_misdirected(&request));
        let read = if is_misdirected {
            Err(StatusCode::MISDIRECTED_REQUEST)
        } else {
            like_http1(request.map(Body::new))
        };
        let read = read.map(|(request, size)| (Box::new(request), size));
        async move {
            let stream = Open::current();
            let response = respond(&*app, peer, &meter, &stream, read).await;
            Ok::<_, Infallible>(Answer::of(stream, response))
        }
    });
    let protocol = protocol(&streams);
    let connection = protocol.serve_connection(TokioIo::new(frames), service);
    let mut connection = pin!(connection);
    let mut idle = Rarely::new(streams.idle());
    let mut ending = Rarely::new(async {
        tokio::select! {
            () = place.dismissed() => true,
            _ = stopping.wait_for(|stopping| *stopping) => false,
        }
    });
    let patience = tokio::select! {
        biased;
        ended = connection.as_mut() => return log(ended),
        () = &mut idle => limits.stall,
        is_dismissed = &mut ending => {
            if is_dismissed {
                tracing::debug!(%peer, "a connection that waited, or did not read, gave way to another");
                return;
            }
            GOODBYE
        }
    };
    connection.as_mut().graceful_shutdown();
    tokio::select! {
        ended = connection => log(ended),
        () = place.dismissed() => {}
        () = streams.quiet(patience) => tracing::debug!(%peer, "a connection did not close in time"),
    }
}

fn log(ended: hyper::Result<()>) {
    if let Err(error) = ended {
        tracing::debug!(%error, "connection ended");
    }
}

/// The protocol, with limits.
fn protocol(streams: &Arc<Streams>) -> Builder<streams::Tasks> {
    let mut builder = Builder::new(streams::Tasks(Arc::clone(streams)));
    builder
        .max_concurrent_streams(MOST_STREAMS)
        .max_header_list_size(MAX_HEAD_LIST)
        .max_pending_accept_reset_streams(PENDING_RESETS)
        .max_local_error_reset_streams(BROKEN)
        .initial_stream_window_size(BODY_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buf_size(ANSWER_BUFFER);
    builder
}

/// Responds to a request as to one of HTTP/1.1, or says why it cannot be one.
async fn respond<A: Application>(
    app: &A,
    peer: std::net::SocketAddr,
    meter: &Arc<HeadMeter>,
    stream: &Open,
    read: Result<(Box<Request<Body>>, HeadSize), StatusCode>,
) -> Response<Body> {
    let (mut request, size) = match read {
        Ok(read) => read,
        Err(status) => return refuse(app, status),
    };
    let held = if size.bytes > MAX_HEAD {
        None
    } else {
        meter.hold(size.memory)
    };
    let Some(held) = held else {
        return refuse(app, StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
    };
    request.extensions_mut().insert(stream.stay().clone());
    let is_head = request.method() == Method::HEAD;
    let Some(admission) = stream.admit().await else {
        return refuse(app, StatusCode::REQUEST_TIMEOUT);
    };
    // In a box: it takes some kilobytes, which a request that waits would hold otherwise.
    let response = Box::pin(app.answer(peer, *request)).await;
    drop((admission, held));
    if is_head {
        without_body(response)
    } else {
        response
    }
}

/// The response to a `HEAD`, of which hyper leaves out the body in HTTP/1.1 alone.
fn without_body(mut response: Response<Body>) -> Response<Body> {
    if let Some(length) = response
        .body()
        .size_hint()
        .exact()
        .filter(|length| *length > 0)
    {
        let headers = response.headers_mut();
        headers
            .entry(header::CONTENT_LENGTH)
            .or_insert_with(|| length.into());
    }
    response.map(|_| Body::empty())
}

/// The response to a request that the application does not see.
pub(super) fn refuse<A: Application>(app: &A, status: StatusCode) -> Response<Body> {
    let (id, body) = app.explain_unread(status);
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_TYPE, MEDIA_TYPE),
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.insert(X_REQUEST_ID, id.header().clone());
    response
}
