//! `GET /` on the platform origin: the listed games, the most played first, in pages, with a search
//! and tags.

use std::collections::HashMap;
use std::sync::Arc;

use askama::Template;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use platform_protocol::paths;
use url::form_urlencoded::Serializer;

use super::build::sign_in;
use crate::console::ConsoleState;
use crate::console::files::Scripts;
use crate::console::storefront::{Entry, Selection, Wanted};
use crate::players::PlayersState;
use crate::web::page::{self, Layout};

#[derive(Template)]
#[template(path = "console.html")]
struct Page<'a> {
    frame: Layout,
    scripts: Scripts,
    sign_in: String,
    wanted: &'a Wanted,
    /// Whether any game is listed at all.
    is_empty: bool,
    cards: Vec<Card<'a>>,
    found: String,
    tags: Vec<TagLink<'a>>,
    page: usize,
    pages: usize,
    before: Option<String>,
    after: Option<String>,
    auth_url: &'a str,
    key_set: &'static str,
    metadata: &'static str,
    profile: &'static str,
}

/// A game on the page.
pub(super) struct Card<'a> {
    pub(super) entry: &'a Entry,
    /// The number of players now; 0 if it is not known, and then nothing is shown.
    pub(super) playing: u64,
}

/// A link that shows the games with a tag.
pub(super) struct TagLink<'a> {
    pub(super) tag: &'a str,
    pub(super) address: String,
    /// Whether it is the tag of the games that are shown; the link then shows all games.
    pub(super) is_chosen: bool,
}

/// Returns the list of games.
pub async fn handle(
    State(state): State<Arc<ConsoleState>>,
    Query(query): Query<HashMap<String, String>>,
) -> Response {
    let front = state.storefronts.load(&state.players).await;
    let value = |name: &str| query.get(name).map(String::as_str).unwrap_or_default();
    let wanted = Wanted::read(value("q"), value("tag"), value("page"));
    let selection = state.storefronts.select(&front, &wanted).await;
    let entries: Vec<&Entry> = selection.entries.iter().map(Arc::as_ref).collect();
    let at = |page: Option<usize>| {
        let page = page.filter(|page| (1..=selection.pages).contains(page));
        page.map(|page| address(&wanted, page))
    };
    let here = address(&wanted, selection.page);
    let page = Page {
        frame: Layout::new(&state.platform.origin),
        scripts: state.files.scripts("front"),
        sign_in: sign_in(&state, &here),
        is_empty: front.is_empty(),
        cards: cards(&state.players, &entries).await,
        found: found(&wanted, &selection),
        tags: tag_links(front.tags(), &wanted),
        page: selection.page,
        pages: selection.pages,
        before: at(selection.page.checked_sub(1)),
        after: at(selection.page.checked_add(1)),
        wanted: &wanted,
        auth_url: &state.platform.auth_url,
        key_set: paths::JWKS,
        metadata: paths::METADATA,
        profile: paths::PROFILE,
    };
    let addresses = (&state.platform.games_origin, &*state.platform.auth_url);
    page::render_games(StatusCode::OK, &page, addresses)
}

/// Returns these games with the numbers of their players.
pub(super) async fn cards<'a>(players: &PlayersState, entries: &[&'a Entry]) -> Vec<Card<'a>> {
    let audiences: Vec<&str> = entries.iter().map(|entry| &*entry.audience).collect();
    let now = players.platform.clock.now();
    let playing = players.games.presence.playing_each(&audiences, now).await;
    let card = |(entry, playing): (&&'a Entry, Option<usize>)| Card {
        entry,
        playing: playing.map_or(0, |playing| playing as u64),
    };
    entries.iter().zip(playing).map(card).collect()
}

/// Returns the address of a page of what is wanted.
fn address(wanted: &Wanted, page: usize) -> String {
    let mut query = Serializer::new(String::new());
    if !wanted.search.is_empty() {
        query.append_pair("q", &wanted.search);
    }
    if let Some(tag) = &wanted.tag {
        query.append_pair("tag", tag);
    }
    if page > 1 {
        query.append_pair("page", &page.to_string());
    }
    match query.finish() {
        query if query.is_empty() => "/".to_owned(),
        query => format!("/?{query}"),
    }
}

/// Returns links that show the games with each of these tags, and keep the search. The chosen tag
/// is among them.
fn tag_links<'a>(tags: &'a [String], wanted: &'a Wanted) -> Vec<TagLink<'a>> {
    let chosen = wanted.tag.as_ref().filter(|tag| !tags.contains(tag));
    let all = chosen.into_iter().chain(tags);
    let link = |tag: &'a String| {
        let is_chosen = wanted.tag.as_ref() == Some(tag);
        let others = Wanted {
            tag: (!is_chosen).then(|| tag.clone()),
            ..wanted.clone()
        };
        TagLink {
            tag,
            address: address(&others, 1),
            is_chosen,
        }
    };
    all.map(link).collect()
}

/// Returns a link that shows the games with a tag, without a search.
pub(super) fn tag_link(tag: &str) -> TagLink<'_> {
    let wanted = Wanted {
        tag: Some(tag.to_owned()),
        ..Wanted::default()
    };
    TagLink {
        tag,
        address: address(&wanted, 1),
        is_chosen: false,
    }
}

/// Returns how many games were found, in words; nothing if all of them are shown.
fn found(wanted: &Wanted, selection: &Selection) -> String {
    if wanted.search.is_empty() && wanted.tag.is_none() {
        return String::new();
    }
    match selection.total {
        0 => "No game was found.".to_owned(),
        1 => "1 game".to_owned(),
        total => format!("{total} games"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_keeps_what_is_wanted() {
        for (search, tag, page, expected) in [
            ("", "", "1", "/"),
            ("", "", "3", "/?page=3"),
            ("a&b=<c>", "", "1", "/?q=a%26b%3D%3Cc%3E"),
            ("a b", "two players", "2", "/?q=a+b&tag=two-players&page=2"),
        ] {
            let wanted = Wanted::read(search, tag, page);
            assert_eq!(address(&wanted, wanted.page), expected);
        }
    }

    #[test]
    fn a_chosen_tag_is_offered_and_takes_itself_away() {
        let tags = ["arcade".to_owned(), "puzzle".to_owned()];
        let wanted = Wanted::read("x", "rare", "4");
        let links = tag_links(&tags, &wanted);
        let seen: Vec<_> = links
            .iter()
            .map(|link| (link.tag, &*link.address, link.is_chosen))
            .collect();
        assert_eq!(
            seen,
            [
                ("rare", "/?q=x", true),
                ("arcade", "/?q=x&tag=arcade", false),
                ("puzzle", "/?q=x&tag=puzzle", false),
            ]
        );
    }
}
