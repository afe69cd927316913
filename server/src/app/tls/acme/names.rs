//! Which certificates a platform has: the name of that for a host, and those that every platform needs.

use crate::config::Config;
use crate::origin::{AUTH_LABEL, PlatformOrigin};

/// The names of a platform's certificates.
#[derive(Clone, Debug)]
pub struct CertificateNames {
    origin: PlatformOrigin,
    games_origin: PlatformOrigin,
    /// Whether a program for DNS gets one certificate for a host and the names one label below it.
    one_for_all: bool,
}

impl CertificateNames {
    /// Those of a platform at these addresses.
    #[must_use]
    pub fn new(config: &Config, origin: &PlatformOrigin, games_origin: &PlatformOrigin) -> Self {
        Self {
            origin: origin.clone(),
            games_origin: games_origin.clone(),
            one_for_all: config.tls.acme.dns_command.is_some(),
        }
    }

    /// Returns the name of the certificate for a name that visitors ask for: with a program for DNS, the
    /// platform's host and the names one label below it have one together.
    #[must_use]
    pub fn certificate_of(&self, name: &str) -> String {
        let hosts = [self.origin.host(), self.games_origin.host()];
        let covers = |host: &&str| {
            let below = name.strip_suffix(*host);
            let label = below.and_then(|before| before.strip_suffix('.'));
            name == *host || label.is_some_and(|label| !label.contains('.'))
        };
        match hosts.into_iter().find(covers) {
            Some(host) if self.one_for_all => format!("*.{host}"),
            _ => name.to_owned(),
        }
    }

    /// Returns the names of the certificates that every platform needs: those of the console and of the
    /// auth service, and that of all games, if there is one for all.
    #[must_use]
    pub fn own(&self) -> Vec<String> {
        let host = self.origin.host();
        let names = [host.to_owned(), format!("{AUTH_LABEL}.{host}")];
        let mut own = names.map(|name| self.certificate_of(&name)).to_vec();
        if self.one_for_all {
            // Not that of the games' origin itself: it may be a name below the platform's.
            own.push(format!("*.{}", self.games_origin.host()));
        }
        own.dedup();
        own
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(games: &str, one_for_all: bool) -> CertificateNames {
        CertificateNames {
            origin: "https://play.example".parse().unwrap(),
            games_origin: games.parse().unwrap(),
            one_for_all,
        }
    }

    #[test]
    fn every_platform_needs_those_of_the_console_and_of_the_auth_service() {
        let each = names("https://games.example", false);
        assert_eq!(each.own(), ["play.example", "auth.play.example"]);
        let same = names("https://play.example", true);
        assert_eq!(same.own(), ["*.play.example"]);
        let apart = names("https://games.example", true);
        assert_eq!(apart.own(), ["*.play.example", "*.games.example"]);
        let below = names("https://games.play.example", true);
        assert_eq!(below.own(), ["*.play.example", "*.games.play.example"]);
        let game = below.certificate_of("demo.games.play.example");
        assert!(below.own().contains(&game), "{game}");
    }

    #[test]
    fn one_certificate_is_for_the_names_one_label_below_and_no_others() {
        let names = names("https://games.example", true);
        for (name, certificate) in [
            ("play.example", "*.play.example"),
            ("auth.play.example", "*.play.example"),
            ("demo.games.example", "*.games.example"),
            ("a.demo.games.example", "a.demo.games.example"),
            ("displayplay.example", "displayplay.example"),
            ("own.example", "own.example"),
        ] {
            assert_eq!(names.certificate_of(name), certificate);
        }
    }
}
