//! The names for which the platform obtains a certificate: those at which it serves something. Everybody
//! can ask for any name in a handshake of TLS, and each certificate costs an order at the certificate
//! authority.

use platform_protocol::names::Environment;

use crate::games::catalogue::{Catalogue, Game};
use crate::games::hosts::Site;
use crate::games::panes::{self, PANES};

/// The maximum length of a name (RFC 1035 §2.3.4).
const LONGEST_NAME: usize = 253;
/// The maximum length of a label.
const LONGEST_LABEL: usize = 63;

/// What is served at a name, as far as orders of certificates are counted apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NameKind {
    /// The console or the auth service.
    Platform,
    /// A game's address in production.
    Production,
    /// A domain of a game's own.
    Domain,
    /// A dev environment, a pane or a preview.
    Development,
}

/// A name at which the platform answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedName {
    /// What is served there.
    pub kind: NameKind,
    /// The project, if it is the name of a game.
    pub project: Option<String>,
    /// Whether there is more than a page that says that nothing is deployed: a deployment, or a backend.
    pub has_content: bool,
    /// Whether visitors are told that the game was taken down.
    pub taken_down: bool,
}

impl ServedName {
    /// Returns what this name is, in lower case and without a port. `None` if the platform does not
    /// answer at it, or no certificate can contain it.
    #[must_use]
    pub fn find(name: &str, catalogue: &Catalogue) -> Option<Self> {
        if !is_host_name(name) {
            return None;
        }
        let (kind, game) = match catalogue.site_at(name)? {
            Site::Console | Site::Auth => {
                return Some(Self {
                    kind: NameKind::Platform,
                    project: None,
                    has_content: true,
                    taken_down: false,
                });
            }
            Site::Game(game) => (kind_of(name, &game, catalogue), game),
            Site::Pane(pane) => (NameKind::Development, pane.game),
        };
        Some(Self {
            kind,
            has_content: game.deployment.is_some() || game.backend.is_some(),
            taken_down: game.taken_down,
            project: Some(game.slug.clone()),
        })
    }
}

fn kind_of(name: &str, game: &Game, catalogue: &Catalogue) -> NameKind {
    if catalogue.at_domain(name).is_some() {
        NameKind::Domain
    } else if game.environment == Environment::Prod && game.preview.is_none() {
        NameKind::Production
    } else {
        NameKind::Development
    }
}

/// Whether the platform serves something at this name, and so may have a certificate for it. The name is
/// in lower case, and has no port.
#[must_use]
pub fn may_have_certificate(name: &str, catalogue: &Catalogue) -> bool {
    ServedName::find(name, catalogue).is_some_and(|served| served.has_content)
}

/// Returns the names of a project that one certificate is for: its address in production, that of its dev
/// environment, and those of its panes, as far as the platform answers at them. Previews come and go, and
/// domains belong to others: each has a certificate of its own.
#[must_use]
pub fn names_of_project(slug: &str, catalogue: &Catalogue) -> Vec<String> {
    let (_, games) = catalogue.origins();
    let environments = [Environment::Prod, Environment::Dev].map(|one| one.label(slug));
    let panes = (1..=PANES).map(|number| panes::label(number, slug));
    environments
        .into_iter()
        .chain(panes)
        .map(|label| format!("{label}.{}", games.host()))
        .filter(|name| {
            // An old project may have the label of another one's pane.
            let served = ServedName::find(name, catalogue);
            served.is_some_and(|served| served.project.as_deref() == Some(slug))
        })
        .collect()
}

/// Whether this is a host name in lower case, as certificates contain it.
fn is_host_name(name: &str) -> bool {
    let is_label = |label: &str| {
        let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        (1..=LONGEST_LABEL).contains(&label.len())
            && label.bytes().all(inner)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    name.len() <= LONGEST_NAME && name.contains('.') && name.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origin::PlatformOrigin;

    #[test]
    fn only_names_that_are_served_may_have_a_certificate() {
        let origin: PlatformOrigin = "https://play.example:8443".parse().unwrap();
        let catalogue = Catalogue::new(origin, "https://games.example".parse().unwrap());
        for (name, expected) in [
            ("play.example", true),
            ("auth.play.example", true),
            ("nobody.play.example", false),
            ("dev-nobody.play.example", false),
            ("pane-1--dev-nobody.play.example", false),
            ("x.auth.play.example", false),
            ("AUTH.play.example", false),
            ("play.example.", false),
            (".play.example", false),
            ("-.play.example", false),
            ("play.example:8443", false),
            ("*.play.example", false),
            ("notplay.example", false),
            ("evil.example", false),
            ("example", false),
            ("", false),
        ] {
            let may = may_have_certificate(name, &catalogue);
            assert_eq!(may, expected, "{name}");
        }
        let long = format!("{}.play.example", "a".repeat(64));
        assert!(!may_have_certificate(&long, &catalogue));
    }
}
