//! The settings of a call: from options, then from the environment, then from the nearest
//! `platform.toml`. The platform may also be that of the last sign-in, or the one that handed this
//! program out.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use platform_checks::sources::sign;
use platform_protocol::names::{check_slug, check_slug_form};

use crate::archive::INDEX;
use crate::args::GlobalOptions;
use crate::credentials::Credentials;
use crate::environment::ProcessEnvironment;
use crate::failure::Failure;
use crate::installed;
use crate::manifest::{self, Manifest};
use crate::origin::{DEFAULT_ORIGIN, PlatformOrigin};
use crate::secret::Secret;
use crate::terminal;

/// The settings file of a game.
pub(crate) const FILE_NAME: &str = "platform.toml";
/// The folder of the built game by default.
const DEFAULT_DIST: &str = "dist";

/// The settings in force.
#[derive(Debug)]
pub(crate) struct Settings {
    /// The platform.
    pub(crate) origin: PlatformOrigin,
    /// Whether anything named the platform: it is not just the default.
    pub(crate) knows_platform: bool,
    /// Whether an option or the environment named it, and not a file.
    pub(crate) named_by_caller: bool,
    /// `PLATFORM_TOKEN`, which replaces signing in.
    pub(crate) token: Option<Secret>,
    /// The longest time to wait for the platform.
    pub(crate) timeout: Duration,
    /// Whether the command may act on another account's project.
    pub(crate) as_administrator: bool,
    project: Option<String>,
    /// The game's folder: that of `platform.toml`, else the current one.
    folder: PathBuf,
    /// The folder of the built game as `platform.toml` names it, relative to `folder`.
    dist: Option<PathBuf>,
}

impl Settings {
    /// Resolves the settings. Looks for `platform.toml` from each of `starts` upwards.
    ///
    /// # Errors
    /// A setting is invalid; exit status 2.
    pub(crate) fn settle(
        options: &GlobalOptions,
        environment: &ProcessEnvironment,
        starts: &[&Path],
    ) -> Result<Self, Failure> {
        let (manifest, folder) = nearest(starts)?;
        let named = first([
            ("--origin", options.origin.as_deref()),
            ("PLATFORM_ORIGIN", environment.origin.as_deref()),
            ("origin in platform.toml", manifest.origin.as_deref()),
        ]);
        let token = environment.token.clone();
        let (last, installed) = match named {
            Some(_) => (None, None),
            None => (last_origin(environment), installed::origin(environment)),
        };
        let remembered = || {
            first([
                ("last_origin in credentials.toml", last.as_deref()),
                ("origin in installed.toml", installed.as_deref()),
            ])
        };
        let origin = named.or_else(remembered);
        let knows_platform = origin.is_some();
        let (from, text) = origin.unwrap_or(("The default", DEFAULT_ORIGIN));
        let origin = text
            .parse()
            .map_err(|advice| Failure::usage(format!("{from} is not an origin: {advice}.")))?;
        let project = first([
            ("--project", options.project.as_deref()),
            ("PLATFORM_PROJECT", environment.project.as_deref()),
            ("slug in platform.toml", manifest.slug.as_deref()),
        ]);
        if let Some((from, slug)) = project {
            known_slug(slug)
                .map_err(|why| Failure::usage(format!("{from} is not a valid slug: {why}")))?;
        }
        Ok(Self {
            origin,
            knows_platform,
            named_by_caller: options.origin.is_some() || environment.origin.is_some(),
            token,
            timeout: options.timeout(),
            as_administrator: options.as_administrator,
            project: project.map(|(_, slug)| slug.to_owned()),
            folder,
            dist: manifest.dist,
        })
    }

    /// The project of the command.
    ///
    /// # Errors
    /// No project is named; exit status 2.
    pub(crate) fn project(&self) -> Result<&str, Failure> {
        self.project.as_deref().ok_or_else(|| {
            Failure::usage(
                "No project is given: use --project, set PLATFORM_PROJECT, or write slug = \"…\" \
                 into platform.toml.",
            )
        })
    }

    /// The named project, if any.
    pub(crate) fn named_project(&self) -> Option<&str> {
        self.project.as_deref()
    }

