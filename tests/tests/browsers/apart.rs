//! Games on a site of their own, over https, in browsers that keep the cookies of sites apart.

pub(crate) mod pages;
pub(crate) mod visitors;
pub(crate) mod worker;

use platform_tests::backend::{Answer, Backend};
use platform_tests::browser::{Engine, LISTED_SUFFIX, Stage};
use platform_tests::https::{HttpsServer, host};
use platform_tests::poll;
use platform_tests::shared;
use platform_tests::world::World;
use serde_json::{Value, json};
use thirtyfour::By;

platform_tests::browser_tests![
    a_first_visit_ends_at_the_page_asked_for_and_every_game_has_the_same_player,
    who_signs_out_of_one_game_does_so_in_every_game,
    a_frame_of_another_site_has_its_own_player_until_a_tab_hands_over_the_browsers,
    games_below_a_public_suffix_share_no_cookie,
];

/// The host of the games of a platform behind a gateway.
const WORLD_GAMES: &str = "games.localhost";

/// Returns two sites, of the platform and of its games: browsers take the last part alone for the public
/// suffix.
fn sites(stage: &Stage) -> [String; 2] {
    ["apart-play", "apart-games"].map(|label| host(stage.engine(), label))
}

/// A platform whose games are on a site of their own.
struct Apart {
    https: HttpsServer,
    games: String,
}

impl Apart {
    async fn start(stage: &Stage) -> Self {
        let [_, games] = sites(stage);
        Self::below(stage, &games).await
    }

    /// Starts it with games below this host.
    async fn below(stage: &Stage, games: &str) -> Self {
        let [platform, _] = sites(stage);
        Self {
            https: HttpsServer::start(stage.engine(), &platform, games).await,
            games: games.to_owned(),
        }
    }

    fn game(&self, label: &str) -> String {
        format!("https://{label}.{}:{}", self.games, self.https.port)
    }

    async fn stop(self) {
        self.https.server.stop().await;
    }
}

/// Starts a platform behind a gateway, over plain HTTP, whose games are on a site of their own.
async fn world() -> World {
    World::start_with(async |config| {
        let port = config.origin.as_ref().unwrap().port();
        let games = format!("http://{WORLD_GAMES}:{port}");
        config.games_origin = Some(games.parse().unwrap());
    })
    .await
}

/// Returns the URL of a game of [`world`].
fn game_url(world: &World, label: &str, path: &str) -> String {
    format!(
        "http://{label}.{WORLD_GAMES}:{}{path}",
        world.gateway.port()
    )
}

async fn player(stage: &Stage) -> Value {
    stage.run("return (await platform.player()).id").await
}

async fn a_first_visit_ends_at_the_page_asked_for_and_every_game_has_the_same_player(stage: Stage) {
    if shared::leave_out(
        "a_first_visit_ends_at_the_page_asked_for_and_every_game_has_the_same_player",
    ) {
        return;
    }
    let apart = Apart::start(&stage).await;
    let (one, other) = (apart.game("demo"), apart.game("dev-demo"));
    stage.open(&format!("{one}/?level=2#end")).await;
    let here = stage.run("return location.href").await;
    assert_eq!(here, json!(format!("{one}/?level=2#end")));
    let redirects = "return performance.getEntriesByType('navigation')[0].redirectCount";
    // A redirect over another site is not counted for the page.
    assert_eq!(stage.run(redirects).await, 0);
    let sub = player(&stage).await;
    let hidden = stage.run("return document.cookie").await;
    assert_eq!(hidden, "", "scripts read no cookie of the platform");
    stage.reload().await;
    assert_eq!(player(&stage).await, sub);

    stage.open(&format!("{other}/")).await;
    assert_eq!(
        player(&stage).await,
        sub,
        "the second game has the same player"
    );
    stage.run("history.back()").await;
    stage.arrives_at(&format!("{one}/?level=2#end")).await;
    assert_eq!(player(&stage).await, sub);
    apart.stop().await;
}

async fn who_signs_out_of_one_game_does_so_in_every_game(stage: Stage) {
    if shared::leave_out("who_signs_out_of_one_game_does_so_in_every_game") {
        return;
    }
    let apart = Apart::start(&stage).await;
    let (one, other) = (apart.game("demo"), apart.game("dev-demo"));
    stage.open(&format!("{one}/")).await;
    let sub = player(&stage).await;
    stage.open(&format!("{other}/")).await;
    assert_eq!(player(&stage).await, sub);
    stage.run("void platform.signOut('/?out')").await;
    stage.arrives_at(&format!("{other}/?out")).await;
    let next = player(&stage).await;
    assert_ne!(next, sub, "a new guest");
    stage.open(&format!("{one}/")).await;
    assert_eq!(player(&stage).await, next, "in the other game as well");
    apart.stop().await;
}

/// Goes into the frame of the page.
async fn enter_frame(stage: &Stage) {
    let session = &stage.browser().session;
    session.enter_default_frame().await.unwrap();
    let frame = session.find(By::Tag("iframe")).await.unwrap();
    frame.enter_frame().await.unwrap();
}

