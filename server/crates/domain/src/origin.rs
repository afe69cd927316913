//! The platform origin, and the addresses that are derived from it.

use std::fmt;
use std::str::FromStr;

use platform_public_suffix::registrable_domain;
use url::{Host, Url};

/// The one origin of a platform, such as `https://games.example`. The auth service and every game
/// are sub-domains of it, with the same scheme and port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlatformOrigin {
    secure: bool,
    host: String,
    port: Option<u16>,
}

impl PlatformOrigin {
    /// The origin of a platform on this machine, `http://platform.localhost:<port>`.
    #[must_use]
    pub fn local(port: u16) -> Self {
        Self {
            secure: false,
            host: "platform.localhost".to_owned(),
            port: (port != 80).then_some(port),
        }
    }

    /// Whether the scheme is https.
    #[must_use]
    pub const fn is_secure(&self) -> bool {
        self.secure
    }

    /// Whether the host is under `localhost`, which never leaves this machine
    /// (RFC 6761 §6.3).
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.host.ends_with(".localhost")
    }

    /// `http` or `https`.
    #[must_use]
    pub const fn scheme(&self) -> &'static str {
        if self.secure { "https" } else { "http" }
    }

    /// The host name, lower case, without the port.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port, also if it is the scheme's default.
    #[must_use]
    pub const fn port(&self) -> u16 {
        match self.port {
            Some(port) => port,
            None if self.secure => 443,
            None => 80,
        }
    }

    /// The origin of the sub-domain `label`.
    #[must_use]
    pub fn sub_domain(&self, label: &str) -> String {
        match self.port {
            Some(port) => format!("{}://{label}.{}:{port}", self.scheme(), self.host),
            None => format!("{}://{label}.{}", self.scheme(), self.host),
        }
    }

    /// The origin of another host with the same scheme and port.
    #[must_use]
    pub fn elsewhere(&self, host: &str) -> String {
        match self.port {
            Some(port) => format!("{}://{host}:{port}", self.scheme()),
            None => format!("{}://{host}", self.scheme()),
        }
    }

    /// Whether the host is this origin's, or below it. Case matters; the host has no port.
    #[must_use]
    pub fn holds(&self, host: &str) -> bool {
        host.strip_suffix(self.host.as_str())
            .is_some_and(|before| before.is_empty() || before.ends_with('.'))
    }

    /// Whether browsers take both for one site: they have one registrable domain, one label below a
    /// public suffix (HTML, "same site").
    #[must_use]
    pub fn is_one_site_with(&self, other: &Self) -> bool {
        registrable_domain(&self.host)
            .is_some_and(|domain| registrable_domain(&other.host) == Some(domain))
    }

    /// `{auth_url}`: the origin of the auth service.
    #[must_use]
    pub fn auth_url(&self) -> String {
        self.sub_domain(AUTH_LABEL)
    }
}

/// The host label of the auth service.
pub const AUTH_LABEL: &str = "auth";

impl fmt::Display for PlatformOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme(), self.host)?;
        match self.port {
            Some(port) => write!(f, ":{port}"),
            None => Ok(()),
        }
    }
}

/// Why a text is not a platform origin; the sentence says what to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OriginError {
    /// It is not an absolute http or https URL.
    #[error("write an origin such as https://games.example")]
    Form,
    /// It has a path, a query, a fragment or a user name.
    #[error("write only scheme, host and port, such as https://games.example")]
    MoreThanOrigin,
    /// The host cannot have sub-domains that share its cookies.
    #[error("use a name that can have sub-domains, such as games.example or platform.localhost")]
    Host,
    /// A browser cannot connect to port 0.
    #[error(
        "write the port that players use; 0 is only allowed for listening, as in PLATFORM_LISTEN"
    )]
    Port,
    /// The session cookie must not be sent over plain http.
    #[error("use https; plain http is only for names under localhost")]
    Insecure,
}

impl FromStr for PlatformOrigin {
    type Err = OriginError;

    fn from_str(text: &str) -> Result<Self, OriginError> {
        let url = Url::parse(text).map_err(|_| OriginError::Form)?;
        let secure = match url.scheme() {
            "https" => true,
            "http" => false,
            _ => return Err(OriginError::Form),
        };
        let bare = matches!(url.path(), "" | "/")
            && url.query().is_none()
            && url.fragment().is_none()
            && url.username().is_empty()
            && url.password().is_none();
        if !bare {
            return Err(OriginError::MoreThanOrigin);
        }
        if url.port() == Some(0) {
            return Err(OriginError::Port);
        }
        // An IP address has no sub-domains, and browsers treat each sub-domain of a single label,
        // such as `localhost`, as a separate site.
        let host = match url.host() {
            Some(Host::Domain(name)) if name.contains('.') && !name.ends_with('.') => {
                name.to_owned()
            }
            _ => return Err(OriginError::Host),
        };
        let origin = Self {
            secure,
            host,
            port: url.port(),
        };
        if !secure && !origin.is_local() {
            return Err(OriginError::Insecure);
        }
        Ok(origin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_follow_from_the_origin() {
        let origin: PlatformOrigin = "http://platform.localhost:8787".parse().unwrap();
        assert_eq!(origin.to_string(), "http://platform.localhost:8787");
        assert_eq!(origin.auth_url(), "http://auth.platform.localhost:8787");
        assert_eq!(
            origin.sub_domain("dev-demo"),
            "http://dev-demo.platform.localhost:8787"
        );
        assert_eq!(origin, PlatformOrigin::local(8787));
        assert_eq!(origin.elsewhere("game.example"), "http://game.example:8787");

        for (host, held) in [
            ("platform.localhost", true),
            ("demo.platform.localhost", true),
            ("notplatform.localhost", false),
            ("platform.localhost.example", false),
            ("localhost", false),
        ] {
            assert_eq!(origin.holds(host), held, "{host}");
        }

        for (one, other, expected) in [
            (
                "https://play.example.com",
                "https://games.example.com",
                true,
            ),
            ("https://play.example", "https://x.play.example", true),
            ("https://play.example", "https://games.example", false),
            ("http://platform.localhost", "http://games.localhost", false),
            ("https://a.github.io", "https://b.github.io", false),
        ] {
            let parsed = |text: &str| text.parse::<PlatformOrigin>().unwrap();
            assert_eq!(
                parsed(one).is_one_site_with(&parsed(other)),
                expected,
                "{one}"
            );
        }

        let origin: PlatformOrigin = "https://Games.Example:443/".parse().unwrap();
        assert_eq!(origin.auth_url(), "https://auth.games.example");
        assert_eq!(origin.port(), 443);
    }

    #[test]
    fn what_cannot_be_a_platform_is_refused_with_what_to_do() {
        let cases = [
            ("games.example", OriginError::Form),
            ("ftp://games.example", OriginError::Form),
            ("http://platform.localhost:0", OriginError::Port),
            ("https://games.example/path", OriginError::MoreThanOrigin),
            ("https://games.example/?a", OriginError::MoreThanOrigin),
            ("https://me@games.example", OriginError::MoreThanOrigin),
            ("https://10.0.0.1", OriginError::Host),
            ("https://[::1]", OriginError::Host),
            ("http://localhost:8787", OriginError::Host),
            ("https://games.example.", OriginError::Host),
            ("http://games.example", OriginError::Insecure),
        ];
        for (text, expected) in cases {
            assert_eq!(text.parse::<PlatformOrigin>(), Err(expected), "{text}");
        }
    }
}
