//! Detects and expires cookies that others have set on the platform's domain.
//!
//! A game's script can set cookies on the domain that it shares with the auth service (RFC 6265
//! §8.6). Many of them evict our cookies from the browser's storage for the domain, or make every
//! request too large. Scripts cannot set a cookie with the prefix `__Host-` for another host, so a
//! cookie without this prefix is not ours, and the auth service and the console expire it. Cookies
//! of a proxy or a CDN in front are not ours either; the operator names them, and they are kept.

use std::collections::BTreeMap;

use axum::http::{HeaderMap, HeaderValue, header};

use platform_domain::origin::PlatformOrigin;

/// From this number of foreign cookies on, our cookies may have been evicted: browsers keep about
/// 180 for the sites under one domain, and leave 150 when they evict some.
const MANY: usize = 100;
/// The maximum number of `Set-Cookie` lines in one response and of their bytes: proxies buffer
/// response heads in 4 KiB, and programs accept 100 headers. The remaining cookies are expired by
/// the next responses.
const LINES: usize = 40;
const BYTES: usize = 3 * 1_024;
/// The maximum length of a path for which a cookie is expired.
const PATH_BYTES: usize = 128;
/// How often a cookie that the operator keeps may occur in one request: once for the host and once
/// for the domain above. If it occurs more often, a game has set it for several paths.
const KEPT: usize = 2;

/// The cookies of a request that need to be expired.
#[derive(Debug, Default)]
struct Found<'a> {
    /// Names of foreign cookies, in their order in the request.
    foreign: Vec<&'a [u8]>,
    /// Names of our cookies that occur several times: all but one were set by others.
    doubled: Vec<&'a [u8]>,
}

/// Whether a cookie is ours by its name. Over http, which is only allowed for `localhost`, others
/// can use such names, too.
fn is_ours(name: &[u8], secure: bool) -> bool {
    let prefix: &[u8] = if secure { b"__Host-" } else { b"platform-" };
    name.starts_with(prefix)
}

/// Whether a name is one of the platform's own cookie names, for any scheme.
#[must_use]
pub fn is_platforms(name: &str) -> bool {
    is_ours(name.as_bytes(), true) || is_ours(name.as_bytes(), false)
}

/// Returns the names of the cookies in a request; a cookie without a name has `""`.
fn names(headers: &HeaderMap) -> impl Iterator<Item = &[u8]> {
    let lines = headers.get_all(header::COOKIE).iter();
    let pieces = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b';'));
    pieces.map(<[u8]>::trim_ascii).filter_map(|piece| {
        let end = piece.iter().position(|byte| *byte == b'=');
        match end {
            Some(end) => piece.get(..end).map(<[u8]>::trim_ascii_end),
            None => (!piece.is_empty()).then_some(b"".as_slice()),
        }
    })
}

fn find<'a>(headers: &'a HeaderMap, secure: bool, keep: &[String]) -> Found<'a> {
    let mut found = Found::default();
    let mut seen: BTreeMap<&[u8], usize> = BTreeMap::new();
    for name in names(headers) {
        let count = seen.entry(name).or_default();
        *count += 1;
        let tolerated = if is_kept(name, keep) { KEPT } else { 0 };
        match (is_ours(name, secure), *count) {
            (false, count) if count == tolerated + 1 => found.foreign.push(name),
            (true, 2) => found.doubled.push(name),
            _ => {}
        }
    }
    found
}

/// Whether the operator keeps the cookies with exactly this name (RFC 6265 §5.3).
fn is_kept(name: &[u8], keep: &[String]) -> bool {
    keep.iter().any(|kept| kept.as_bytes() == name)
}

/// Whether there are so many foreign cookies that ours may have been evicted.
#[must_use]
pub fn are_many(headers: &HeaderMap, secure: bool) -> bool {
    names(headers).filter(|name| !is_ours(name, secure)).count() >= MANY
}

