//! The existing games, in memory, since every request needs them and must not wait for the store. A
//! change of a project on this node refreshes that project; every half minute all games are read,
//! because of changes by other nodes and the operator's commands.

mod domains;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use arc_swap::ArcSwap;
use axum::http::HeaderValue;
use platform_protocol::names::{CONSOLE_AUDIENCE, Environment};
use platform_protocol::preview;
use tokio::sync::Mutex;
use uuid::Uuid;

use crate::clock::Millis;
use crate::domain::errors::chain;
use crate::domain::listing::Listing;
use crate::domain::preview::HostedPreview;
use crate::domain::project::{
    BackendSettings, Deployment, EnvironmentRecord, Frames, HostedEnvironment, Inspection,
};
use crate::games::covers::measure_kept;
use crate::games::files::FileStore;
use crate::games::immutable_files::Lasting;
use crate::games::inspection::inspect_kept;
use crate::origin::PlatformOrigin;
use crate::platform::single_flight::Turns;
use crate::store::{Store, StoreError};
use crate::web::cors::AllowedOrigin;

/// One environment of one project, or a preview, with its own address.
#[derive(Clone, Debug)]
pub struct Game {
    /// The project.
    pub slug: String,
    /// The environment. Of a preview, it is the one whose settings, backend and audience it has.
    pub environment: Environment,
    /// The preview that it is, if it is one.
    pub preview: Option<Arc<ShownPreview>>,
    /// The audience of its tokens.
    pub audience: Arc<str>,
    /// `http://<label>.<games>`
    pub origin: String,
    /// Whether its address shares no site with the auth service, whose cookie then never comes from
    /// its pages: it has a session of its own.
    pub is_apart: bool,
    /// What is deployed there now. Of a preview, without its files: a project has many previews, and few
    /// of them are opened.
    pub deployment: Option<Arc<Deployment>>,
    /// The files that never change under their names.
    pub lasting: Arc<Lasting>,
    /// Whether its pages are cross-origin isolated.
    pub isolated: bool,
    /// Whether the runtime puts a trace into the requests of its pages.
    pub traced: bool,
    /// Whether it is taken down: its project was disabled, deleted or removed, or its owner is
    /// suspended.
    pub taken_down: bool,
    /// The origin of the canonical address of its environment, if it is another one.
    pub canonical: Option<Arc<str>>,
    /// The last time from which browsers must delete what it had stored.
    pub forget_from: Option<Millis>,
    /// The policy about who may show its pages in a frame; `None` if everyone may.
    pub framing: Option<HeaderValue>,
    /// How its project is listed on the public page.
    pub listing: Arc<Listing>,
    /// The backend that its owner has set.
    pub backend: Option<BackendSettings>,
    /// Its pages as callers that request tokens; `None` if there are no pages.
    pub caller: Option<AllowedOrigin>,
}

/// A preview that is shown.
#[derive(Debug)]
pub struct ShownPreview {
    /// Its name.
    pub name: String,
    /// The beginning of the day on which it was last used, as far as this node knows.
    pub used_at: AtomicI64,
}

/// The games at one moment, by host label.
type Games = HashMap<Arc<str>, Arc<Game>>;

/// The existing games.
#[derive(Debug)]
pub struct Catalogue {
    origin: PlatformOrigin,
    /// The origin below which games have their addresses.
    games_origin: PlatformOrigin,
    /// The platform's own pages, by origin.
    console: (String, Option<AllowedOrigin>),
    games: ArcSwap<Games>,
    /// The games at domains of their own, by domain.
    domains: ArcSwap<Games>,
    /// The number of times that they were replaced.
    version: AtomicU64,
    /// Held from reading the store until the games are replaced, so that an older state does not
    /// replace a newer one.
    reading: Mutex<()>,
    /// Lets concurrent callers that read all games share one read.
    refreshing: Turns,
}

