//! The platform's origin, and the addresses that are derived from it.

use std::fmt;
use std::str::FromStr;

use platform_loopback::is_localhost;
use platform_protocol::names::Environment;
use url::{Host, Url};

/// The platform's origin by default.
pub(crate) const DEFAULT_ORIGIN: &str = "http://platform.localhost:8787";

/// The origin of a platform, such as `https://games.example`. The auth service and every game are
/// sub-domains of it, with the same scheme and port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlatformOrigin {
    scheme: &'static str,
    /// Host, and port where it is not the scheme's own.
    authority: String,
}

impl PlatformOrigin {
    /// Whether it uses TLS.
    pub(crate) fn is_secure(&self) -> bool {
        self.scheme == "https"
    }

    /// `{auth_url}`: the origin of the auth service.
    pub(crate) fn auth_url(&self) -> String {
        self.sub_domain("auth")
    }

    /// The origin of a game.
    pub(crate) fn game_url(&self, slug: &str, environment: Environment) -> String {
        self.sub_domain(&environment.label(slug))
    }

    /// Whether `other` is a sub-domain of this origin, with the same scheme and port.
    pub(crate) fn is_above(&self, other: &Self) -> bool {
        let below = other.authority.strip_suffix(&self.authority);
        self.scheme == other.scheme
            && below.is_some_and(|labels| labels.len() > 1 && labels.ends_with('.'))
    }

    /// The command that signs in here, independent of other settings.
    pub(crate) fn login_command(&self) -> String {
        format!("`platform login --origin {self}`")
    }

    /// The origin of the sub-domain with this label.
    pub(crate) fn sub_domain(&self, label: &str) -> String {
        format!("{}://{label}.{}", self.scheme, self.authority)
    }
}

impl fmt::Display for PlatformOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme, self.authority)
    }
}

impl FromStr for PlatformOrigin {
    /// A sentence that says what to write instead.
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        const FORM: &str = "write only scheme, host and port, such as https://games.example";
        let url = Url::parse(text).map_err(|_| FORM)?;
        let scheme = match url.scheme() {
            "https" => "https",
            "http" => "http",
            _ => return Err(FORM),
        };
        let bare = url.path() == "/"
            && url.query().is_none()
            && url.fragment().is_none()
            && url.username().is_empty()
            && url.password().is_none();
        if !bare {
            return Err(FORM);
        }
        let host = match url.host() {
            Some(Host::Domain(name)) if name.contains('.') && !name.ends_with('.') => name,
            _ => return Err("use a name that can have sub-domains, such as games.example"),
        };
        // A token would be sent unencrypted.
        if scheme == "http" && !is_localhost(host) {
            return Err("use https; plain http is only for names under localhost");
        }
        let authority = match url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        };
        Ok(Self { scheme, authority })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_follow_from_the_origin() {
        let origin: PlatformOrigin = DEFAULT_ORIGIN.parse().unwrap();
        assert_eq!(origin.to_string(), DEFAULT_ORIGIN);
        assert_eq!(origin.auth_url(), "http://auth.platform.localhost:8787");
        assert_eq!(
            origin.game_url("demo", Environment::Dev),
            "http://dev-demo.platform.localhost:8787"
        );
        let origin: PlatformOrigin = "https://Games.Example:443/".parse().unwrap();
        assert_eq!(
            origin.game_url("demo", Environment::Prod),
            "https://demo.games.example"
        );
        assert!(origin.is_secure());
    }

    #[test]
    fn only_a_sub_domain_of_the_same_scheme_and_port_is_below() {
        let origin = |text: &str| text.parse::<PlatformOrigin>().unwrap();
        let platform = origin("https://games.example:8443");
        for below in [
            "https://a.games.example:8443",
            "https://x.y.games.example:8443",
        ] {
            assert!(platform.is_above(&origin(below)), "{below}");
        }
        for other in [
            "https://games.example:8443",
            "https://evilgames.example:8443",
            "https://a.games.example",
            "https://a.games.example.evil.example:8443",
            "https://example.org:8443",
        ] {
            assert!(!platform.is_above(&origin(other)), "{other}");
        }
        assert!(!origin("http://a.localhost:1").is_above(&origin("https://b.a.localhost:1")));
    }

    #[test]
    fn what_is_no_platform_is_refused() {
        for text in [
            "games.example",
            "ftp://games.example",
            "https://games.example/path",
            "https://games.example/?a",
            "https://me@games.example",
            "https://10.0.0.1",
            "http://localhost:8787",
            "http://games.example",
            "http://platform.localhost.example",
        ] {
            assert!(text.parse::<PlatformOrigin>().is_err(), "{text}");
        }
    }
}
