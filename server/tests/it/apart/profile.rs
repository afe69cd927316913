//! The games apart on a player's own page.

use super::browser::{Browser, apart, games, press, sign_in};
use crate::support::TestApp;

#[tokio::test]
async fn a_profile_names_the_games_of_each_session_and_ends_them_with_it() {
    let app = apart().await;
    let (game, other, auth) = (
        games(&app, "demo"),
        games(&app, "dev-demo"),
        app.origin("auth"),
    );
    let mut browsers = [Browser::new(&app), Browser::new(&app)];
    for browser in &mut browsers {
        browser.open(&format!("{game}/")).await;
        sign_in(browser, &auth, &game, "Ann").await;
    }
    let [mut here, mut there] = browsers;
    there.open(&format!("{other}/")).await;
    let sub = here.player(&game).await;
    for game in [&game, &other] {
        assert_eq!(there.player(game).await, sub);
    }

    let page = here.open(&format!("{auth}/profile")).await;
    let html = page.page().1.text();
    let named: Vec<&str> = html.split("Also signed in at ").skip(1).collect();
    assert_eq!(named.len(), 2, "{html}");
    assert!(named[0].starts_with("<bdi>Firefly</bdi></span>"), "{html}");
    let both = "<bdi>Firefly</bdi> and <bdi>Firefly (dev)</bdi></span>";
    assert!(named[1].starts_with(both), "{html}");

    // The other session ends in its games as well, at once.
    let field = |name: &str| {
        let (_, rest) = html
            .split_once(&format!("name=\"{name}\" value=\""))
            .unwrap();
        rest.split('"').next().unwrap().replace("&#38;", "&")
    };
    let fields = [
        ("csrf", field("csrf")),
        ("shown", field("shown")),
        ("account", field("account")),
        ("redirect", field("redirect")),
        ("action", "end-session".to_owned()),
        ("session", field("session")),
    ];
    app.clock.advance(2_000);
    let ended = press(&mut here, &format!("{auth}/profile"), &fields).await;
    assert_eq!(ended.status, 303, "{ended:?}");
    for game in [&game, &other] {
        assert_eq!(there.token(game).await.problem(), "session-expired");
    }
    assert_eq!(here.player(&game).await, sub);
    let page = here.open(&format!("{auth}/profile")).await;
    let named = page.page().1.text().matches("Also signed in at ").count();
    assert_eq!(named, 1);
}

#[tokio::test]
async fn a_profile_names_no_games_where_all_share_the_session() {
    let app = TestApp::start().await;
    let cookie = app.sign_in("ann", None).await;
    let opened = app.open("/profile", Some(&cookie)).await;
    assert_eq!(opened.answer.status, 200);
    assert!(!opened.answer.text().contains("Also signed in at"));
}
