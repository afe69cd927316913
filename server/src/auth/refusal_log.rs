//! Records refusals: failed sign-ins, and refused administration. Anyone can cause these events, so
//! only a few are kept per network, per surrounding network, per player and per kind, and none for
//! long. The number of events that were left out is recorded instead.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, PoisonError};

use uuid::Uuid;

use crate::auth::AuthState;
use crate::clock::{Clock, Millis};
use crate::domain::audit::{Actor, AuditKind, By, Refused, Source};
use crate::domain::errors::chain;
use crate::web::client_address::Network;
use crate::web::limiter::{Limiter, Period, Rate};

/// Events of one kind per network.
const OF_NETWORK: Rate = Rate::new(60, Period::Hour, 20);
/// Events per surrounding network: a customer of a provider often has many networks.
const OF_GROUP: Rate = Rate::new(60, Period::Hour, 40);
/// Events per player, who can send requests from many networks.
const OF_PLAYER: Rate = Rate::new(60, Period::Hour, 20);
/// Events of all networks: even an attacker with many addresses cannot fill the disk, or use up the
/// limit of another kind.
const OF_KIND: Rate = Rate::new(600, Period::Hour, 600);
/// How often the number of events that were left out is recorded.
const TOLD_EVERY: Millis = 60 * 60 * 1_000;

/// The limits on recorded refusals.
#[derive(Debug)]
pub struct RefusalLimits {
    of_network: Limiter<(AuditKind, String)>,
    of_group: Limiter<(AuditKind, IpAddr)>,
    of_player: Limiter<(AuditKind, Uuid)>,
    of_kind: Limiter<AuditKind>,
    left_out: Mutex<HashMap<AuditKind, LeftOut>>,
}

/// The events of one kind that were left out.
#[derive(Debug, Default)]
struct LeftOut {
    /// The number since it was last recorded.
    count: u64,
    told_at: Option<Millis>,
}

impl RefusalLimits {
    /// Creates the limits with this clock.
    #[must_use]
    pub fn new(clock: &Arc<dyn Clock>) -> Self {
        Self {
            of_network: Limiter::new(&OF_NETWORK, Arc::clone(clock)),
            of_group: Limiter::new(&OF_GROUP, Arc::clone(clock)),
            of_player: Limiter::new(&OF_PLAYER, Arc::clone(clock)),
            of_kind: Limiter::new(&OF_KIND, Arc::clone(clock)),
            left_out: Mutex::default(),
        }
    }

    /// Whether another event of this kind, network and player is kept; if not, it is counted as
    /// left out. An event that a narrower limit refuses does not count against a wider one.
    fn take(&self, kind: AuditKind, network: &str, player: Option<Uuid>) -> bool {
        // Events without a network share one.
        let around = network
            .parse::<Network>()
            .map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), Network::around);
        let kept = player.is_none_or(|player| self.of_player.count(&(kind, player)).is_ok())
            && self.of_network.count(&(kind, network.to_owned())).is_ok()
            && self.of_group.count(&(kind, around)).is_ok()
            && self.of_kind.count(&kind).is_ok();
        if !kept {
            self.leave_out(kind, 1);
        }
        kept
    }

    fn leave_out(&self, kind: AuditKind, count: u64) {
        let mut left_out = self.left_out.lock().unwrap_or_else(PoisonError::into_inner);
        let of_kind = left_out.entry(kind).or_default();
        of_kind.count = of_kind.count.saturating_add(count);
    }

    /// Returns how many events of which kind were left out and must be recorded now: once in
    /// [`TOLD_EVERY`], or at once if this is the last chance. They are then counted as recorded.
    fn take_left_out(&self, now: Millis, last: bool) -> Vec<(AuditKind, u64)> {
        let mut left_out = self.left_out.lock().unwrap_or_else(PoisonError::into_inner);
        let mut due = Vec::new();
        for (kind, of_kind) in left_out.iter_mut() {
            let since = of_kind.told_at.map(|told_at| now.saturating_sub(told_at));
            // A clock that was set back does not prevent recording.
            let is_time = since.is_none_or(|since| !(0..TOLD_EVERY).contains(&since));
            if of_kind.count > 0 && (is_time || last) {
                due.push((*kind, std::mem::take(&mut of_kind.count)));
                of_kind.told_at = Some(now);
            }
        }
        due
    }

    /// Removes networks and players that have been quiet for long enough.
    pub fn sweep(&self) {
        self.of_network.sweep();
        self.of_group.sweep();
        self.of_player.sweep();
    }
}

