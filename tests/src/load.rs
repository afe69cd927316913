//! A server that is killed while it responds, as when a machine loses power.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

use crate::poll;
use crate::server::Server;

/// The requests that one server has responded to.
#[derive(Debug, Default)]
pub struct Load {
    answers: AtomicUsize,
    answered: Notify,
}

impl Load {
    /// Counts a response.
    pub fn count(&self) {
        self.answers.fetch_add(1, Ordering::SeqCst);
        self.answered.notify_one();
    }

    /// Kills the server with SIGKILL a moment after it has sent some responses; the number and the
    /// moment are random.
    ///
    /// # Panics
    /// Panics if the responses do not arrive within the time limit of [`poll`].
    pub async fn kill_under_way(&self, server: &mut Server, random: &mut fastrand::Rng) {
        let enough = random.usize(1..=120);
        poll::within("answers", async {
            while self.answers.load(Ordering::SeqCst) < enough {
                self.answered.notified().await;
            }
        })
        .await;
        let moment = Duration::from_micros(random.u64(0..8_000));
        #[expect(
            clippy::disallowed_methods,
            reason = "nothing is waited for: the moment of the kill is random"
        )]
        tokio::time::sleep(moment).await;
        server.kill();
    }
}
