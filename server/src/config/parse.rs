//! Parses the text of one setting; errors are phrases that say what to do.

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ipnet::IpNet;

use super::redis_place::{HOW, RedisPlace};
use super::tls::TlsMode;
use super::{LogFormat, Period, PrivateBackends, Rate, Secret};
use crate::domain::key::MIN_SECRET_BYTES;
use crate::web::foreign_cookies;

/// The maximum length of the name of a kept cookie.
const COOKIE_NAME_BYTES: usize = 256;

/// Parses an integer within `range`.
pub(super) fn number<T>(text: &str, range: RangeInclusive<T>) -> Result<T, String>
where
    T: FromStr + PartialOrd + std::fmt::Display,
{
    match text.parse::<T>() {
        Ok(value) if range.contains(&value) => Ok(value),
        _ => Err(format!(
            "`{text}` is not a whole number from {} to {}",
            range.start(),
            range.end()
        )),
    }
}

/// Parses for how many days security events are kept: 0 for no end, or at least as long as routine
/// events.
pub(super) fn event_days(text: &str) -> Result<u32, String> {
    match number(text, 0..=3_650)? {
        days @ 1..90 => Err(format!(
            "`{days}` is too few days: attacks are often noticed later; write 90 or more, or 0 for no \
             end"
        )),
        days => Ok(days),
    }
}

/// Parses the address of a socket to listen on, such as `example`.
pub(super) fn socket(text: &str, example: &str) -> Result<SocketAddr, String> {
    text.parse()
        .map_err(|_| format!("`{text}` is not a socket address such as {example}"))
}

/// Parses a network such as `10.0.0.0/8`, or a single address.
pub(super) fn network(text: &str) -> Result<IpNet, String> {
    text.parse::<IpNet>()
        .or_else(|_| text.parse::<IpAddr>().map(IpNet::from))
        .map_err(|_| format!("`{text}` is not a network such as 10.0.0.0/8"))
}

/// Parses the address of a DNS server; without a port, it is that of DNS.
pub(super) fn dns_server(text: &str) -> Result<SocketAddr, String> {
    const DNS_PORT: u16 = 53;
    text.parse::<SocketAddr>()
        .or_else(|_| {
            text.parse::<IpAddr>()
                .map(|ip| SocketAddr::new(ip, DNS_PORT))
        })
        .map_err(|_| format!("`{text}` is not the address of a DNS server such as 127.0.0.1:53"))
}

