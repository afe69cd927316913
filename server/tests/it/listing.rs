//! The public page: which games it lists, what it shows of them, and who sets that.

use platform_server::games::catalogue::Catalogue;
use platform_server::games::page_metadata::GameListing;
use reqwest::Method;
use serde_json::{Value, json};

use crate::caller::{Caller, archive};
use crate::support::{Answer, TestApp, send};

const LISTING: &str = "/api/projects/game/listing";
const PAGE: &str = r#"<!doctype html><head><title>Plain</title>
    <meta property="og:title" content="Two Rings">
    <meta property="og:description" content="Hop &amp; gather &#x202e;sparks.">
    <meta property="og:image" content="cover.png">
    <meta name="author" content="Otter">
    <meta name="keywords" content="Arcade, two players">"#;

/// The beginning of a PNG of this size (PNG, "Image header").
pub(crate) fn png(width: u32, height: u32) -> Vec<u8> {
    let size = [width.to_be_bytes(), height.to_be_bytes()].concat();
    let kind = [8, 6, 0, 0, 0, 0, 0, 0, 0];
    [b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR", &size[..], &kind[..]].concat()
}

async fn home(app: &TestApp, query: &str) -> String {
    let page = send(app.get("", &format!("/{query}"))).await;
    assert_eq!(page.status, 200);
    page.text().to_owned()
}

/// Returns the page of the game.
async fn game_page(app: &TestApp) -> Answer {
    send(app.get("", "/games/game")).await
}

/// Deploys a game with metadata to production.
async fn with_game(app: &TestApp) -> Caller<'_> {
    let owner = Caller::with_project(app).await;
    let files = archive(&[
        ("index.html", PAGE.as_bytes()),
        ("cover.png", &png(1_280, 720)),
        ("other cover.png", &png(2_048, 2_048)),
        ("wide.png", &png(30_000, 30_000)),
        ("large.png", &vec![0; 3 * 1024 * 1024]),
    ]);
    assert_eq!(owner.deploy("prod", files).await.status, 201);
    owner
}

