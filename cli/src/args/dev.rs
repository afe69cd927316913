//! The options of `platform dev`.

use std::ffi::OsString;
use std::net::IpAddr;
use std::path::PathBuf;

use clap::Args;

use super::DEFAULT_PATH;

/// The help's examples.
pub(super) const EXAMPLES: &str = "\
Examples:
  platform dev                              serves the built game: `dist` of platform.toml, or .
  platform dev -- npm run dev               starts a dev server, and stands before it
  platform dev --to http://localhost:5173   stands before a dev server that runs already
  platform dev build -- npm run watch       serves a folder while a command fills it
  platform dev --backend http://localhost:8788 -- npm run dev

Open the address that it prints, not that of the other server. The command gets
PORT and the three AUTH_… variables of a backend, and no keyboard input. It
ends with this program, and this program with it.";

/// What `platform dev` serves, and where.
#[derive(Debug, Args)]
pub(crate) struct DevOptions {
    /// The folder to serve; it reloads the page when a file changes [default: `dist` of
    /// platform.toml, or the current folder]
    #[arg(value_name = "FOLDER", conflicts_with = "to")]
    pub(crate) folder: Option<PathBuf>,
    /// Pass requests on to this dev server, instead of serving a folder
    #[arg(long, value_name = "URL")]
    pub(crate) to: Option<String>,
    /// Pass requests of some paths on to this backend, as the platform does for a deployed game
    #[arg(long, value_name = "URL")]
    pub(crate) backend: Option<String>,
    /// Paths that begin with this go to the backend; may be repeated
    #[arg(long = "path", value_name = "PATH", default_value = DEFAULT_PATH, requires = "backend")]
    pub(crate) paths: Vec<String>,
    /// The port [default: 5174, or the next free one]
    #[arg(long, value_name = "PORT")]
    pub(crate) port: Option<u16>,
    /// Listen on this address of this machine as well, such as 0.0.0.0 for all of them: everybody
    /// in the network can then open the game and play as its test players
    #[arg(long, value_name = "IP")]
    pub(crate) host: Option<IpAddr>,
    /// Open the game in a browser
    #[arg(long)]
    pub(crate) open: bool,
    /// Do not reload the page when a file of the folder changes
    #[arg(long)]
    pub(crate) no_reload: bool,
    /// A command that starts a dev server, or, after a FOLDER, one that runs beside it
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}
