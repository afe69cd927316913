//! What `platform dev` prints when it is ready: one block of lines.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use http_body_util::{BodyExt as _, Limited};
use platform_checks::{WarningCode, sources, warnings, warnings_with};
use platform_protocol::paths::LOCAL_LOGIN;

use super::forward::{Address, Connections};
use super::listen::network_address;
use super::ports;
use crate::archive::INDEX;
use crate::commands::check;
use crate::failure::Failure;
use crate::origin::PlatformOrigin;
use crate::terminal::{self, Line, STRONG};

/// A larger start page is not checked.
const MAX_PAGE_BYTES: usize = 1024 * 1024;

/// What responds to requests that are neither for the platform nor for the backend.
#[derive(Debug)]
pub(super) enum Served {
    /// A folder, and whether its pages are reloaded.
    Folder(PathBuf, bool),
    /// Another server, and the command that runs it.
    Server(Address, Option<String>),
    /// Another server, which has to be found once its command runs.
    Unknown,
}

impl Served {
    /// The other server, if it is known.
    pub(super) const fn server(&self) -> Option<&Address> {
        match self {
            Self::Server(address, _) => Some(address),
            _ => None,
        }
    }
}

/// What there is to say.
#[derive(Debug)]
pub(super) struct Block {
    /// The platform.
    pub(super) origin: PlatformOrigin,
    /// The project.
    pub(super) slug: String,
    /// Our port.
    pub(super) port: u16,
    /// The address that was named besides the loopback addresses.
    pub(super) host: Option<IpAddr>,
    /// Who is signed in.
    pub(super) username: Option<String>,
    /// The backend's paths and address.
    pub(super) backend: Option<(String, Address)>,
    /// The backend's variables, if no command got them.
    pub(super) variables: Vec<(&'static str, String)>,
}

impl Block {
    /// The game's address.
    pub(super) fn address(&self) -> String {
        format!("http://localhost:{}/", self.port)
    }

    /// Prints the block.
    ///
    /// # Errors
    /// Nobody reads it.
    pub(super) fn print(&self, served: &Served) -> Result<(), Failure> {
        terminal::print_all(&self.lines(served))
    }

    fn lines(&self, served: &Served) -> Vec<Line> {
        let address = self.address();
        let login = format!("{}{LOCAL_LOGIN}", address.trim_end_matches('/'));
        let mut parts = Vec::new();
        if let Some(host) = self.host.and_then(network_address) {
            let outside = SocketAddr::new(host, self.port);
            let text = format!(
                "http://{outside}/ (everybody in this network can play as your test players)"
            );
            parts.push(("Network", text));
        }
        parts.push((
            "Players",
            format!("test guest 1 at first; each tab can choose another: {login}"),
        ));
        parts.extend(match served {
            Served::Unknown => None,
            Served::Folder(folder, reloads) => {
                let reloads = if *reloads {
                    "; a page reloads when a file changes"
                } else {
                    ""
                };
                Some(("Files", format!("{}{reloads}", folder.display())))
            }
            Served::Server(server, command) => {
                let command = command.as_ref().map(|command| format!(" ({command})"));
                let command = command.unwrap_or_default();
                Some(("Files", format!("passed on to {server}{command}")))
            }
        });
        if let Some((paths, backend)) = &self.backend {
            parts.push(("Backend", format!("{paths} passed on to {backend}")));
        }
        let signed_in = match &self.username {
            Some(name) => format!("signed in as {name}"),
            None => format!("nobody is signed in: run {}", self.origin.login_command()),
        };
        let platform = format!("{} at {}, {signed_in}", self.slug, self.origin);
        parts.push(("Project", platform));
        let begin = |name: &str| Line::from(format_args!("  {name:<9}"));
        let mut lines = vec![Line::new(), begin("Game").styled(STRONG, address)];
        lines.extend(parts.iter().map(|(name, part)| begin(name).push(part)));
        if !self.variables.is_empty() {
            lines.push(Line::new());
            lines.push("  The backend verifies players with these variables:".into());
            let variable = |(name, value): &(_, _)| format!("  {name}={value}").into();
            lines.extend(self.variables.iter().map(variable));
        }
        lines.extend([Line::new(), "  Ctrl-C ends it.".into(), Line::new()]);
        lines
    }

