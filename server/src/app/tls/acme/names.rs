//! Which certificates a platform has: the name of that for a host, and those that every platform needs.

use crate::config::Config;
use crate::games::catalogue::Catalogue;
use crate::games::certified::{ServedName, names_of_project};
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

    /// Returns the name of the certificate for a name that visitors ask for. With a program for DNS, the
    /// platform's host and the names one label below it have one together. Otherwise the names of a
    /// project have one, under the first of them.
    #[must_use]
    pub fn certificate_of(&self, name: &str, catalogue: &Catalogue) -> String {
        if let Some(wildcard) = self.wildcard_of(name) {
            return wildcard;
        }
        let together = of_same_project(name, catalogue);
        match together.first() {
            Some(first) if together.iter().any(|one| one == name) => first.clone(),
            _ => name.to_owned(),
        }
    }

    /// Returns the names that a new certificate of this name is for.
    #[must_use]
    pub fn names_in(&self, certificate: &str, catalogue: &Catalogue) -> Vec<String> {
        if let Some(host) = certificate.strip_prefix("*.") {
            return vec![host.to_owned(), certificate.to_owned()];
        }
        let together = of_same_project(certificate, catalogue);
        match together.first() {
            Some(first) if first == certificate => together,
            _ => vec![certificate.to_owned()],
        }
    }

    /// Returns the name of the certificate of a host and all names one label below it, if it is for this
    /// name.
    fn wildcard_of(&self, name: &str) -> Option<String> {
        let hosts = [self.origin.host(), self.games_origin.host()];
        let covers = |host: &&str| {
            let below = name.strip_suffix(*host);
            let label = below.and_then(|before| before.strip_suffix('.'));
            name == *host || label.is_some_and(|label| !label.contains('.'))
        };
        let host = hosts.into_iter().find(covers)?;
        self.one_for_all.then(|| format!("*.{host}"))
    }

    /// Returns the names of the certificates that every platform needs: those of the console and of the
    /// auth service, and that of all games, if there is one for all.
    #[must_use]
    pub fn own(&self) -> Vec<String> {
        let host = self.origin.host();
        let names = [host.to_owned(), format!("{AUTH_LABEL}.{host}")];
        let certificate_of = |name: String| self.wildcard_of(&name).unwrap_or(name);
        let mut own = names.map(certificate_of).to_vec();
        if self.one_for_all {
            // Not that of the games' origin itself: it may be a name below the platform's.
            own.push(format!("*.{}", self.games_origin.host()));
        }
        own.dedup();
        own
    }
}

/// Returns the names that have one certificate with this name of a project.
fn of_same_project(name: &str, catalogue: &Catalogue) -> Vec<String> {
    let served = ServedName::find(name, catalogue);
    let project = served.and_then(|served| served.project);
    project.map_or_else(Vec::new, |slug| names_of_project(&slug, catalogue))
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
        let game = below.wildcard_of("demo.games.play.example").unwrap();
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
            let catalogue = Catalogue::new(names.origin.clone(), names.games_origin.clone());
            assert_eq!(names.certificate_of(name, &catalogue), certificate);
        }
    }
}