async fn a_frame_of_another_site_has_its_own_player_until_a_tab_hands_over_the_browsers(
    stage: Stage,
) {
    if shared::leave_out(
        "a_frame_of_another_site_has_its_own_player_until_a_tab_hands_over_the_browsers",
    ) {
        return;
    }
    let apart = Apart::start(&stage).await;
    let game = apart.game("demo");
    let embedding = Backend::listen().await;
    let body = format!(
        "<!doctype html><title>Around</title><link rel=icon href=data:,>\
         <iframe src=\"{game}/\" style=\"width:900px;height:600px\"></iframe>"
    );
    let page = Answer {
        status: 200,
        headers: &[("content-type", "text/html")],
        body: body.leak(),
    };
    embedding.answer("/", [page; 4]);
    let port = embedding.address.port();
    // The browser's own player, at the game's address.
    stage.open(&format!("{game}/")).await;
    let own = player(&stage).await;
    let mut framed = Vec::new();
    for host in ["one-around", "other-around", "one-around"] {
        stage
            .open(&format!("http://{host}.localhost:{port}/"))
            .await;
        enter_frame(&stage).await;
        framed.push(player(&stage).await);
    }
    assert_ne!(framed[0], own, "the frame has a player of its own");
    // WebKitGTK keeps one jar for a site, whatever is around its frame.
    if stage.engine() != Engine::WebKit {
        assert_ne!(framed[0], framed[1], "so has the frame on every other site");
    }
    assert_eq!(framed[0], framed[2], "and it stays");

    // A message that is not the auth service's is not listened to, even if it knows the secret.
    stage
        .run(
            "const url = new URL(platform.loginUrl());
             const to = new URL(url.searchParams.get('redirect'));
             const state = to.searchParams.get('state');
             postMessage({ code: 'forged', state }, '*')",
        )
        .await;
    let session = &stage.browser().session;
    let before = session.window().await.unwrap();
    go_through_a_tab(&stage).await;
    session.switch_to_window(before).await.unwrap();
    enter_frame(&stage).await;
    poll::until("the game knows the browser's player", async || {
        (stage.run("return window.changes").await == 1).then_some(())
    })
    .await;
    assert_eq!(player(&stage).await, own);
    let taken = "return performance.getEntriesByType('resource').filter(
                     ({ name }) => name.endsWith('/__platform/continue')).length";
    assert_eq!(stage.run(taken).await, 1, "the forged code was not tried");
    apart.stop().await;
}

/// Lets the game in the frame open the sign-in page in a tab, and goes back from there as a guest.
async fn go_through_a_tab(stage: &Stage) {
    let session = &stage.browser().session;
    let before = session.window().await.unwrap();
    stage
        .run(
            "window.changes = 0;
             addEventListener('platform:playerchange', () => window.changes++);
             document.body.insertAdjacentHTML('afterbegin', '<button id=tab>Sign in</button>');
             document.getElementById('tab').onclick = () => open(platform.loginUrl())",
        )
        .await;
    session
        .find(By::Id("tab"))
        .await
        .unwrap()
        .click()
        .await
        .unwrap();
    let tab = poll::until("the tab is open", async || {
        let windows = session.windows().await.ok()?;
        windows.into_iter().find(|window| *window != before)
    })
    .await;
    session.switch_to_window(tab.clone()).await.unwrap();
    let link = "a[href*='/frame?to=']";
    let link = poll::until("the page offers to go back", async || {
        // Before its styles are there, the link is elsewhere.
        let state = session.execute("return document.readyState", vec![]).await;
        let state = state.ok()?.json().clone();
        (state == "complete").then_some(())?;
        session.find(By::Css(link)).await.ok()
    })
    .await;
    link.click().await.unwrap();
    let button = "form[action='/frame'] button";
    poll::until("the page asks whether to go on", async || {
        let button = session.find(By::Css(button)).await.ok()?;
        // It is shown when it could be read.
        button.is_displayed().await.ok()?.then_some(())?;
        button.click().await.ok()
    })
    .await;
    poll::until("the tab has closed itself", async || {
        let windows = session.windows().await.ok()?;
        (!windows.contains(&tab)).then_some(())
    })
    .await;
}

async fn games_below_a_public_suffix_share_no_cookie(stage: Stage) {
    if shared::leave_out("games_below_a_public_suffix_share_no_cookie") {
        return;
    }
    let [_, games] = sites(&stage);
    for (suffix, is_shared) in [(&*games, true), (LISTED_SUFFIX, false)] {
        let apart = Apart::below(&stage, suffix).await;
        let (one, other) = (apart.game("demo"), apart.game("dev-demo"));
        stage.open(&format!("{one}/")).await;
        let sub = player(&stage).await;
        stage.tolerate_log("invalid domain");
        let toss = format!("document.cookie = 'tossed=1; Path=/; Domain={suffix}'");
        stage.run(&toss).await;
        stage.open(&format!("{other}/")).await;
        let cookies = stage.run("return document.cookie").await;
        let has_arrived = cookies.as_str().unwrap().contains("tossed");
        assert_eq!(has_arrived, is_shared, "{suffix}: {cookies}");
        assert_eq!(player(&stage).await, sub, "the player is the same");
        apart.stop().await;
    }
}
