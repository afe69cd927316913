//! The games of the public page, in memory: sorted, by tag, and as text for searching. It is made
//! again when the games or their ranking change, once for all requests.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwapOption;
use tokio::sync::{Mutex, Semaphore};

use crate::clock::Millis;
use crate::domain::counting::RankedProject;
use crate::domain::listing::parse_tag;
use crate::games::catalogue::Game;
use crate::games::page_metadata::GameListing;
use crate::players::PlayersState;

/// The number of games on a page.
pub const PER_PAGE: usize = 24;
/// The number of tags that the page offers.
const OFFERED_TAGS: usize = 16;
/// The number of characters of a search that are read.
const SEARCH_CHARS: usize = 100;
/// The length of the shortest mistyped slug for which another one is offered.
const SHORTEST_TYPED: usize = 3;
/// The length of the longest one.
const LONGEST_TYPED: usize = 64;
/// The number of words of a search that are read.
const SEARCH_WORDS: usize = 8;
/// How many searches run at once. Each reads the texts of all games, and the threads for blocking
/// work read the games' files, too.
const SEARCHES_AT_ONCE: usize = 2;

/// A listed game.
#[derive(Debug)]
pub struct Entry {
    /// The project.
    pub slug: String,
    /// What is shown of it.
    pub listing: GameListing,
    /// Its address.
    pub url: String,
    /// The audience of its tokens, by which its players are counted.
    pub audience: Arc<str>,
    /// The number of different players of the last day.
    pub players_day: u64,
    listed_at: Millis,
    /// Everything of it that a search finds, in lower case.
    text: String,
}

/// The listed games at one moment.
#[derive(Debug, Default)]
pub struct Storefront {
    /// The most played first.
    entries: Vec<Arc<Entry>>,
    by_slug: HashMap<String, usize>,
    /// The places of the games with each tag, in the order of the games.
    by_tag: HashMap<String, Vec<usize>>,
    /// The tags that the page offers, the most frequent first.
    tags: Vec<String>,
    /// The places of the games by what is left of their slugs without one character, as hashes. The
    /// first mistyped address needs it.
    near: OnceLock<HashMap<u64, usize>>,
}

/// What a visitor wants to see.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The text that is searched for; empty for all games.
    pub search: String,
    /// The tag that the games have.
    pub tag: Option<String>,
    /// The page, from 1.
    pub page: usize,
}

/// A page of games.
#[derive(Debug, Default)]
pub struct Selection {
    /// The games of the page.
    pub entries: Vec<Arc<Entry>>,
    /// The number of games on all pages.
    pub total: usize,
    /// The page that it is.
    pub page: usize,
    /// The number of pages, at least 1.
    pub pages: usize,
}

impl Wanted {
    /// Reads what a visitor's address asks for. Everything of it that makes no sense is left out.
    #[must_use]
    pub fn read(search: &str, tag: &str, page: &str) -> Self {
        let words = search.split_whitespace().take(SEARCH_WORDS);
        let search = words.collect::<Vec<_>>().join(" ");
        Self {
            search: search.chars().take(SEARCH_CHARS).collect(),
            tag: parse_tag(tag),
            page: page.parse().unwrap_or(1),
        }
    }
}

