//! `GET /` on the platform origin: the games that can be played here.

use std::sync::Arc;

use askama::Template;
use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use moka::sync::Cache;
use platform_protocol::paths;

use crate::files::FileStore;
use crate::http::page;
use crate::http::page::STYLESHEET;
use crate::sites::Game;
use crate::state::AppState;

/// Bytes of a game's page in which its title is looked for.
const HEAD: u64 = 16 * 1024;
/// Characters of a title, at most.
const TITLE: usize = 60;
/// Titles that are remembered, at most.
const REMEMBERED: u64 = 10_000;

#[derive(Template)]
#[template(path = "console.html")]
struct Page<'a> {
    stylesheet: &'static str,
    games: Vec<Link>,
    auth_url: &'a str,
    key_set: &'static str,
    metadata: &'static str,
}

struct Link {
    title: Arc<str>,
    host: String,
    address: String,
}

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
    async fn of(&self, game: &Game, files: &FileStore) -> Arc<str> {
        let title = self.written(game, files).await;
        title
            .filter(|title| !title.is_empty())
            .unwrap_or_else(|| game.slug.as_str().into())
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
    let odd = |char: char| matches!(char, '<' | '&' | '\u{fffd}') || char.is_control();
    let plain = !title.is_empty() && title.chars().count() <= TITLE && !title.contains(odd);
    plain.then_some(title)
}

/// Answers the list of games.
pub async fn handle(
    State(state): State<AppState>,
    Extension(titles): Extension<Titles>,
) -> Response {
    let mut games = Vec::new();
    for game in state.sites.playable() {
        let host = game.origin.split_once("://").map_or("", |(_, host)| host);
        games.push(Link {
            title: titles.of(&game, &state.files).await,
            host: host.to_owned(),
            address: format!("{}/", game.origin),
        });
    }
    page::render(
        StatusCode::OK,
        &Page {
            stylesheet: STYLESHEET,
            games,
            auth_url: &state.auth_url,
            key_set: paths::JWKS,
            metadata: paths::METADATA,
        },
    )
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
            ("<title>never ended", None),
            ("<h1>none</h1>", None),
            ("", None),
        ] {
            assert_eq!(title(html).as_deref(), expected, "{html}");
        }
        assert_eq!(title(&format!("<title>{}</title>", "x".repeat(61))), None);
    }
}
