//! The server program: parses arguments, and runs the server or a command.

mod commands;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::{Parser, Subcommand};
use platform_server::app::data_folder::{
    FolderLock, require_no_orphans, require_platform, require_whole,
};
use platform_server::app::service_manager::ServiceManager;
use platform_server::app::sockets::Sockets;
use platform_server::app::start::{StartError, open_store};
use platform_server::app::telemetry;
use platform_server::clock::{Clock, SystemClock};
use platform_server::config::{Config, LogFormat, load, names, show};
use platform_server::domain::errors::chain;
use platform_server::entropy::SystemEntropy;
use platform_server::store::{SchemaPolicy, Store};
use platform_telemetry::Telemetry;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing::Subscriber;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;

use commands::admin::AdminCommand;
use commands::backup::BackupCommand;
use commands::doctor::DoctorCommand;
use commands::events::EventsCommand;
use commands::keys::KeysCommand;
use commands::moving::MoveCommand;
use commands::output;
use commands::player::PlayerCommand;
use commands::project::ProjectCommand;
use commands::ready;
use commands::restore::RestoreCommand;
use commands::setup::SetupCommand;

/// The game platform: auth service, hosting, runtime.
#[derive(Parser)]
#[command(name = "platform-server", version, about)]
struct Arguments {
    /// Where the settings are; the environment wins over it
    #[arg(long, global = true, value_name = "platform.toml")]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve until SIGTERM or SIGINT
    Serve {
        /// Leave the demo game out
        #[arg(long)]
        no_demo: bool,
    },
    #[command(flatten)]
    Operate(OperatorCommand),
}

/// Everything but serving: commands that end with a result.
#[derive(Subcommand)]
enum OperatorCommand {
    /// The signing keys, also beside a running server
    Keys {
        #[command(subcommand)]
        command: KeysCommand,
    },
    /// Players: finding them, who one is, suspending it, ending its sessions,
    /// the guests of an address. A running server follows within a minute
    Player {
        #[command(subcommand)]
        command: PlayerCommand,
    },
    /// The projects: list them, create one, make a deploy token for one, give one to another player
    Project {
        #[command(subcommand)]
        command: ProjectCommand,
    },
    /// Who may administer. A running server follows at once
    Admin {
        #[command(subcommand)]
        command: AdminCommand,
    },
    /// What happened to whom, newest first, and who did it
    Events(EventsCommand),
    /// Write the store and all deployed files into one new file, a tar, also
    /// beside a running server
    Backup(BackupCommand),
    /// Check a backup, and go back to it. The server must be stopped. Existing data is only replaced
    /// with --force, and then kept aside
    Restore(RestoreCommand),
    /// Move everything from the data folder into PostgreSQL and S3, for several nodes. The server
    /// must be stopped; the folder is not changed. If it is interrupted, run it again
    Move(MoveCommand),
    /// Say what is wrong with the platform and what to do: names, proxy, clock, disk, database, Redis,
    /// bucket, sign-in, backups. Also beside a running server; changes no data
    Doctor(DoctorCommand),
    /// Ask the running server, on PLATFORM_OPERATIONS_LISTEN, whether visitors can be sent to it. The
    /// exit code is 0 if they can
    Ready,
    /// Set up a platform on a machine with the Debian package: write its settings for TLS of its own, start
    /// it, and wait for its certificates. As root
    Setup(SetupCommand),
    /// Print the settings in force, secrets hidden
    Config {
        /// Print the documentation of every setting instead (Markdown)
        #[arg(long)]
        docs: bool,
    },
}

/// How long a stopped server waits for work that has no effect any more.
const LEFT_OVER: Duration = Duration::from_secs(1);

/// An error that stops the program: one line for the operator.
type Failure = String;

fn main() -> ExitCode {
    let arguments = Arguments::try_parse().unwrap_or_else(|error| {
        // The message contains arguments, so it is made of those that may be shown.
        let shown = std::env::args_os().map(|argument| output::shown_argument(&argument));
        Arguments::try_parse_from(shown)
            .err()
            .unwrap_or(error)
            .exit()
    });
    match run(arguments) {
        Ok(code) => code,
        Err(failure) => {
            output::tell(&format!("platform-server: {failure}"));
            ExitCode::FAILURE
        }
    }
}

fn run(Arguments { config, command }: Arguments) -> Result<ExitCode, Failure> {
    match command {
        Command::Serve { no_demo } => {
            let mut config = load(config.as_deref())?;
            config.demo = !no_demo;
            serve_and_log_the_end(config)
        }
        Command::Operate(command) => {
            operate(config.as_deref(), command).map(|()| ExitCode::SUCCESS)
        }
    }
}

