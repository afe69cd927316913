//! A future that belongs to a request.

use std::pin::Pin;
use std::task::Poll;

use opentelemetry::Context;
use pin_project_lite::pin_project;

use crate::TracedRequest;

pin_project! {
    /// A future that is polled as part of a request, if that is traced.
    #[derive(Debug)]
    pub struct Traced<F> {
        #[pin]
        inner: F,
        context: Option<Context>,
    }
}

impl<F> Traced<F> {
    /// Makes `inner` part of `request`.
    pub fn new(inner: F, request: Option<&TracedRequest>) -> Self {
        Self {
            inner,
            context: request.map(|request| request.context().clone()),
        }
    }
}

impl<F: Future> Future for Traced<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, task: &mut std::task::Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let _entered = this.context.clone().map(Context::attach);
        this.inner.poll(task)
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    #[test]
    fn a_request_that_is_not_traced_changes_nothing() {
        let mut future = std::pin::pin!(Traced::new(std::future::ready(7), None));
        let mut task = std::task::Context::from_waker(Waker::noop());
        assert_eq!(future.as_mut().poll(&mut task), Poll::Ready(7));
    }
}