impl Storefront {
    /// Creates the list of these games, with the number of players of each one. `is_file` returns
    /// whether a path of a game is served from a file.
    #[must_use]
    pub fn of(
        games: &[Arc<Game>],
        ranked: &[RankedProject],
        is_file: impl Fn(&Game, &str) -> bool,
    ) -> Self {
        let players: HashMap<&str, u64> = ranked
            .iter()
            .map(|project| (project.slug.as_str(), project.players))
            .collect();
        let entry = |game: &Arc<Game>| {
            let players_day = players.get(&*game.slug).copied().unwrap_or(0);
            Arc::new(Entry::of(game, players_day, |path| is_file(game, path)))
        };
        let mut entries: Vec<Arc<Entry>> = games.iter().map(entry).collect();
        // Of games with equally many players, a new one is seen first.
        entries.sort_by(|one, other| {
            let rank = |entry: &Arc<Entry>| (entry.players_day, entry.listed_at);
            rank(other)
                .cmp(&rank(one))
                .then_with(|| one.slug.cmp(&other.slug))
        });
        let mut by_slug = HashMap::with_capacity(entries.len());
        let mut by_tag: HashMap<String, Vec<usize>> = HashMap::new();
        for (place, entry) in entries.iter().enumerate() {
            by_slug.insert(entry.slug.clone(), place);
            for tag in &entry.listing.tags {
                by_tag.entry(tag.clone()).or_default().push(place);
            }
        }
        let mut tags: Vec<(usize, &String)> = by_tag
            .iter()
            .map(|(tag, places)| (places.len(), tag))
            .collect();
        tags.sort_by(|one, other| other.0.cmp(&one.0).then_with(|| one.1.cmp(other.1)));
        let tags = tags.into_iter().take(OFFERED_TAGS);
        let tags = tags.map(|(_, tag)| tag.clone()).collect();
        Self {
            entries,
            by_slug,
            by_tag,
            tags,
            near: OnceLock::new(),
        }
    }

    /// Returns the listed game of this project.
    #[must_use]
    pub fn find(&self, slug: &str) -> Option<&Entry> {
        self.entries.get(*self.by_slug.get(slug)?).map(Arc::as_ref)
    }

    /// Returns the most played of the games whose slug is almost this text: one character is
    /// missing, superfluous, wrong, or somewhere else. The time for this does not grow with the
    /// number of games.
    #[must_use]
    pub fn nearest(&self, text: &str) -> Option<&Entry> {
        let text = text.to_ascii_lowercase();
        if !text.is_ascii() || !(SHORTEST_TYPED..=LONGEST_TYPED).contains(&text.len()) {
            return None;
        }
        let near = self.near.get_or_init(|| {
            let mut near = HashMap::new();
            for (place, entry) in self.entries.iter().enumerate() {
                for hash in shortened(&entry.slug) {
                    near.entry(hash).or_insert(place);
                }
            }
            near
        });
        let places = shortened(&text).filter_map(|hash| near.get(&hash));
        self.entries.get(*places.min()?).map(Arc::as_ref)
    }

    /// Returns the tags that the page offers.
    #[must_use]
    pub fn tags(&self) -> &[String] {
        &self.tags
    }

    /// Returns whether no game is listed.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns a page of the games that a visitor wants to see. A page after the last one is the
    /// last one. A search reads the texts of all games.
    #[must_use]
    pub fn select(&self, wanted: &Wanted) -> Selection {
        let search = wanted.search.to_lowercase();
        let words: Vec<&str> = search.split_whitespace().collect();
        let matches = |place: &usize| {
            let text = self.entries.get(*place).map(|entry| &entry.text);
            text.is_some_and(|text| words.iter().all(|word| text.contains(word)))
        };
        // Without a search, nothing is done for games that are not on the page.
        let places: Vec<usize> = match (&wanted.tag, words.is_empty()) {
            (None, true) => return self.cut(wanted.page, self.entries.len(), Some),
            (None, false) => (0..self.entries.len()).filter(matches).collect(),
            (Some(tag), _) => {
                let places = self.by_tag.get(tag).map(Vec::as_slice).unwrap_or_default();
                if words.is_empty() {
                    return self.cut(wanted.page, places.len(), |at| places.get(at).copied());
                }
                places.iter().copied().filter(matches).collect()
            }
        };
        self.cut(wanted.page, places.len(), |at| places.get(at).copied())
    }

    /// Returns a page of `total` games, whose places `place` returns.
    fn cut(&self, page: usize, total: usize, place: impl Fn(usize) -> Option<usize>) -> Selection {
        let pages = total.div_ceil(PER_PAGE).max(1);
        let page = page.clamp(1, pages);
        let first = (page - 1) * PER_PAGE;
        let places = (first..total.min(first + PER_PAGE)).filter_map(place);
        Selection {
            entries: places
                .filter_map(|place| self.entries.get(place).cloned())
                .collect(),
            total,
            page,
            pages,
        }
    }
}

