//! The names of the platform, the way of a visitor through the proxy, the clock, and the operator's
//! listener.

use std::collections::BTreeSet;
use std::net::IpAddr;

use platform_protocol::paths;

use super::fetch::{Fetched, Fetcher};
use super::{Finding, Patient};
use crate::clock::Millis;
use crate::config::tls::TlsMode;
use crate::domain::origin::{AUTH_LABEL, PlatformOrigin};
use crate::web::request_id::RequestId;

/// A label that no project has, since slugs of games have no such form: its address needs the wildcard.
const ANY_GAME: &str = "doctor--looks";
/// A clock that is further off makes tokens invalid elsewhere.
const CLOCK_IS_OFF: Millis = 5_000;
/// A clock that is further off makes a node of several not ready.
const CLOCK_IS_WRONG: Millis = 30_000;

pub(super) async fn examine(patient: &Patient<'_>) -> Vec<Finding> {
    let origin = patient.origin();
    let games = patient.games_origin();
    let mut findings = vec![names(&origin, &games).await];
    let mut providers = patient.config.identity_providers.iter();
    let over_tls = origin.is_secure() || providers.any(|one| one.issuer.starts_with("https:"));
    let fetcher = match Fetcher::new(over_tls) {
        Ok(fetcher) => fetcher,
        Err(error) => {
            let advice = "install the machine's CA certificates";
            findings.push(Finding::wrong("tls", error, advice));
            return findings;
        }
    };
    findings.push(listener(patient, &fetcher).await);
    let (visits, answered) = visits(patient, (&origin, &games), &fetcher).await;
    findings.extend(visits);
    findings.push(clock(patient, &fetcher, answered.as_ref()).await);
    findings
}

async fn addresses(name: &str) -> Result<BTreeSet<IpAddr>, String> {
    let found = tokio::net::lookup_host((name, 0)).await;
    let found = found.map_err(|error| error.to_string())?;
    Ok(found.map(|address| address.ip().to_canonical()).collect())
}

/// The origin, the auth service and any game must have addresses.
async fn names(origin: &PlatformOrigin, games: &PlatformOrigin) -> Finding {
    const CHECK: &str = "names";
    let host = origin.host();
    if origin.is_local() {
        let found = format!("{host} is this machine, which browsers know without a name server");
        return Finding::skipped(CHECK, found);
    }
    let asked = [
        (host.to_owned(), host.to_owned()),
        (format!("{AUTH_LABEL}.{host}"), format!("*.{host}")),
        (
            format!("{ANY_GAME}.{}", games.host()),
            format!("*.{}", games.host()),
        ),
    ];
    let (mut all, mut missing, mut records) = (BTreeSet::new(), Vec::new(), Vec::new());
    for (name, record) in asked {
        match addresses(&name).await {
            Ok(found) => all.extend(found),
            Err(error) => {
                missing.push(format!("{name} has no address: {error}"));
                records.push(format!("`{record}`"));
            }
        }
    }
    if !missing.is_empty() {
        records.dedup();
        let advice = format!(
            "add a record of {} at your name server (A, AAAA or CNAME)",
            records.join(" and of ")
        );
        return Finding::wrong(CHECK, missing.join("; "), advice);
    }
    let all: Vec<String> = all.iter().map(ToString::to_string).collect();
    let whose = if games.host() == host {
        format!("{host} and its sub-domains are")
    } else {
        format!("{host}, its sub-domains and those of {} are", games.host())
    };
    Finding::fine(CHECK, format!("{whose} {}", all.join(", ")))
}

/// Asks the server itself, if there is a listener for it.
async fn listener(patient: &Patient<'_>, fetcher: &Fetcher) -> Finding {
    const CHECK: &str = "server";
    let Some(address) = patient.config.operations_listen else {
        let found = "PLATFORM_OPERATIONS_LISTEN is not set, so the server cannot be asked";
        return Finding::skipped(CHECK, found);
    };
    let url = format!("http://{address}/readyz");
    match fetcher.get(&url, None).await {
        Ok(fetched) if fetched.status.is_success() => {
            Finding::fine(CHECK, format!("{url} says {}", text(&fetched)))
        }
        Ok(fetched) => Finding::wrong(
            CHECK,
            format!("{url} says {}", text(&fetched)),
            "docs/hosting.md says what each reason means",
        ),
        Err(error) => Finding::warning(
            CHECK,
            format!("{url}: {error}"),
            "start the server, or look at its log",
        ),
    }
}

fn text(fetched: &Fetched) -> String {
    let text: String = String::from_utf8_lossy(&fetched.body)
        .chars()
        .take(200)
        .collect();
    text.trim().to_owned()
}

