//! What a player and a developer do one after the other, through the whole platform. With several
//! nodes, any of them responds to each request.

use platform_protocol::paths;
use platform_tests::browser::Stage;
use platform_tests::owner::Owner;
use platform_tests::person::Person;
use platform_tests::poll;
use platform_tests::sign_in::Way;
use platform_tests::terminal;
use platform_tests::visitor::Visitor;
use platform_tests::world::{PageBuilder, World};
use reqwest::Method;
use reqwest::header::CONTENT_TYPE;
use serde_json::{Value, json};

use crate::identity::player;

platform_tests::browser_tests![
    in Chromium, because "what is tried is that responses of the platform fit together":
    a_guest_signs_in_and_is_the_same_player_on_a_second_device,
    a_game_is_deployed_played_counted_and_watched,
];

async fn a_guest_signs_in_and_is_the_same_player_on_a_second_device(stage: Stage) {
    let world = World::start().await;
    let game = world.url("demo", "/?a=1#part");
    stage.open(&game).await;
    let guest = player(&stage).await;
    assert!(guest.is_anon);
    stage.press("Sign in").await;
    stage.arrives_below(&world.url("auth", "/login?")).await;
    Way::BuiltIn.sign_in(&stage, "ada").await;
    stage.arrives_at(&game).await;
    let account = player(&stage).await;
    assert_eq!((&account.sub, account.is_anon), (&guest.sub, false));

    // The second device has been another guest, who is merged into the account.
    let (mut phone, other) = Person::guest(&world.site()).await;
    assert_ne!(other.sub, guest.sub);
    let mut before = phone.clone();
    terminal::sign_in(&mut phone, "ada", &game).await;
    for _ in 0..6 {
        let there = phone.play().await;
        assert_eq!((&there.sub, there.is_anon), (&guest.sub, false));
        assert_eq!(before.token().await.slug(), "session-expired");
    }
    stage.reload().await;
    assert_eq!(player(&stage).await.sub, guest.sub);
}

/// Returns how many play a game now, as the ranking says: null if that is not in it, or not known.
pub(crate) async fn playing(visitor: &Visitor, slug: &str) -> Value {
    let host = visitor.host("x").replacen("x.", "", 1);
    let answer = visitor.request_host(Method::GET, &host, "/api/ranking");
    let text = answer.send().await.unwrap().text().await.unwrap();
    let mut answer: Value = serde_json::from_str(&text).unwrap();
    let mut games = answer["games"].as_array_mut().unwrap().iter_mut();
    let found = games.find(|game| game["slug"] == slug);
    found.map_or(Value::Null, |game| game["players_now"].take())
}

async fn a_game_is_deployed_played_counted_and_watched(stage: Stage) {
    let world = World::start().await;
    let owner = Owner::sign_in(&world.site(), "Ada").await;
    owner.create("rings").await;
    for round in 0..3 {
        let page = PageBuilder::new().clock();
        let page = page.after(&format!("<script>const round = {round}</script>"));
        owner
            .deploy("rings", "prod", &[("index.html", &page.html())])
            .await;
        stage.open(&world.url("rings", "/")).await;
        // Every node shows it with the response to the deploy.
        let found = stage
            .run("const texts = [];
                for (const n of [1, 2, 3, 4, 5, 6]) texts.push(await (await fetch(`/?${n}`)).text());
                return [round, texts.every(text => text.includes(`const round = ${round}<`))]")
            .await;
        assert_eq!(found, json!([round, true]));
    }

    // The page plays, and so does somebody else: two players, whichever node is asked.
    stage.run("await pass(6)").await;
    let visitor = world.visitor();
    let other = visitor.mint_player("rings").await.unwrap();
    let beat = visitor.request(Method::POST, "rings", paths::HEARTBEAT);
    let beat = beat
        .bearer_auth(other.token)
        .header(CONTENT_TYPE, "application/json");
    let beat = beat.body(json!({ "page": "aAAAAAAAAAAAAAAAAAAAAA" }).to_string());
    assert_eq!(beat.send().await.unwrap().status(), 204);
    poll::until("six responses in a row count two players", async || {
        for _ in 0..6 {
            if playing(&visitor, "rings").await != json!(2) {
                return None;
            }
        }
        Some(())
    })
    .await;

    // What the page logs is in the log of its project.
    stage.expect_log("the ring is broken", 1);
    stage
        .run("console.error('the ring is broken'); await pass(6)")
        .await;
    let path = "/api/projects/rings/logs?env=prod";
    poll::until("the owner reads it", async || {
        let (status, log) = owner.ask(Method::GET, path, None).await;
        assert_eq!(status, 200, "{log}");
        log.to_string().contains("the ring is broken").then_some(())
    })
    .await;
}
