//! Downloading one's data, deleting one's account or guest, and taking that back.

use std::time::Duration;

use platform_server::auth::deletions;
use platform_server::clock::Clock as _;
use platform_server::domain::audit::AuditKind;
use platform_server::domain::console_token::FRESH_MILLIS;
use platform_server::domain::deletion::REGRET_MILLIS;
use serde_json::Value;
use uuid::Uuid;

use crate::browser::{Browser, hidden_field};
use crate::caller::Caller;
use crate::device::{account, signed_in};
use crate::support::{Answer, Opened, TestApp, send};

/// What the confirmation page is about on the first day of the tests.
const DAY: &str = "15 January 2026";

/// Returns the cookie and the id of a new guest.
async fn guest(app: &TestApp) -> (String, Uuid) {
    let first = send(app.post_token()).await;
    let id = first.claims().sub.parse().unwrap();
    (first.cookie().unwrap().to_owned(), id)
}

/// Opens the page that deletes a player.
async fn page(app: &TestApp, session: &str) -> Opened {
    let opened = app.open("/profile/delete", Some(session)).await;
    assert_eq!(opened.answer.status, 200);
    opened
}

/// Presses a button of the page after it could be read.
async fn press(app: &TestApp, opened: &Opened, action: &str) -> Answer {
    app.clock.advance(2_000);
    let fields = [
        ("csrf", opened.token()),
        ("shown", opened.shown()),
        ("account", opened.hidden("account")),
        ("redirect", opened.hidden("redirect")),
        ("action", action),
    ];
    send(app.post_form("/profile/delete", &opened.cookies, &fields)).await
}

/// Asks for the deletion, and returns the cookie of the session that follows.
async fn delete(app: &TestApp, session: &str) -> String {
    let opened = page(app, session).await;
    let done = press(app, &opened, "delete").await;
    assert_eq!(done.status, 303, "{}", done.text());
    let location = done.header("location").unwrap();
    assert!(location.starts_with("/profile/delete?"), "{location}");
    done.cookie().unwrap().to_owned()
}

/// Requests a token as a game does.
async fn token(app: &TestApp, session: &str) -> Answer {
    send(app.post_token().header("cookie", session)).await
}

/// Runs the job that removes players.
async fn remove_due(app: &TestApp) -> usize {
    let store = &*app.running.state.platform.store;
    let removed = deletions::remove_due(store, app.clock.now()).await.unwrap();
    // A job that reads just now prevents it.
    let mut looks = tokio::time::interval(Duration::from_millis(20));
    let overwritten = async {
        while !store.overwrite_removed().await.unwrap() {
            looks.tick().await;
        }
    };
    let overwritten = tokio::time::timeout(Duration::from_secs(20), overwritten);
    overwritten.await.unwrap();
    removed
}

#[tokio::test]
async fn a_guest_is_removed_fourteen_days_after_it_was_confirmed() {
    let app = TestApp::start().await;
    let (session, id) = guest(&app).await;
    let profile = app.open("/profile", Some(&session)).await.answer;
    assert!(profile.text().contains("Delete this guest"));
    assert!(profile.text().contains("Download my data"));
    let asked = page(&app, &session).await;
    assert!(asked.answer.text().contains("Delete the guest"));
    assert!(asked.answer.text().contains(DAY), "{}", asked.answer.text());
    let next = delete(&app, &session).await;
    assert_ne!(next, session);

    assert_eq!(token(&app, &next).await.problem(), "session-expired");
    let profile = app.open("/profile", Some(&next)).await.answer;
    assert_eq!(profile.status, 303);
    let left = page(&app, &next).await;
    let html = left.answer.text();
    for part in ["will be deleted on", DAY, "Keep this guest", "Sign out"] {
        assert!(html.contains(part), "{part}: {html}");
    }
    let login = app.open("/login", Some(&next)).await.answer;
    assert!(
        login.text().contains("will be deleted on"),
        "{}",
        login.text()
    );

    app.clock.advance(REGRET_MILLIS - 10_000);
    assert_eq!(remove_due(&app).await, 0);
    app.clock.advance(10_000);
    assert_eq!(remove_due(&app).await, 1);
    let new = token(&app, &next).await.claims();
    assert_ne!(new.sub, id.to_string());
    let events = app.events_of(AuditKind::PlayerDeleted).await;
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].player, None);
}

