//! The addresses of panes: on the Build page a developer plays a project's dev environment as several
//! test players at the same time. Each pane has an origin of its own, so that browsers keep the
//! storage and cookies of the players apart.
//!
//! `pane-<number>--dev-<slug>` is no other address: a new slug contains no `--`, and since no slug
//! begins with `dev-`, it is no preview of a project, either.

use std::sync::Arc;

use axum::http::HeaderValue;
use platform_protocol::names::Environment;

use crate::games::catalogue::Game;
use crate::origin::PlatformOrigin;

/// The maximum number of panes side by side. They are numbered from 1.
pub const PANES: u8 = 4;

const PREFIX: &str = "pane-";
const BETWEEN: &str = "--";

/// A pane's address.
#[derive(Clone, Debug)]
pub struct Pane {
    /// Its host label.
    pub label: Arc<str>,
    /// `http://<label>.<platform>`
    pub origin: String,
    /// The dev environment that it shows. Only the console may show its pages in a frame.
    pub game: Arc<Game>,
}

impl Pane {
    /// Returns the pane with this host label, in which `game` is shown; `origins` are those of the
    /// platform and of games.
    #[must_use]
    pub fn new(label: &str, game: &Game, origins: (&PlatformOrigin, &PlatformOrigin)) -> Self {
        let (platform, games) = origins;
        let framing = HeaderValue::try_from(format!("frame-ancestors {platform}"));
        let game = Game {
            framing: framing.ok(),
            // The auth service issues no tokens here.
            caller: None,
            // The developer decides who plays in it.
            is_apart: false,
            canonical: None,
            ..game.clone()
        };
        Self {
            label: label.into(),
            origin: games.sub_domain(label),
            game: Arc::new(game),
        }
    }
}

/// Returns the host label of a project's pane.
#[must_use]
pub fn label(number: u8, slug: &str) -> String {
    let dev = Environment::Dev.label(slug);
    format!("{PREFIX}{number}{BETWEEN}{dev}")
}

/// Returns the origins of all panes of a project.
#[must_use]
pub fn origins(slug: &str, games: &PlatformOrigin) -> Vec<String> {
    let numbers = 1..=PANES;
    numbers
        .map(|number| games.sub_domain(&label(number, slug)))
        .collect()
}

/// Returns the label of the dev environment that the pane with this label shows.
pub(super) fn shown_in(label: &str) -> Option<&str> {
    let rest = label.strip_prefix(PREFIX)?;
    let (number, dev) = rest.split_once(BETWEEN)?;
    let is_known = (1..=PANES).any(|known| number == known.to_string());
    (is_known && dev.starts_with(Environment::Dev.prefix())).then_some(dev)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_names_a_pane_of_a_dev_environment() {
        assert_eq!(label(2, "demo"), "pane-2--dev-demo");
        for (label, expected) in [
            ("pane-1--dev-demo", Some("dev-demo")),
            ("pane-4--dev-a-b", Some("dev-a-b")),
            ("pane-0--dev-demo", None),
            ("pane-5--dev-demo", None),
            ("pane-01--dev-demo", None),
            ("pane-+1--dev-demo", None),
            ("pane---dev-demo", None),
            ("pane-1--demo", None),
            ("pane-1-dev-demo", None),
            ("pane-1", None),
            ("dev-demo", None),
        ] {
            assert_eq!(shown_in(label), expected, "{label}");
        }
    }

    #[test]
    fn every_label_fits_a_host_name() {
        assert!(label(PANES, &"a".repeat(40)).len() <= 63);
    }
}
