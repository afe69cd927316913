//! Work that many callers request at the same time, such as reading a table again: it is done once
//! for all who requested it before it began.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Mutex;

/// The state of one piece of work. Of the callers who request it while it is being done, the first
/// does it once more, for all of them.
#[derive(Debug, Default)]
pub struct Turns {
    /// The number of requests.
    asked: AtomicU64,
    /// The number of requests that are served, in their order. Held while the work is done, so that
    /// an older result does not replace a newer one.
    served: Mutex<u64>,
}

impl Turns {
    /// Returns after `work` was done completely after this call: by this caller, or by another one
    /// for both. So the work has read everything that the caller wrote before.
    ///
    /// # Errors
    /// Errors of `work`. The next waiting caller then does it itself.
    pub async fn share<E>(&self, work: impl AsyncFnOnce() -> Result<(), E>) -> Result<(), E> {
        let turn = self.asked.fetch_add(1, Ordering::SeqCst) + 1;
        let mut served = self.served.lock().await;
        if *served >= turn {
            return Ok(());
        }
        // All of these requested it before the work begins.
        let asked = self.asked.load(Ordering::SeqCst);
        work().await?;
        *served = asked;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::convert::Infallible;

    use futures_util::FutureExt as _;
    use futures_util::future::join_all;
    use tokio::sync::Notify;

    use super::*;

    #[tokio::test]
    async fn all_who_come_while_the_work_is_done_share_the_next_one() {
        let (turns, go_on) = (Turns::default(), Notify::new());
        let (begun, done) = (Cell::new(0), Cell::new(0));
        let work = async || {
            begun.set(begun.get() + 1);
            go_on.notified().await;
            done.set(done.get() + 1);
            Ok::<_, Infallible>(())
        };
        let mut first = Box::pin(turns.share(work));
        assert!(first.as_mut().now_or_never().is_none());
        let mut others = Box::pin(join_all((0..50).map(|_| turns.share(work))));
        assert!(others.as_mut().now_or_never().is_none());
        assert_eq!(begun.get(), 1, "the others wait");
        go_on.notify_one();
        first.await.unwrap();
        assert!(others.as_mut().now_or_never().is_none());
        assert_eq!(
            (begun.get(), done.get()),
            (2, 1),
            "one works for all of them"
        );
        go_on.notify_one();
        assert!(others.await.iter().all(Result::is_ok));
        assert_eq!((begun.get(), done.get()), (2, 2));
    }

    #[tokio::test]
    async fn work_that_fails_or_is_given_up_serves_nobody() {
        let (turns, done) = (Turns::default(), Cell::new(0));
        let mut given_up = Box::pin(turns.share(async || {
            std::future::pending::<()>().await;
            Ok::<_, &str>(())
        }));
        assert!(given_up.as_mut().now_or_never().is_none());
        let failing = turns.share(async || Err("full"));
        let working = turns.share(async || {
            done.set(done.get() + 1);
            Ok::<_, &str>(())
        });
        let (mut failing, mut working) = (Box::pin(failing), Box::pin(working));
        assert!(failing.as_mut().now_or_never().is_none());
        assert!(working.as_mut().now_or_never().is_none());
        drop(given_up);
        assert_eq!(failing.await, Err("full"));
        assert_eq!(working.await, Ok(()));
        assert_eq!(done.get(), 1);
    }
}
