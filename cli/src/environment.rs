//! The process's environment, read once.

use std::ffi::OsString;
use std::path::PathBuf;

use etcetera::BaseStrategy as _;

use crate::secret::Secret;

/// The environment's values; an empty variable counts as absent.
#[derive(Debug, Default)]
pub(crate) struct ProcessEnvironment {
    /// `PLATFORM_ORIGIN`
    pub(crate) origin: Option<String>,
    /// `PLATFORM_PROJECT`
    pub(crate) project: Option<String>,
    /// `PLATFORM_TOKEN`
    pub(crate) token: Option<Secret>,
    /// `XDG_CONFIG_HOME`, if it is absolute, as its specification demands.
    pub(crate) config_home: Option<PathBuf>,
    /// `XDG_CACHE_HOME`, if it is absolute.
    pub(crate) cache_home: Option<PathBuf>,
    /// `PORT`, which names a port to a dev server.
    pub(crate) port: Option<u16>,
    /// The branch for which a pipeline runs: `GITHUB_HEAD_REF` for GitHub's pull requests and
    /// `GITHUB_REF_NAME` for its pushes, `CI_COMMIT_REF_NAME` at GitLab.
    pub(crate) branch: Option<String>,
    /// Whether the user can see a browser that is opened here.
    pub(crate) shows_browser: bool,
}

impl ProcessEnvironment {
    /// Reads the process's environment.
    #[expect(
        clippy::disallowed_methods,
        reason = "the environment is read here, once"
    )]
    pub(crate) fn read() -> Self {
        Self::from(|name| std::env::var_os(name))
    }

    /// Where this program may keep copies: `$XDG_CACHE_HOME/platform`, else in the system's own place;
    /// `None` if there is no home folder.
    pub(crate) fn cache_folder(&self) -> Option<PathBuf> {
        let of_system = || Some(etcetera::choose_base_strategy().ok()?.cache_dir());
        let folder = self.cache_home.clone().or_else(of_system)?;
        Some(folder.join("platform"))
    }

    /// Where this program keeps what it remembers: `$XDG_CONFIG_HOME/platform`, else in the system's
    /// own place; `None` if there is no home folder.
    pub(crate) fn config_folder(&self) -> Option<PathBuf> {
        let of_system = || Some(etcetera::choose_base_strategy().ok()?.config_dir());
        let folder = self.config_home.clone().or_else(of_system)?;
        Some(folder.join("platform"))
    }

    fn from(get: impl Fn(&str) -> Option<OsString>) -> Self {
        let get = |name: &str| get(name).filter(|value| !value.is_empty());
        let text = |name: &str| get(name).and_then(|value| value.into_string().ok());
        let folder = |name: &str| {
            let folder = get(name).map(PathBuf::from);
            folder.filter(|path| path.is_absolute())
        };
        let any = |names: &[&str]| names.iter().any(|name| get(name).is_some());
        let remote = any(&["SSH_CONNECTION", "SSH_CLIENT", "SSH_TTY"]);
        // Except on Windows and macOS, a variable names the screen; under WSL, Windows opens the
        // browser itself.
        let screen = cfg!(any(windows, target_os = "macos"))
            || any(&["DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME"]);
        let branch = ["GITHUB_HEAD_REF", "GITHUB_REF_NAME", "CI_COMMIT_REF_NAME"];
        Self {
            branch: branch.into_iter().find_map(text),
            origin: text("PLATFORM_ORIGIN"),
            project: text("PLATFORM_PROJECT"),
            token: text("PLATFORM_TOKEN").map(|token| Secret::new(token.trim())),
            config_home: folder("XDG_CONFIG_HOME"),
            cache_home: folder("XDG_CACHE_HOME"),
            port: text("PORT").and_then(|port| port.parse().ok()),
            shows_browser: screen && !remote && !any(&["CI"]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> ProcessEnvironment {
        ProcessEnvironment::from(|name| {
            let found = variables.iter().find(|(known, _)| *known == name)?;
            Some(found.1.into())
        })
    }

    #[test]
    fn an_empty_variable_counts_as_none() {
        let empty = read(&[("PLATFORM_ORIGIN", ""), ("PLATFORM_TOKEN", "")]);
        assert!(empty.origin.is_none() && empty.token.is_none());
        assert!(
            read(&[("XDG_CONFIG_HOME", "relative")])
                .config_home
                .is_none()
        );
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_browser_is_tried_only_where_it_would_be_seen() {
        assert!(read(&[("DISPLAY", ":0")]).shows_browser);
        assert!(read(&[("WAYLAND_DISPLAY", "wayland-0")]).shows_browser);
        assert!(read(&[("WSL_DISTRO_NAME", "Debian")]).shows_browser);
        assert!(!read(&[]).shows_browser, "a container");
        assert!(!read(&[("DISPLAY", ":10"), ("SSH_CONNECTION", "a b")]).shows_browser);
        assert!(!read(&[("DISPLAY", ":0"), ("CI", "true")]).shows_browser);
    }
}
