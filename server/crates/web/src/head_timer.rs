//! The time limit for the head of a request, without a timer for each. hyper makes one at the
//! beginning of each head and removes it at the end, which costs more than reading the head. Here it
//! only records when the limit ends; the connection, which looks regularly at its request, wakes
//! hyper.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::rt::{Sleep, Timer};
use tokio::time::Instant;

/// The end of the limit for the head that one connection reads.
#[derive(Clone, Debug)]
pub(super) struct HeadTimer(Arc<Ends>);

#[derive(Debug)]
struct Ends {
    /// The time from which they are counted.
    since: Instant,
    /// When the last limit ends, in microseconds.
    last: AtomicU64,
}

impl HeadTimer {
    /// Creates it without a limit.
    pub(super) fn new() -> Self {
        Self(Arc::new(Ends {
            since: Instant::now(),
            last: AtomicU64::new(0),
        }))
    }

    /// Returns when hyper must be woken, if that is in the future. A later call never returns an
    /// earlier time, since all limits are equally long.
    pub(super) fn end(&self, now: Instant) -> Option<Instant> {
        let last = Duration::from_micros(self.0.last.load(Ordering::Relaxed));
        Some(self.0.since + last).filter(|end| *end > now)
    }
}

impl Timer for HeadTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        self.sleep_until(self.now() + duration)
    }

    fn sleep_until(&self, deadline: std::time::Instant) -> Pin<Box<dyn Sleep>> {
        let deadline = Instant::from_std(deadline);
        // Rounded up, so that nothing is woken before the end.
        let last = (deadline - self.0.since).as_micros() + 1;
        let last = u64::try_from(last).unwrap_or(u64::MAX);
        self.0.last.store(last, Ordering::Relaxed);
        Box::pin(Limit(deadline))
    }

    fn now(&self) -> std::time::Instant {
        Instant::now().into_std()
    }
}

/// A limit that is over once its end has passed. It wakes nobody.
#[derive(Debug)]
struct Limit(Instant);

impl Future for Limit {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if Instant::now() < self.0 {
            Poll::Pending
        } else {
            Poll::Ready(())
        }
    }
}

impl Sleep for Limit {}

#[cfg(test)]
mod tests {
    use super::*;

    const HALF: Duration = Duration::from_secs(15);

    #[tokio::test(start_paused = true)]
    async fn a_limit_is_over_at_its_end_and_not_before() {
        let timer = HeadTimer::new();
        assert_eq!(timer.end(Instant::now()), None);
        let mut limit = timer.sleep(2 * HALF);
        let mut is_over = || {
            let mut context = Context::from_waker(std::task::Waker::noop());
            limit.as_mut().poll(&mut context).is_ready()
        };
        tokio::time::advance(HALF).await;
        assert!(!is_over());
        let end = timer.end(Instant::now()).unwrap();
        assert!(end > Instant::now() + HALF - Duration::from_millis(1));
        tokio::time::advance(HALF + Duration::from_micros(1)).await;
        assert!(is_over());
        assert_eq!(timer.end(Instant::now()), None, "nobody waits any more");
    }

    #[tokio::test(start_paused = true)]
    async fn the_next_head_has_the_whole_time() {
        let timer = HeadTimer::new();
        drop(timer.sleep(2 * HALF));
        let first = timer.end(Instant::now()).unwrap();
        tokio::time::advance(HALF).await;
        drop(timer.sleep(2 * HALF));
        assert!(timer.end(Instant::now()).unwrap() >= first + HALF);
    }
}