/// Parses a list that is separated by commas.
pub(super) fn list<T>(
    text: &str,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, String> {
    text.split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .map(read)
        .collect()
}

/// Parses the name of a cookie (a token, RFC 6265 §4.1.1), which must not be one of the platform's.
pub(super) fn foreign_cookie(text: &str) -> Result<String, String> {
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if !text.bytes().all(token) || text.len() > COOKIE_NAME_BYTES {
        return Err(format!(
            "`{text}` is not the name of a cookie; write names such as cf_clearance, separated by \
             commas"
        ));
    }
    if foreign_cookies::is_platforms(text) {
        return Err(format!(
            "`{text}` is the name of a cookie of the platform itself, which nobody else should \
             set; remove it"
        ));
    }
    Ok(text.to_owned())
}

/// Parses `true`, `false`, or networks.
pub(super) fn private_backends(text: &str) -> Result<PrivateBackends, String> {
    match text {
        "true" => Ok(PrivateBackends::All),
        "false" => Ok(PrivateBackends::None),
        networks => list(networks, network)
            .map(PrivateBackends::Networks)
            .map_err(|problem| format!("{problem}, and not true or false")),
    }
}

/// Whether this is the address of a PostgreSQL database. It may contain a password.
pub(super) fn is_postgres(text: &str) -> bool {
    text.starts_with("postgres://") || text.starts_with("postgresql://")
}

/// Checks the address of Redis. It is not repeated: it may contain a password.
pub(super) fn redis(text: &str) -> Result<Secret, String> {
    match RedisPlace::parse(text) {
        Some(_) => Ok(Secret::new(text.to_owned())),
        None => Err(HOW.to_owned()),
    }
}

/// Returns the path in `<scheme>://<path>`; only one scheme is supported.
pub(super) fn path_url(text: &str, scheme: &str) -> Result<PathBuf, String> {
    let Some((found, path)) = text.split_once("://") else {
        // It is not repeated: the address of a database may contain a password.
        return Err(format!(
            "it is not an address such as {scheme}:///var/lib/platform"
        ));
    };
    if found != scheme {
        return Err(format!(
            "{found}:// is not supported yet; use {scheme}://<path>, or remove the setting"
        ));
    }
    if path.is_empty() || path.contains('\0') {
        return Err(format!("write a path after {scheme}://"));
    }
    Ok(PathBuf::from(path))
}

/// Parses a rate such as `60/m, burst 30`. The default burst is the count itself.
pub(super) fn rate(text: &str) -> Result<Rate, String> {
    let parsed = || {
        let (rate, burst) = match text.split_once(',') {
            Some((rate, burst)) => (rate, Some(burst.trim().strip_prefix("burst")?.trim())),
            None => (text, None),
        };
        let (count, period) = rate.trim().split_once('/')?;
        let count: NonZeroU32 = count.trim().parse().ok()?;
        let period = match period.trim() {
            "s" => Period::Second,
            "m" => Period::Minute,
            "h" => Period::Hour,
            _ => return None,
        };
        let burst = match burst {
            Some(burst) => burst.parse().ok()?,
            None => count,
        };
        Some(Rate {
            count,
            period,
            burst,
        })
    };
    parsed().ok_or_else(|| format!("`{text}` is not a rate such as `60/m, burst 30`"))
}

/// Parses `true` or `false`.
pub(super) fn boolean(text: &str) -> Result<bool, String> {
    match text {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(format!("`{text}` is neither `true` nor `false`")),
    }
}

/// Parses the address of a contact (RFC 9116 §2.5.3).
pub(super) fn contact(text: &str) -> Result<String, String> {
    let known = text.starts_with("mailto:") || text.starts_with("https://");
    let plain = text.bytes().all(|byte| byte.is_ascii_graphic());
    if known && plain && url::Url::parse(text).is_ok() {
        Ok(text.to_owned())
    } else {
        Err(format!(
            "`{text}` is not an address such as mailto:security@games.example or https://games.example/security"
        ))
    }
}

/// Parses a path of a list.
#[expect(
    clippy::unnecessary_wraps,
    reason = "`list` takes what may refuse a member"
)]
pub(super) fn path(text: &str) -> Result<PathBuf, String> {
    Ok(PathBuf::from(text))
}

pub(super) fn tls_mode(text: &str) -> Result<TlsMode, String> {
    let found = TlsMode::ALL.into_iter().find(|mode| mode.name() == text);
    found.ok_or_else(|| format!("`{text}` is neither off, files nor acme"))
}

/// Parses the directory of an ACME server, which must be reached over https (RFC 8555 §6.1).
pub(super) fn acme_directory(text: &str) -> Result<String, String> {
    match url::Url::parse(text) {
        Ok(url) if url.scheme() == "https" && url.has_host() => Ok(text.to_owned()),
        _ => Err(format!(
            "`{text}` is not an address such as https://acme-v02.api.letsencrypt.org/directory"
        )),
    }
}

/// Parses one address without the header fields that a `mailto:` may have (RFC 8555 §7.3).
pub(super) fn email(text: &str) -> Result<String, String> {
    let plain = |byte: u8| byte.is_ascii_graphic() && !b",?&<>\"".contains(&byte);
    match text.split_once('@') {
        Some((name, host)) if !name.is_empty() && host.contains('.') && text.bytes().all(plain) => {
            Ok(text.to_owned())
        }
        _ => Err(format!(
            "`{text}` is not an address such as operator@play.example"
        )),
    }
}

