//! Whether the bucket is out of reach, and who may ask it then.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::Failure;

/// How long requests fail at once before the bucket is asked again.
const PAUSE: Duration = Duration::from_secs(1);

/// Knows whether the last request to the bucket failed.
#[derive(Default)]
pub(super) struct Outages(Mutex<Option<Outage>>);

/// The bucket does not answer, or only with errors.
struct Outage {
    /// When it is asked again.
    next: Instant,
    why: String,
}

/// Whether a request may be sent.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Passage {
    Free,
    /// Once the bucket has answered a question, which the caller asks.
    AfterQuestion,
    /// No, since the bucket is out of reach, for this reason.
    Closed(String),
}

impl Outages {
    /// Whether a request may be sent at `now`. Of all that want to during an outage, one per
    /// [`PAUSE`] is to ask the bucket first, for at most `limit`.
    pub(super) fn pass(&self, now: Instant, limit: Duration) -> Passage {
        let mut outage = self.lock();
        let Some(outage) = &mut *outage else {
            return Passage::Free;
        };
        if now < outage.next {
            return Passage::Closed(outage.why.clone());
        }
        // The others go on failing until the question has its answer.
        outage.next = now + limit;
        Passage::AfterQuestion
    }

    /// Remembers whether the last request failed, and logs it when that changes.
    pub(super) fn note(&self, now: Instant, failure: Option<&Failure>) {
        let mut outage = self.lock();
        match failure {
            Some(Failure::Other(status, why)) if *status != 416 => {
                if outage.is_none() {
                    tracing::error!(error = why, "the bucket of deployed files is out of reach");
                }
                *outage = Some(Outage {
                    next: now + PAUSE,
                    why: why.clone(),
                });
            }
            _ => {
                if outage.take().is_some() {
                    tracing::info!("the bucket of deployed files answers again");
                }
            }
        }
    }

    /// Whether the last request failed.
    pub(super) fn is_lasting(&self) -> bool {
        self.lock().is_some()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Outage>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