fn operate(config: Option<&Path>, command: OperatorCommand) -> Result<(), Failure> {
    let settings = || read(config);
    match command {
        OperatorCommand::Keys { command } => printed(command.run(&settings()?)),
        OperatorCommand::Player { command } => {
            let config = settings()?;
            on_store(&config, async |store| {
                command.run(store, &config, SystemClock.now()).await
            })
        }
        OperatorCommand::Project { command } => {
            let config = settings()?;
            on_store(&config, async |store| {
                let now = SystemClock.now();
                command.run(store, &config, &SystemEntropy, now).await
            })
        }
        OperatorCommand::Admin { command } => {
            let config = settings()?;
            on_store(&config, async |store| {
                command.run(store, &config, SystemClock.now()).await
            })
        }
        OperatorCommand::Events(command) => {
            let config = settings()?;
            if !command.follows() {
                return on_store(&config, async |store| command.run(store).await);
            }
            // Following ends with a signal, which is not a failure.
            until_signalled(&config, Ok(String::new()), async |store| {
                command.follow(store, output::print).await?;
                Ok(String::new())
            })
        }
        OperatorCommand::Backup(command) => {
            let config = settings()?;
            let stopped = "stopped before it was done";
            let now = SystemClock.now();
            until_done(stopped, async { command.run(&config, now).await })
        }
        OperatorCommand::Restore(command) => {
            let config = settings()?;
            let _lock = command.lock(&config)?;
            let stopped = "stopped before it said what it did; repeat the command to be sure";
            let now = SystemClock.now();
            until_done(stopped, async { command.run(&config, now).await })
        }
        OperatorCommand::Move(command) => {
            let config = settings()?;
            let _lock = command.lock(&config)?;
            let stopped = "stopped before it was done; run the same command again, which goes on \
                           from here";
            until_done(stopped, async { command.run(&config).await })
        }
        OperatorCommand::Doctor(command) => {
            let config = settings()?;
            on_runtime(async move {
                let (text, ended) = command.run(&config).await;
                output::print(&text);
                ended
            })
        }
        OperatorCommand::Setup(command) => printed(command.run(&SystemEntropy)),
        OperatorCommand::Ready => printed(ready::run(&settings()?)),
        OperatorCommand::Config { docs: true } => {
            output::print(&names::documentation());
            Ok(())
        }
        OperatorCommand::Config { docs: false } => {
            output::print(&show::settings_in_force(&settings()?));
            Ok(())
        }
    }
}

/// Serves until a signal. Why it ends otherwise is logged where the log may be read by a program: as JSON,
/// or at a receiver of OpenTelemetry.
fn serve_and_log_the_end(config: Config) -> Result<ExitCode, Failure> {
    let telemetry = telemetry::open(&config).map_err(|error| error.to_string())?;
    log_to_stderr(&config, &telemetry);
    let json = config.log_format == LogFormat::Json;
    let runtime = runtime()?;
    // Held until everything has stopped.
    let locked = lock(&config);
    let served = runtime.block_on(async {
        let served = match &locked {
            Ok(_) => serve(config, telemetry.clone()).await,
            Err(cause) => Err(cause.clone()),
        };
        if (json || telemetry.is_on())
            && let Err(cause) = &served
        {
            tracing::error!(cause, "the server ends");
        }
        // A server that stops has done this.
        telemetry.close().await;
        served
    });
    // Everything that was acknowledged is on the disk. What may still run is a backup that nobody
    // waits for.
    runtime.shutdown_timeout(LEFT_OVER);
    match served {
        // Every line is JSON then, this one too.
        Err(_) if json && tracing::enabled!(tracing::Level::ERROR) => Ok(ExitCode::FAILURE),
        served => served.map(|()| ExitCode::SUCCESS),
    }
}

/// Locks the data folder against other servers, and checks that it is whole.
fn lock(config: &Config) -> Result<FolderLock, Failure> {
    let lock = FolderLock::take(config).map_err(|error| error.to_string())?;
    require_whole(config).map_err(|error| error.to_string())?;
    require_no_orphans(config).map_err(|error| error.to_string())?;
    Ok(lock)
}

fn read(path: Option<&Path>) -> Result<Config, Failure> {
    let config = load(path)?;
    log_to_stderr(&config, &Telemetry::default());
    Ok(config)
}

fn load(path: Option<&Path>) -> Result<Config, Failure> {
    load::from_process(path).map_err(|error| error.to_string())
}

/// Runs `work` on the store of an existing platform, and prints the result.
fn on_store(
    config: &Config,
    work: impl AsyncFnOnce(&dyn Store) -> Result<String, Failure>,
) -> Result<(), Failure> {
    let stopped = Err("stopped before it was done".to_owned());
    until_signalled(config, stopped, work)
}

