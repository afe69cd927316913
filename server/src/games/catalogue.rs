//! Which games there are, in memory: every request asks, so none may wait for
//! the store. The table is made anew after a deploy on this node, and every
//! half minute for those on others.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use axum::http::HeaderValue;
use platform_protocol::names::{CONSOLE_AUDIENCE, Environment};
use uuid::Uuid;

use crate::clock::Millis;
use crate::domain::project::{Deployment, EnvironmentRecord, Frames};
use crate::games::lasting::Lasting;
use crate::http::cors::AllowedOrigin;
use crate::origin::PlatformOrigin;
use crate::platform::sharing::Turns;
use crate::store::{Store, StoreError};

/// One environment of one project, at an address of its own.
#[derive(Clone, Debug)]
pub struct Game {
    /// The project.
    pub slug: String,
    /// Which of its environments.
    pub environment: Environment,
    /// The audience of its tokens.
    pub audience: Arc<str>,
    /// `http://<label>.<platform>`
    pub origin: String,
    /// What is deployed there now.
    pub deployment: Option<Arc<Deployment>>,
    /// Which of its files never change under their names.
    pub lasting: Arc<Lasting>,
    /// Whether its pages are isolated from those of other origins.
    pub isolated: bool,
    /// Whether it is not shown: its project was disabled, deleted or removed, or
    /// its owner is suspended.
    pub taken_down: bool,
    /// When browsers were last to forget what it had stored.
    pub forget_from: Option<Millis>,
    /// The policy that says who may show its pages in a frame; none where anyone
    /// may.
    pub framing: Option<HeaderValue>,
}

/// The games at one moment.
#[derive(Debug, Default)]
struct Table {
    by_label: HashMap<String, Arc<Game>>,
    callers: HashMap<String, AllowedOrigin>,
}

/// Which games there are.
#[derive(Debug)]
pub struct Catalogue {
    origin: PlatformOrigin,
    table: ArcSwap<Table>,
    /// Who makes the table: many who changed something share one reading.
    refreshing: Turns,
}

impl Catalogue {
    /// No games yet; [`Catalogue::refresh`] reads them.
    #[must_use]
    pub fn new(origin: PlatformOrigin) -> Self {
        Self {
            origin,
            table: ArcSwap::default(),
            refreshing: Turns::default(),
        }
    }

    /// Reads all games from the store, once for all who ask at one time; each
    /// finds what they wrote before. What was deployed is read only once: a
    /// deployment never changes.
    ///
    /// # Errors
    /// The store's; the table then stays as it was.
    pub async fn refresh(&self, store: &dyn Store) -> Result<(), StoreError> {
        self.refreshing.share(async || self.read(store).await).await
    }

    async fn read(&self, store: &dyn Store) -> Result<(), StoreError> {
        let known = self.table.load_full();
        let mut table = Table::default();
        let console = self.origin.to_string();
        if let Some(caller) = caller(&console, CONSOLE_AUDIENCE, false) {
            table.callers.insert(console, caller);
        }
        let standings: HashMap<_, _> = store.list_standings().await?.into_iter().collect();
        for record in store.list_environments().await? {
            let environment = record.environment;
            let label = environment.label(&record.slug);
            let before = known.by_label.get(&label);
            let before = before.and_then(|game| {
                let deployment = game.deployment.clone()?;
                Some((deployment, Arc::clone(&game.lasting)))
            });
            let (deployment, lasting) = match (record.deployment, before) {
                (Some(id), Some((before, lasting))) if before.id == id => (Some(before), lasting),
                (Some(id), _) => read(store, &record, id).await?,
                (None, _) => (None, Arc::default()),
            };
            let origin = self.origin.sub_domain(&label);
            let audience: Arc<str> = environment.audience(&record.slug).into();
            // A page is there only once something is deployed, and a page
            // that is not there asks for no tokens.
            let standing = standings.get(&record.slug).cloned().unwrap_or_default();
            let taken_down = standing.is_down();
            if (deployment.is_some() || taken_down)
                && let Some(caller) = caller(&origin, &audience, taken_down)
            {
                table.callers.insert(origin.clone(), caller);
            }
            let game = Game {
                slug: record.slug,
                environment,
                audience,
                origin,
                deployment,
                lasting,
                isolated: record.isolated,
                taken_down,
                forget_from: standing.forgets_from(),
                framing: framing(&record.frames, &self.origin),
            };
            table.by_label.insert(label, Arc::new(game));
        }
        self.table.store(Arc::new(table));
        Ok(())
    }

    /// The game at this host label, which is lower case.
    #[must_use]
    pub fn find(&self, label: &str) -> Option<Arc<Game>> {
        self.table.load().by_label.get(label).cloned()
    }

    /// The game at this origin, spelled exactly as browsers write it, whether
    /// something is deployed there or not.
    #[must_use]
    pub fn game_at(&self, origin: &str) -> Option<Arc<Game>> {
        let (_, host) = origin.split_once("://")?;
        let (label, _) = host.split_once('.')?;
        self.find(label).filter(|game| game.origin == origin)
    }

    /// The caller of this origin, spelled exactly as browsers write it.
    #[must_use]
    pub fn caller(&self, origin: &str) -> Option<AllowedOrigin> {
        self.table.load().callers.get(origin).cloned()
    }

    /// Every game that can be played, by address.
    #[must_use]
    pub fn playable(&self) -> Vec<Arc<Game>> {
        let table = self.table.load();
        let mut games: Vec<Arc<Game>> = table
            .by_label
            .values()
            .filter(|game| game.environment == Environment::Prod)
            .filter(|game| game.deployment.is_some() && !game.taken_down)
            .cloned()
            .collect();
        games.sort_by(|one, other| one.slug.cmp(&other.slug));
        games
    }
}

/// The policy of a game's pages. What it is made of is visible ASCII.
fn framing(frames: &Frames, platform: &PlatformOrigin) -> Option<HeaderValue> {
    let directive = frames.directive(&platform.to_string())?;
    HeaderValue::try_from(directive).ok()
}

/// What is deployed, and which of its files never change. One that was swept in
/// between is no longer the current one.
async fn read(
    store: &dyn Store,
    record: &EnvironmentRecord,
    id: Uuid,
) -> Result<(Option<Arc<Deployment>>, Arc<Lasting>), StoreError> {
    let Some(deployment) = store.find_deployment(id).await? else {
        return Ok((None, Arc::default()));
    };
    let changed = store.list_changed_paths(&record.slug, record.environment);
    let changed = changed.await?.into_iter().collect();
    let lasting = Lasting::of(deployment.files.keys(), &changed);
    Ok((Some(Arc::new(deployment)), Arc::new(lasting)))
}

fn caller(origin: &str, audience: &str, taken_down: bool) -> Option<AllowedOrigin> {
    // An origin is visible ASCII, so this is always some.
    let origin = HeaderValue::from_str(origin).ok()?;
    Some(AllowedOrigin {
        origin,
        audience: audience.into(),
        taken_down,
    })
}
