//! A future that is polled only when it was woken itself, and not at each event of its task. A task
//! that waits for a socket and for what happens rarely would otherwise ask about the latter at every
//! request.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// The future, and how it is woken.
#[derive(Debug)]
pub(super) struct Rarely<F> {
    future: Pin<Box<F>>,
    bell: Arc<Bell>,
    waker: Waker,
    /// The task that was last told to the bell.
    task: Option<Waker>,
}

/// Wakes the task on behalf of the future.
#[derive(Debug)]
struct Bell {
    rung: AtomicBool,
    task: Mutex<Option<Waker>>,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.rung.store(true, Ordering::Release);
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(task) = &*task {
            task.wake_by_ref();
        }
    }
}

impl<F> Rarely<F> {
    /// Polls `future` once, and from then on only when it was woken.
    pub(super) fn new(future: F) -> Self {
        let bell = Arc::new(Bell {
            rung: AtomicBool::new(true),
            task: Mutex::new(None),
        });
        Self {
            future: Box::pin(future),
            waker: Waker::from(Arc::clone(&bell)),
            bell,
            task: None,
        }
    }
}

impl<F: Future> Future for Rarely<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        let is_known = this
            .task
            .as_ref()
            .is_some_and(|task| task.will_wake(context.waker()));
        if !is_known {
            let task = context.waker().clone();
            let mut told = this
                .bell
                .task
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            *told = Some(task.clone());
            drop(told);
            this.task = Some(task);
        }
        // After the task is known, so that no ring is lost.
        if !this.bell.rung.load(Ordering::Relaxed) || !this.bell.rung.swap(false, Ordering::Acquire)
        {
            return Poll::Pending;
        }
        let mut own = Context::from_waker(&this.waker);
        this.future.as_mut().poll(&mut own)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use tokio::sync::Notify;

    use super::*;

    #[tokio::test]
    async fn a_future_is_polled_when_it_was_woken_and_not_when_its_task_was() {
        let (polled, notify) = (AtomicUsize::new(0), Arc::new(Notify::new()));
        let waiting = Arc::clone(&notify);
        let mut waiting = Box::pin(async move { waiting.notified().await });
        let counted = std::future::poll_fn(|context| {
            polled.fetch_add(1, Ordering::Relaxed);
            waiting.as_mut().poll(context)
        });
        let mut rarely = Rarely::new(counted);
        for _ in 0..3 {
            let poll = std::future::poll_fn(|context| {
                Poll::Ready(Pin::new(&mut rarely).poll(context).is_ready())
            });
            assert!(!poll.await);
        }
        assert_eq!(polled.load(Ordering::Relaxed), 1);
        notify.notify_one();
        rarely.await;
        assert_eq!(polled.load(Ordering::Relaxed), 2);
    }
}