    /// Says what is wrong with the start page: a game without the runtime has no players.
    pub(super) async fn warn(&self, connections: &Connections, served: &Served) {
        let sentences = match served {
            Served::Folder(folder, _) => of_folder(folder),
            Served::Server(server, _) => of_server(connections, server).await,
            Served::Unknown => Vec::new(),
        };
        for sentence in sentences {
            terminal::warn(sentence);
        }
    }
}

fn of_folder(folder: &Path) -> Vec<String> {
    let Ok(page) = check::page(folder) else {
        return vec![format!("{} has no {INDEX}.", folder.display())];
    };
    let source = sources::unbuilt_script(&page).map(|script| {
        format!(
            "{INDEX} loads {script}, which no browser runs: start the tool that builds it, as in \
             `platform dev -- npm run dev`."
        )
    });
    let of_page = warnings_with(&page, &|path| check::script(folder, path));
    let of_page = of_page.into_iter().map(|warning| warning.message);
    source.into_iter().chain(of_page).collect()
}

async fn of_server(connections: &Connections, server: &Address) -> Vec<String> {
    let Some(response) = ports::start_page(connections, server).await else {
        return Vec::new();
    };
    if !ports::is_page(&response) || !response.status().is_success() {
        return Vec::new();
    }
    let page = Limited::new(response.into_body(), MAX_PAGE_BYTES);
    let Ok(page) = page.collect().await else {
        return Vec::new();
    };
    warnings(&String::from_utf8_lossy(&page.to_bytes()))
        .into_iter()
        // Such servers put scripts of their own before all others; the built page has none of them.
        .filter(|warning| warning.code != WarningCode::AfterScripts)
        .map(|warning| warning.message)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_block_says_where_everything_goes() {
        let block = Block {
            origin: "https://games.example".parse().unwrap(),
            slug: "rings".to_owned(),
            port: 5174,
            host: Some(IpAddr::from([192, 168, 1, 20])),
            username: Some("ada".to_owned()),
            backend: Some(("/api/".to_owned(), Address::local(8788))),
            variables: vec![("AUTH_AUDIENCE", "game:dev-rings".to_owned())],
        };
        let served = Served::Server(Address::local(5173), Some("npm run dev".to_owned()));
        let text = terminal::shown(&block.lines(&served));
        let expected = "
  Game     http://localhost:5174/
  Network  http://192.168.1.20:5174/ (everybody in this network can play as your test players)
  Players  test guest 1 at first; each tab can choose another: http://localhost:5174/__platform/login
  Files    passed on to http://localhost:5173 (npm run dev)
  Backend  /api/ passed on to http://localhost:8788
  Project  rings at https://games.example, signed in as ada

  The backend verifies players with these variables:
  AUTH_AUDIENCE=game:dev-rings

  Ctrl-C ends it.

";
        assert_eq!(text, expected);
        let folder = Served::Folder("/games/rings/dist".into(), true);
        let block = Block {
            host: None,
            username: None,
            backend: None,
            variables: Vec::new(),
            ..block
        };
        let text = terminal::shown(&block.lines(&folder));
        let expected = "
  Game     http://localhost:5174/
  Players  test guest 1 at first; each tab can choose another: http://localhost:5174/__platform/login
  Files    /games/rings/dist; a page reloads when a file changes
  Project  rings at https://games.example, nobody is signed in: run `platform login --origin https://games.example`

  Ctrl-C ends it.

";
        assert_eq!(text, expected);
    }
}
