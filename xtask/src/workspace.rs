//! Where everything is, and what the environment says: read once, here.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// The features that releases have, and that the server for a quick start is built without. What is
/// tested has them.
pub const FEATURES: &str = "platform-server/cluster";

/// The folders that the tasks work in.
pub struct Workspace {
    /// The folder of the workspace's `Cargo.toml`.
    pub root: PathBuf,
    /// Cargo's target folder.
    pub target: PathBuf,
    /// Where tools are installed, for every checkout of this user.
    pub(crate) tools: PathBuf,
    /// `PATH`.
    pub(crate) path: OsString,
    /// `PLATFORM_*` variables that are set: they change what `serve` does.
    pub settings: Vec<String>,
}

impl Workspace {
    /// Finds the workspace that this program was built in.
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place that reads the environment"
    )]
    pub fn find() -> Result<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .parent()
            .context("the folder xtask/ is in no workspace")?
            .to_owned();
        // This program is <target>/<profile>/<its name>.
        let program = env::current_exe().context("this program cannot find itself")?;
        let target = program
            .ancestors()
            .nth(2)
            .context("this program is not in a target folder")?
            .to_owned();
        Ok(Self {
            root,
            target,
            tools: tools_folder(env::var_os("XDG_CACHE_HOME"), env::var_os("HOME"))?,
            path: env::var_os("PATH").unwrap_or_default(),
            settings: env::vars_os()
                .filter_map(|(name, _)| name.into_string().ok())
                .filter(|name| name.starts_with("PLATFORM_"))
                .collect(),
        })
    }

    /// Where a binary of the workspace is built.
    pub fn binary(&self, release: bool, name: &str) -> PathBuf {
        self.target
            .join(if release { "release" } else { "debug" })
            .join(name)
    }

    /// Where the Python packages of a folder are installed.
    pub(crate) fn python(&self, folder: &str) -> PathBuf {
        self.tools.join(format!("python-{folder}"))
    }

    /// The root folder of a Debian 12 without anything else, as a tar.
    pub(crate) fn debian_root(&self) -> PathBuf {
        self.tools.join("debian-12.tar")
    }

    /// The version of wasm-bindgen that the root `Cargo.toml` pins.
    pub(crate) fn wasm_bindgen_version(&self) -> Result<String> {
        let manifest = self.root.join("Cargo.toml");
        let text = std::fs::read_to_string(&manifest)
            .with_context(|| format!("{} cannot be read", manifest.display()))?;
        pinned_version(&text, "wasm-bindgen")
    }
}

/// The folder of installed tools, by the XDG base directory rules: an unset or
/// relative `XDG_CACHE_HOME` means `~/.cache`.
fn tools_folder(cache_home: Option<OsString>, home: Option<OsString>) -> Result<PathBuf> {
    let cache = match cache_home
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
    {
        Some(cache) => cache,
        None => PathBuf::from(home.context("HOME is not set")?).join(".cache"),
    };
    Ok(cache.join("platform-xtask"))
}

/// The version that a workspace's manifest pins a dependency to with `=`.
fn pinned_version(manifest: &str, name: &str) -> Result<String> {
    let manifest: toml::Table = manifest.parse().context("Cargo.toml cannot be parsed")?;
    let requirement = manifest
        .get("workspace")
        .and_then(|workspace| workspace.get("dependencies")?.get(name))
        .and_then(|entry| entry.as_str().or_else(|| entry.get("version")?.as_str()))
        .with_context(|| format!("[workspace.dependencies] does not name {name}"))?;
    let version = requirement.strip_prefix('=').with_context(|| {
        format!("{name} is not pinned: \"{requirement}\" should be \"={requirement}\"")
    })?;
    Ok(version.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pinned_version_is_read_from_the_manifest() {
        let short = "[workspace.dependencies]\nwasm-bindgen = \"=0.2.1\"\n";
        assert_eq!(pinned_version(short, "wasm-bindgen").unwrap(), "0.2.1");
        let long = "[workspace.dependencies]\nwasm-bindgen = { version = \"= 0.2.1\" }\n";
        assert_eq!(pinned_version(long, "wasm-bindgen").unwrap(), "0.2.1");
    }

    #[test]
    fn a_version_that_is_not_pinned_is_refused() {
        let loose = "[workspace.dependencies]\nwasm-bindgen = \"0.2.1\"\n";
        let error = pinned_version(loose, "wasm-bindgen")
            .unwrap_err()
            .to_string();
        assert!(error.contains("not pinned"), "{error}");
        assert!(pinned_version("[workspace.dependencies]\n", "wasm-bindgen").is_err());
    }

    #[test]
    fn tools_are_kept_in_the_cache_of_the_user() {
        let folder = |cache: Option<&str>, home: Option<&str>| {
            tools_folder(cache.map(Into::into), home.map(Into::into)).ok()
        };
        let tools = |path: &str| Some(PathBuf::from(path));
        assert_eq!(folder(Some("/c"), Some("/h")), tools("/c/platform-xtask"));
        assert_eq!(folder(None, Some("/h")), tools("/h/.cache/platform-xtask"));
        assert_eq!(
            folder(Some("relative"), Some("/h")),
            tools("/h/.cache/platform-xtask")
        );
        assert_eq!(folder(None, None), None);
    }
}
