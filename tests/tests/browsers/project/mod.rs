//! The project page with the mouse: players, errors, settings.

pub(crate) mod domains;
pub(crate) mod errors;
pub(crate) mod listing;
pub(crate) mod log;
pub(crate) mod page;
pub(crate) mod palette;
pub(crate) mod people;
pub(crate) mod players;
pub(crate) mod previews;
pub(crate) mod settings;
pub(crate) mod shifts;
pub(crate) mod takedown;
pub(crate) mod upload;
pub(crate) mod webhook;

use platform_protocol::log::{LogLevel, LogSource};
use platform_protocol::names::Environment;
use platform_server::clock::{Clock as _, Millis};
use platform_server::domain::counting::{
    DAY, Distinct, DistinctSketch, MINUTE, NewCounts, PlayerCount, Span,
};
use platform_server::domain::date::rfc3339;
use platform_server::domain::log::{LogEntry, NewLogRecords};
use platform_server::domain::page::PageId;
use platform_tests::browser::Stage;
use platform_tests::owner::Owner;
use platform_tests::platform::Platform;
use platform_tests::poll;
use platform_tests::sign_in::Way;
use platform_tests::world::PageBuilder;
use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

/// A platform, the owner of `game` on it, and their browser.
struct Scene {
    platform: Platform,
    owner: Owner,
}

impl Scene {
    async fn start() -> Self {
        Self::start_on(Platform::start(&[]).await).await
    }

    async fn start_on(platform: Platform) -> Self {
        let owner = Owner::sign_in(&platform.site, "Ada").await;
        owner.create("game").await;
        Self { platform, owner }
    }

    /// Ada signs in and opens this tab of the project page.
    async fn open(&self, stage: &Stage, tab: &str) {
        stage.open(&self.tab(tab)).await;
        stage.press("Sign in").await;
        Way::BuiltIn.sign_in(stage, "Ada").await;
        stage.arrives_at(&self.tab(tab)).await;
        is_open(stage).await;
    }

    /// Opens this tab again, for who is signed in.
    async fn open_again(&self, stage: &Stage, tab: &str) {
        stage.open(&self.tab(tab)).await;
        is_open(stage).await;
    }

    /// Opens another tab by its link, and waits until it is filled.
    async fn turn_to(&self, stage: &Stage, tab: &str) {
        let query = stage.look("return location.search", vec![]).await;
        let address = format!("{}{}", self.tab(tab), query.as_str().unwrap());
        stage
            .click(&format!(
                "#tabs a[href='{}']",
                &address[self.platform.site.origin.len()..]
            ))
            .await;
        stage.arrives_at(&address).await;
        is_open(stage).await;
    }

    /// The address of a tab; the first one has no name.
    fn tab(&self, tab: &str) -> String {
        let page = self.page();
        if tab.is_empty() {
            page
        } else {
            format!("{page}/{tab}")
        }
    }

    fn page(&self) -> String {
        format!("{}/projects/game", self.platform.site.origin)
    }

    fn now(&self) -> Millis {
        self.platform.clock.now()
    }

    /// Deploys a page to `environment` and returns the deployment's id.
    async fn deploy(&self, environment: &str) -> Uuid {
        let page = PageBuilder::new().html();
        let files = [("index.html", page.as_str())];
        let deployed = self.owner.deploy("game", environment, &files).await;
        deployed["id"].as_str().unwrap().parse().unwrap()
    }

    /// Production has had up to 40 players for a week, and 900 unique ones.
    async fn play(&self) {
        let now = Span::Minute.start(self.now());
        let minutes = (0..7 * 24 * 60).map(|back| PlayerCount {
            start: now - back * MINUTE,
            peak: 40 - u32::try_from((back % 1_440).abs_diff(720) / 20).unwrap(),
            player_millis: (30 - (back % 1_440 - 720).abs() / 25) * MINUTE,
        });
        let mut players = Distinct::default();
        for number in 0..900_u128 {
            players.add(Uuid::from_u128(number << 64 | number));
        }
        let distinct = (0..7).map(|back| DistinctSketch {
            period: rfc3339(now - back * DAY)[..10].to_owned(),
            players: players.clone(),
        });
        let month = DistinctSketch {
            period: rfc3339(now)[..7].to_owned(),
            players: players.clone(),
        };
        let counts = NewCounts {
            slug: "game".into(),
            environment: Environment::Prod,
            minutes: minutes.collect(),
            distinct: distinct.chain([month]).collect(),
        };
        let store = self.platform.store();
        store.add_player_counts(vec![counts]).await.unwrap();
    }

    /// One player has been in production, for one second of a minute.
    async fn play_alone(&self) {
        let now = self.now();
        let mut players = Distinct::default();
        players.add(PLAYER);
        let periods = [rfc3339(now)[..10].to_owned(), rfc3339(now)[..7].to_owned()];
        let counts = NewCounts {
            slug: "game".into(),
            environment: Environment::Prod,
            minutes: vec![PlayerCount {
                start: Span::Minute.start(now - 10 * MINUTE),
                peak: 1,
                player_millis: 1_000,
            }],
            distinct: periods
                .map(|period| DistinctSketch {
                    period,
                    players: players.clone(),
                })
                .into(),
        };
        let store = self.platform.store();
        store.add_player_counts(vec![counts]).await.unwrap();
    }

    /// Records of production, received `ago` milliseconds before now.
    async fn log(&self, deployment: Uuid, ago: Millis, entries: Vec<LogEntry>) {
        let records = NewLogRecords {
            slug: "game".into(),
            environment: Environment::Prod,
            deployment: Some(deployment),
            player: Some(PLAYER),
            page: PageId([7; 16]),
            received_at: self.now() - ago,
            entries,
        };
        let store = self.platform.store();
        store.add_log_records(records).await.unwrap();
    }

    async fn environment(&self, name: &str) -> Value {
        let path = format!("/api/projects/game/environments/{name}");
        self.owner.ask(Method::GET, &path, None).await.1
    }
}

const PLAYER: Uuid = Uuid::from_u128(0x0199_0000_0000_7000_8000_0000_0000_0001);

fn entry(message: &str, level: LogLevel) -> LogEntry {
    LogEntry {
        time: 1_790_000_000_000,
        level,
        source: LogSource::Console,
        message: message.into(),
        stack: None,
        url: None,
        line: None,
        column: None,
        metadata: None,
        count: 1,
    }
}

/// Waits until the tab is filled with data.
async fn is_open(stage: &Stage) {
    let inside = "return document.getElementById('inside')?.hidden === false";
    comes_to(stage, inside, json!(true)).await;
}

/// Waits until `script` returns `expected`.
async fn comes_to(stage: &Stage, script: &str, expected: Value) {
    poll::until(&format!("{script} gives {expected}"), async || {
        (stage.look(script, vec![]).await == expected).then_some(())
    })
    .await;
}

/// Returns the texts of the elements that match `selector`.
async fn texts(stage: &Stage, selector: &str) -> Value {
    let script =
        "return [...document.querySelectorAll(arguments[0])].map(element => element.textContent)";
    stage.look(script, vec![json!(selector)]).await
}