#[tokio::test]
async fn an_account_is_kept_until_its_time_has_come() {
    let app = TestApp::start().await;
    let (session, id) = guest(&app).await;
    let here = app.sign_in("7", Some(id)).await;
    let there = app.sign_in("7", None).await;
    assert_ne!(session, here);
    let next = delete(&app, &here).await;
    for ended in [&here, &there] {
        assert_eq!(token(&app, ended).await.problem(), "session-expired");
    }
    let left = page(&app, &next).await;
    assert!(left.answer.text().contains("Keep my account"));
    // Nothing else works meanwhile.
    let rename = [
        ("csrf", left.token()),
        ("action", "rename"),
        ("username", "another-name"),
    ];
    let elsewhere = send(app.post_form("/profile", &left.cookies, &rename)).await;
    assert_eq!(elsewhere.status, 303);
    let location = elsewhere.header("location").unwrap();
    assert!(location.starts_with("/profile/delete?"), "{location}");
    assert_eq!(app.console_token(&next).await.problem(), "session-expired");

    let kept = press(&app, &left, "keep").await;
    let location = kept.header("location").unwrap();
    assert!(location.ends_with("&saved=keep"), "{location}");
    let profile = app.open(location, Some(&next)).await.answer;
    assert!(profile.text().contains("You are not deleted."));
    assert_eq!(token(&app, &next).await.claims().sub, id.to_string());
    app.clock.advance(REGRET_MILLIS);
    assert_eq!(remove_due(&app).await, 0);
    // A form that was left open in another tab does nothing more.
    let again = press(&app, &left, "keep").await;
    assert_eq!(again.status, 303);
    assert_eq!(app.events_of(AuditKind::DeletionTakenBack).await.len(), 1);
}

#[tokio::test]
async fn an_account_signs_in_again_before_it_is_deleted() {
    let app = TestApp::start().await;
    let mut browser = account(&app, "Ada").await;
    let address = format!("{}/profile/delete", app.origin("auth"));
    assert!(browser.get(&address).await.text().contains(DAY));
    app.clock.advance(FRESH_MILLIS + 1);
    let asked = browser.get(&address).await;
    assert!(asked.text().contains("Sign in again"), "{}", asked.text());
    // The form of a page that was left open does not delete it either.
    let session = format!(
        "platform-session={}",
        browser.cookie("platform-session").unwrap()
    );
    let (token, shown) = (browser.form_token().to_owned(), browser.shown().to_owned());
    let account = browser.token().await.claims().sub;
    let fields = [
        ("csrf", token.as_str()),
        ("shown", &shown),
        ("account", &account),
        ("action", "delete"),
    ];
    let refused = browser.post(&address, &fields).await;
    assert_eq!(refused.status, 303, "{}", refused.text());
    let found = app.events_of(AuditKind::DeletionAsked).await;
    assert!(found.is_empty(), "{found:?}");

    let login = format!(
        "{}/login?{}",
        app.origin("auth"),
        url::form_urlencoded::Serializer::new(String::new())
            .append_pair("redirect", &address)
            .append_pair("again", "1")
            .finish()
    );
    let shown = app.open(&asked_link(&asked), Some(&session)).await.answer;
    assert!(shown.text().contains("Sign in again"), "{}", shown.text());
    let shown = browser.get(&login).await;
    assert_eq!(hidden_field(&shown, "redirect"), address);
    let back = browser.sign_in("Ada", &address).await;
    assert_eq!(back.location(), address);
    assert!(
        browser
            .get(&address)
            .await
            .text()
            .contains("Delete my account")
    );
}

/// Returns the path of the link that leads to the sign-in page.
fn asked_link(page: &Answer) -> String {
    let (_, rest) = page.text().split_once("href=\"/login?").unwrap();
    let query = rest.split('"').next().unwrap().replace("&#38;", "&");
    format!("/login?{}", query.replace("&amp;", "&"))
}

#[tokio::test]
async fn who_signs_in_again_is_asked_whether_to_stay() {
    let app = TestApp::start().await;
    let mut browser = account(&app, "Ada").await;
    let session = format!(
        "platform-session={}",
        browser.cookie("platform-session").unwrap()
    );
    let device = signed_in(&app, &mut browser).await;
    delete(&app, &session).await;
    let refused = crate::device::refresh(&app, &crate::device::refresh_token(&device)).await;
    assert_eq!(refused.status, 400, "{refused:?}");

    let mut elsewhere = Browser::new(&app);
    let game = format!("{}/", app.origin("demo"));
    let back = elsewhere.sign_in("Ada", &game).await;
    let location = back.location();
    let expected = format!("{}/profile/delete?redirect=", app.origin("auth"));
    assert!(location.starts_with(&expected), "{location}");
    let asked = elsewhere.get(&location).await;
    assert!(asked.text().contains("Keep my account"), "{}", asked.text());
    assert_eq!(elsewhere.token().await.problem(), "session-expired");
}

