//! Where a sign-in finally leads: only to addresses of this platform, checked when it begins and
//! again when it ends.

use platform_protocol::paths;
use platform_tests::person::{Person, query};

use crate::scene::{PROVIDER, Scene};

#[tokio::test]
async fn a_good_address_is_kept_through_the_whole_sign_in() {
    let scene = Scene::set().await;
    let site = &scene.platform.site;
    let addresses = [
        site.url("demo", "/"),
        site.url(
            "demo",
            "/a/b?x=1&y=%20%2F&z=%C3%A4&redirect=http://evil.example/#part?x",
        ),
        site.url("dev-demo", "/#/deep/link"),
        format!("{}/", site.origin),
        format!("{}/projects?tab=1", site.origin),
    ];
    for (number, address) in addresses.iter().enumerate() {
        let (mut person, _) = scene.guest().await;
        let begun = person.begin(PROVIDER, address).await;
        let callback = person.authorize(&begun, &format!("s{number}")).await;
        assert_eq!(person.follow(&callback).await.see_other(), address);
    }
    // Without a return address, it leads to the console.
    let (mut person, _) = scene.guest().await;
    let page = person.open(paths::LOGIN).await;
    assert_eq!(page.status, 200);
    let form = platform_tests::forms::forms(&page.body).remove(0);
    let csrf = form.field("csrf").unwrap().to_owned();
    let begun = person
        .submit(&form.action, &[("csrf", &csrf)])
        .await
        .see_other()
        .to_owned();
    let callback = person.authorize(&begun, "console").await;
    assert_eq!(
        person.follow(&callback).await.see_other(),
        format!("{}/", site.origin)
    );
}

/// Addresses that lead to another site, or that some browser may interpret so.
fn hostile(person: &Person) -> Vec<String> {
    let game = person.game();
    let host = game.split('/').nth(2).unwrap();
    vec![
        "http://evil.example/".into(),
        "//evil.example/".into(),
        "/\\evil.example/".into(),
        "/".into(),
        "".into(),
        "javascript:alert(1)".into(),
        "data:text/html,<script>alert(1)</script>".into(),
        format!("http://{host}@evil.example/"),
        format!("http://evil.example\\@{host}/"),
        format!("http://evil.example#@{host}/"),
        format!("http://{host}.evil.example/"),
        format!("https://{host}/"),
        format!("ftp://{host}/"),
        format!("http://{host}/\r\nLocation: http://evil.example/"),
        format!("http://{host}/\u{0}"),
        format!("http://x{host}/"),
        game.replace("demo.", "no-such-game."),
        game.replace("demo.", "demo.demo."),
        game.replace("localhost:", "localhost.:"),
        game.replace("demo.", "auth."),
    ]
}

#[tokio::test]
async fn a_hidden_field_that_was_changed_leads_nowhere() {
    let scene = Scene::set().await;
    let (mut person, guest) = scene.guest().await;
    let game = person.game();
    let form = person.login_form(PROVIDER, &game).await;
    let csrf = form.field("csrf").unwrap().to_owned();
    let before = scene.platform.tables();
    for address in hostile(&person) {
        let fields = [("csrf", csrf.as_str()), ("redirect", address.as_str())];
        let answer = person.submit(&form.action, &fields).await;
        assert_eq!(answer.status, 400, "{address:?}: {answer:?}");
        assert!(answer.header("location").is_empty(), "{address:?}");
        let path = format!("{}?{}", paths::LOGIN, query(&[("redirect", &address)]));
        assert_eq!(person.open(&path).await.status, 400, "{address:?}");
    }
    let two = [
        ("csrf", csrf.as_str()),
        ("redirect", game.as_str()),
        ("redirect", "http://evil.example/"),
    ];
    assert_eq!(person.submit(&form.action, &two).await.status, 400);
    before.demand_same(&scene.platform.tables(), "bad addresses");
    assert_eq!(person.play().await.sub, guest.sub);
}

#[tokio::test]
async fn a_game_that_vanished_meanwhile_is_not_led_to() {
    let scene = Scene::set().await;
    let (mut person, guest) = scene.guest().await;
    let callback = person.reach_callback(PROVIDER, "alice").await;
    let before = scene.lasting();
    scene.platform.forget_games().await;
    let answer = person.follow(&callback).await;
    assert_eq!(answer.status, 400, "{answer:?}");
    assert!(answer.header("location").is_empty());
    assert_eq!(scene.provider.asked().await.token, 0, "no code was used");
    scene.platform.recall_games().await;
    scene
        .came_to_nothing("vanished", &mut person, &guest, &before, &answer)
        .await;
}