async fn set(owner: &Caller<'_>, listing: Value) -> Value {
    let answer = owner.put(LISTING, listing).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

#[tokio::test]
async fn a_game_is_on_the_public_page_once_its_people_list_it() {
    let app = TestApp::start().await;
    let owner = with_game(&app).await;
    assert!(home(&app, "").await.contains("/games/demo"));
    let unlisted = |html: String| !html.contains("game.platform.localhost");
    assert!(unlisted(home(&app, "").await));
    assert_eq!(game_page(&app).await.problem(), "not-found");
    let before: Value = owner.get(LISTING).await.json();
    assert_eq!(
        (&before["listed"], &before["listed_at"]),
        (&json!(false), &Value::Null)
    );

    let listing = set(&owner, json!({ "listed": true })).await;
    let cover = format!("{}/cover.png", app.origin("game"));
    assert_eq!(
        listing["shown"],
        json!({
            "title": "Two Rings",
            "description": "Hop & gather sparks.",
            "author": "Otter",
            "tags": ["arcade", "two-players"],
            "cover": cover,
        })
    );
    for html in [
        home(&app, "").await,
        game_page(&app).await.text().to_owned(),
    ] {
        for part in [
            "<bdi>Two Rings</bdi>",
            "<bdi>Hop &#38; gather sparks.</bdi>",
            &format!("src=\"{cover}\""),
            &format!("href=\"{}/\"", app.origin("game")),
        ] {
            assert!(html.contains(part), "{part}: {html}");
        }
    }
    let page = game_page(&app).await;
    let policy = page.header("content-security-policy").unwrap().to_owned();
    assert!(policy.contains("default-src 'none'"), "{policy}");
    let html = page.text();
    for part in ["By <bdi>Otter</bdi>", "/?tag=two-players"] {
        assert!(html.contains(part), "{part}: {html}");
    }

    // What is taken down, deleted or taken off the list is not there.
    for (change, is_listed) in [("disable", false), ("enable", true)] {
        let path = format!("/api/projects/game/{change}");
        assert_eq!(owner.post(&path, json!({})).await.status, 200);
        assert_eq!(unlisted(home(&app, "").await), !is_listed);
    }
    set(&owner, json!({ "listed": false })).await;
    assert!(unlisted(home(&app, "").await));
    assert_eq!(game_page(&app).await.problem(), "not-found");
    // The ranking has every game that is played.
    let ranking: Value = send(app.get("", "/api/ranking")).await.json();
    assert!(ranking.to_string().contains("\"game\""), "{ranking}");
}

#[tokio::test]
async fn what_is_set_is_shown_in_place_of_the_pages_metadata() {
    let app = TestApp::start().await;
    let owner = with_game(&app).await;
    let own = json!({
        "title": "<b>Rings</b> & \u{5d0}",
        "description": "Mine.",
        "author": "Us",
        "tags": ["Puzzle", "puzzle", "Co op"],
        "cover": "/other cover.png",
    });
    let listing = set(&owner, json!({ "listed": true, "own": own })).await;
    assert_eq!(listing["own"]["tags"], json!(["puzzle", "co-op"]));
    let cover = format!("{}/other%20cover.png", app.origin("game"));
    assert_eq!(listing["shown"]["cover"], json!(cover));
    let page = game_page(&app).await;
    let html = page.text();
    for part in [
        "<h1><bdi>&#60;b&#62;Rings&#60;/b&#62; &#38; \u{5d0}</bdi></h1>",
        "<bdi>Mine.</bdi>",
        "/?tag=co-op",
        &cover,
    ] {
        assert!(html.contains(part), "{part}: {html}");
    }
    assert!(!html.contains("Hop"), "{html}");
    let bare = json!({ "listed": true, "own": { "cover": "/cover.png", "tags": [] } });
    let listing = set(&owner, bare).await;
    assert_eq!(listing["shown"]["tags"], json!([]));
    // A cover that a deployment no longer has is not shown.
    let files = archive(&[("index.html", b"<head><title>Bare</title>")]);
    assert_eq!(owner.deploy("prod", files).await.status, 201);
    let listing: Value = owner.get(LISTING).await.json();
    assert_eq!(listing["shown"]["title"], "Bare");
    assert_eq!(listing["shown"]["cover"], Value::Null);
    assert_eq!(listing["own"]["cover"], "/cover.png");
}

#[tokio::test]
async fn an_image_that_is_too_large_for_a_phone_is_no_cover() {
    let app = TestApp::start().await;
    let owner = with_game(&app).await;
    let first: Value = owner.get("/api/projects/game").await.json();
    let first = first["environments"]["prod"]["deployment"]["id"].clone();
    for (cover, told) in [
        ("/wide.png", "30000 × 30000 pixels"),
        ("/large.png", "more than 2 MiB"),
    ] {
        let own = json!({ "listed": true, "own": { "cover": cover } });
        let refused = owner.put(LISTING, own).await;
        assert_eq!(refused.problem(), "invalid-request");
        assert!(refused.text().contains(told), "{}", refused.text());
    }
    let own = json!({ "listed": true, "own": { "cover": "/other%20cover.png" } });
    set(&owner, own).await;
    let shown = async || {
        let listing: Value = owner.get(LISTING).await.json();
        let cover = listing["shown"]["cover"].clone();
        let cover = cover
            .as_str()
            .map(|cover| cover.replace(&app.origin("game"), ""));
        let html = home(&app, "").await;
        let cover = cover.unwrap_or_default();
        assert!(!html.contains("wide.png"), "{html}");
        assert!(html.contains(&cover), "{cover}: {html}");
        cover
    };
    assert_eq!(shown().await, "/other%20cover.png");
    // The next deployment has a larger one under the same name, and its page names another one.
    let page =
        r#"<head><link rel=icon href=small.png><meta property="og:image" content="wide.png">"#;
    let files = archive(&[
        ("index.html", page.as_bytes()),
        ("wide.png", &png(30_000, 30_000)),
        ("other cover.png", &png(2_049, 1)),
        ("small.png", &png(16, 16)),
    ]);
    assert_eq!(owner.deploy("prod", files).await.status, 201);
    assert_eq!(shown().await, "/small.png");
    let back = json!({ "deployment": first });
    let path = "/api/projects/game/environments/prod/rollback";
    assert_eq!(owner.post(path, back).await.status, 200);
    assert_eq!(shown().await, "/other%20cover.png");
}

/// A drawing with `inside`.
fn svg(inside: &str) -> Vec<u8> {
    format!("<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 640 360'>{inside}</svg>").into()
}

/// Each of these is drawn for 5 seconds to more than a minute.
#[tokio::test]
async fn a_drawing_that_takes_long_is_no_cover() {
    let app = TestApp::start().await;
    let owner = with_game(&app).await;
    let dashes = "<path d='M0 0h999999' stroke='red' stroke-dasharray='.001'/>".repeat(900);
    let blurs = "<feGaussianBlur stdDeviation='9'/>".repeat(1_500);
    let filter = format!("<filter id='f'>{blurs}</filter><rect filter='url(#f)'/>");
    let points = "0 0 ".repeat(8_000);
    let marker = "<rect width='640' height='360'/>".repeat(600);
    let markers =
        format!("<marker id='m'>{marker}</marker><path marker-mid='url(#m)' d='M{points}'/>");
    let masks = "<g mask='url(#m)'>".repeat(1_500) + "<mask id='m'/>" + &"</g>".repeat(1_500);
    let uses = |level: u32| {
        let four = format!("<use href='#a{level}'/>").repeat(4);
        format!("<g id='a{}'>{four}</g>", level + 1)
    };
    let bomb = format!(
        "<g id='a0'>{marker}</g>{}",
        (0..4).map(uses).collect::<String>()
    );
    let deep = "<g>".repeat(8_000) + &"</g>".repeat(8_000);
    let hostile = [dashes, filter, markers, masks, bomb, deep].map(|inside| svg(&inside));
    let good = svg("<rect width='640' height='360' fill='#123456'/><circle r='99' opacity='.5'/>");
    let names = (0..hostile.len()).map(|at| format!("{at}.svg"));
    let images: String = names
        .clone()
        .map(|name| format!(r#"<meta property="og:image" content="{name}">"#))
        .collect();
    let page = format!(r#"<head>{images}<link rel="icon" href="good.svg">"#);
    let mut files = vec![
        ("index.html".to_owned(), page.into_bytes()),
        ("good.svg".to_owned(), good),
    ];
    files.extend(names.clone().zip(hostile));
    let files: Vec<(&str, &[u8])> = files
        .iter()
        .map(|(name, text)| (&**name, &**text))
        .collect();
    assert!(files.iter().all(|(_, text)| text.len() < 64 * 1024));
    let begun = tokio::time::Instant::now();
    assert_eq!(owner.deploy("prod", archive(&files)).await.status, 201);
    for name in names {
        let own = json!({ "listed": true, "own": { "cover": format!("/{name}") } });
        let refused = owner.put(LISTING, own).await;
        assert_eq!(refused.problem(), "invalid-request", "{name}");
        assert!(refused.text().contains("SVG"), "{}", refused.text());
    }
    // A page that names them all gets the one that is drawn at once.
    set(&owner, json!({ "listed": true })).await;
    let listing: Value = owner.get(LISTING).await.json();
    let cover = format!("{}/good.svg", app.origin("game"));
    assert_eq!(listing["shown"]["cover"], json!(cover));
    let took = begun.elapsed();
    assert!(
        took.as_secs() < 20,
        "reading them is bounded as well: {took:?}"
    );
}

#[tokio::test]
async fn covers_of_earlier_versions_are_measured_when_they_are_read() {
    let app = TestApp::start().await;
    let owner = with_game(&app).await;
    set(&owner, json!({ "listed": true })).await;
    app.sql("UPDATE deployments SET inspection = json_remove(inspection, '$.measured')");
    let state = &app.running.state;
    let games = &state.hosting.games;
    let other = Catalogue::new(
        state.platform.origin.clone(),
        state.platform.games_origin.clone(),
    );
    let read = other.refresh_all(&*state.platform.store, &games.files);
    read.await.unwrap();
    let game = other.find("game").unwrap();
    let shown = GameListing::of(&game, |_| true);
    let cover = format!("{}/cover.png", app.origin("game"));
    assert_eq!(shown.picture, Some(cover));
}

#[tokio::test]
async fn a_listing_has_only_bounded_visible_text_and_the_games_own_cover() {
    let app = TestApp::start().await;
    let owner = with_game(&app).await;
    for own in [
        json!({ "title": "" }),
        json!({ "title": "x".repeat(61) }),
        json!({ "title": "a\u{202e}b" }),
        json!({ "description": "two\nlines" }),
        json!({ "description": "x".repeat(301) }),
        json!({ "author": "\u{200b}" }),
        json!({ "tags": ["<b>"] }),
        json!({ "tags": ["a", "b", "c", "d", "e", "f", "g"] }),
        json!({ "cover": "/none.png" }),
        json!({ "cover": "/index.html" }),
        json!({ "cover": "https://elsewhere.example/cover.png" }),
        json!({ "cover": "//elsewhere.example/cover.png" }),
        json!({ "more": "x" }),
    ] {
        let answer = owner
            .put(LISTING, json!({ "listed": true, "own": own }))
            .await;
        assert_eq!(answer.problem(), "invalid-request", "{own}");
    }
    let answer = owner.put(LISTING, json!({})).await;
    assert_eq!(answer.problem(), "invalid-request");
    let listing: Value = owner.get(LISTING).await.json();
    assert_eq!(listing["listed"], false);
}

#[tokio::test]
async fn visitors_search_games_and_choose_tags() {
    let app = TestApp::start().await;
    let owner = with_game(&app).await;
    set(&owner, json!({ "listed": true })).await;
    let shows = async |query: &str| {
        let html = home(&app, query).await;
        ["/games/demo\"", "/games/game\""].map(|game| html.contains(game))
    };
    for (query, expected) in [
        ("", [true, true]),
        ("?q=RINGS", [false, true]),
        ("?q=sparks+otter", [false, true]),
        ("?q=firefly", [true, false]),
        ("?tag=arcade", [true, true]),
        ("?tag=two-players", [false, true]),
        ("?tag=Two+Players&q=hop", [false, true]),
        ("?tag=none", [false, false]),
        ("?q=none", [false, false]),
        ("?page=99", [true, true]),
        ("?page=-1&page=x&tag=%00", [true, true]),
    ] {
        assert_eq!(shows(query).await, expected, "{query}");
    }
    let html = home(&app, "?q=%3Cscript%3E%22").await;
    assert!(html.contains("value=\"&#60;script&#62;&#34;\""), "{html}");
    assert!(html.contains("No game was found."), "{html}");
    let wrong = send(app.request(Method::POST, "", "/games/game")).await;
    assert_eq!(wrong.problem(), "method-not-allowed");
}

/// Opens an address as a browser does.
async fn opened(app: &TestApp, label: &str, path: &str) -> String {
    let page = "text/html,application/xhtml+xml,*/*;q=0.8";
    let answer = send(app.get(label, path).header("accept", page)).await;
    assert_eq!(answer.status, 404);
    answer.text().to_owned()
}

#[tokio::test]
async fn a_mistyped_address_leads_to_the_nearest_listed_game_and_a_missing_one_to_its_game() {
    let app = TestApp::start().await;
    let owner = with_game(&app).await;
    let offers = |html: &str| html.contains("Did you mean");
    for label in ["gaem", "ga", "dev-gam", "nothing"] {
        assert!(!offers(&opened(&app, label, "/").await), "{label}");
    }
    set(&owner, json!({ "listed": true })).await;
    let game = format!(
        "<a href=\"{}/\"><bdi>Two Rings</bdi></a>?",
        app.origin("game")
    );
    for label in ["gaem", "Gam", "games"] {
        let html = opened(&app, label, "/some/path").await;
        assert!(html.contains(&game), "{label}: {html}");
    }
    assert!(!offers(&opened(&app, "nothing", "/").await));
    let html = opened(&app, "", "/games/gme").await;
    let page = app.origin("").replace("://.", "://");
    let page = format!("href=\"{page}/games/game\"");
    assert!(html.contains(&page), "{html}");
    let html = opened(&app, "game", "/level/2").await;
    let back = format!(
        "href=\"{}/\">Back to <bdi>Two Rings</bdi></a>",
        app.origin("game")
    );
    assert!(html.contains(&back) && !offers(&html), "{html}");
    // Programs get a problem, as before.
    assert_eq!(send(app.get("gaem", "/")).await.problem(), "unknown-host");
}