/// Visits the auth service and an address of a game, as a browser does. Also returns an answer.
async fn visits(
    patient: &Patient<'_>,
    (origin, games): (&PlatformOrigin, &PlatformOrigin),
    fetcher: &Fetcher,
) -> (Vec<Finding>, Option<Fetched>) {
    const CHECK: &str = "visit";
    // A proxy passes it on or replaces it, and the platform keeps it only from one that it trusts.
    let id = RequestId::generate(&*patient.entropy);
    let auth = format!("{}{}", origin.auth_url(), paths::PLATFORM);
    let answered = match fetcher.get(&auth, Some(id.as_str())).await {
        Ok(answered) => answered,
        Err(error) => {
            let found = format!("{auth}: {error}");
            let advice = "start the server and the proxy in front of it; an invalid certificate must be renewed; some networks do not let a machine visit its own public address";
            return (vec![Finding::warning(CHECK, found, advice)], None);
        }
    };
    let expected = origin.to_string();
    let mut findings = vec![match answered.member("origin") {
        Some(found) if found == expected => {
            Finding::fine(CHECK, format!("{auth} is this platform"))
        }
        Some(found) => Finding::wrong(
            CHECK,
            format!("{auth} is the platform {found}"),
            format!("set PLATFORM_ORIGIN to {found}, or lead the names to this server"),
        ),
        None => Finding::wrong(
            CHECK,
            format!(
                "{auth} answers {} and is not this platform",
                answered.status
            ),
            "let the proxy forward `*.` and the header `Host` unchanged (docs/hosting.md)",
        ),
    }];
    let game = format!("{}/", games.sub_domain(ANY_GAME));
    // Without TLS of its own, a proxy must be in front of an https origin.
    let has_proxy = !patient.config.trusted_proxies.is_empty()
        || games.is_secure() && patient.config.tls.mode == TlsMode::Off;
    findings.push(match fetcher.get(&game, None).await {
        Ok(found) if found.header("x-request-id").is_some() => Finding::fine(
            CHECK,
            format!("{game} leads to a platform, as any game's address"),
        ),
        Ok(found) => Finding::wrong(
            CHECK,
            format!(
                "{game} answers {} and does not come from the platform",
                found.status
            ),
            "let the proxy forward every sub-domain, not only the auth service",
        ),
        Err(error) => {
            let ports = (games.port(), origin.port(), patient.config.listen.port());
            let advice = unreached_game(games.is_secure(), has_proxy, ports);
            Finding::wrong(CHECK, format!("{game}: {error}"), advice)
        }
    });
    findings.push(proxy(patient, origin, &answered, &id));
    (findings, Some(answered))
}

/// What to do if no game can be reached: at the port of games, while the platform is at another one, perhaps
/// nobody listens.
fn unreached_game(
    is_secure: bool,
    has_proxy: bool,
    (games, platform, listening): (u16, u16, u16),
) -> String {
    let certificate = if is_secure {
        "; the certificate must be valid for every sub-domain of PLATFORM_GAMES_ORIGIN, or of PLATFORM_ORIGIN \
         without it"
    } else {
        ""
    };
    if games != platform && games != listening {
        let who = if has_proxy { "the proxy" } else { "the server" };
        return format!(
            "PLATFORM_GAMES_ORIGIN has port {games}, and {who} must listen there: leave the port out of it, \
             or use that of PLATFORM_ORIGIN, {platform}{certificate}"
        );
    }
    let listens = if has_proxy {
        "the proxy must listen for every sub-domain, at port"
    } else {
        "the server must listen at port"
    };
    format!("{listens} {games}{certificate}")
}

/// A proxy that is not trusted makes all visitors one: limits then stop players.
fn proxy(
    patient: &Patient<'_>,
    origin: &PlatformOrigin,
    answered: &Fetched,
    id: &RequestId,
) -> Finding {
    const CHECK: &str = "proxy";
    let trusted = &patient.config.trusted_proxies;
    let answered = answered.header("x-request-id");
    if answered.is_some_and(|found| found == id.as_str() || !RequestId::is_generated(found)) {
        return Finding::fine(
            CHECK,
            "the server trusts it, so it knows visitors' addresses",
        );
    }
    if trusted.is_empty() && patient.config.tls.mode != TlsMode::Off {
        return Finding::skipped(CHECK, "the server speaks TLS itself, without a proxy");
    }
    if trusted.is_empty() && !origin.is_secure() {
        return Finding::skipped(CHECK, "there is none");
    }
    let found = if trusted.is_empty() {
        "no proxy is trusted, so all visitors count as one address"
    } else {
        "the answer did not come through a trusted proxy, or the proxy removes X-Request-Id"
    };
    Finding::warning(
        CHECK,
        found,
        "set PLATFORM_TRUSTED_PROXIES to the proxy's address, and let it set X-Forwarded-For",
    )
}