impl Catalogue {
    /// Creates an empty catalogue of games below `games_origin`; [`Catalogue::refresh_all`] reads
    /// them.
    #[must_use]
    pub fn new(origin: PlatformOrigin, games_origin: PlatformOrigin) -> Self {
        let console = origin.to_string();
        let caller = caller(&console, CONSOLE_AUDIENCE, false);
        Self {
            origin,
            games_origin,
            console: (console, caller),
            games: ArcSwap::default(),
            domains: ArcSwap::default(),
            version: AtomicU64::default(),
            reading: Mutex::default(),
            refreshing: Turns::default(),
        }
    }

    /// Returns the origins of the platform, and of games.
    #[must_use]
    pub const fn origins(&self) -> (&PlatformOrigin, &PlatformOrigin) {
        (&self.origin, &self.games_origin)
    }

    /// Whether games have their addresses on a site of their own.
    #[must_use]
    pub fn is_apart(&self) -> bool {
        !self.origin.holds(self.games_origin.host())
    }

    /// Reads all games from the store, once for all concurrent callers; each finds what it wrote
    /// before. A deployment is only read once, since it never changes.
    ///
    /// # Errors
    /// Errors of the store; the games then stay unchanged.
    pub async fn refresh_all(
        &self,
        store: &dyn Store,
        files: &FileStore,
    ) -> Result<(), StoreError> {
        let read = async || self.read(store, files, None).await;
        self.refreshing.share(read).await
    }

    /// Reads the games of one project, after a change of it.
    ///
    /// # Errors
    /// Errors of the store; the games then stay unchanged.
    pub async fn refresh(
        &self,
        store: &dyn Store,
        files: &FileStore,
        slug: &str,
    ) -> Result<(), StoreError> {
        self.read(store, files, Some(slug)).await
    }

