//! Certificates that a certificate authority issues to the platform (ACME, RFC 8555): when one is renewed,
//! how often one is ordered, and how long an order that failed waits. Times are arguments.

use crate::clock::Millis;
use crate::counting::{DAY, HOUR, MINUTE};

/// How long an order keeps others from ordering the same certificate. An order takes seconds; one whose
/// server was killed is repeated after this.
pub const ORDER_HOLDS: Millis = 3 * MINUTE;
/// The longest [`OrderBudget::period`]: the store forgets earlier orders.
pub const LONGEST_BUDGET_PERIOD: Millis = 7 * DAY;
/// The wait after a first failure, which doubles with each further one.
const FIRST_WAIT: Millis = MINUTE;
/// The longest wait after a failure.
const LONGEST_WAIT: Millis = 12 * HOUR;

/// A certificate as the store keeps it.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredCertificate {
    /// The name that it is for; `*.<host>` if it is for `<host>` and all names one label below.
    pub name: String,
    /// The directory of the ACME server that issued it.
    pub directory: String,
    /// The certificate, then its chain: PEM.
    pub chain: String,
    /// The private key: PKCS#8 DER, sealed if the operator set a secret.
    pub private: Vec<u8>,
    /// Whether `private` is sealed.
    pub sealed: bool,
    /// From when it is valid.
    pub valid_from: Millis,
    /// Until when it is valid.
    pub valid_until: Millis,
    /// When it was obtained.
    pub obtained_at: Millis,
}

impl std::fmt::Debug for StoredCertificate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoredCertificate")
            .field("name", &self.name)
            .field("directory", &self.directory)
            .field("valid_until", &self.valid_until)
            .field("obtained_at", &self.obtained_at)
            .finish_non_exhaustive()
    }
}

impl StoredCertificate {
    /// Only what is known without the certificate itself.
    #[must_use]
    pub fn summary(&self) -> CertificateSummary {
        CertificateSummary {
            name: self.name.clone(),
            directory: self.directory.clone(),
            valid_from: self.valid_from,
            valid_until: self.valid_until,
            obtained_at: self.obtained_at,
        }
    }
}

/// A certificate without its contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateSummary {
    /// The name that it is for.
    pub name: String,
    /// The directory of the ACME server that issued it.
    pub directory: String,
    /// From when it is valid.
    pub valid_from: Millis,
    /// Until when it is valid.
    pub valid_until: Millis,
    /// When it was obtained.
    pub obtained_at: Millis,
}

impl CertificateSummary {
    /// Returns when it should be renewed: when a third of its life is left.
    #[must_use]
    pub const fn renewed_from(&self) -> Millis {
        let life = self.valid_until.saturating_sub(self.valid_from);
        self.valid_until.saturating_sub(life / 3)
    }

    /// Whether it should be replaced by one of this directory: it is to be renewed, or another ACME
    /// server issued it.
    #[must_use]
    pub fn is_due(&self, directory: &str, now: Millis) -> bool {
        self.directory != directory || now >= self.renewed_from()
    }
}

/// An account at an ACME server, as the store keeps it.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredAccount {
    /// The directory of the server.
    pub directory: String,
    /// The address and the private key of the account, in a form of the ACME client; sealed if the
    /// operator set a secret.
    pub credentials: Vec<u8>,
    /// Whether `credentials` are sealed.
    pub sealed: bool,
    /// When it was created.
    pub created_at: Millis,
}

impl std::fmt::Debug for StoredAccount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoredAccount")
            .field("directory", &self.directory)
            .field("created_at", &self.created_at)
            .finish_non_exhaustive()
    }
}

/// A bound on orders: at most `limit` of those that are counted under `counter` begin in a `period`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderBudget {
    /// What is counted. Orders of different budgets never use up each other's.
    pub counter: String,
    /// How many orders there may be.
    pub limit: u32,
    /// For how long an order counts, [`LONGEST_BUDGET_PERIOD`] at most.
    pub period: Millis,
    /// Whether an order that fails counts as well.
    pub counts_failures: bool,
}

impl OrderBudget {
    /// At most `limit` orders in an hour, failed ones included.
    #[must_use]
    pub fn of_hour(counter: String, limit: u32) -> Self {
        Self {
            counter,
            limit,
            period: HOUR,
            counts_failures: true,
        }
    }

    /// At most `limit` certificates in seven days: an order that fails is none.
    #[must_use]
    pub fn of_week(counter: String, limit: u32) -> Self {
        Self {
            counter,
            limit,
            period: LONGEST_BUDGET_PERIOD,
            counts_failures: false,
        }
    }

    /// Returns when the next order may begin, if the budget is used up at `now`. `times` are those of
    /// earlier orders under its counter, oldest first.
    fn used_up_until(&self, times: &[Millis], now: Millis) -> Option<Millis> {
        let still = times.iter().filter(|time| **time + self.period > now);
        let counted: Vec<Millis> = still.copied().collect();
        // The order that must no longer count before another one may begin.
        let too_many = counted.len().checked_sub(self.limit as usize)?;
        let ends = counted.get(too_many).map(|time| time + self.period);
        // Without a limit above zero, there is no such order.
        Some(ends.unwrap_or(now + self.period))
    }
}

