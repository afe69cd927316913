//! Group commit: the writes of many callers in one transaction.
//!
//! Requests wait in a bounded queue. One task takes all waiting requests, writes them together, and
//! only then replies. While one commit waits for the disk (and the standby), the next group
//! gathers. If the database falls silent, a caller waits for the end of the group before its own no
//! longer than for its own.

use std::future::Future;
use std::time::Duration;

use platform_store::StoreError;
use tokio::sync::{mpsc, oneshot};

use super::database::closed;

/// How long a caller waits in total: as long as an operation that waits for a connection, and then
/// for its statement.
const PATIENCE: Duration = Duration::from_millis(5_500);

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
                        // Whoever gave up was told that nothing is certain.
                        Message::Write(request) if request.caller.is_closed() => {}
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
    /// closed; [`StoreError::Uncertain`] if there is no reply in time; the error of the write
    /// itself.
    pub(super) async fn write(&self, input: In) -> Result<Out, StoreError> {
        let (caller, answer) = oneshot::channel();
        let request = Request { input, caller };
        self.queue
            .try_send(Message::Write(request))
            .map_err(|error| match error {
                mpsc::error::TrySendError::Full(_) => StoreError::Busy,
                mpsc::error::TrySendError::Closed(_) => closed(),
            })?;
        match tokio::time::timeout(PATIENCE, answer).await {
            Ok(answer) => answer.unwrap_or_else(|_| Err(closed())),
            Err(_) => Err(StoreError::Uncertain(
                "the writes before it took too long".into(),
            )),
        }
    }

    /// Returns how many requests wait.
    pub(super) fn waiting(&self) -> usize {
        self.queue.max_capacity() - self.queue.capacity()
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_waits_behind_a_group_that_is_stuck_waits_no_longer_than_that_group() {
        let written = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&written);
        let group = Group::start(8, 8, move |requests: Vec<Request<(), ()>>| {
            let counted = Arc::clone(&counted);
            async move {
                // The database is silent for longer than anybody waits.
                let silence = Instant::now() + 2 * PATIENCE;
                tokio::time::sleep_until(silence).await;
                counted.fetch_add(requests.len(), Ordering::SeqCst);
                requests.into_iter().for_each(|one| one.answer(Ok(())));
            }
        });
        let began = Instant::now();
        let (first, second) = tokio::join!(group.write(()), async {
            tokio::time::sleep_until(began + Duration::from_secs(1)).await;
            group.write(()).await
        });
        for answer in [first, second] {
            assert!(
                matches!(answer, Err(StoreError::Uncertain(_))),
                "{answer:?}"
            );
        }
        // The second one came a second later.
        assert!(began.elapsed() < PATIENCE + Duration::from_secs(2));
        group.close().await;
        // The second one's caller was gone before its group began.
        assert_eq!(written.load(Ordering::SeqCst), 1);
    }
}
