//! What games are called: the titles of their pages.

use std::sync::Arc;

use moka::sync::Cache;
use platform_protocol::names::Environment;

use crate::files::FileStore;
use crate::sites::Game;

/// Bytes of a game's page in which its title is looked for.
const HEAD: u64 = 16 * 1024;
/// Characters of a title, at most.
const TITLE: usize = 60;
/// Titles that are remembered, at most.
const REMEMBERED: u64 = 10_000;

/// The titles of games' pages, by the pages' content, so that each is read
/// once. Empty where there is none that can be shown.
#[derive(Clone, Debug)]
pub struct Titles(Cache<String, Arc<str>>);

impl Default for Titles {
    fn default() -> Self {
        Self(Cache::new(REMEMBERED))
    }
}

impl Titles {
    /// What a game is called: its page's title, or its slug.
    pub async fn of(&self, game: &Game, files: &FileStore) -> Arc<str> {
        let title = self.written(game, files).await;
        let title = title
            .filter(|title| !title.is_empty())
            .unwrap_or_else(|| game.slug.as_str().into());
        match game.environment {
            Environment::Prod => title,
            // Nobody should take the one for the other.
            Environment::Dev => format!("{title} (dev)").into(),
        }
    }

    async fn written(&self, game: &Game, files: &FileStore) -> Option<Arc<str>> {
        let page = game.deployment.as_ref()?.files.get("index.html")?;
        if let Some(known) = self.0.get(&page.sha256) {
            return Some(known);
        }
        // A page that cannot be read now has a title another time.
        let head = files
            .read_range(&page.sha256, 0..page.size.min(HEAD))
            .await
            .ok()?;
        let title: Arc<str> = title(&String::from_utf8_lossy(&head))
            .unwrap_or_default()
            .into();
        self.0.insert(page.sha256.clone(), Arc::clone(&title));
        Some(title)
    }
}

/// The title of a page, if it is plain text. Anything more, such as a character
/// reference, would take a parser to read.
fn title(html: &str) -> Option<String> {
    // ASCII alone changes, so that places are the same in both.
    let lower = html.to_ascii_lowercase();
    let start = lower.find("<title>")? + "<title>".len();
    let end = start + lower.get(start..)?.find("</title")?;
    let words: Vec<&str> = html.get(start..end)?.split_whitespace().collect();
    let title = words.join(" ");
    // Marks of direction would turn the sentence around the title as well.
    let odd = |char: char| {
        matches!(
            char,
            '<' | '&' | '\u{fffd}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        ) || char.is_control()
    };
    let plain = !title.is_empty() && title.chars().count() <= TITLE && !title.contains(odd);
    plain.then_some(title)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_title_is_a_games_name() {
        for (html, expected) in [
            ("<head><title>Firefly</title>", Some("Firefly")),
            ("<TITLE>\n Two\n words </Title >", Some("Two words")),
            ("<title>\u{130}\u{e9}</title>", Some("\u{130}\u{e9}")),
            ("<title></title>", None),
            ("<title>Tom &amp; Jerry</title>", None),
            ("<title>a<b></title>", None),
            ("<title>a\u{202e}b</title>", None),
            ("<title>never ended", None),
            ("<h1>none</h1>", None),
            ("", None),
        ] {
            assert_eq!(title(html).as_deref(), expected, "{html}");
        }
        assert_eq!(title(&format!("<title>{}</title>", "x".repeat(61))), None);
    }
}
