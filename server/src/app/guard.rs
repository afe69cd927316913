//! Common behaviour of all handlers: a panic, or a handler that takes too long, results in a
//! problem.

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::pin::{Pin, pin};
use std::time::Duration;

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::routing::future::RouteFuture;
use futures_util::FutureExt as _;
use platform_protocol::problem::ProblemCode;

use crate::web::api_error::ApiError;
use crate::web::places::Stay;

/// How long a handler may take to begin its response.
pub(super) const HANDLING: Duration = Duration::from_secs(40);

/// Wraps the response of every route except those for uploads.
pub(super) async fn in_time(answer: RouteFuture<Infallible>) -> Result<Response, Infallible> {
    Ok(guard(Some(HANDLING), pin!(answer)).await)
}

/// The layer of routes for archives: an upload that makes progress may take any time.
pub(super) async fn upload(request: Request, next: Next) -> Response {
    if let Some(stay) = request.extensions().get::<Stay>() {
        stay.mark_upload();
    }
    guard(None, pin!(next.run(request))).await
}

/// Returns the response, or a problem instead of it. `answer` is pinned, since it may be large and
/// would be moved several times here.
pub(super) async fn guard<R: IntoResponse>(
    limit: Option<Duration>,
    answer: Pin<&mut impl Future<Output = R>>,
) -> Response {
    let answer = AssertUnwindSafe(answer).catch_unwind();
    let answered = match limit {
        Some(limit) => tokio::time::timeout(limit, answer).await,
        None => Ok(answer.await),
    };
    match answered {
        Ok(Ok(response)) => response.into_response(),
        Ok(Err(_panic)) => {
            // The panic hook has logged the message and the location.
            ApiError::new(ProblemCode::Internal)
                .with_cause("a handler panicked")
                .into_response()
        }
        Err(_) => ApiError::new(ProblemCode::Unavailable)
            .with_cause("a handler took too long")
            .into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;

    #[tokio::test(start_paused = true)]
    async fn a_handler_that_panics_or_never_answers_is_answered_for() {
        async fn panic() -> Response {
            panic!("a handler that panics")
        }
        assert_eq!(guard(Some(HANDLING), pin!(panic())).await.status(), 500);
        let never = pin!(std::future::pending::<Response>());
        assert_eq!(guard(Some(HANDLING), never).await.status(), 503);
    }

    #[tokio::test(start_paused = true)]
    async fn an_upload_may_take_longer_than_other_requests() {
        let later = async {
            tokio::time::timeout(HANDLING * 2, std::future::pending::<()>())
                .await
                .unwrap_err();
            Response::new(Body::empty())
        };
        assert_eq!(guard(None, pin!(later)).await.status(), 200);
    }
}
