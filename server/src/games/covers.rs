//! The covers of games: which images of a deployment are measured, and when. A deploy measures the
//! images that its page names and the cover that is set. The catalogue measures what it then finds
//! missing: the images of older deployments, and a cover that was set afterwards.

use std::borrow::Cow;
use std::path::Path;

use platform_game_pages::images::{MAX_COVER_BYTES, path_of, refuse};
use platform_game_pages::metadata::own_cover;

use crate::domain::project::{Deployment, FileEntry, Inspection};
use crate::games::catalogue::Game;
use crate::games::files::{FileError, FileStore};
use crate::games::page_metadata::cover_address;

/// The number of images of a page that are measured.
const MEASURED: usize = 8;

/// Returns the paths of the images that could be covers of a deployment and were not measured yet.
/// `own` is the path and query of the cover that is set.
fn unmeasured(inspection: &Inspection, own: Option<&str>) -> Vec<String> {
    let named = inspection.pictures.iter().map(String::as_str);
    let mut paths: Vec<String> = own
        .into_iter()
        .chain(named.take(MEASURED))
        .filter_map(path_of)
        .map(Cow::into_owned)
        .collect();
    paths.retain(|path| !inspection.measured.contains_key(path));
    paths
}

/// Measures the staged images that could be covers of the page at `page`. `own` is the cover that is
/// set, and `find` returns a file's entry, and where its content is. This function blocks.
///
/// # Errors
/// Returns an error if a file cannot be read.
pub fn measure_staged<'f>(
    inspection: &mut Inspection,
    (page, own): (&str, Option<&str>),
    find: impl Fn(&str) -> Option<(&'f FileEntry, &'f Path)>,
) -> std::io::Result<()> {
    let own = own.and_then(|own| own_cover(own, page, |path| find(path).is_some()));
    for path in unmeasured(inspection, own.as_deref()) {
        let Some((entry, at)) = find(&path) else {
            continue;
        };
        let fits = entry.size <= MAX_COVER_BYTES && refuse(&path, &std::fs::read(at)?).is_none();
        inspection.measured.insert(path, fits);
    }
    Ok(())
}

/// Measures the images of a deployment in the file store that could be covers of the page at `page` and
/// were not measured. Returns the inspection with the results; `None` if nothing was missing.
pub(super) async fn measure_kept(
    deployment: &Deployment,
    (page, own): (&str, Option<&str>),
    files: &FileStore,
) -> Option<Inspection> {
    let found = deployment.inspection.as_ref()?;
    let own = own.and_then(|own| own_cover(own, page, |path| deployment.files.contains_key(path)));
    let mut measured = None;
    for path in unmeasured(found, own.as_deref()) {
        let Some(entry) = deployment.files.get(&path) else {
            continue;
        };
        match refusal(&path, entry, files, &deployment.slug).await {
            Ok(refused) => {
                let measured = measured.get_or_insert_with(|| found.clone());
                measured.measured.insert(path, refused.is_none());
            }
            // It is not shown until it could be read.
            Err(error) => {
                tracing::debug!(slug = deployment.slug, path, %error, "a cover cannot be read");
            }
        }
    }
    measured
}

/// Returns the reason why a cover of a game must not be shown, if it is one of its files and there is
/// such a reason.
///
/// # Errors
/// Returns an error if it cannot be read.
pub async fn refusal_of(
    game: &Game,
    cover: &str,
    files: &FileStore,
) -> Result<Option<String>, FileError> {
    let address = cover_address(game, cover);
    let path = address.as_deref().and_then(path_of);
    let entry = game.deployment.as_ref().zip(path);
    match entry.and_then(|(shown, path)| Some((shown.files.get(&*path)?, path))) {
        Some((entry, path)) => refusal(&path, entry, files, &game.slug).await,
        None => Ok(None),
    }
}

/// Returns the reason why a file of `game` must not be shown as a cover, if there is one.
async fn refusal(
    path: &str,
    entry: &FileEntry,
    files: &FileStore,
    game: &str,
) -> Result<Option<String>, FileError> {
    if entry.size > MAX_COVER_BYTES {
        return Ok(Some("has more than 2 MiB".to_owned()));
    }
    if entry.size == 0 {
        return Ok(Some("is empty".to_owned()));
    }
    let content = files.read_range(entry, 0..entry.size, game).await?;
    Ok(refuse(path, &content))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_measured_is_not_measured_again() {
        let mut found = Inspection {
            pictures: (0..20).map(|number| format!("/{number}.png")).collect(),
            ..Inspection::default()
        };
        assert_eq!(unmeasured(&found, Some("/own.png")).len(), 1 + MEASURED);
        found.measured.insert("own.png".into(), true);
        found.measured.insert("0.png".into(), false);
        assert_eq!(unmeasured(&found, Some("/own.png?v=2")).len(), 7);
    }
}