#[tokio::test]
async fn who_owns_a_project_is_told_to_hand_it_on_first() {
    let app = TestApp::start().await;
    let developer = Caller::account(&app).await;
    let session = developer.cookie.clone();
    let opened = page(&app, &session).await;
    assert_eq!(developer.create("game").await.status, 201);
    let refusing = page(&app, &session).await;
    let html = refusing.answer.text();
    assert!(html.contains("need another owner"), "{html}");
    assert!(html.contains("/projects/game/settings"), "{html}");
    let refused = press(&app, &opened, "delete").await;
    assert_eq!(refused.status, 303);
    assert_eq!(refused.cookie(), None);
    assert_eq!(app.events_of(AuditKind::DeletionAsked).await.len(), 0);
    assert_eq!(token(&app, &session).await.status, 200);
}

#[tokio::test]
async fn only_the_page_itself_deletes_and_only_who_it_was_shown_to() {
    let app = TestApp::start().await;
    let (session, _) = guest(&app).await;
    let (other, other_id) = guest(&app).await;
    let opened = page(&app, &session).await;
    let of_other = page(&app, &other).await;
    let fields = |csrf: &str, account: &str| {
        [
            ("csrf", csrf.to_owned()),
            ("shown", opened.shown().to_owned()),
            ("account", account.to_owned()),
            ("action", "delete".to_owned()),
        ]
    };
    let post = |csrf: &str, account: &str| {
        let fields = fields(csrf, account);
        let fields: Vec<_> = fields.iter().map(|(name, text)| (*name, &**text)).collect();
        app.post_form("/profile/delete", &opened.cookies, &fields)
    };
    let (csrf, account) = (opened.token(), opened.hidden("account"));
    // At once, as a click that was meant for another page.
    let hurried = send(post(csrf, account)).await;
    assert_eq!(hurried.status, 409);
    assert!(hurried.text().contains("less than two seconds"));
    app.clock.advance(2_000);
    for wrong in ["", of_other.token()] {
        assert_eq!(send(post(wrong, account)).await.problem(), "not-allowed");
    }
    for (name, value) in [
        ("sec-fetch-site", "same-site"),
        ("origin", &app.origin("demo")),
    ] {
        let mut request = post(csrf, account).build().unwrap();
        request.headers_mut().insert(name, value.parse().unwrap());
        assert_eq!(app.execute(request).await.problem(), "not-allowed");
    }
    let confused = send(post(csrf, &other_id.to_string())).await;
    assert_eq!(confused.status, 409);
    assert!(
        confused.text().contains("another player"),
        "{}",
        confused.text()
    );
    for action in ["", "keep-all", "sign-out"] {
        let refused = press(&app, &opened, action).await;
        assert_eq!(refused.problem(), "invalid-request", "{action}");
    }
    assert_eq!(app.events_of(AuditKind::DeletionAsked).await.len(), 0);
    for (path, way) in [("/profile/delete", "get"), ("/profile/data", "post")] {
        let without = match way {
            "get" => send(app.get("auth", path)).await,
            _ => send(app.post_form(path, "", &[])).await,
        };
        assert!([303, 403].contains(&without.status.as_u16()), "{path}");
    }
}

