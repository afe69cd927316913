//! The games at domains of their own.

use std::sync::Arc;

use platform_protocol::names::Environment;

use super::{Catalogue, Game, Games, caller};
use crate::domain::custom_domain::HostedDomain;

impl Catalogue {
    /// Returns the game at this domain of its own, in lower case.
    #[must_use]
    pub fn at_domain(&self, name: &str) -> Option<Arc<Game>> {
        self.domains.load().get(name).cloned()
    }

    /// Whether a game is at a domain of its own, and not at an address of the platform.
    #[must_use]
    pub fn is_at_domain(&self, game: &Game) -> bool {
        let host = game.origin.split_once("://").map_or("", |(_, host)| host);
        let name = host.split(':').next().unwrap_or_default();
        self.at_domain(name).is_some()
    }

    /// Returns an environment at each of its domains.
    #[must_use]
    pub fn at_domains_of(&self, slug: &str, environment: Environment) -> Vec<Arc<Game>> {
        let domains = self.domains.load();
        let own = domains.values();
        let own = own.filter(|game| game.slug == slug && game.environment == environment);
        own.cloned().collect()
    }

    /// Returns the games at domains, those of the project `slug` or of all projects from `hosted`.
    /// The games of `games` learn which of their addresses is canonical.
    pub(super) fn with_domains(
        &self,
        games: &mut Games,
        hosted: &[HostedDomain],
        slug: Option<&str>,
    ) -> Games {
        let mut domains = match slug {
            Some(slug) => {
                let mut others = Games::clone(&self.domains.load());
                others.retain(|_, game| game.slug != slug);
                others
            }
            None => Games::new(),
        };
        let label = |one: &HostedDomain| one.environment.label(&one.slug);
        for one in hosted.iter().filter(|one| one.leads) {
            if let Some(game) = games.get_mut(&*label(one)) {
                let canonical = self.games_origin.elsewhere(one.name.as_str());
                Arc::make_mut(game).canonical = Some(canonical.into());
            }
        }
        for one in hosted {
            if let Some(game) = games.get(&*label(one)) {
                let name = one.name.as_str();
                domains.insert(name.into(), Arc::new(self.at(name, game)));
            }
        }
        domains
    }

    /// Creates the game at a domain of its own, whose other address is that of `game`.
    fn at(&self, domain: &str, game: &Game) -> Game {
        let origin = self.games_origin.elsewhere(domain);
        let canonical = game.canonical.clone();
        let asks = game.caller.as_ref();
        Game {
            caller: asks.and_then(|_| caller(&origin, &game.audience, game.taken_down)),
            canonical: canonical.filter(|canonical| **canonical != *origin),
            // Even next to the auth service it is a site of the project's people.
            is_apart: true,
            origin,
            ..game.clone()
        }
    }
}
