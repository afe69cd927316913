//! The process's environment, read once.

use std::ffi::OsString;
use std::path::PathBuf;

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

    fn from(get: impl Fn(&str) -> Option<OsString>) -> Self {
        let get = |name: &str| get(name).filter(|value| !value.is_empty());
        let text = |name: &str| get(name).and_then(|value| value.into_string().ok());
        let any = |names: &[&str]| names.iter().any(|name| get(name).is_some());
        let remote = any(&["SSH_CONNECTION", "SSH_CLIENT", "SSH_TTY"]);
        // Except on Windows and macOS, a variable names the screen; under WSL, Windows opens the
        // browser itself.
        let screen = cfg!(any(windows, target_os = "macos"))
            || any(&["DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME"]);
        Self {
            origin: text("PLATFORM_ORIGIN"),
            project: text("PLATFORM_PROJECT"),
            token: text("PLATFORM_TOKEN").map(|token| Secret::new(token.trim())),
            config_home: get("XDG_CONFIG_HOME")
                .map(PathBuf::from)
                .filter(|path| path.is_absolute()),
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