    async fn read(
        &self,
        store: &dyn Store,
        files: &FileStore,
        slug: Option<&str>,
    ) -> Result<(), StoreError> {
        let _reading = self.reading.lock().await;
        let known = self.games.load_full();
        let mut games = match slug {
            Some(slug) => {
                let mut others = Games::clone(&known);
                others.retain(|_, game| game.slug != slug);
                others
            }
            None => Games::new(),
        };
        let mut inspected = Vec::new();
        let mut of_projects: HashMap<String, Vec<HostedPreview>> = HashMap::new();
        for one in store.list_hosted_previews(slug).await? {
            of_projects.entry(one.slug.clone()).or_default().push(one);
        }
        let listings = store.list_listings(slug).await?;
        let listings: HashMap<String, Arc<Listing>> = listings
            .into_iter()
            .map(|(slug, listing)| (slug, Arc::new(listing)))
            .collect();
        let domains = store.list_hosted_domains(slug).await?;
        let mut previews = Vec::new();
        for hosted in store.list_hosted(slug).await? {
            if hosted.record.environment == Environment::Dev
                && let Some(own) = of_projects.remove(&hosted.record.slug)
            {
                previews.push((hosted.clone(), own));
            }
            let label = hosted.record.environment.label(&hosted.record.slug);
            let known = known.get(&*label).and_then(|game| game.shown());
            let address = format!("{}/", self.games_origin.sub_domain(&label));
            let mut shown = match (hosted.record.deployment, known) {
                (Some(id), Some(known)) if known.deployment.id == id => Some(known),
                (Some(id), _) => {
                    let shown = read(store, &hosted.record, id).await?;
                    inspect_older(shown, address.clone(), files, &mut inspected).await
                }
                (None, _) => None,
            };
            let listing = listings.get(&hosted.record.slug).cloned();
            let listing = listing.unwrap_or_default();
            // Lists show production alone.
            if hosted.record.environment == Environment::Prod
                && let Some(shown) = &mut shown
            {
                let cover = (&*address, listing.own.cover.as_deref());
                if let Some(found) = measure_kept(&shown.deployment, cover, files).await {
                    Arc::make_mut(&mut shown.deployment).inspection = Some(found);
                }
            }
            let game = Game {
                listing,
                ..self.game(&label, hosted, shown)
            };
            games.insert(label.into(), Arc::new(game));
        }
        for (dev, own) in previews {
            for one in own {
                let label = preview::label(&one.name, &one.slug);
                let before = known.get(&*label);
                let game = self.preview(store, &label, dev.clone(), one, before);
                if let Some(game) = game.await? {
                    // The slug of an old project may look like a preview. It was there first.
                    games.entry(label.into()).or_insert_with(|| Arc::new(game));
                }
            }
        }
        keep_inspections(store, inspected).await;
        let domains = self.with_domains(&mut games, &domains, slug);
        self.games.store(Arc::new(games));
        self.domains.store(Arc::new(domains));
        self.version.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// Creates the preview at `label`, with the settings of its environment.
    async fn preview(
        &self,
        store: &dyn Store,
        label: &str,
        mut dev: HostedEnvironment,
        one: HostedPreview,
        before: Option<&Arc<Game>>,
    ) -> Result<Option<Game>, StoreError> {
        let known = before.and_then(|game| game.deployment.clone());
        let deployment = match known.filter(|known| known.id == one.deployment) {
            Some(known) => Some(known),
            None => store
                .describe_deployment(one.deployment)
                .await?
                .map(Arc::new),
        };
        // Without it, the preview was removed or replaced a moment ago.
        let shown = deployment.map(|deployment| Shown {
            deployment,
            // The next deployment of a preview may change any file.
            lasting: Arc::default(),
        });
        dev.record.deployment = Some(one.deployment);
        let preview = ShownPreview {
            name: one.name,
            used_at: AtomicI64::new(one.used_at),
        };
        Ok(shown.map(|shown| Game {
            preview: Some(Arc::new(preview)),
            ..self.game(label, dev, Some(shown))
        }))
    }

    /// Creates the game at `label`, which shows `shown`.
    fn game(
        &self,
        label: &str,
        HostedEnvironment { record, standing }: HostedEnvironment,
        shown: Option<Shown>,
    ) -> Game {
        let (deployment, lasting) = match shown {
            Some(shown) => (Some(shown.deployment), shown.lasting),
            None => (None, Arc::default()),
        };
        let origin = self.games_origin.sub_domain(label);
        let audience: Arc<str> = record.environment.audience(&record.slug).into();
        let taken_down = standing.is_down();
        // Pages exist only after a deployment, and pages that do not exist need no tokens.
        let asks = deployment.is_some() || taken_down;
        Game {
            caller: asks
                .then(|| caller(&origin, &audience, taken_down))
                .flatten(),
            environment: record.environment,
            preview: None,
            audience,
            origin,
            is_apart: self.is_apart(),
            deployment,
            lasting,
            isolated: record.isolated,
            traced: record.traced,
            taken_down,
            canonical: None,
            forget_from: standing.forgets_from(),
            framing: framing(&record.frames, &self.origin),
            listing: Arc::default(),
            backend: record.backend,
            slug: record.slug,
        }
    }

    /// Returns the game with this host label, in lower case.
    #[must_use]
    pub fn find(&self, label: &str) -> Option<Arc<Game>> {
        self.games.load().get(label).cloned()
    }

    /// Returns the game with this origin, exactly as browsers write it, whether it has a deployment
    /// or not.
    #[must_use]
    pub fn game_at(&self, origin: &str) -> Option<Arc<Game>> {
        let (_, host) = origin.split_once("://")?;
        let (label, _) = host.split_once('.')?;
        let is_at = |game: &Arc<Game>| game.origin == origin;
        let name = host.split(':').next().unwrap_or_default();
        let labelled = self.find(label).filter(is_at);
        labelled.or_else(|| self.at_domain(name).filter(is_at))
    }

    /// Returns the caller with this origin, exactly as browsers write it.
    #[must_use]
    pub fn caller(&self, origin: &str) -> Option<AllowedOrigin> {
        if origin == self.console.0 {
            return self.console.1.clone();
        }
        // The auth service's cookie never comes from the pages of a game that is apart.
        let game = self.game_at(origin).filter(|game| !game.is_apart)?;
        game.caller.clone()
    }

    /// Returns every environment of every game, in any order.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<Game>> {
        let games = self.games.load();
        let games = games.values().filter(|game| game.preview.is_none());
        games.cloned().collect()
    }