/// Whether an order may begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OrderTurn {
    /// It has begun.
    Begun,
    /// Another server orders the same certificate now.
    Busy,
    /// Another server has obtained it since.
    Replaced,
    /// Earlier ones failed: not before this time.
    Later(Millis),
    /// A budget is used up.
    Full {
        /// What it counts.
        counter: String,
        /// Not before this time.
        until: Millis,
    },
}

/// Returns how long the next order waits after this many failures in a row.
#[must_use]
pub fn wait_after(failures: u32) -> Millis {
    let doubled = failures.saturating_sub(1).min(30);
    FIRST_WAIT.saturating_mul(1 << doubled).min(LONGEST_WAIT)
}

/// Decides whether an order may begin at `now`. Each budget comes with the times of the earlier orders
/// under its counter, oldest first. The one that keeps the order back for longest is named.
#[must_use]
pub fn order_turn(
    budgets: &[(&OrderBudget, Vec<Millis>)],
    (busy_until, not_before): (Option<Millis>, Option<Millis>),
    now: Millis,
) -> OrderTurn {
    if busy_until.is_some_and(|until| until > now) {
        return OrderTurn::Busy;
    }
    if let Some(until) = not_before.filter(|until| *until > now) {
        return OrderTurn::Later(until);
    }
    let used_up = budgets.iter().filter_map(|(budget, times)| {
        let until = budget.used_up_until(times, now)?;
        Some((until, budget.counter.clone()))
    });
    match used_up.max_by_key(|(until, _)| *until) {
        Some((until, counter)) => OrderTurn::Full { counter, until },
        None => OrderTurn::Begun,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_renewed_when_a_third_of_its_life_is_left() {
        let summary = |days: Millis| CertificateSummary {
            name: "play.example".into(),
            directory: "https://acme.example/dir".into(),
            valid_from: 0,
            valid_until: days * DAY,
            obtained_at: 0,
        };
        for (life, from) in [(90, 60), (45, 30), (6, 4)] {
            let one = summary(life);
            assert_eq!(one.renewed_from(), from * DAY);
            let due = |now| one.is_due("https://acme.example/dir", now);
            assert!(!due(from * DAY - 1) && due(from * DAY) && due(life * DAY + 1));
            assert!(one.is_due("https://other.example/dir", 0));
        }
    }

    #[test]
    fn failures_wait_longer_and_longer_and_half_a_day_at_most() {
        let minutes = [1, 1, 2, 4, 8, 16].map(|minutes| minutes * MINUTE);
        for (failures, wait) in (0..).zip(minutes) {
            assert_eq!(wait_after(failures), wait, "{failures}");
        }
        for failures in [11, 30, 31, 32, 1_000, u32::MAX] {
            assert_eq!(wait_after(failures), 12 * HOUR, "{failures}");
        }
    }

    #[test]
    fn orders_are_few_and_wait_for_what_keeps_them_back() {
        let all = OrderBudget::of_hour("all".to_owned(), 3);
        let one = OrderBudget::of_hour("one".to_owned(), 2);
        let turn = |times: &[Millis], of_one: &[Millis]| {
            let budgets = [(&all, times.to_vec()), (&one, of_one.to_vec())];
            order_turn(&budgets, (None, None), 100)
        };
        let full = |counter: &str, until| OrderTurn::Full {
            counter: counter.to_owned(),
            until,
        };
        assert_eq!(turn(&[], &[]), OrderTurn::Begun);
        assert_eq!(turn(&[1, 2], &[2]), OrderTurn::Begun);
        assert_eq!(turn(&[1, 2], &[1, 2]), full("one", HOUR + 1));
        assert_eq!(turn(&[1, 2, 3], &[2]), full("all", HOUR + 1));
        assert_eq!(turn(&[1, 2, 3, 4], &[2]), full("all", HOUR + 2));
        let nothing = OrderBudget::of_hour("none".to_owned(), 0);
        let turn = order_turn(&[(&nothing, Vec::new())], (None, None), 100);
        assert_eq!(turn, full("none", HOUR + 100));
        let held = |busy, not_before| order_turn(&[], (busy, not_before), 100);
        assert_eq!(held(Some(101), None), OrderTurn::Busy);
        assert_eq!(held(None, Some(101)), OrderTurn::Later(101));
        assert_eq!(held(Some(100), Some(100)), OrderTurn::Begun);
    }

    #[test]
    fn an_order_counts_for_the_period_of_each_budget() {
        let hour = OrderBudget::of_hour("hour".to_owned(), 1);
        let week = OrderBudget::of_week("week".to_owned(), 2);
        let turn = |times: &[Millis], now| {
            let budgets = [(&hour, times.to_vec()), (&week, times.to_vec())];
            order_turn(&budgets, (None, None), now)
        };
        assert_eq!(turn(&[0], HOUR), OrderTurn::Begun);
        let full = OrderTurn::Full {
            counter: "week".to_owned(),
            until: 7 * DAY,
        };
        assert_eq!(turn(&[0, HOUR], 3 * HOUR), full);
        assert_eq!(turn(&[0, HOUR], 7 * DAY), OrderTurn::Begun);
    }
}
