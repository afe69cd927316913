//! What the DNS records of a domain say: whether it is in order, and if not, what was found and what
//! to do.

use std::fmt::Write as _;
use std::net::IpAddr;

use ipnet::IpNet;

use super::records::{NoAnswer, Way};
use crate::domain::custom_domain::{CustomDomain, DomainProof};
use crate::origin::PlatformOrigin;

/// The maximum number of characters of a record that are repeated.
const SHOWN: usize = 80;
/// The maximum number of addresses that are listed.
const LISTED: usize = 4;

/// Where a domain must lead to.
#[derive(Clone, Copy, Debug)]
pub struct Destination<'a> {
    /// The address of its environment.
    pub target: &'a str,
    /// The origin below which games have their addresses.
    pub games: &'a PlatformOrigin,
    /// The addresses of games.
    pub own: &'a [IpNet],
}

/// A domain, and where it must lead to.
#[derive(Clone, Copy, Debug)]
pub struct Findings<'a> {
    /// The domain.
    pub domain: &'a CustomDomain,
    /// Where it must lead to.
    pub destination: Destination<'a>,
}

/// What one kind of records says.
enum Finding {
    Good,
    Bad(String),
    Unclear(NoAnswer),
}

impl Findings<'_> {
    /// Returns what the records say: the values of the TXT records of the proof, and where the domain
    /// leads to.
    #[must_use]
    pub fn proof(
        &self,
        texts: Result<Vec<String>, NoAnswer>,
        way: Result<Way, NoAnswer>,
    ) -> DomainProof {
        let (mut bad, mut unclear) = (Vec::new(), None);
        for finding in [self.token(texts), self.way(way)] {
            match finding {
                Finding::Good => {}
                Finding::Bad(sentence) => bad.push(sentence),
                Finding::Unclear(reason) => unclear = Some(reason),
            }
        }
        match (bad.is_empty(), unclear) {
            (false, _) => DomainProof::Lacking(bad.join(" ")),
            (true, Some(reason)) => DomainProof::Unclear(format!(
                "The records of {} could not be read: {reason}. Try again in some minutes.",
                self.domain.name
            )),
            (true, None) => DomainProof::Given,
        }
    }

    fn token(&self, texts: Result<Vec<String>, NoAnswer>) -> Finding {
        let texts = match texts {
            Ok(texts) => texts,
            Err(reason) => return Finding::Unclear(reason),
        };
        let (name, wanted) = (self.domain.name.proof_name(), self.domain.token.record());
        if texts.iter().any(|text| text.trim() == wanted) {
            return Finding::Good;
        }
        Finding::Bad(match &*texts {
            [] => format!(
                "There is no TXT record at {name} yet: create one with the value {wanted}; it may \
                 take some minutes until everybody sees it."
            ),
            [one] => format!(
                "The TXT record at {name} has the value \u{201c}{}\u{201d}: create one with the value \
                 {wanted}.",
                shown(one)
            ),
            many => format!(
                "None of the {} TXT records at {name} has the value {wanted}: create one that has it.",
                many.len()
            ),
        })
    }

    fn way(&self, way: Result<Way, NoAnswer>) -> Finding {
        let way = match way {
            Ok(way) => way,
            Err(reason) => return Finding::Unclear(reason),
        };
        let Destination { games, own, .. } = self.destination;
        if way.aliases.iter().any(|alias| games.holds(alias)) {
            return Finding::Good;
        }
        let is_own = |address: &&IpAddr| own.iter().any(|network| network.contains(*address));
        let mut foreign = way.addresses.iter().filter(|address| !is_own(address));
        let name = &self.domain.name;
        let what = match (foreign.next(), way.aliases.last(), way.addresses.is_empty()) {
            (None, _, false) => return Finding::Good,
            (None, None, true) => format!("{name} leads nowhere yet"),
            (None, Some(alias), true) => {
                format!("{name} leads to {}, which has no address", shown(alias))
            }
            (Some(address), Some(alias), _) => format!(
                "{name} leads to {} ({address}), which is not this platform",
                shown(alias)
            ),
            (Some(address), None, _) => {
                format!("{name} leads to {address}, which is not this platform")
            }
        };
        Finding::Bad(format!("{what}: {}.", self.advice()))
    }

    /// Returns which record to create.
    fn advice(&self) -> String {
        let Destination { target, own, .. } = self.destination;
        let mut advice = format!("create a CNAME record with the value {target}");
        // A network is none to which a record leads.
        let mut addresses = own.iter().filter(|network| {
            network.prefix_len() == network.max_prefix_len() && !network.addr().is_loopback()
        });
        let listed: Vec<String> = addresses
            .by_ref()
            .take(LISTED)
            .map(|network| network.addr().to_string())
            .collect();
        if !listed.is_empty() {
            // Writing to a string cannot fail.
            let _ = write!(
                advice,
                ", or, where that is not possible, A and AAAA records with {}",
                listed.join(" and ")
            );
        }
        advice
    }
}