/// Returns the hashes of a text, and of what is left of it without each of its characters.
fn shortened(text: &str) -> impl Iterator<Item = u64> {
    let hash = |parts: (&str, &str)| {
        let mut hasher = DefaultHasher::new();
        for byte in parts.0.bytes().chain(parts.1.bytes()) {
            byte.hash(&mut hasher);
        }
        hasher.finish()
    };
    let without = move |at: usize| {
        let before = text.get(..at).unwrap_or_default();
        hash((before, text.get(at + 1..).unwrap_or_default()))
    };
    std::iter::once(hash((text, ""))).chain((0..text.len()).map(without))
}

impl Entry {
    fn of(game: &Game, players_day: u64, is_file: impl Fn(&str) -> bool) -> Self {
        let listing = GameListing::of(game, is_file);
        let mut text = game.slug.clone();
        let others = [&listing.author, &listing.description];
        let others = others.into_iter().flatten().chain(&listing.tags);
        for part in std::iter::once(&listing.title).chain(others) {
            // No search finds a line break, so none goes beyond a part.
            text.push('\n');
            text.push_str(&part.to_lowercase());
        }
        Self {
            slug: game.slug.clone(),
            url: format!("{}/", game.origin),
            audience: Arc::clone(&game.audience),
            players_day,
            listed_at: game.listing.listed_at.unwrap_or(0),
            listing,
            text,
        }
    }

    /// Returns the host of its address.
    #[must_use]
    pub fn host(&self) -> &str {
        let host = self.url.split_once("://").map_or("", |(_, host)| host);
        host.trim_end_matches('/')
    }

    /// Returns what replaces the cover of a game that has none: the first letter of its title.
    #[must_use]
    pub fn initial(&self) -> String {
        let first = self.listing.title.chars().next().into_iter();
        first.flat_map(char::to_uppercase).collect()
    }
}

/// The list that was made last.
#[derive(Debug)]
pub struct Storefronts {
    kept: ArcSwapOption<Kept>,
    /// Held while the list is made, so that it is made once.
    making: Mutex<()>,
    searching: Arc<Semaphore>,
}

impl Default for Storefronts {
    fn default() -> Self {
        Self {
            kept: ArcSwapOption::empty(),
            making: Mutex::default(),
            searching: Arc::new(Semaphore::new(SEARCHES_AT_ONCE)),
        }
    }
}

#[derive(Debug)]
struct Kept {
    /// The version of the games.
    version: u64,
    ranked: Arc<Vec<RankedProject>>,
    front: Arc<Storefront>,
}

impl Storefronts {
    /// Returns the list of now.
    pub async fn load(&self, players: &Arc<PlayersState>) -> Arc<Storefront> {
        let ranked = players.counting.ranking.load().await;
        if let Some(front) = self.fresh(players, &ranked) {
            return front;
        }
        let _making = self.making.lock().await;
        if let Some(front) = self.fresh(players, &ranked) {
            return front;
        }
        let version = players.games.catalogue.version();
        let (state, numbers) = (Arc::clone(players), Arc::clone(&ranked));
        let made = tokio::task::spawn_blocking(move || {
            let games = state.games.catalogue.listed();
            let is_file = |game: &Game, path: &str| {
                let backends = &state.hosting.backends;
                backends.find(game, path).is_none()
            };
            Storefront::of(&games, &numbers, is_file)
        });
        // This fails only while the process ends, and nobody sees the page then.
        let front = Arc::new(made.await.unwrap_or_default());
        self.kept.store(Some(Arc::new(Kept {
            version,
            ranked,
            front: Arc::clone(&front),
        })));
        front
    }

