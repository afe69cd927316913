//! Which route of a router answered a request: a layer notes it, and the entry reads it. A task-local
//! cell passes it from one to the other, since the response cannot without an allocation.

use std::cell::Cell;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use axum::extract::{MatchedPath, Request};
use tower::{Layer, Service};

use crate::platform::metrics::Metrics;
use crate::platform::metrics::requests::{HostKind, RouteId};

tokio::task_local! {
    static MATCHED: Cell<Option<RouteId>>;
}

/// Waits for a router's answer. Also returns the route, if one matched and requests are counted.
pub(super) async fn with_route<R>(answer: impl Future<Output = R>) -> (R, Option<RouteId>) {
    let noting = async {
        let answer = answer.await;
        (answer, MATCHED.with(Cell::get))
    };
    MATCHED.scope(Cell::new(None), noting).await
}

/// The layer of the routes of one kind of host. A router makes a service of it for each endpoint.
#[derive(Clone, Debug)]
pub(super) struct NoteRoute {
    host: HostKind,
    metrics: Metrics,
}

impl NoteRoute {
    /// Creates the layer.
    pub(super) fn of(host: HostKind, metrics: &Metrics) -> Self {
        Self {
            host,
            metrics: metrics.clone(),
        }
    }
}

impl<S> Layer<S> for NoteRoute {
    type Service = Noting<S>;

    fn layer(&self, inner: S) -> Noting<S> {
        let counted = self.metrics.requests().is_some();
        Noting {
            inner,
            endpoint: counted.then(|| {
                Arc::new(Endpoint {
                    of: self.clone(),
                    route: OnceLock::new(),
                })
            }),
        }
    }
}

/// An endpoint, and the id of its route since its first request.
#[derive(Debug)]
struct Endpoint {
    of: NoteRoute,
    route: OnceLock<RouteId>,
}

impl Endpoint {
    fn note(&self, request: &Request) {
        // Requests that no route matched go to the fallback, which has no pattern.
        let Some(path) = request.extensions().get::<MatchedPath>() else {
            return;
        };
        let Some(requests) = self.of.metrics.requests() else {
            return;
        };
        let look_up = || requests.route(self.of.host, path.as_str());
        let route = *self.route.get_or_init(look_up);
        // There is no cell if a test calls a router itself.
        let _ = MATCHED.try_with(|matched| matched.set(Some(route)));
    }
}

/// The service of one endpoint.
#[derive(Clone, Debug)]
pub(super) struct Noting<S> {
    inner: S,
    endpoint: Option<Arc<Endpoint>>,
}

impl<S: Service<Request>> Service<Request> for Noting<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request) -> S::Future {
        if let Some(endpoint) = &self.endpoint {
            endpoint.note(&request);
        }
        self.inner.call(request)
    }
}
