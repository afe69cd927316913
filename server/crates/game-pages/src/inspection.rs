//! Inspects a deployment's files: the title and the images of its page, how its page loads the
//! runtime, and which files should probably not be public.

use std::collections::BTreeMap;

use platform_checks::{ReadFile, Warning, warnings_of};
use platform_domain::project::{DeploymentWarning, Inspection};

use crate::metadata::PageMetadata;

/// Inspects the `page` that is shown at `address`, and the paths of the deployment's `files`;
/// `read` returns the text of a script. This function blocks: a page of megabytes takes milliseconds.
#[must_use]
pub fn inspect<File>(
    page: &[u8],
    address: &str,
    files: &BTreeMap<String, File>,
    read: ReadFile<'_>,
) -> Inspection {
    let metadata = PageMetadata::read(page, address, |path| files.contains_key(path));
    let paths = files.keys().map(String::as_str);
    let warnings = warnings_of(&String::from_utf8_lossy(page), address, read, paths);
    Inspection {
        title: metadata.title,
        pictures: metadata.pictures,
        measured: BTreeMap::new(),
        words: metadata.words,
        warnings: warnings.into_iter().map(kept).collect(),
    }
}

fn kept(warning: Warning) -> DeploymentWarning {
    DeploymentWarning {
        code: warning.code.as_str().to_owned(),
        message: warning.message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The maximum size of an inspection's JSON in bytes.
    const BOUND: usize = 64 * 1024;

    #[test]
    fn an_inspection_is_small_however_much_a_page_and_its_files_say() {
        let pictures = (0..5_000).map(|number| format!("{}{number}.png", "\u{fc}".repeat(5)));
        let secrets = (0..5_000).map(|number| format!("{}{number}.pem", "\u{fc}".repeat(500)));
        let files: BTreeMap<String, ()> = pictures.chain(secrets).map(|path| (path, ())).collect();
        let icons = files.keys().filter(|path| path.ends_with("png"));
        let mut page = format!("<script src=//a/{}></script>", "b".repeat(5_000));
        for path in icons {
            page.push_str(&format!("<link rel=icon href={path}>"));
        }
        page.push_str(&format!("<title>{}</title>", "t".repeat(100_000)));
        let found = inspect(page.as_bytes(), "https://game.example/", &files, &|_| None);
        assert!(found.pictures.len() > 200 && !found.warnings.is_empty());
        assert!(serde_json::json!(found).to_string().len() < BOUND);
    }

    #[test]
    fn a_picture_that_is_named_twice_is_kept_once() {
        let page = "<head><link rel=icon href=a.png><link rel=apple-touch-icon href=/a.png>";
        let files = BTreeMap::from([("a.png".to_owned(), ())]);
        let found = inspect(page.as_bytes(), "https://game.example/", &files, &|_| None);
        assert_eq!(found.pictures, ["/a.png"]);
    }
}
