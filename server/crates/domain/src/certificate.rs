//! Certificates that a certificate authority issues to the platform (ACME, RFC 8555): when one is renewed,
//! how often one is ordered, and how long an order that failed waits. Times are arguments.

use crate::clock::Millis;

const MINUTE: Millis = 60 * 1_000;
const HOUR: Millis = 60 * MINUTE;

/// How long an order keeps others from ordering the same certificate. An order takes seconds; one whose
/// server was killed is repeated after this.
pub const ORDER_HOLDS: Millis = 3 * MINUTE;
/// The time in which [`OrderLimits`] count.
pub const ORDERS_COUNT_FOR: Millis = HOUR;
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

/// How many orders may begin in an hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderLimits {
    /// For all names together.
    pub in_total: u32,
    /// For one name.
    pub of_name: u32,
}

/// Whether an order may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderTurn {
    /// It has begun.
    Begun,
    /// Another server orders the same certificate now.
    Busy,
    /// Another server has obtained it since.
    Replaced,
    /// Its own limit is reached, or earlier ones failed: not before this time.
    Later(Millis),
    /// The limit of all names is reached: not before this time.
    Full(Millis),
}

/// Returns how long the next order waits after this many failures in a row.
#[must_use]
pub fn wait_after(failures: u32) -> Millis {
    let doubled = failures.saturating_sub(1).min(30);
    FIRST_WAIT.saturating_mul(1 << doubled).min(LONGEST_WAIT)
}

/// Decides whether an order of a name may begin at `now`. `times` are those of earlier orders that
/// still count, oldest first; `of_name` those of them that were for this name.
#[must_use]
pub fn order_turn(
    limits: OrderLimits,
    (times, of_name): (&[Millis], &[Millis]),
    (busy_until, not_before): (Option<Millis>, Option<Millis>),
    now: Millis,
) -> OrderTurn {
    if busy_until.is_some_and(|until| until > now) {
        return OrderTurn::Busy;
    }
    if let Some(until) = not_before.filter(|until| *until > now) {
        return OrderTurn::Later(until);
    }
    // The order that must no longer count before another one may begin.
    let ends = |times: &[Millis], limit: u32| {
        let too_many = times.len().checked_sub(limit as usize)?;
        let ends = times.get(too_many).map(|time| time + ORDERS_COUNT_FOR);
        // Without a limit above zero, there is no such order.
        Some(ends.unwrap_or(now + ORDERS_COUNT_FOR))
    };
    if let Some(until) = ends(of_name, limits.of_name) {
        return OrderTurn::Later(until);
    }
    if let Some(until) = ends(times, limits.in_total) {
        return OrderTurn::Full(until);
    }
    OrderTurn::Begun
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Millis = 24 * HOUR;

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
        let limits = OrderLimits {
            in_total: 3,
            of_name: 2,
        };
        let turn = |times: &[Millis], of_name: &[Millis]| {
            order_turn(limits, (times, of_name), (None, None), 100)
        };
        assert_eq!(turn(&[], &[]), OrderTurn::Begun);
        assert_eq!(turn(&[1, 2], &[2]), OrderTurn::Begun);
        assert_eq!(turn(&[1, 2], &[1, 2]), OrderTurn::Later(HOUR + 1));
        assert_eq!(turn(&[1, 2, 3], &[2]), OrderTurn::Full(HOUR + 1));
        assert_eq!(turn(&[1, 2, 3, 4], &[2]), OrderTurn::Full(HOUR + 2));
        let nothing = OrderLimits {
            in_total: 0,
            ..limits
        };
        let turn = order_turn(nothing, (&[], &[]), (None, None), 100);
        assert_eq!(turn, OrderTurn::Full(HOUR + 100));
        let held = |busy, not_before| order_turn(limits, (&[], &[]), (busy, not_before), 100);
        assert_eq!(held(Some(101), None), OrderTurn::Busy);
        assert_eq!(held(None, Some(101)), OrderTurn::Later(101));
        assert_eq!(held(Some(100), Some(100)), OrderTurn::Begun);
    }
}