/// Parses the HMAC key of an external account binding, which authorities give as base64url (RFC 8555 §7.3.4).
pub(super) fn eab_key(text: &str) -> Result<Secret, String> {
    match URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')) {
        Ok(key) if key.len() >= 16 => Ok(Secret::new(text.trim_end_matches('=').to_owned())),
        // It may be nearly right, so it is not shown.
        _ => Err(
            "it is not the base64url text of an HMAC key of 16 bytes or more; copy it from your \
                  account at the certificate authority"
                .to_owned(),
        ),
    }
}

pub(super) fn log_format(text: &str) -> Result<LogFormat, String> {
    match text {
        "human" => Ok(LogFormat::Human),
        "json" => Ok(LogFormat::Json),
        _ => Err(format!("`{text}` is neither human nor json")),
    }
}

/// Parses log filter directives. A single word that is no level would be the name of a module, and nothing
/// else would be logged.
pub(super) fn log_filter(text: &str) -> Result<String, String> {
    if text.chars().all(|c| c.is_ascii_alphanumeric())
        && text
            .parse::<tracing_subscriber::filter::LevelFilter>()
            .is_err()
    {
        return Err(format!(
            "`{text}` is no level: use error, warn, info, debug, trace or off, or a filter such as \
             `info,platform_server=debug`"
        ));
    }
    tracing_subscriber::EnvFilter::try_new(text)
        .map(|_| text.to_owned())
        .map_err(|_| format!("`{text}` is not a filter such as `info,platform_server=debug`"))
}

/// Parses a secret. The error message does not repeat it.
pub(super) fn secret(text: &str) -> Result<Secret, String> {
    if text.len() < MIN_SECRET_BYTES {
        return Err(format!(
            "use at least {MIN_SECRET_BYTES} random characters, from a generator"
        ));
    }
    Ok(Secret::new(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_is_no_level_does_not_turn_off_the_log() {
        for text in ["loud", "verbose", "Information", "6"] {
            let line = log_filter(text).unwrap_err();
            assert!(line.contains(text) && line.contains("debug"), "{line}");
        }
        for text in [
            "info",
            "WARN",
            "off",
            "3",
            "info,platform_server=debug",
            "platform_server",
        ] {
            assert_eq!(log_filter(text).as_deref(), Ok(text));
        }
    }

    #[test]
    fn private_backends_are_all_none_or_some() {
        assert_eq!(private_backends("true"), Ok(PrivateBackends::All));
        assert_eq!(private_backends("false"), Ok(PrivateBackends::None));
        let networks = ["10.0.0.0/8", "192.168.1.7/32"].map(|text| text.parse().unwrap());
        assert_eq!(
            private_backends("10.0.0.0/8, 192.168.1.7"),
            Ok(PrivateBackends::Networks(networks.into()))
        );
        for wrong in ["yes", "TRUE", "10.0.0.0/8, x"] {
            assert!(private_backends(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_cookie_of_somebody_else_has_a_token_for_a_name_and_none_of_ours() {
        let names = list("cf_clearance, __cf_bm,AWSALB", foreign_cookie).unwrap();
        assert_eq!(names, ["cf_clearance", "__cf_bm", "AWSALB"]);
        let long = "x".repeat(257);
        for wrong in [
            "a b",
            "a=b",
            "a;b",
            "caf\u{e9}",
            &long,
            "platform-session",
            "__Host-platform-form",
            "__Host-other",
        ] {
            assert!(foreign_cookie(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn rates_are_read_as_they_are_written_in_the_documentation() {
        let read = rate("60/m, burst 30").unwrap();
        assert_eq!(
            (read.count.get(), read.period, read.burst.get()),
            (60, Period::Minute, 30)
        );
        let read = rate("5/s").unwrap();
        assert_eq!(
            (read.count.get(), read.period, read.burst.get()),
            (5, Period::Second, 5)
        );
        for wrong in [
            "",
            "60",
            "60/d",
            "0/m",
            "60/m, 30",
            "60/m, burst 0",
            "60/m burst 3",
            "-1/m",
        ] {
            assert!(rate(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn one_address_is_a_network_of_its_own() {
        assert_eq!(
            network("10.1.2.3").unwrap(),
            "10.1.2.3/32".parse::<IpNet>().unwrap()
        );
        assert!(network("10.1.2.3/33").is_err());
    }
}
