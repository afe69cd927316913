//! Creates the states of all slices.

use std::sync::Arc;

use crate::admin::AdminState;
use crate::app::state::{AppState, Parts};
use crate::auth::demo_provider::DemoProvider;
use crate::auth::ended_sessions::Endings;
use crate::auth::game_tokens::GameTokens;
use crate::auth::keys::KeyRing;
use crate::auth::suspensions::Suspensions;
use crate::auth::{AuthLimits, AuthState};
use crate::console::ConsoleState;
use crate::console::command_line::CommandLine;
use crate::games::GamesState;
use crate::games::catalogue::Catalogue;
use crate::games::files::FileStore;
use crate::games::live::Live;
use crate::hosting::HostingState;
use crate::hosting::backends::Backends;
use crate::hosting::file_cache::Contents;
use crate::hosting::runtime::RuntimeFiles;
use crate::logs::grouping::sources::Sources;
use crate::logs::streams::LogStreams;
use crate::logs::{LogLimits, LogsState};
use crate::platform::Platform;
use crate::platform::shared_limits::SharedLimits;
use crate::players::PlayersState;
use crate::players::counting::Counting;
use crate::players::recording::Recording;
use crate::projects::ProjectsState;
use crate::projects::deploy::{Deployments, UploadQueue};
use crate::projects::domains::records::Records;
use crate::projects::settings_limits::SettingsLimits;
use platform_openid::Providers;

/// Creates the states of all slices.
pub(super) fn assemble(
    platform: &Arc<Platform>,
    (files, live, uploads): (Arc<FileStore>, Live, UploadQueue),
    (keys, providers, demo_provider): (Arc<KeyRing>, Providers, Option<Arc<DemoProvider>>),
    (backends, runtime): (Backends, RuntimeFiles),
    (counting, streams): (Counting, LogStreams),
    command_line: CommandLine,
) -> AppState {
    let (clock, config) = (&platform.clock, &platform.config);
    let contents = Contents::new(Arc::clone(&files), config.file_cache_bytes());
    let games = Arc::new(GamesState {
        platform: Arc::clone(platform),
        catalogue: Catalogue::new(platform.origin.clone(), platform.games_origin.clone()),
        files,
        presence: live.presence,
    });
    if let Some(hints) = live.hints {
        platform.nodes.hurry_by(hints);
    }
    let limits = SharedLimits::new(live.counter, platform.nodes.live());
    let limits = limits.counted_by(&platform.metrics);
    let tokens = game_tokens(platform, &keys);
    let auth = Arc::new(AuthState {
        platform: Arc::clone(platform),
        games: Arc::clone(&games),
        keys,
        providers,
        demo_provider,
        tokens,
        suspensions: Suspensions::default(),
        endings: Endings::default(),
        limits: AuthLimits::new(config, clock, &limits),
    });
    let hosting = Arc::new(HostingState {
        platform: Arc::clone(platform),
        games: Arc::clone(&games),
        contents,
        backends,
        runtime,
    });
    let deployments = Deployments::new(Arc::clone(platform), Arc::clone(&hosting), uploads);
    let projects = Arc::new(ProjectsState {
        platform: Arc::clone(platform),
        games: Arc::clone(&games),
        auth: Arc::clone(&auth),
        hosting: Arc::clone(&hosting),
        deployments: Arc::new(deployments),
        records: Records::new(config.resolver.clone()),
        settings_limits: SettingsLimits::new(clock, &limits),
    });
    let players = Arc::new(PlayersState {
        platform: Arc::clone(platform),
        games: Arc::clone(&games),
        auth: Arc::clone(&auth),
        hosting: Arc::clone(&hosting),
        counting,
        recording: Recording::default(),
    });
    let logs = Arc::new(LogsState {
        platform: Arc::clone(platform),
        auth: Arc::clone(&auth),
        games: Arc::clone(&games),
        projects: Arc::clone(&projects),
        limits: LogLimits::new(config, clock, &limits),
        streams,
        sources: Sources::default(),
    });
    let admin = Arc::new(AdminState {
        platform: Arc::clone(platform),
        games: Arc::clone(&games),
        auth: Arc::clone(&auth),
        hosting: Arc::clone(&hosting),
        projects: Arc::clone(&projects),
    });
    let console = ConsoleState::new(Arc::clone(platform), Arc::clone(&players), command_line);
    AppState::new(Parts {
        platform: Arc::clone(platform),
        games,
        auth,
        hosting,
        projects,
        players,
        logs,
        admin,
        console: Arc::new(console),
    })
}

fn game_tokens(platform: &Platform, keys: &Arc<KeyRing>) -> GameTokens {
    GameTokens::new(
        Arc::clone(keys),
        Arc::clone(&platform.clock),
        platform.auth_url.clone(),
        platform.config.verified_tokens,
    )
}
