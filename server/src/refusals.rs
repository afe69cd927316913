//! Keeping what was refused: failed sign-ins, and administration by whom it is
//! not for. Anybody can cause these events, so few of one network are kept, few
//! of all, and none for long.

use std::sync::Arc;

use crate::clock::Clock;
use crate::config::{Period, Rate};
use crate::domain::audit::{Actor, By, Refused, Source};
use crate::http::limiter::Limiter;
use crate::http::refusal::chain;
use crate::state::AppState;

/// Events of one network.
const OF_NETWORK: Rate = Rate::new(60, Period::Hour, 20);
/// Events of all networks: whoever has many addresses fills no disk either.
const OF_ALL: Rate = Rate::new(600, Period::Hour, 600);

/// How many refusals are kept.
#[derive(Debug)]
pub struct RefusalLimits {
    of_network: Limiter<String>,
    of_all: Limiter<()>,
}

impl RefusalLimits {
    /// Limits by this clock.
    #[must_use]
    pub fn new(clock: &Arc<dyn Clock>) -> Self {
        Self {
            of_network: Limiter::new(&OF_NETWORK, Arc::clone(clock)),
            of_all: Limiter::new(&OF_ALL, Arc::clone(clock)),
        }
    }

    /// Whether one more of this network is kept.
    fn take(&self, network: &str) -> bool {
        self.of_network.count(&network.to_owned()).is_ok() && self.of_all.count(&()).is_ok()
    }

    /// Forgets the networks that have been quiet for long enough.
    pub fn sweep(&self) {
        self.of_network.sweep();
    }
}

/// Keeps that somebody was refused, if not too many were. If it cannot be kept,
/// they are refused all the same.
pub(crate) async fn keep(state: &AppState, refused: Refused, source: Source) {
    if !state.refusal_limits.take(&source.network) {
        tracing::debug!(
            request_id = source.request,
            kind = refused.kind.as_str(),
            "too many refusals of one network, or of all, to keep this one"
        );
        return;
    }
    let by = By::request(Actor::Own, source);
    let kept = state.store.note_refusal(refused, by, state.clock.now());
    if let Err(error) = kept.await {
        tracing::warn!(error = chain(&error), "a refusal was not kept");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;

    #[test]
    fn one_network_takes_no_room_from_another_and_all_together_have_an_end() {
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::new(0));
        let limits = RefusalLimits::new(&clock);
        let kept = |network: &str| (0..100).filter(|_| limits.take(network)).count();
        assert_eq!(kept("192.0.2.1"), 20);
        assert_eq!(kept("192.0.2.1"), 0);
        assert_eq!(kept("192.0.2.2"), 20);
        let all: usize = (3..200).map(|last| kept(&format!("192.0.2.{last}"))).sum();
        assert_eq!(all, 600 - 40);
    }
}
