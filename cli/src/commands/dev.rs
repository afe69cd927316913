//! `platform dev`: a dev server for any game. It responds on the paths that the runtime requests on
//! a developer's machine, and serves a folder or stands before another dev server.
//!
//! | module | contents |
//! |---|---|
//! | [`listen`] | the sockets |
//! | [`server`] | which part responds to a request |
//! | [`own_page`] | whose requests are refused |
//! | [`players`], [`runtime_copy`] | the runtime, and tokens of test players |
//! | [`files`], [`reload`] | a folder |
//! | [`upstream`], [`backend`], [`forward`] | other servers |
//! | [`program`], [`ports`] | the command that is started |
//! | [`block`], [`problem`] | what is printed, and refusals |

mod backend;
mod block;
mod files;
mod forward;
mod listen;
mod own_page;
mod players;
mod ports;
mod problem;
mod program;
mod reload;
mod runtime_copy;
mod server;
mod upstream;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use platform_protocol::names::Environment;
use platform_protocol::paths::JWKS;
use tokio::sync::watch;

use self::backend::Backend;
use self::block::{Block, Served};
use self::files::Files;
use self::forward::{Address, Connections};
use self::players::Players;
use self::program::{Group, Program};
use self::reload::Reload;
use self::runtime_copy::Runtime;
use self::server::{Front, Server};
use self::upstream::Upstream;
use super::Context;
use crate::archive::INDEX;
use crate::args::DevOptions;
use crate::browser;
use crate::clock::pause;
use crate::failure::Failure;
use crate::settings::Settings;

/// A server that was started prints its own address when it responds; ours has to be below it.
const ITS_OWN_LINES: Duration = Duration::from_millis(300);

/// Serves until Ctrl-C, or until the command ends.
pub(super) async fn run(context: &Context<'_>, options: &DevOptions) -> Result<(), Failure> {
    let mut stop = Stop::listen()?;
    let settings = context.settings_of(options.folder.as_deref())?;
    let slug = settings.project()?;
    let session = context.session(&settings)?;
    let connections = forward::connections();
    let to = options.to.as_deref().map(|to| address("--to", to));
    let to = to.transpose()?;
    let backend = backend_of(options, &connections, &settings)?;
    let served = match (folder_of(options, &settings)?, to) {
        (Some(folder), _) => Served::Folder(folder, !options.no_reload),
        (None, Some(to)) => Served::Server(to, None),
        (None, None) => Served::Unknown,
    };
    let (listeners, port) = listen::listen(options.host, options.port).await?;
    refuse_itself(port, &served, backend.as_ref())?;

    let variables = variables(&settings, slug);
    let block = Block {
        origin: settings.origin.clone(),
        slug: slug.to_owned(),
        port,
        host: options.host,
        username: session.known_username(),
        backend: backend
            .as_ref()
            .map(|backend| (backend.paths(), backend.address().clone())),
        variables: match &backend {
            Some(_) if options.command.is_empty() => variables.clone(),
            _ => Vec::new(),
        },
    };
    let (found, known) = watch::channel(served.server().cloned());
    let front = match &served {
        Served::Folder(folder, reloads) => {
            let reload = reloads.then(|| Reload::watch(folder));
            let origin = settings.origin.clone();
            Front::Folder(Files::new(folder.clone(), origin, reload))
        }
        _ => {
            let origin = settings.origin.clone();
            Front::Server(Upstream::new(connections.clone(), known, origin))
        }
    };
    let runtime = Runtime::new(context.environment, session.http(), slug);
    let players = Players::new(session, slug, runtime);
    let server = Arc::new(Server::new(players, backend, front, port));
    for listener in listeners {
        tokio::spawn(Arc::clone(&server).serve(listener));
    }

    let given = served.server().map(Address::port);
    let given = given.or(context.environment.port);
    let given = given.or_else(|| listen::free_port_after(port));
    let mut program = start(&options.command, variables, given)?;
    let running = program
        .as_ref()
        .map(|program| (program.group(), program.shown().to_owned()));
    let introduced = async {
        let served = settle(served, running, given, &connections, &found).await;
        block.print(&served)?;
        if options.open {
            browser::open(&block.address());
        }
        block.warn(&connections, &served).await;
        std::future::pending().await
    };
    let outcome = tokio::select! {
        () = stop.asked() => Ok(()),
        ended = ended(program.as_mut()) => ended,
        failed = introduced => failed,
    };
    if let Some(program) = program {
        // A second signal ends it at once.
        tokio::select! {
            () = program.end() => {}
            () = stop.asked() => {}
        }
    }
    outcome
}