/// Records a refusal, unless there were too many. If this fails, the caller is refused all the
/// same.
pub(crate) async fn keep(state: &AuthState, refused: Refused, source: Source) {
    let limits = &state.limits.refusals;
    if !limits.take(refused.kind, &source.network, refused.player) {
        tracing::debug!(
            request_id = source.request,
            kind = refused.kind.as_str(),
            "too many refusals of one network, of one player, or of all, to keep this one"
        );
        return;
    }
    let by = By::request(Actor::Own, source);
    let kept = state
        .platform
        .store
        .note_refusal(refused, by, state.platform.clock.now());
    if let Err(error) = kept.await {
        tracing::warn!(error = chain(&error), "a refusal could not be stored");
    }
}

/// Records how many refusals of which kind were left out, if it is time to do so or this is the
/// last chance.
pub async fn tell_left_out(state: &AuthState, last: bool) {
    let now = state.platform.clock.now();
    for (kind, count) in state.limits.refusals.take_left_out(now, last) {
        let told = Refused {
            kind: AuditKind::EventsLeftOut,
            player: None,
            subject: Some(kind.as_str().to_owned()),
            detail: count.to_string(),
        };
        let told = state
            .platform
            .store
            .note_refusal(told, Actor::Own.into(), now);
        if let Err(error) = told.await {
            state.limits.refusals.leave_out(kind, count);
            tracing::warn!(
                kind = kind.as_str(),
                count,
                error = chain(&error),
                "the number of refusals that were left out could not be stored"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;

    const SIGN_IN: AuditKind = AuditKind::SignInFailed;
    const ADMINISTRATION: AuditKind = AuditKind::AdministrationRefused;

    fn limits() -> RefusalLimits {
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::new(0));
        RefusalLimits::new(&clock)
    }

    #[test]
    fn one_network_takes_no_room_from_another_and_all_together_have_an_end() {
        let limits = limits();
        let kept = |network: &str| {
            let kept = |_: &i32| limits.take(SIGN_IN, network, None);
            (0..100).filter(kept).count()
        };
        assert_eq!(kept("192.0.2.1"), 20);
        assert_eq!(kept("192.0.2.1"), 0);
        assert_eq!(kept("198.51.100.1"), 20);
        let all: usize = (3..200).map(|third| kept(&format!("10.0.{third}.1"))).sum();
        assert_eq!(all, 600 - 40);
    }

    #[test]
    fn networks_beside_each_other_hide_nothing_of_others() {
        let limits = limits();
        let kept = |network: String| limits.take(SIGN_IN, &network, None);
        let of_one_site =
            (0..1_000_u32).filter(|subnet| kept(format!("2001:db8:0:{subnet:x}::/64")));
        assert_eq!(of_one_site.count(), 40);
        let of_one_range = (0..1_000_u32).filter(|at| kept(format!("192.0.2.{}", at % 256)));
        assert_eq!(of_one_range.count(), 40);
        assert!(kept("2001:db8:1::/64".to_owned()));
        assert!(kept("198.51.100.1".to_owned()));
    }

    #[test]
    fn one_kind_takes_no_room_from_another() {
        let limits = limits();
        for third in 0..200 {
            for _ in 0..20 {
                limits.take(SIGN_IN, &format!("10.0.{third}.1"), None);
            }
        }
        assert!(!limits.take(SIGN_IN, "192.0.2.1", None));
        assert!(limits.take(ADMINISTRATION, "192.0.2.1", None));
    }

    #[test]
    fn a_player_with_many_networks_takes_no_more_room_than_one() {
        let limits = limits();
        let player = Some(Uuid::max());
        let kept = |third: &i32| limits.take(ADMINISTRATION, &format!("10.0.{third}.1"), player);
        assert_eq!((0..200).filter(kept).count(), 20);
        assert!(limits.take(ADMINISTRATION, "10.0.1.1", Some(Uuid::nil())));
    }

    #[test]
    fn what_was_left_out_is_told_once_an_hour() {
        let limits = limits();
        let leave_out = |count: u64| limits.leave_out(SIGN_IN, count);
        assert_eq!(limits.take_left_out(0, true), []);
        leave_out(3);
        assert_eq!(limits.take_left_out(5, false), [(SIGN_IN, 3)]);
        leave_out(4);
        assert_eq!(limits.take_left_out(4 + TOLD_EVERY, false), []);
        assert_eq!(limits.take_left_out(5 + TOLD_EVERY, false), [(SIGN_IN, 4)]);
        leave_out(5);
        let stopping = limits.take_left_out(6 + TOLD_EVERY, true);
        assert_eq!(stopping, [(SIGN_IN, 5)]);
        leave_out(6);
        let set_back = limits.take_left_out(0, false);
        assert_eq!(set_back, [(SIGN_IN, 6)], "the clock was set back");
    }
}
