//! The CAA records of the platform's names (RFC 8659): whether the certificate authority may issue certificates.

use std::collections::BTreeSet;

use super::fetch::Fetcher;
use super::{Finding, Patient};
use crate::config::tls::TlsMode;
use crate::projects::domains::records::{Permission, Records};

const CHECK: &str = "caa";

/// Looks at the records, if a public ACME server issues certificates.
pub(super) async fn examine(patient: &Patient<'_>) -> Option<Finding> {
    let tls = &patient.config.tls;
    // A private authority asks nobody.
    if tls.mode != TlsMode::Acme || tls.acme.ca.is_some() {
        return None;
    }
    let identities = match identities(&tls.acme.directory).await {
        Ok(identities) => identities,
        Err(error) => {
            let found = format!("{}: {error}", tls.acme.directory);
            let advice = "look whether this machine reaches the ACME server";
            return Some(Finding::warning(CHECK, found, advice));
        }
    };
    if identities.is_empty() {
        let found = "the ACME server does not say by which name CAA records know it";
        return Some(Finding::skipped(CHECK, found));
    }
    let records = Records::new(patient.config.resolver.clone());
    let (origin, games) = (patient.origin(), patient.games_origin());
    let hosts = BTreeSet::from([origin.host(), games.host()]);
    for host in hosts {
        let found = match records.permissions(host).await {
            Ok(found) => found,
            Err(error) => {
                let found = format!("the CAA records of {host} cannot be read: {error}");
                let advice =
                    "look at your name server: an authority that gets no answer issues nothing";
                return Some(Finding::warning(CHECK, found, advice));
            }
        };
        if let Err((tag, others)) = allows(&found, &identities, tls.acme.dns_command.is_some()) {
            let found = format!("the CAA records of {host} allow only {others}");
            let advice = format!("add a record of {host}: CAA 0 {tag} \"{}\"", identities[0]);
            return Some(Finding::wrong(CHECK, found, advice));
        }
    }
    let found = format!("{} may issue certificates", identities[0]);
    Some(Finding::fine(CHECK, found))
}

/// Asks the ACME server by which names CAA records know it (RFC 8555 §7.1.1).
async fn identities(directory: &str) -> Result<Vec<String>, String> {
    let fetched = Fetcher::new(true)?.get(directory, None).await?;
    let json: serde_json::Value =
        serde_json::from_slice(&fetched.body).map_err(|_| "it is no directory".to_owned())?;
    let named = json["meta"]["caaIdentities"].as_array();
    let named = named.into_iter().flatten().filter_map(|name| name.as_str());
    Ok(named.map(str::to_ascii_lowercase).collect())
}

/// Whether records let one of these authorities issue certificates, also for wildcards. Otherwise returns
/// the tag of the records that do not, and those that they name.
fn allows(
    found: &[Permission],
    identities: &[String],
    for_wildcard: bool,
) -> Result<(), (&'static str, String)> {
    let of = |tag: &str| -> Vec<&str> {
        let tagged = found.iter().filter(|permission| permission.tag == tag);
        // Parameters follow the name (RFC 8659 §4.2).
        let named = tagged.map(|permission| permission.value.split(';').next().unwrap_or(""));
        named.map(str::trim).collect()
    };
    let (issue, wild) = (of("issue"), of("issuewild"));
    let mut asked = vec![("issue", &issue)];
    // A wildcard's own records come before the others (RFC 8659 §4.3).
    if for_wildcard && !wild.is_empty() {
        asked.push(("issuewild", &wild));
    }
    for (tag, names) in asked {
        let may = |name: &&str| identities.iter().any(|own| own.eq_ignore_ascii_case(name));
        if !names.is_empty() && !names.iter().any(may) {
            let others: Vec<&str> = names
                .iter()
                .copied()
                .filter(|name| !name.is_empty())
                .collect();
            let others = match others.as_slice() {
                [] => "nobody".to_owned(),
                others => others.join(" and "),
            };
            return Err((tag, others));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permissions(records: &[(&str, &str)]) -> Vec<Permission> {
        let own = |(tag, value): &(&str, &str)| Permission {
            tag: (*tag).to_owned(),
            value: (*value).to_owned(),
        };
        records.iter().map(own).collect()
    }

    #[test]
    fn an_authority_may_issue_where_no_record_names_others_alone() {
        let ours = ["letsencrypt.org".to_owned()];
        let asked = |records: &[(&str, &str)], wildcard: bool| {
            allows(&permissions(records), &ours, wildcard)
        };
        for allowed in [
            &[][..],
            &[("iodef", "mailto:me@play.example")],
            &[("issue", "letsencrypt.org")],
            &[
                ("issue", "other.example"),
                ("issue", " LetsEncrypt.org ; accounturi=x"),
            ],
        ] {
            assert_eq!(asked(allowed, true), Ok(()), "{allowed:?}");
        }
        let only_others = [("issue", "other.example"), ("issue", "third.example")];
        assert_eq!(
            asked(&only_others, false),
            Err(("issue", "other.example and third.example".to_owned()))
        );
        let nobody = |tag| Err((tag, "nobody".to_owned()));
        assert_eq!(asked(&[("issue", ";")], false), nobody("issue"));
        let no_wildcards = [("issue", "letsencrypt.org"), ("issuewild", ";")];
        assert_eq!(asked(&no_wildcards, false), Ok(()));
        assert_eq!(asked(&no_wildcards, true), nobody("issuewild"));
    }
}
