//! Group commit: the writes of many callers in one transaction.
//!
//! Requests wait in a bounded queue. One task takes all waiting requests, writes them together, and
//! only then replies. While one commit waits for the disk (and the standby), the next group
//! gathers.

use std::future::Future;

use platform_store::StoreError;
use tokio::sync::{mpsc, oneshot};

use super::database::closed;

/// A write request, with the channel for its reply.
pub(super) struct Request<In, Out> {
    /// What to write.
    pub(super) input: In,
    caller: oneshot::Sender<Result<Out, StoreError>>,
}

impl<In, Out> Request<In, Out> {
    /// Sends the reply. The caller may be gone.
    pub(super) fn answer(self, result: Result<Out, StoreError>) {
        let _ = self.caller.send(result);
    }
}

enum Message<In, Out> {
    Write(Request<In, Out>),
    Close(oneshot::Sender<()>),
}

/// The handle of the writing task. When it is dropped, the task writes what is queued and ends.
#[derive(Debug)]
pub(super) struct Group<In, Out> {
    queue: mpsc::Sender<Message<In, Out>>,
}

impl<In: Send + 'static, Out: Send + 'static> Group<In, Out> {
    /// Starts the task. `write` receives up to `size` requests and replies to each.
    pub(super) fn start<F, Fut>(queue: usize, size: usize, write: F) -> Self
    where
        F: Fn(Vec<Request<In, Out>>) -> Fut + Send + 'static,
        Fut: Future<Output = ()> + Send,
    {
        let (sender, mut messages) = mpsc::channel(queue);
        tokio::spawn(async move {
            let mut waiting = Vec::with_capacity(size);
            loop {
                if messages.recv_many(&mut waiting, size).await == 0 {
                    return;
                }
                let (mut requests, mut closers) = (Vec::new(), Vec::new());
                for message in waiting.drain(..) {
                    match message {
                        Message::Write(request) => requests.push(request),
                        Message::Close(closer) => closers.push(closer),
                    }
                }
                if !requests.is_empty() {
                    write(requests).await;
                }
                if !closers.is_empty() {
                    // The callers of later requests see that the channel is closed.
                    drop(messages);
                    for closer in closers {
                        // The caller may be gone.
                        let _ = closer.send(());
                    }
                    return;
                }
            }
        });
        Self { queue: sender }
    }

    /// Writes `input` with the next group.
    ///
    /// # Errors
    /// [`StoreError::Busy`] if the queue is full; [`StoreError::Unavailable`] if the store was
    /// closed; the error of the write itself.
    pub(super) async fn write(&self, input: In) -> Result<Out, StoreError> {
        let (caller, answer) = oneshot::channel();
        let request = Request { input, caller };
        self.queue
            .try_send(Message::Write(request))
            .map_err(|error| match error {
                mpsc::error::TrySendError::Full(_) => StoreError::Busy,
                mpsc::error::TrySendError::Closed(_) => closed(),
            })?;
        answer.await.unwrap_or_else(|_| Err(closed()))
    }

    /// Writes what is queued, and ends the task.
    pub(super) async fn close(&self) {
        let (closer, ended) = oneshot::channel();
        if self.queue.send(Message::Close(closer)).await.is_ok() {
            // An error means that the task has already ended.
            let _ = ended.await;
        }
    }
}