/// Compares this machine's clock with the time of an answer: the provider's, which has a clock of its
/// own, or that of the platform, which may run on another machine.
async fn clock(patient: &Patient<'_>, fetcher: &Fetcher, answered: Option<&Fetched>) -> Finding {
    const CHECK: &str = "clock";
    let provider = patient.config.identity_providers.first();
    let fetched = match provider {
        Some(provider) => {
            let issuer = provider.issuer.trim_end_matches('/');
            let url = format!("{issuer}/.well-known/openid-configuration");
            let fetched = fetcher.get(&url, None).await.ok();
            fetched.map(|fetched| (fetched, provider.id.clone()))
        }
        None => None,
    };
    let now = patient.clock.now();
    let other = fetched.as_ref().map(|(fetched, id)| (fetched, id.as_str()));
    let other = other.or_else(|| answered.map(|answered| (answered, "the platform")));
    let time = other.and_then(|(fetched, whose)| {
        let time = headers::HeaderMapExt::typed_get::<headers::Date>(&fetched.headers)?;
        Some((std::time::SystemTime::from(time), whose))
    });
    let Some((time, whose)) = time else {
        return Finding::skipped(CHECK, "nobody could be asked for the time");
    };
    let since = time
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    compared(now, Millis::try_from(since.as_millis()).unwrap_or(0), whose)
}

fn compared(now: Millis, other: Millis, whose: &str) -> Finding {
    const CHECK: &str = "clock";
    // The time of an answer has whole seconds.
    let off = now - other;
    let found = format!("it differs by {} s from that of {whose}", off / 1_000);
    let advice = "let NTP set the clock (`timedatectl set-ntp true`)";
    if off.abs() > CLOCK_IS_WRONG {
        Finding::wrong(CHECK, found, advice)
    } else if off.abs() > CLOCK_IS_OFF {
        Finding::warning(CHECK, found, advice)
    } else {
        Finding::fine(CHECK, found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::doctor::State;

    #[test]
    fn a_port_of_games_at_which_nobody_listens_is_named() {
        for (is_secure, has_proxy, ports, expected) in [
            (
                false,
                false,
                (9_999, 8_787, 8_787),
                "PLATFORM_GAMES_ORIGIN has port 9999, and the server must",
            ),
            (
                true,
                true,
                (8_443, 443, 8_787),
                "PLATFORM_GAMES_ORIGIN has port 8443, and the proxy must",
            ),
            (
                false,
                false,
                (8_787, 8_787, 8_787),
                "the server must listen at port 8787",
            ),
            (
                true,
                true,
                (443, 443, 8_787),
                "the proxy must listen for every sub-domain, at port 443",
            ),
        ] {
            let advice = unreached_game(is_secure, has_proxy, ports);
            assert!(advice.starts_with(expected), "{advice}");
            assert_eq!(advice.contains("certificate"), is_secure, "{advice}");
        }
    }

    #[test]
    fn a_clock_is_off_after_five_seconds_and_wrong_after_thirty() {
        for (off, expected) in [
            (0, State::Fine),
            (-5_000, State::Fine),
            (5_001, State::Warning),
            (-30_000, State::Warning),
            (30_001, State::Wrong),
        ] {
            let now = 1_800_000_000_000;
            assert_eq!(compared(now + off, now, "x").state, expected, "{off}");
        }
    }

    #[tokio::test]
    async fn a_name_without_an_address_is_wrong_and_localhost_needs_none() {
        // RFC 6761 §6.4: no name under `invalid` exists.
        let nowhere: PlatformOrigin = "https://play.invalid".parse().unwrap();
        let games: PlatformOrigin = "https://games.invalid".parse().unwrap();
        let found = names(&nowhere, &games).await;
        assert_eq!(found.state, State::Wrong);
        // All of them, so that one look at the name server is enough.
        for name in ["play.invalid", "auth.play.invalid", "games.invalid"] {
            assert!(found.found.contains(&format!("{name} has no")), "{found:?}");
        }
        let advice = found.advice.unwrap();
        let records = "`play.invalid` and of `*.play.invalid` and of `*.games.invalid`";
        assert!(advice.contains(records), "{advice}");
        let once = names(&nowhere, &nowhere).await.advice.unwrap();
        assert_eq!(once.matches("`*.play.invalid`").count(), 1, "{once}");
        let local = PlatformOrigin::local(8787);
        let local = names(&local, &local).await;
        assert_eq!(local.state, State::Skipped);
    }
}