/// Returns the `Set-Cookie` lines that expire the foreign cookies of a request, and cookies of
/// others with our names, as far as they fit. A request does not say for which domain and path a
/// cookie was set, so all choices of games are tried: the platform's domain, and the paths that
/// lead to this one, each with and without `Partitioned`. If not all lines fit, `turn` says with
/// which one to begin: each response begins at a different one, so that every cookie gets its turn.
/// Cookies named in `keep` are left alone.
#[must_use]
pub fn expire(
    headers: &HeaderMap,
    origin: &PlatformOrigin,
    path: &str,
    keep: &[String],
    turn: impl FnOnce() -> u16,
) -> Vec<HeaderValue> {
    let secure = origin.is_secure();
    let found = find(headers, secure, keep);
    if found.foreign.is_empty() && found.doubled.is_empty() {
        return Vec::new();
    }
    let domain = format!("; Domain={}", origin.host());
    let paths = paths_to(path);
    let turn = usize::from(turn());
    let mut lines = Lines::new(secure, !turn.is_multiple_of(2));
    for name in &found.doubled {
        for path in &paths {
            lines.add(name, &domain, path);
        }
    }
    let mut scopes: Vec<(&str, &str)> = Vec::new();
    for domain in [domain.as_str(), ""] {
        scopes.extend(paths.iter().map(|path| (domain, *path)));
    }
    let parents = parents(origin.host());
    if found.foreign.len() >= MANY {
        // Cookies of the domains above may belong to somebody else, and are left alone unless they
        // are used for an attack.
        scopes.extend(parents.iter().map(|domain| (domain.as_str(), "/")));
    }
    // The first scope is by far the most likely one, so most responses begin there.
    let first = if turn.is_multiple_of(4) {
        turn / 4 % scopes.len()
    } else {
        0
    };
    let start = turn % found.foreign.len().max(1);
    for (domain, path) in scopes.iter().cycle().skip(first).take(scopes.len()) {
        let turned = found.foreign.iter().cycle().skip(start);
        for name in turned.take(found.foreign.len()) {
            if !lines.add(name, domain, path) {
                return lines.values;
            }
        }
    }
    lines.values
}

/// Returns the paths of cookies that are sent to `path` (RFC 6265 §5.1.4).
fn paths_to(path: &str) -> Vec<&str> {
    let mut paths = vec!["/"];
    if path.len() > PATH_BYTES || path.contains(';') || !path.is_ascii() {
        return paths;
    }
    for (at, _) in path.match_indices('/').filter(|(at, _)| *at > 0) {
        paths.extend([path.get(..at), path.get(..=at)].into_iter().flatten());
    }
    if !paths.contains(&path) {
        paths.push(path);
    }
    paths
}

/// Returns the domains above the platform's own for which cookies can be set, as the attribute: all
/// with two labels or more.
fn parents(host: &str) -> Vec<String> {
    let dots = host.match_indices('.');
    let above = dots.filter_map(|(dot, _)| host.get(dot + 1..));
    let above = above.filter(|domain| domain.contains('.'));
    above.map(|domain| format!("; Domain={domain}")).collect()
}

/// The `Set-Cookie` lines of a response.
struct Lines {
    values: Vec<HeaderValue>,
    bytes: usize,
    secure: &'static str,
    /// Whether the line with `Partitioned` comes before the one without.
    partitioned_first: bool,
}

impl Lines {
    const fn new(secure: bool, partitioned_first: bool) -> Self {
        Self {
            values: Vec::new(),
            bytes: 0,
            secure: if secure { "; Secure" } else { "" },
            partitioned_first,
        }
    }

    /// Adds lines for both kinds of a cookie: one that was set with `Partitioned` (CHIPS) is in a
    /// separate jar, and can only be expired by a line with the same attribute, which is only
    /// accepted with `Secure`. If the name is so long that only one line fits, the kinds take
    /// turns. Returns whether the lines fitted.
    fn add(&mut self, name: &[u8], domain: &str, path: &str) -> bool {
        let mut kinds = [self.secure, "; Secure; Partitioned"];
        if self.partitioned_first {
            kinds.reverse();
        }
        kinds
            .iter()
            .all(|kind| self.add_line(name, domain, path, kind))
    }