#[tokio::test]
async fn everything_that_is_known_comes_as_one_file() {
    let app = TestApp::start().await;
    let (_, id) = guest(&app).await;
    let session = app.sign_in("7", Some(id)).await;
    let opened = app.open("/profile", Some(&session)).await;
    let fields = [
        ("csrf", opened.token()),
        ("redirect", opened.hidden("redirect")),
    ];
    let ask = || send(app.post_form("/profile/data", &opened.cookies, &fields));
    let file = ask().await;
    assert_eq!(file.status, 200, "{}", file.text());
    let name = format!("attachment; filename=\"player-{id}.json\"");
    assert_eq!(file.header("content-disposition"), Some(name.as_str()));
    assert_eq!(file.header("content-type"), Some("application/json"));
    assert_eq!(file.header("cache-control"), Some("no-store"));
    assert_eq!(file.header("access-control-allow-origin"), None);
    let content: Value = file.json();
    assert_eq!(content["format"], 1);
    assert_eq!(content["exported_at"], "2026-01-01T00:00:00Z");
    assert_eq!(content["player"]["id"], id.to_string());
    assert_eq!(content["player"]["is_account"], true);
    assert_eq!(content["identities"][0]["provider"], "google");
    assert_eq!(content["events"][0]["kind"], "linked");
    assert!(content["sessions"].as_array().unwrap().len() >= 2);
    // Nothing in it gives access.
    let secret = session.split_once('=').unwrap().1;
    assert!(!file.text().contains(secret));
    for _ in 0..2 {
        assert_eq!(ask().await.status, 200);
    }
    assert_eq!(ask().await.problem(), "too-many-requests");
    let shown = send(app.get("auth", "/profile/data").header("cookie", &session)).await;
    assert_eq!(shown.problem(), "method-not-allowed");

    // Who is to be deleted may still read it.
    let next = delete(&app, &session).await;
    let opened = page(&app, &next).await;
    app.clock.advance(3_600_000);
    let fields = [("csrf", opened.token())];
    let file = send(app.post_form("/profile/data", &opened.cookies, &fields)).await;
    let content: Value = file.json();
    assert_eq!(
        content["player"]["deletion_asked_at"],
        "2026-01-01T00:00:02Z"
    );
}

#[tokio::test]
async fn the_files_of_the_server_have_nothing_of_a_deleted_player() {
    let app = TestApp::with(|config| {
        config.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
    })
    .await;
    let address = "203.0.113.77";
    let first = send(app.post_token().header("x-forwarded-for", address)).await;
    let claims = first.claims();
    let id: Uuid = claims.sub.parse().unwrap();
    let session = first.cookie().unwrap();
    let opened = page(&app, session).await;
    app.clock.advance(2_000);
    let fields = [
        ("csrf", opened.token()),
        ("shown", opened.shown()),
        ("account", opened.hidden("account")),
        ("action", "delete"),
    ];
    let request = app.post_form("/profile/delete", &opened.cookies, &fields);
    let done = send(request.header("x-forwarded-for", address)).await;
    assert_eq!(done.status, 303, "{}", done.text());
    let needles = [
        id.as_bytes().to_vec(),
        claims.sub.clone().into_bytes(),
        claims.username.clone().into_bytes(),
        address.as_bytes().to_vec(),
    ];
    let found = |needle: &[u8]| {
        let files = walk(app.directory.path());
        files.into_iter().any(|file| {
            let bytes = std::fs::read(file).unwrap_or_default();
            bytes.windows(needle.len()).any(|part| part == needle)
        })
    };
    assert!(found(&needles[0]) && found(&needles[2]) && found(&needles[3]));
    app.clock.advance(REGRET_MILLIS);
    assert_eq!(remove_due(&app).await, 1);
    for needle in needles {
        assert!(!found(&needle), "{}", String::from_utf8_lossy(&needle));
    }
}

/// Returns every file below a folder.
fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(walk(&path));
        } else {
            files.push(path);
        }
    }
    files
}

#[tokio::test]
async fn a_new_guest_leaves_a_way_back_to_the_one_that_is_to_be_deleted() {
    let app = TestApp::start().await;
    let (session, id) = guest(&app).await;
    let next = delete(&app, &session).await;
    let login = app.open("/login", Some(&next)).await;
    app.clock.advance(2_000);
    let fields = [
        ("csrf", login.token()),
        ("shown", login.shown()),
        ("redirect", login.hidden("redirect")),
    ];
    let made = send(app.post_form("/new-guest", &login.cookies, &fields)).await;
    assert_eq!(made.status, 303);
    let cookies = made.headers.get_all("set-cookie");
    let left = cookies
        .iter()
        .filter_map(|cookie| cookie.to_str().unwrap().split(';').next())
        .find(|cookie| cookie.starts_with("platform-guests="));
    let left = left.unwrap().to_owned();
    let restore = app.open("/restore-guest", Some(&left)).await;
    assert!(restore.answer.text().contains(&id.to_string()));
}

#[tokio::test]
async fn a_suspended_player_neither_downloads_nor_deletes() {
    let app = TestApp::start().await;
    let (session, id) = guest(&app).await;
    let opened = page(&app, &session).await;
    app.suspend(id, Some("Why.")).await;
    let shown = app.open("/profile/delete", Some(&session)).await.answer;
    assert_eq!(shown.status, 403);
    assert_eq!(press(&app, &opened, "delete").await.status, 403);
    let fields = [("csrf", opened.token())];
    let file = send(app.post_form("/profile/data", &opened.cookies, &fields)).await;
    assert_eq!(file.status, 403);
}
