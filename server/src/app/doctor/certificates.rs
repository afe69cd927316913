//! The certificates of TLS of the platform's own: how long they are valid, from files or from an ACME server.

use super::{Finding, Patient};
use crate::app::tls::acme::names::CertificateNames;
use crate::app::tls::files::CertificateFiles;
use crate::clock::Millis;
use crate::config::tls::TlsMode;
use crate::domain::certificate::CertificateSummary;
use crate::domain::errors::chain;
use crate::store::Store;

const CHECK: &str = "certificates";
const DAY: Millis = 24 * 60 * 60 * 1_000;
/// Certificates from files should be replaced before this is left of them.
const SOON: Millis = 14 * DAY;
/// How late a renewal may be: a server that was stopped does it when it starts.
const LATE: Millis = DAY;

/// Looks at certificates from files. Those of an ACME server are in the store.
pub(super) async fn examine(patient: &Patient<'_>) -> Option<Finding> {
    match patient.config.tls.mode {
        TlsMode::Off => Some(Finding::skipped(
            CHECK,
            "the server does not speak TLS itself",
        )),
        TlsMode::Files => Some(of_files(patient).await),
        TlsMode::Acme => None,
    }
}

async fn of_files(patient: &Patient<'_>) -> Finding {
    let files = match CertificateFiles::open(&patient.config.tls).await {
        Ok(files) => files,
        Err(error) => {
            let advice = "run this as the user of the server, and put usable files there";
            return Finding::wrong(CHECK, chain(&error), advice);
        }
    };
    let (origin, games) = (patient.origin(), patient.games_origin());
    let missing = files.missing(&origin, &games);
    if !missing.is_empty() {
        let found = format!("none is for {}, so browsers refuse it", missing.join(", "));
        let advice = format!(
            "use certificates for {}, *.{} and *.{}",
            origin.host(),
            origin.host(),
            games.host()
        );
        return Finding::wrong(CHECK, found, advice);
    }
    let ends = files.ends();
    let first = ends.iter().min().copied().unwrap_or_default();
    let left = first.saturating_mul(1_000) - patient.clock.now();
    let found = ends_in(ends.len(), left);
    let advice = "put new ones into their files, which are read again by themselves";
    if left <= 0 {
        Finding::wrong(CHECK, found, advice)
    } else if left < SOON {
        Finding::warning(CHECK, found, advice)
    } else {
        Finding::fine(CHECK, found)
    }
}

/// Looks at those of an ACME server.
pub(super) async fn of_acme(patient: &Patient<'_>, store: &dyn Store) -> Finding {
    let all = match store.list_certificates().await {
        Ok(all) => all,
        Err(error) => return Finding::wrong(CHECK, chain(&error), "look at the database's log"),
    };
    let (origin, games) = (patient.origin(), patient.games_origin());
    let names = CertificateNames::new(patient.config, &origin, &games);
    state_of(&all, &names.own(), patient.clock.now())
}

/// `own` are the names of the certificates that every platform needs.
fn state_of(all: &[CertificateSummary], own: &[String], now: Millis) -> Finding {
    let has = |name: &String| all.iter().any(|one| one.name == *name);
    let missing: Vec<&str> = own
        .iter()
        .filter(|name| !has(name))
        .map(String::as_str)
        .collect();
    let first = all.iter().map(|one| one.valid_until).min();
    let Some(first) = first.filter(|_| missing.is_empty()) else {
        let found = format!(
            "there is none for {}, so browsers refuse these pages",
            missing.join(" and ")
        );
        let advice = "start the server; if it runs, its log has the ACME server's reason and when it is tried again, as \"a certificate could not be obtained\"";
        return Finding::wrong(CHECK, found, advice);
    };
    let found = ends_in(all.len(), first - now);
    let late = all.iter().filter(|one| one.renewed_from() + LATE < now);
    let late = late.count();
    let advice = "its log says why, as \"a certificate could not be obtained\"; a running server tries again";
    if first <= now {
        Finding::wrong(CHECK, found, advice)
    } else if late > 0 {
        let found = format!("{found}; {late} could not be renewed in time");
        Finding::warning(CHECK, found, advice)
    } else {
        Finding::fine(CHECK, found)
    }
}

fn ends_in(count: usize, left: Millis) -> String {
    if left <= 0 {
        format!(
            "the first of {count} has ended, {} days ago",
            (-left).div_euclid(DAY)
        )
    } else {
        format!("the first of {count} ends in {} days", left.div_euclid(DAY))
    }
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;

    #[test]
    fn certificates_are_fine_until_their_renewal_is_late() {
        let all: Vec<_> = ["a.example", "b.example"]
            .map(|name| CertificateSummary {
                name: name.into(),
                directory: "https://acme.example/dir".into(),
                valid_from: 0,
                valid_until: 90 * DAY,
                obtained_at: 0,
            })
            .to_vec();
        for (day, state, found) in [
            (0, State::Fine, "the first of 2 ends in 90 days"),
            (61, State::Fine, "the first of 2 ends in 29 days"),
            (
                62,
                State::Warning,
                "27 days; 2 could not be renewed in time",
            ),
            (90, State::Wrong, "the first of 2 has ended, 0 days ago"),
            (93, State::Wrong, "the first of 2 has ended, 3 days ago"),
        ] {
            // A moment after the begin of the day.
            let own = ["a.example".to_owned()];
            let finding = state_of(&all, &own, day * DAY + i64::from(day == 62));
            assert_eq!(finding.state, state, "{day}");
            assert!(finding.found.contains(found), "{day}: {}", finding.found);
        }
    }

    #[test]
    fn a_certificate_that_every_platform_needs_and_that_is_not_there_is_wrong_with_its_name() {
        let there = CertificateSummary {
            name: "a.example".into(),
            directory: "https://acme.example/dir".into(),
            valid_from: 0,
            valid_until: 90 * DAY,
            obtained_at: 0,
        };
        let own = ["a.example", "auth.a.example"].map(str::to_owned);
        for (all, named) in [
            (&[][..], "for a.example and auth.a.example, so"),
            (&[there][..], "for auth.a.example, so"),
        ] {
            let finding = state_of(all, &own, 0);
            assert_eq!(finding.state, State::Wrong);
            assert!(finding.found.contains(named), "{}", finding.found);
        }
    }
}
