//! The files of a preview that a request can be about.
//!
//! A project can have many previews, each with many files, and few are opened. So no list of a preview's
//! files is in memory: each request looks up, in one read of the store, the files that its path can mean.

use percent_encoding::percent_decode_str;
use platform_checks::folder::INDEX;
use platform_checks::limits::MAX_PATH_BYTES;
use platform_protocol::preview;
use platform_protocol::problem::ProblemCode;

use super::handlers::game_files::{CODED, NOT_FOUND};
use crate::domain::project::Deployment;
use crate::games::catalogue::{Game, ShownPreview};
use crate::hosting::HostingState;
use crate::web::api_error::ApiError;

/// Returns what the preview `game` shows, with those of its files that a request for `path` can be about.
///
/// # Errors
/// `not-found` if the preview was removed meanwhile; errors of the store.
pub(super) async fn find(
    state: &HostingState,
    game: &Game,
    preview: &ShownPreview,
    path: &str,
) -> Result<Deployment, ApiError> {
    let paths = candidates(path);
    let store = &state.platform.store;
    let mut shown = game.deployment.clone();
    let mut is_read_again = false;
    while let Some(deployment) = shown {
        let files = store.find_files(deployment.id, paths.clone()).await?;
        // Every deployment has a start page. Without it, another one has just taken its place.
        if files.contains_key(INDEX) {
            return Ok(Deployment {
                files,
                ..Deployment::clone(&deployment)
            });
        }
        if is_read_again {
            break;
        }
        is_read_again = true;
        state.read(&game.slug).await?;
        let label = preview::label(&preview.name, &game.slug);
        let now = state.games.catalogue.find(&label);
        shown = now.and_then(|game| game.deployment.clone());
    }
    Err(ApiError::new(ProblemCode::NotFound).with_detail(ProblemCode::NotDeployed.default_detail()))
}

/// Returns the names of the files that a path can mean: the file itself with its variants in other
/// codings, the start page of the folder, and the page for missing paths. The deployment's own start page
/// is always one of them.
fn candidates(path: &str) -> Vec<String> {
    let mut names = vec![NOT_FOUND.to_owned(), INDEX.to_owned()];
    let Ok(path) = percent_decode_str(path).decode_utf8() else {
        return names;
    };
    let path = path.strip_prefix('/').unwrap_or(&path);
    let file = if path.is_empty() || path.ends_with('/') {
        format!("{path}{INDEX}")
    } else {
        names.push(format!("{path}/{INDEX}"));
        path.to_owned()
    };
    names.extend(CODED.map(|ending| format!("{file}{ending}")));
    names.push(file);
    // No file has such a name, and not every database can look for it.
    names.retain(|name| name.len() <= MAX_PATH_BYTES && !name.contains('\0'));
    names.sort();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_means_few_files() {
        let start = ["404.html", "index.html", "index.html.br", "index.html.gz"];
        assert_eq!(candidates("/"), start);
        assert_eq!(candidates("/index.html")[..4], start);
        let expected = [
            "404.html",
            "a b/c.js",
            "a b/c.js.br",
            "a b/c.js.gz",
            "a b/c.js/index.html",
            "index.html",
        ];
        assert_eq!(candidates("/a%20b/c.js"), expected);
        let expected = [
            "404.html",
            "a/index.html",
            "a/index.html.br",
            "a/index.html.gz",
            "index.html",
        ];
        assert_eq!(candidates("/a/"), expected);
        let long = format!("/{}", "a".repeat(2_000));
        for path in ["/%ff", "/a%00b", &long] {
            assert_eq!(candidates(path), ["404.html", "index.html"], "{path}");
        }
    }
}