    /// The folder to deploy. A named folder that holds a `platform.toml` is a project: what is deployed
    /// is the folder of its built game, which is said.
    ///
    /// # Errors
    /// Those of [`Self::dist`].
    pub(crate) fn deployed(&self, named: Option<&Path>) -> Result<PathBuf, Failure> {
        let holds_settings = |folder: &&Path| {
            folder.join(FILE_NAME).is_file()
                && folder.canonicalize().is_ok_and(|real| real == self.folder)
        };
        let Some(project) = named.filter(holds_settings) else {
            return self.dist(named);
        };
        let (name, from) = match &self.dist {
            Some(dist) => (dist.display().to_string(), "as its platform.toml says"),
            None => (DEFAULT_DIST.to_owned(), "where its built game is"),
        };
        if self.dist.is_none() && is_built(&self.folder) {
            return Ok(project.to_owned());
        }
        let dist = self.dist(None)?;
        if dist != self.folder {
            let project = match project.display().to_string() {
                here if here == "." => "This folder".to_owned(),
                other => other,
            };
            terminal::note(format_args!(
                "{project} is a project: this is about its folder {name}, {from}."
            ));
        }
        Ok(dist)
    }

    /// The folder of the built game: the named one, else that of `platform.toml`, else `dist`. A game
    /// that no tool builds is the game's folder itself.
    ///
    /// # Errors
    /// The folder in `platform.toml` lies outside of the game's own, by its name or by a link: the
    /// file may come from a stranger, and what a deploy sends is public. Exit status 2.
    pub(crate) fn dist(&self, named: Option<&Path>) -> Result<PathBuf, Failure> {
        if let Some(named) = named {
            return Ok(named.to_owned());
        }
        let configured = self.dist.as_deref();
        let dist = self
            .folder
            .join(configured.unwrap_or(Path::new(DEFAULT_DIST)));
        if configured.is_none() && !dist.exists() && is_built(&self.folder) {
            return Ok(self.folder.clone());
        }
        // If it does not exist, listing it will report that.
        let Ok(real) = dist.canonicalize() else {
            return Ok(dist);
        };
        let folder = self.folder.canonicalize();
        if folder.is_ok_and(|folder| real.starts_with(folder)) {
            return Ok(real);
        }
        let dist = configured.unwrap_or(Path::new(DEFAULT_DIST)).display();
        let real = real.display();
        Err(Failure::usage(format!(
            "The folder {dist} of the settings is outside the game's folder, at {real}: if you \
             want this, name the folder on the command line."
        )))
    }
}

/// Whether a folder is a game that browsers run as it is.
fn is_built(folder: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return false;
    };
    let names = entries
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned());
    let names: Vec<String> = names.collect();
    names.iter().any(|name| name == INDEX) && sign(&names, "").is_none()
}

/// Checks that a text can be the slug of an existing project.
fn known_slug(slug: &str) -> Result<(), &'static str> {
    check_slug_form(slug).map_err(|error| error.sentence())
}

/// Checks that a text can be a new project's slug.
///
/// # Errors
/// Why not, a sentence.
pub(crate) fn usable_slug(slug: &str) -> Result<(), &'static str> {
    check_slug(slug).map_err(|error| error.sentence())
}

fn first<'a, const N: usize>(
    sources: [(&'static str, Option<&'a str>); N],
) -> Option<(&'static str, &'a str)> {
    sources
        .into_iter()
        .find_map(|(from, value)| value.map(|value| (from, value)))
}

/// The platform of the last sign-in. If the file cannot be read, the commands that need it report
/// the error.
fn last_origin(environment: &ProcessEnvironment) -> Option<String> {
    let credentials = Credentials::locate(environment).ok()?;
    credentials.last_origin().ok().flatten()
}

/// The nearest `platform.toml`, and its folder.
fn nearest(starts: &[&Path]) -> Result<(Manifest, PathBuf), Failure> {
    for start in starts {
        // A folder that does not exist has no known parents.
        let Ok(start) = start.canonicalize() else {
            continue;
        };
        for folder in start.ancestors() {
            let path = folder.join(FILE_NAME);
            match std::fs::read_to_string(&path) {
                Ok(text) => {
                    let manifest = manifest::read(&text).map_err(|why| {
                        Failure::usage(format!("{} cannot be used: {why}", path.display()))
                    })?;
                    return Ok((manifest, folder.to_owned()));
                }
                Err(error) if is_absent(&error) => {}
                Err(error) => {
                    return Err(Failure::usage(format!(
                        "{} cannot be read: {error}.",
                        path.display()
                    )));
                }
            }
        }
    }
    Ok((Manifest::default(), PathBuf::from(".")))
}

/// Whether there is no such file; a folder of that name does not count.
fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound
            | io::ErrorKind::NotADirectory
            | io::ErrorKind::IsADirectory
            | io::ErrorKind::PermissionDenied
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_without_the_files_of_a_build_tool_is_a_built_game() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        assert!(!is_built(folder));
        std::fs::write(folder.join(INDEX), "x").unwrap();
        assert!(is_built(folder));
        std::fs::write(folder.join("package.json"), "{}").unwrap();
        assert!(!is_built(folder));
    }
}