/// Waits until the other server listens, if there is one, and finds its address.
async fn settle(
    served: Served,
    running: Option<(Group, String)>,
    given: Option<u16>,
    connections: &Connections,
    found: &watch::Sender<Option<Address>>,
) -> Served {
    let Some((group, shown)) = running else {
        return served;
    };
    let address = match served {
        Served::Folder(..) => return served,
        Served::Server(to, _) => {
            ports::wait_for(connections, &to).await;
            to
        }
        Served::Unknown => ports::find(connections, group, given.unwrap_or_default()).await,
    };
    found.send_replace(Some(address.clone()));
    pause(ITS_OWN_LINES).await;
    Served::Server(address, Some(shown))
}

/// Waits for the end of the command, if there is one.
async fn ended(program: Option<&mut Program>) -> Result<(), Failure> {
    match program {
        Some(program) => program.ended().await,
        None => std::future::pending().await,
    }
}

/// Starts the command, if there is one, with the variables of a backend and its port.
fn start(
    command: &[OsString],
    mut variables: Vec<(&'static str, String)>,
    port: Option<u16>,
) -> Result<Option<Program>, Failure> {
    if command.is_empty() {
        return Ok(None);
    }
    variables.extend(port.map(|port| ("PORT", port.to_string())));
    Program::start(command, &variables).map(Some)
}

/// The variables with which a backend verifies the players of the dev environment.
fn variables(settings: &Settings, slug: &str) -> Vec<(&'static str, String)> {
    let issuer = settings.origin.auth_url();
    let audience = format!("game:{}", Environment::Dev.label(slug));
    let key_set = format!("{issuer}{JWKS}");
    vec![
        ("AUTH_ISSUER", issuer),
        ("AUTH_AUDIENCE", audience),
        ("AUTH_JWKS_URL", key_set),
    ]
}

/// The folder to serve, without links in its path; none if another server does.
fn folder_of(options: &DevOptions, settings: &Settings) -> Result<Option<PathBuf>, Failure> {
    let named = options.folder.as_deref();
    if named.is_none() && (options.to.is_some() || !options.command.is_empty()) {
        return Ok(None);
    }
    let dist = settings.dist(named)?;
    let here = Path::new(".");
    let folder = if named.is_some() || dist.join(INDEX).is_file() {
        &dist
    } else if here.join(INDEX).is_file() {
        here
    } else {
        return Err(Failure::failed(format!(
            "Neither {} nor this folder has an {INDEX}: build the game, name another folder, or \
             start its own dev server, as in `platform dev -- npm run dev`.",
            dist.display()
        )));
    };
    if !options.command.is_empty() {
        // The command may be about to make it; what cannot be made is reported below.
        let _ = std::fs::create_dir_all(folder);
    }
    let real = folder.canonicalize().ok().filter(|real| real.is_dir());
    real.map(Some).ok_or_else(|| {
        Failure::failed(format!(
            "There is no folder {}: build the game, or name another folder.",
            folder.display()
        ))
    })
}

fn backend_of(
    options: &DevOptions,
    connections: &Connections,
    settings: &Settings,
) -> Result<Option<Backend>, Failure> {
    let Some(backend) = &options.backend else {
        return Ok(None);
    };
    let address = address("--backend", backend)?;
    let origin = settings.origin.clone();
    Backend::new(connections.clone(), address, &options.paths, origin).map(Some)
}

fn address(option: &str, text: &str) -> Result<Address, Failure> {
    text.parse()
        .map_err(|advice| Failure::usage(format!("{option}: {advice}")))
}

/// Refuses addresses that lead to this program itself.
fn refuse_itself(port: u16, served: &Served, backend: Option<&Backend>) -> Result<(), Failure> {
    let backend = backend.map(Backend::address);
    let mut others = served.server().into_iter().chain(backend);
    match others.find(|other| other.is_local() && other.port() == port) {
        Some(other) => Err(Failure::usage(format!(
            "{other} is the address of `platform dev` itself: name another one with --port."
        ))),
        None => Ok(()),
    }
}

/// The signals that end the program.
#[cfg(unix)]
struct Stop([tokio::signal::unix::Signal; 3]);

#[cfg(unix)]
impl Stop {
    fn listen() -> Result<Self, Failure> {
        use tokio::signal::unix::{SignalKind, signal};
        let listen = |kind| signal(kind).map_err(|error| no_signals(&error));
        Ok(Self([
            listen(SignalKind::interrupt())?,
            listen(SignalKind::terminate())?,
            listen(SignalKind::hangup())?,
        ]))
    }

    /// Waits for the next of them.
    async fn asked(&mut self) {
        let [interrupt, terminate, hangup] = &mut self.0;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}

/// Ctrl-C, which ends the program.
#[cfg(windows)]
struct Stop(tokio::signal::windows::CtrlC);

#[cfg(windows)]
impl Stop {
    fn listen() -> Result<Self, Failure> {
        tokio::signal::windows::ctrl_c()
            .map(Self)
            .map_err(|error| no_signals(&error))
    }

    /// Waits for the next one.
    async fn asked(&mut self) {
        self.0.recv().await;
    }
}

fn no_signals(error: &std::io::Error) -> Failure {
    Failure::failed(format!("The program cannot listen for Ctrl-C: {error}."))
}