    /// Returns a number that grows whenever the games change, for those who keep what they derive
    /// from them. Read it before the games.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Returns every available game that is listed on the public page, in any order.
    #[must_use]
    pub fn listed(&self) -> Vec<Arc<Game>> {
        let games = self.games.load();
        let games = games.values().filter(|game| game.is_listed());
        games.cloned().collect()
    }

    /// Returns every available game, by address.
    #[must_use]
    pub fn playable(&self) -> Vec<Arc<Game>> {
        let games = self.games.load();
        let mut games: Vec<Arc<Game>> = games
            .values()
            .filter(|game| game.is_playable())
            .cloned()
            .collect();
        games.sort_by(|one, other| one.slug.cmp(&other.slug));
        games
    }
}

/// Returns the framing policy of a game's pages. Its parts are visible ASCII.
fn framing(frames: &Frames, platform: &PlatformOrigin) -> Option<HeaderValue> {
    let directive = frames.directive(&platform.to_string())?;
    HeaderValue::try_from(directive).ok()
}

/// The current deployment of a game.
struct Shown {
    deployment: Arc<Deployment>,
    /// The files that never change.
    lasting: Arc<Lasting>,
}

impl Game {
    /// Whether players can play it: it is deployed to production, and not taken down.
    #[must_use]
    pub fn is_playable(&self) -> bool {
        self.environment == Environment::Prod && self.deployment.is_some() && !self.taken_down
    }

    /// Whether the public page lists it.
    #[must_use]
    pub fn is_listed(&self) -> bool {
        self.is_playable() && self.listing.listed_at.is_some()
    }

    fn shown(&self) -> Option<Shown> {
        Some(Shown {
            deployment: self.deployment.clone()?,
            lasting: Arc::clone(&self.lasting),
        })
    }
}

/// Reads a deployment, and which of its files never change. A deployment that was swept meanwhile
/// is no longer the current one.
async fn read(
    store: &dyn Store,
    record: &EnvironmentRecord,
    id: Uuid,
) -> Result<Option<Shown>, StoreError> {
    let Some(deployment) = store.find_deployment(id).await? else {
        return Ok(None);
    };
    let changed = store.list_changed_paths(&record.slug, record.environment);
    let changed = changed.await?.into_iter().collect();
    let lasting = Lasting::of(deployment.files.keys(), &changed);
    Ok(Some(Shown {
        deployment: Arc::new(deployment),
        lasting: Arc::new(lasting),
    }))
}

/// Inspects a deployment of an older version of the program, which has no inspection, and adds the
/// result to `inspected`, which is written to the store.
async fn inspect_older(
    shown: Option<Shown>,
    address: String,
    files: &FileStore,
    inspected: &mut Vec<(Uuid, Inspection)>,
) -> Option<Shown> {
    let mut shown = shown?;
    if shown.deployment.inspection.is_some() {
        return Some(shown);
    }
    match inspect_kept(&shown.deployment, address, files).await {
        Ok(found) => {
            inspected.push((shown.deployment.id, found.clone()));
            let deployment = Arc::make_mut(&mut shown.deployment);
            deployment.inspection = Some(found);
        }
        // Until the next start, the slug is the game's title, and there are no warnings.
        Err(error) => {
            let error = chain(&error);
            tracing::error!(
                slug = shown.deployment.slug,
                error,
                "the page cannot be read"
            );
        }
    }
    Some(shown)
}

/// Writes the inspections to the store in one write. If this fails, the next start inspects the
/// deployments again.
async fn keep_inspections(store: &dyn Store, inspected: Vec<(Uuid, Inspection)>) {
    if inspected.is_empty() {
        return;
    }
    if let Err(error) = store.set_inspections(inspected).await {
        let error = chain(&error);
        tracing::error!(error, "inspections of deployments could not be stored");
    }
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