    fn add_line(&mut self, name: &[u8], domain: &str, path: &str, kind: &str) -> bool {
        // A cookie without a name must have a value to be valid.
        let value = if name.is_empty() { "=x" } else { "=" };
        let rest = format!("{value}; Max-Age=0; Path={path}{domain}{kind}");
        let mut line = name.to_vec();
        line.extend_from_slice(rest.as_bytes());
        // A name that cannot be in a header was in none.
        let Ok(line) = HeaderValue::from_bytes(&line) else {
            return true;
        };
        // At least one line is always added, or a cookie with a long name would stay.
        let fits = self.values.is_empty() || self.bytes + line.len() <= BYTES;
        if self.values.len() >= LINES || !fits {
            return false;
        }
        self.bytes += line.len();
        self.values.push(line);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(cookies: &str) -> HeaderMap {
        let value = HeaderValue::from_str(cookies).unwrap();
        HeaderMap::from_iter([(header::COOKIE, value)])
    }

    fn expired(cookies: &str, origin: &str, path: &str) -> Vec<String> {
        let all = all_expired(cookies, origin, path, &[]);
        let partitioned = |line: &String| line.ends_with("; Secure; Partitioned");
        all.into_iter().filter(|line| !partitioned(line)).collect()
    }

    fn all_expired(cookies: &str, origin: &str, path: &str, keep: &[&str]) -> Vec<String> {
        let keep: Vec<String> = keep.iter().map(ToString::to_string).collect();
        let lines = expire(&with(cookies), &origin.parse().unwrap(), path, &keep, || 0);
        let lines = lines.iter().map(|line| line.to_str().unwrap().to_owned());
        lines.collect()
    }

    const SECURE: &str = "https://play.games.example";
    const LOCAL: &str = "http://platform.localhost:8787";

    #[test]
    fn what_is_ours_stays_and_everything_else_expires() {
        let ours = "__Host-platform-session=a; __Host-platform-form=b";
        assert!(expired(ours, SECURE, "/token").is_empty());
        assert!(expired("", SECURE, "/token").is_empty());
        let lines = expired(&format!("{ours}; platform-session=x; tossed"), SECURE, "/");
        assert_eq!(
            lines,
            [
                "platform-session=; Max-Age=0; Path=/; Domain=play.games.example; Secure",
                "=x; Max-Age=0; Path=/; Domain=play.games.example; Secure",
                "platform-session=; Max-Age=0; Path=/; Secure",
                "=x; Max-Age=0; Path=/; Secure",
            ]
        );
    }

    #[test]
    fn a_partitioned_cookie_expires_by_a_line_of_its_own() {
        for (origin, secure) in [(SECURE, "; Secure"), (LOCAL, "")] {
            let host = origin.parse::<PlatformOrigin>().unwrap().host().to_owned();
            let lines = all_expired("a=1", origin, "/", &[]);
            assert_eq!(
                lines,
                [
                    format!("a=; Max-Age=0; Path=/; Domain={host}{secure}"),
                    format!("a=; Max-Age=0; Path=/; Domain={host}; Secure; Partitioned"),
                    format!("a=; Max-Age=0; Path=/{secure}"),
                    "a=; Max-Age=0; Path=/; Secure; Partitioned".to_owned(),
                ]
            );
        }
    }

    #[test]
    fn cookies_that_the_operator_keeps_stay_unless_they_are_tossed_in_by_the_path() {
        let keep = ["cf_clearance", "AWSALB"];
        let cookies = "cf_clearance=1; AWSALB=2; AWSALB=3; awsalb=4; AWSALBCORS=5";
        let lines = all_expired(cookies, SECURE, "/", &keep);
        let names: Vec<&str> = lines
            .iter()
            .map(|line| line.split('=').next().unwrap())
            .collect();
        assert!(names.contains(&"awsalb"), "{names:?}");
        assert!(names.contains(&"AWSALBCORS"), "{names:?}");
        for kept in keep {
            assert!(!names.contains(&kept), "{names:?}");
        }
        assert!(all_expired("cf_clearance=1", SECURE, "/", &keep).is_empty());
        let tossed = all_expired("AWSALB=1; AWSALB=2; AWSALB=3", SECURE, "/", &keep);
        assert!(tossed[0].starts_with("AWSALB=;"), "{tossed:?}");
    }

    #[test]
    fn every_path_that_leads_here_is_gone_through() {
        let lines = expired("a=1", LOCAL, "/login/demo");
        for path in ["/", "/login", "/login/", "/login/demo"] {
            let line = format!("a=; Max-Age=0; Path={path}; Domain=platform.localhost");
            assert!(lines.contains(&line), "{line}: {lines:?}");
        }
        assert_eq!(paths_to("/;/x"), ["/"]);
        assert_eq!(paths_to("/token"), ["/", "/token"]);
    }

    #[test]
    fn of_two_of_our_own_the_one_of_the_domain_expires() {
        let lines = expired("platform-session=a; platform-session=b", LOCAL, "/token");
        assert_eq!(
            lines,
            [
                "platform-session=; Max-Age=0; Path=/; Domain=platform.localhost",
                "platform-session=; Max-Age=0; Path=/token; Domain=platform.localhost",
            ]
        );
        assert!(expired("platform-session=a; platform-form=b", LOCAL, "/token").is_empty());
    }

    #[test]
    fn many_are_gone_after_a_few_answers_that_fit_any_proxy() {
        for kind in ["", "; Secure; Partitioned"] {
            let mut left: Vec<String> = (0..180).map(|number| format!("c{number}")).collect();
            let mut answers = 0;
            while !left.is_empty() {
                answers += 1;
                assert!(answers < 40, "{left:?}");
                let cookies = left.join("=1; ") + "=1";
                let headers = with(&cookies);
                assert_eq!(are_many(&headers, false), left.len() >= MANY);
                let origin = LOCAL.parse().unwrap();
                let lines = expire(&headers, &origin, "/token", &[], || answers);
                let lines: Vec<_> = lines.iter().map(|line| line.to_str().unwrap()).collect();
                assert!(lines.iter().map(|line| line.len()).sum::<usize>() <= BYTES);
                assert!(lines.len() <= LINES);
                // Each of them was set for the platform's domain and all paths.
                left.retain(|name| {
                    let line =
                        format!("{name}=; Max-Age=0; Path=/; Domain=platform.localhost{kind}");
                    !lines.contains(&line.as_str())
                });
            }
        }
    }

    #[test]
    fn a_cookie_with_the_longest_name_expires_as_well() {
        let name = "x".repeat(4_000);
        let lines = expired(&format!("{name}=; b=1"), LOCAL, "/");
        assert!(lines[0].starts_with(&name), "{}", lines[0].len());
        assert_eq!(lines.len(), 1);
        // There is room for one line, and each kind has its turn.
        let cookies = with(&format!("{name}="));
        let kinds = [0, 1].map(|turn| {
            let origin = SECURE.parse().unwrap();
            let lines = expire(&cookies, &origin, "/", &[], || turn);
            lines[0].to_str().unwrap().ends_with("; Partitioned")
        });
        assert_eq!(kinds, [false, true]);
    }

    #[test]
    fn domains_above_are_touched_only_where_they_are_a_weapon() {
        assert!(
            !expired("a=1", SECURE, "/")
                .iter()
                .any(|line| line.contains("Domain=games"))
        );
        assert_eq!(parents("play.games.example"), ["; Domain=games.example"]);
        assert!(parents("platform.localhost").is_empty());
    }
}