/// Runs `work` until it ends or a signal arrives; in that case the result is `stopped`.
fn until_signalled(
    config: &Config,
    stopped: Result<String, Failure>,
    work: impl AsyncFnOnce(&dyn Store) -> Result<String, Failure>,
) -> Result<(), Failure> {
    require_platform(config).map_err(|error| error.to_string())?;
    on_runtime(async {
        let mut stop = Stop::listen()?;
        let store = open_store(config, SchemaPolicy::Refuse)
            .await
            .map_err(|error| chain(&error))?;
        // Dropping the future cleans up.
        let said = tokio::select! {
            biased;
            said = work(&*store) => said?,
            () = stop.signalled() => stopped?,
        };
        output::print(&said);
        store.close().await.map_err(|error| chain(&error))
    })
}

/// Runs `work` until it ends or a signal arrives, which fails with `stopped`. Prints the result.
fn until_done(
    stopped: &str,
    work: impl Future<Output = Result<String, Failure>>,
) -> Result<(), Failure> {
    on_runtime(async {
        let mut stop = Stop::listen()?;
        // Dropping the future cleans up.
        let said = tokio::select! {
            biased;
            said = work => said?,
            () = stop.signalled() => return Err(stopped.to_owned()),
        };
        output::print(&said);
        Ok(())
    })
}

/// Runs `work`, and prints the result.
fn printed(work: impl Future<Output = Result<String, Failure>>) -> Result<(), Failure> {
    on_runtime(async {
        output::print(&work.await?);
        Ok(())
    })
}

fn on_runtime(work: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    runtime()?.block_on(work)
}

fn runtime() -> Result<Runtime, Failure> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let built = builder.enable_all().build();
    built.map_err(|error| format!("cannot start: {error}"))
}

async fn serve(config: Config, telemetry: Telemetry) -> Result<(), Failure> {
    // Before anything is opened, so that no signal is missed.
    let mut stop = Stop::listen()?;
    let manager = ServiceManager::from_process();
    let sockets = Sockets::from_process()
        .map_err(|error| format!("a socket that was passed cannot be used: {error}"))?;
    let (clock, entropy) = (Arc::new(SystemClock), Arc::new(SystemEntropy));
    let running = platform_server::app::start_with(sockets, config, telemetry, clock, entropy)
        .await
        .map_err(|error| told(&error))?;
    output::print(&format!(
        "platform-server ready on {} (listening on {})\n",
        running.origin, running.address
    ));
    manager.ready(&running.origin);
    let signs = manager.clone();
    // They end with the process.
    tokio::spawn(async move { signs.show_signs_of_life().await });
    stop.signalled().await;
    manager.stopping();
    let delay = running.drain();
    if !delay.is_zero() {
        tracing::info!(?delay, "not ready any more, and stopping after the delay");
        // A second signal ends the delay.
        let _ = tokio::time::timeout(delay, stop.signalled()).await;
    }
    tracing::info!("stopping");
    running.stop().await.map_err(|error| chain(&error))
}

/// The signals that stop the program.
struct Stop {
    terminate: Signal,
    interrupt: Signal,
}

impl Stop {
    /// Registers the handlers: from now on a signal only has an effect through [`Stop::signalled`].
    fn listen() -> Result<Self, Failure> {
        let listen = |kind| signal(kind).map_err(|error| error.to_string());
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
        })
    }

    /// Waits for a signal.
    async fn signalled(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Returns the message for a failed start. If the server cannot listen, the error is a complete
/// sentence, and the system's message would only repeat it.
fn told(error: &StartError) -> Failure {
    match error {
        StartError::Listen { .. } => error.to_string(),
        _ => chain(error),
    }
}

/// Writes log lines to standard error, and sends those that are written there with `telemetry`.
fn log_to_stderr(config: &Config, telemetry: &Telemetry) {
    let lines = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(&config.log))
        .with_writer(std::io::stderr);
    match config.log_format {
        LogFormat::Human => {
            let is_terminal = output::is_terminal();
            begin(lines.with_ansi(is_terminal).finish(), telemetry);
        }
        LogFormat::Json => begin(lines.json().flatten_event(true).finish(), telemetry),
    }
    // A panic in a handler is logged like any other event.
    std::panic::set_hook(Box::new(|panic| {
        let place = panic
            .location()
            .map(ToString::to_string)
            .unwrap_or_default();
        let message = panic.payload_as_str().unwrap_or_default();
        tracing::error!(place, message, "panicked");
    }));
}

fn begin<S>(lines: S, telemetry: &Telemetry)
where
    S: Subscriber + for<'span> LookupSpan<'span> + Send + Sync + 'static,
{
    match telemetry.log_layer() {
        Some(layer) => lines.with(layer).init(),
        None => lines.init(),
    }
}
