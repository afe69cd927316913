//! How many orders there may be. Strangers decide for which names there are first orders, so these count
//! apart from renewals, and what matters less apart from what matters more.
//!
//! Let's Encrypt allows 300 orders of an account in 3 hours, 50 certificates of a registered domain in 7
//! days, 5 certificates of the same names in 7 days, and 5 failures to prove a name in an hour.

use crate::config::tls::AcmeSettings;
use crate::domain::certificate::OrderBudget;
use crate::games::certified::{NameKind, ServedName};

/// The most orders of one certificate in an hour: certificate authorities allow about as many failures.
const CERTIFICATE_HOUR_LIMIT: u32 = 5;
/// The most new certificates for production in seven days, below the domain of all games.
const PRODUCTION_WEEK_LIMIT: u32 = 30;
/// The same for dev environments and previews. With the platform's own and those above, this is less than
/// Let's Encrypt's 50.
const DEVELOPMENT_WEEK_LIMIT: u32 = 10;
/// The share of one project in these.
const PROJECT_WEEK_LIMIT: u32 = 5;

/// What counts renewals.
pub(super) const RENEWALS: &str = "renewals";

/// Why a certificate is ordered.
#[derive(Clone, Debug)]
pub(super) enum Purpose {
    /// The platform needs it for itself.
    Own,
    /// It replaces one for the same names.
    Renewal,
    /// A visitor asked for this name, for which there is none.
    First(ServedName),
}

/// Returns the budgets in which an order counts.
pub(super) fn budgets(
    settings: &AcmeSettings,
    certificate: &str,
    purpose: &Purpose,
) -> Vec<OrderBudget> {
    let mut budgets = vec![OrderBudget::of_hour(
        certificate.to_owned(),
        CERTIFICATE_HOUR_LIMIT,
    )];
    let in_total = settings.orders_per_hour;
    let hour = |counter: String, limit: u32| OrderBudget::of_hour(counter, limit.max(1));
    let served = match purpose {
        Purpose::Own => return budgets,
        Purpose::Renewal => {
            budgets.push(hour(RENEWALS.to_owned(), in_total / 2));
            return budgets;
        }
        Purpose::First(served) => served,
    };
    let (counter, share, of_week) = match served.kind {
        NameKind::Platform => return budgets,
        NameKind::Production => ("production", in_total / 2, Some(PRODUCTION_WEEK_LIMIT)),
        // Each is below another registered domain.
        NameKind::Domain => ("domains", in_total / 4, None),
        NameKind::Development => ("development", in_total / 4, Some(DEVELOPMENT_WEEK_LIMIT)),
    };
    budgets.push(hour(format!("{counter}/hour"), share));
    let of_week = of_week.filter(|_| has_week_limits(settings));
    if let Some(limit) = of_week {
        budgets.push(OrderBudget::of_week(format!("{counter}/week"), limit));
    }
    if let Some(project) = &served.project {
        let of_project = |period: &str| format!("project/{project}/{counter}/{period}");
        budgets.push(hour(of_project("hour"), in_total / 10));
        if of_week.is_some() {
            let limit = PROJECT_WEEK_LIMIT;
            budgets.push(OrderBudget::of_week(of_project("week"), limit));
        }
    }
    budgets
}

/// Whether the authority allows few certificates in a week: Let's Encrypt, unless the operator has raised
/// the limit of an hour because it allows this platform more.
fn has_week_limits(settings: &AcmeSettings) -> bool {
    let usual = AcmeSettings::default();
    settings.directory == usual.directory && settings.orders_per_hour <= usual.orders_per_hour
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(kind: NameKind) -> Purpose {
        Purpose::First(ServedName {
            kind,
            project: Some("demo".to_owned()),
            has_content: true,
            taken_down: false,
        })
    }

    fn counters(settings: &AcmeSettings, purpose: &Purpose) -> Vec<(String, u32)> {
        let budgets = budgets(settings, "demo.games.example", purpose);
        // That of the certificate itself.
        assert_eq!(budgets[0].limit, CERTIFICATE_HOUR_LIMIT);
        let others = budgets.into_iter().skip(1);
        others.map(|one| (one.counter, one.limit)).collect()
    }

    #[test]
    fn renewals_and_each_kind_of_names_have_budgets_of_their_own() {
        let settings = AcmeSettings::default();
        let of = |purpose: &Purpose| counters(&settings, purpose);
        assert_eq!(of(&Purpose::Own), []);
        assert_eq!(of(&Purpose::Renewal), [("renewals".to_owned(), 25)]);
        let kinds = [
            (NameKind::Production, "production", 25, Some(30)),
            (NameKind::Domain, "domains", 12, None),
            (NameKind::Development, "development", 12, Some(10)),
        ];
        for (kind, name, hour, week) in kinds {
            let mut expected = vec![(format!("{name}/hour"), hour)];
            expected.extend(week.map(|week| (format!("{name}/week"), week)));
            expected.push((format!("project/demo/{name}/hour"), 5));
            expected.extend(week.map(|_| (format!("project/demo/{name}/week"), 5)));
            assert_eq!(of(&first(kind)), expected);
        }
    }

    #[test]
    fn together_they_stay_below_the_limits_of_lets_encrypt() {
        let settings = AcmeSettings::default();
        let all = [
            Purpose::Renewal,
            first(NameKind::Production),
            first(NameKind::Domain),
            first(NameKind::Development),
        ];
        let all = all.map(|purpose| counters(&settings, &purpose));
        let sum = |ends: &str| -> u32 {
            let of_kind = |(name, _): &&(String, u32)| {
                !name.starts_with("project") && (name.ends_with(ends) || name == RENEWALS)
            };
            let found = all.iter().flatten().filter(of_kind);
            found.map(|(_, limit)| limit).sum()
        };
        // The platform's own are two in an hour at most ten times.
        assert!(sum("/hour") * 3 + 2 * 3 * CERTIFICATE_HOUR_LIMIT < 300);
        assert!(sum("/week") - settings.orders_per_hour / 2 + 2 < 50);
    }

    #[test]
    fn another_authority_and_an_operator_who_knows_better_have_no_limits_of_a_week() {
        let own = AcmeSettings {
            directory: "https://ca.example/dir".to_owned(),
            ..AcmeSettings::default()
        };
        let raised = AcmeSettings {
            orders_per_hour: 1_000,
            ..AcmeSettings::default()
        };
        for settings in [own, raised] {
            let found = counters(&settings, &first(NameKind::Production));
            assert!(found.iter().all(|(name, _)| !name.ends_with("week")));
        }
        let few = AcmeSettings {
            orders_per_hour: 1,
            ..AcmeSettings::default()
        };
        let found = counters(&few, &first(NameKind::Development));
        assert!(found.iter().all(|(_, limit)| *limit >= 1));
    }
}
