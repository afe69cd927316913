//! Determines the site to which a request was sent.

use std::borrow::Cow;
use std::sync::Arc;

use platform_protocol::names::Environment;
use platform_protocol::problem::ProblemCode;

use crate::games::catalogue::{Catalogue, Game};
use crate::games::panes::{self, Pane};
use crate::origin::{AUTH_LABEL, PlatformOrigin};
use crate::web::api_error::ApiError;

/// The site that handles a request.
#[derive(Clone, Debug)]
pub enum Site {
    /// The platform's own pages.
    Console,
    /// The auth service.
    Auth,
    /// A game, in one environment.
    Game(Arc<Game>),
    /// A pane of the Build page.
    Pane(Pane),
}

/// Finds the site of a host. Case does not matter; everything else does: a trailing dot, another
/// port or a foreign name is unknown.
///
/// # Errors
/// `unknown-host`
pub fn find_site(host: &str, listening: u16, catalogue: &Catalogue) -> Result<Site, ApiError> {
    known_site(host, listening, catalogue).ok_or_else(|| ProblemCode::UnknownHost.into())
}

fn known_site(host: &str, listening: u16, catalogue: &Catalogue) -> Option<Site> {
    let (origin, _) = catalogue.origins();
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) => (name, read_port(port)?),
        None if origin.is_secure() => (host, 443),
        None => (host, 80),
    };
    site(name, catalogue, |origin| {
        port == origin.port() || port == listening
    })
}

/// Finds the site of a host name. `is_of` says whether the port is one of those on which this origin's
/// sites answer.
fn site(
    name: &str,
    catalogue: &Catalogue,
    is_of: impl Fn(&PlatformOrigin) -> bool,
) -> Option<Site> {
    let (origin, games) = catalogue.origins();
    match below(name, origin) {
        Some("") if is_of(origin) => return Some(Site::Console),
        Some(label) if is_of(origin) && label.eq_ignore_ascii_case(AUTH_LABEL) => {
            return Some(Site::Auth);
        }
        _ => {}
    }
    if !is_of(games) {
        return None;
    }
    match below(name, games) {
        Some(label) => game_or_pane(&lower_case(label), catalogue),
        None => catalogue.at_domain(&lower_case(name)).map(Site::Game),
    }
}

fn lower_case(name: &str) -> Cow<'_, str> {
    match name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        true => name.to_ascii_lowercase().into(),
        false => name.into(),
    }
}

impl Catalogue {
    /// Returns the site at this host name, at any port: the console, auth, an existing game, preview or
    /// pane, or a domain in service.
    #[must_use]
    pub fn site_at(&self, name: &str) -> Option<Site> {
        site(name, self, |_| true)
    }
}

/// Returns what stands before the host of `origin` in a name: nothing, or a label.
fn below<'name>(name: &'name str, origin: &PlatformOrigin) -> Option<&'name str> {
    let before = name.len().checked_sub(origin.host().len())?;
    let (label, host) = name.split_at_checked(before)?;
    if !host.eq_ignore_ascii_case(origin.host()) {
        return None;
    }
    match label.strip_suffix('.') {
        // A lone full stop is no label.
        Some("") => None,
        Some(label) => Some(label),
        None => label.is_empty().then_some(label),
    }
}

/// Finds the site of a host label in lower case. An old project may have a slug like a pane's label,
/// and keeps its address.
fn game_or_pane(label: &str, catalogue: &Catalogue) -> Option<Site> {
    if let Some(game) = catalogue.find(label) {
        return Some(Site::Game(game));
    }
    let shown = catalogue.find(panes::shown_in(label)?)?;
    // A preview's name may look like a dev environment's label.
    let is_dev = shown.environment == Environment::Dev && shown.preview.is_none();
    is_dev.then(|| Site::Pane(Pane::new(label, &shown, catalogue.origins())))
}

fn read_port(text: &str) -> Option<u16> {
    // `parse` alone would accept a plus sign.
    text.bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| text.parse().ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(host: &str, origin: &str) -> &'static str {
        let origin: PlatformOrigin = origin.parse().unwrap();
        match known_site(host, 9999, &Catalogue::new(origin.clone(), origin)) {
            Some(Site::Console) => "console",
            Some(Site::Auth) => "auth",
            Some(Site::Game(_)) => "game",
            Some(Site::Pane(_)) => "pane",
            None => "unknown",
        }
    }

    #[test]
    fn only_the_exact_names_and_ports_are_known() {
        let cases = [
            ("platform.localhost:8787", "console"),
            ("PLATFORM.localhost:8787", "console"),
            ("platform.localhost:9999", "console"),
            ("auth.platform.localhost:8787", "auth"),
            ("Auth.Platform.LocalHost:8787", "auth"),
            ("platform.localhost", "unknown"),
            ("platform.localhost:80", "unknown"),
            ("platform.localhost.:8787", "unknown"),
            ("auth.platform.localhost.:8787", "unknown"),
            ("authplatform.localhost:8787", "unknown"),
            (".platform.localhost:8787", "unknown"),
            ("x.auth.platform.localhost:8787", "unknown"),
            ("nobody.platform.localhost:8787", "unknown"),
            ("pane-1--dev-nobody.platform.localhost:8787", "unknown"),
            ("platform.localhost:", "unknown"),
            ("platform.localhost:+8787", "unknown"),
            ("platform.localhost:8787:8787", "unknown"),
            ("127.0.0.1:8787", "unknown"),
            ("[::1]:8787", "unknown"),
            ("evil.example:8787", "unknown"),
            ("", "unknown"),
            ("ä.platform.localhost:8787", "unknown"),
        ];
        for (host, expected) in cases {
            assert_eq!(
                site(host, "http://platform.localhost:8787"),
                expected,
                "{host}"
            );
        }
        let apart = Catalogue::new(
            "https://play.example".parse().unwrap(),
            "https://games.example".parse().unwrap(),
        );
        for host in ["games.example", "auth.games.example", "x.play.example"] {
            assert!(known_site(host, 443, &apart).is_none(), "{host}");
        }
        assert!(matches!(
            known_site("auth.play.example", 443, &apart),
            Some(Site::Auth)
        ));
        assert_eq!(site("auth.games.example", "https://games.example"), "auth");
        assert_eq!(
            site("auth.games.example:443", "https://games.example"),
            "auth"
        );
        assert_eq!(
            site("auth.games.example:80", "https://games.example"),
            "unknown"
        );
    }
}