/// Returns the beginning of a record, without what is not visible: whoever owns the domain writes it.
fn shown(text: &str) -> String {
    let visible = |char: &char| char.is_ascii_graphic() || *char == ' ';
    let mut shown: String = text.chars().filter(visible).take(SHOWN).collect();
    if text.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use platform_protocol::names::Environment;

    use super::*;
    use crate::domain::custom_domain::{DomainToken, NewDomain};
    use crate::domain::domain_name::DomainName;

    const TOKEN: &str = "00112233445566778899aabbccddeeff";

    fn proof(texts: &[&str], aliases: &[&str], addresses: &[&str], own: &[&str]) -> DomainProof {
        let domain = CustomDomain::claimed(&NewDomain {
            slug: "demo".into(),
            environment: Environment::Prod,
            name: DomainName::parse("game.example").unwrap(),
            token: DomainToken::parse(TOKEN).unwrap(),
            most: 1,
            now: 0,
        });
        let own: Vec<IpNet> = own
            .iter()
            .map(|text| text.parse::<IpNet>().unwrap())
            .collect();
        let games = "https://games.example".parse().unwrap();
        let findings = Findings {
            domain: &domain,
            destination: Destination {
                target: "demo.games.example",
                games: &games,
                own: &own,
            },
        };
        let way = Way {
            aliases: aliases.iter().map(|&text| text.to_owned()).collect(),
            addresses: addresses.iter().map(|text| text.parse().unwrap()).collect(),
        };
        let texts = texts.iter().map(|&text| text.to_owned()).collect();
        findings.proof(Ok(texts), Ok(way))
    }

    fn said(texts: &[&str], aliases: &[&str], addresses: &[&str]) -> String {
        let own = ["192.0.2.1/32", "2001:db8::1/128", "198.51.100.0/24"];
        match proof(texts, aliases, addresses, &own) {
            DomainProof::Given => "given".to_owned(),
            DomainProof::Lacking(sentence) => sentence,
            DomainProof::Unclear(sentence) => panic!("{sentence}"),
        }
    }

    #[test]
    fn a_domain_is_in_order_with_its_token_and_a_way_to_the_platform() {
        let token = format!("platform-verify={TOKEN}");
        let texts = ["v=spf1 -all", token.as_str()];
        for (aliases, addresses) in [
            (&["demo.games.example"][..], &[][..]),
            (
                &["www.cdn.example", "other.games.example"],
                &["203.0.113.9"],
            ),
            (&[], &["192.0.2.1"]),
            (&[], &["192.0.2.1", "2001:db8::1", "198.51.100.7"]),
        ] {
            assert_eq!(said(&texts, aliases, addresses), "given", "{aliases:?}");
        }
    }

    #[test]
    fn what_was_found_is_said_with_what_to_do() {
        let token = format!("platform-verify={TOKEN}");
        let records = "create a CNAME record with the value demo.games.example, or, where that is not \
                       possible, A and AAAA records with 192.0.2.1 and 2001:db8::1.";
        let good: &[&str] = &["192.0.2.1"];
        type Case<'a> = (&'a [&'a str], &'a [&'a str], &'a [&'a str], String);
        let cases: [Case<'_>; 8] = [
            (
                &[],
                &[],
                good,
                format!(
                    "There is no TXT record at _platform.game.example yet: create one with the value \
                     {token}; it may take some minutes until everybody sees it."
                ),
            ),
            (
                &["old\u{7}\u{202e}"],
                &[],
                good,
                format!(
                    "The TXT record at _platform.game.example has the value “old”: create one with \
                     the value {token}."
                ),
            ),
            (
                &["a", "b"],
                &[],
                good,
                format!(
                    "None of the 2 TXT records at _platform.game.example has the value {token}: \
                     create one that has it."
                ),
            ),
            (
                &[&token],
                &[],
                &[],
                format!("game.example leads nowhere yet: {records}"),
            ),
            (
                &[&token],
                &[],
                &["192.0.2.1", "203.0.113.9"],
                format!("game.example leads to 203.0.113.9, which is not this platform: {records}"),
            ),
            (
                &[&token],
                &["x.cdn.example"],
                &["203.0.113.9"],
                format!(
                    "game.example leads to x.cdn.example (203.0.113.9), which is not this platform: \
                     {records}"
                ),
            ),
            (
                &[&token],
                &["x.cdn.example"],
                &[],
                format!("game.example leads to x.cdn.example, which has no address: {records}"),
            ),
            (
                &[&token],
                &["notgames.example"],
                &[],
                format!("game.example leads to notgames.example, which has no address: {records}"),
            ),
        ];
        for (texts, aliases, addresses, expected) in cases {
            assert_eq!(said(texts, aliases, addresses), expected);
        }
        let both = said(&[], &[], &[]);
        assert!(both.contains("TXT") && both.contains("CNAME"), "{both}");
    }

    #[test]
    fn without_known_addresses_only_an_alias_leads_to_the_platform() {
        let token = format!("platform-verify={TOKEN}");
        assert!(matches!(
            proof(&[&token], &[], &["127.0.0.1"], &[]),
            DomainProof::Lacking(sentence) if sentence.ends_with("demo.games.example.")
        ));
        let alias = proof(&[&token], &["demo.games.example"], &[], &[]);
        assert_eq!(alias, DomainProof::Given);
    }
}