    /// Returns what [`Storefront::select`] returns. A search runs on a thread for blocking work, so
    /// that no other request waits for it.
    pub async fn select(&self, front: &Arc<Storefront>, wanted: &Wanted) -> Selection {
        if wanted.search.is_empty() {
            return front.select(wanted);
        }
        let turn = Arc::clone(&self.searching).acquire_owned().await;
        let (front, wanted) = (Arc::clone(front), wanted.clone());
        let found = tokio::task::spawn_blocking(move || {
            // A search goes on if nobody waits for it any more.
            let _turn = turn;
            front.select(&wanted)
        });
        // This fails only while the process ends, and nobody sees the page then.
        found.await.unwrap_or_default()
    }

    fn fresh(
        &self,
        players: &PlayersState,
        ranked: &Arc<Vec<RankedProject>>,
    ) -> Option<Arc<Storefront>> {
        let kept = self.kept.load_full()?;
        let is_fresh =
            kept.version == players.games.catalogue.version() && Arc::ptr_eq(&kept.ranked, ranked);
        is_fresh.then(|| Arc::clone(&kept.front))
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use platform_protocol::names::Environment;

    use super::*;
    use crate::domain::listing::{Listing, OwnListing};

    fn game(number: i64) -> Arc<Game> {
        let slug = format!("game-{number}");
        let own = OwnListing {
            title: Some(format!("Game number {number}")),
            description: Some(format!("Hop {} and gather sparks. ", number % 97).repeat(8)),
            author: Some("Swift Otter".into()),
            tags: Some(vec![format!("tag-{}", number % 50), "arcade".into()]),
            cover: None,
        };
        Arc::new(Game {
            environment: Environment::Prod,
            preview: None,
            audience: format!("game:{slug}").into(),
            origin: format!("https://{slug}.play.example"),
            is_apart: false,
            canonical: None,
            deployment: None,
            lasting: Arc::default(),
            isolated: false,
            traced: false,
            taken_down: false,
            forget_from: None,
            framing: None,
            listing: Arc::new(Listing {
                listed_at: Some(number),
                own,
            }),
            backend: None,
            caller: None,
            slug,
        })
    }

    fn front(games: i64) -> Storefront {
        let games: Vec<_> = (0..games).map(game).collect();
        let ranked = [("game-7", 3), ("game-5", 9)].map(|(slug, players)| RankedProject {
            slug: slug.into(),
            players,
        });
        Storefront::of(&games, &ranked, |_, _| true)
    }

    fn slugs(selection: &Selection) -> Vec<String> {
        let entries = selection.entries.iter();
        entries.map(|entry| entry.slug.clone()).collect()
    }

    #[test]
    fn the_most_played_come_first_and_then_the_newest() {
        let front = front(10);
        let all = front.select(&Wanted::default());
        let expected = [5, 7, 9, 8, 6, 4, 3, 2, 1, 0].map(|number| format!("game-{number}"));
        assert_eq!(slugs(&all), expected);
        assert_eq!((all.total, all.page, all.pages), (10, 1, 1));
    }

    #[test]
    fn a_search_finds_all_its_words_in_any_part_of_a_game() {
        let front = front(200);
        let found = |search: &str, tag: &str| {
            let wanted = Wanted::read(search, tag, "");
            front.select(&wanted).total
        };
        assert_eq!(found("NUMBER 17", ""), 15);
        assert_eq!(found("otter sparks", ""), 200);
        assert_eq!(found("game-199", ""), 1);
        assert_eq!(found("nothing", ""), 0);
        assert_eq!(found("", "Tag 3"), 4);
        assert_eq!(found("number 53", "tag-3"), 2);
        assert_eq!(found("", "none"), 0);
        let long = Wanted::read(&"word ".repeat(1_000), "", "");
        assert_eq!(long.search.split(' ').count(), SEARCH_WORDS);
        assert_eq!(
            front.find("game-3").map(|entry| entry.host()),
            Some("game-3.play.example")
        );
        assert!(front.find("none").is_none());
        assert_eq!(front.tags().len(), OFFERED_TAGS);
        assert_eq!(front.tags()[0], "arcade");
    }

    #[tokio::test]
    async fn a_search_on_another_thread_finds_the_same() {
        let (fronts, front) = (Storefronts::default(), Arc::new(front(200)));
        for (search, tag, page) in [
            ("", "arcade", "3"),
            ("number 17", "", "1"),
            ("sparks", "", "2"),
        ] {
            let wanted = Wanted::read(search, tag, page);
            let (here, there) = (front.select(&wanted), fronts.select(&front, &wanted).await);
            assert_eq!(slugs(&here), slugs(&there), "{search} {tag}");
            assert_eq!((here.total, here.page), (there.total, there.page));
        }
        // One that nobody waits for any more gives its turn back.
        let wanted = Wanted::read("sparks", "", "1");
        for _ in 0..SEARCHES_AT_ONCE * 2 {
            tokio::select! {
                biased;
                _ = fronts.select(&front, &wanted) => {}
                () = std::future::ready(()) => {}
            }
            assert_eq!(fronts.select(&front, &wanted).await.total, 200);
        }
    }

    #[test]
    fn a_mistyped_slug_is_near_to_the_most_played_game_that_it_could_be() {
        let front = front(10);
        let near = |text: &str| front.nearest(text).map(|entry| &*entry.slug);
        for (text, expected) in [
            ("gam-3", Some("game-3")),
            ("gaame-3", Some("game-3")),
            ("gane-3", Some("game-3")),
            ("agme-3", Some("game-3")),
            ("GAME3", Some("game-3")),
            // Any digit could be meant.
            ("game-", Some("game-5")),
            ("game-x", Some("game-5")),
            ("gme-x", None),
            ("other", None),
            ("", None),
            ("g\u{e4}me-3", None),
        ] {
            assert_eq!(near(text), expected, "{text}");
        }
        assert_eq!(near(&"x".repeat(10_000)), None);
    }

    #[test]
    fn every_game_is_on_one_page() {
        let front = front(PER_PAGE as i64 * 2 + 1);
        let mut seen = Vec::new();
        for page in ["1", "2", "3"] {
            let selection = front.select(&Wanted::read("", "arcade", page));
            assert_eq!(selection.pages, 3);
            seen.extend(slugs(&selection));
        }
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), PER_PAGE * 2 + 1);
        for (page, expected) in [("0", 1), ("99", 3), ("-1", 1), ("x", 1)] {
            let selection = front.select(&Wanted::read("", "", page));
            assert_eq!(selection.page, expected, "{page}");
        }
    }

    /// Returns the shortest of several times.
    fn best(mut work: impl FnMut()) -> Duration {
        #[expect(clippy::disallowed_methods, reason = "it measures real time")]
        let time = |_| {
            let began = Instant::now();
            work();
            began.elapsed()
        };
        (0..5).map(time).min().unwrap()
    }

    #[test]
    fn with_ten_thousand_games_a_page_takes_no_longer_than_with_a_hundred() {
        let (few, many) = (front(100), front(10_000));
        let time = |front: &Storefront, tag: &str| {
            let wanted = Wanted::read("", tag, "2");
            best(|| {
                for _ in 0..50 {
                    assert_eq!(front.select(&wanted).entries.len(), PER_PAGE);
                }
            })
        };
        for tag in ["", "arcade"] {
            // What looked at every game would take a hundred times as long.
            let (few, many) = (time(&few, tag), time(&many, tag));
            assert!(many < few * 20, "{tag:?}: {many:?} and {few:?}");
        }
        // A search for four words reads each text once for the first that it does not find.
        let text: String = many.entries.iter().map(|entry| &*entry.text).collect();
        let read = best(|| assert!(!text.contains("nothing to find")));
        let wanted = Wanted::read("nothing to find", "", "1");
        let search = best(|| assert_eq!(many.select(&wanted).total, 0));
        assert!(search < read * 20, "{search:?} and {read:?}");
    }
}
