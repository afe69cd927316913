//! The panes of the Build page: a game with several test players side by side, and under conditions
//! that are hard to meet otherwise.

use platform_protocol::names::Environment;
use platform_server::clock::Clock as _;
use platform_tests::backend::{Answer, Backend};
use platform_tests::browser::Stage;
use platform_tests::poll;
use platform_tests::world::PageBuilder;
use serde_json::{Value, json};
use thirtyfour::By;

use crate::build::{Scene, examine, logged};

platform_tests::browser_tests![
    players_side_by_side_share_neither_storage_nor_keyboard,
    each_condition_is_met_by_the_game;
    in Chromium, because "it is the page's own logic":
    a_phone_shows_one_of_the_panes,
];

/// A game that reports which keys it received.
const GAME: &str = r#"<style>body { margin: 0; background: #246; color: #fff; font: 20px sans-serif } #board { height: 300px }</style>
    <script>
        window.keys = [];
        addEventListener('keydown', event => keys.push(event.key));
        addEventListener('DOMContentLoaded', () => document.body.innerHTML = '<div id="board">The board</div>');
    </script>"#;

/// Runs a script in the game of a pane, once it has loaded, and returns to the page.
async fn in_pane(stage: &Stage, number: usize, script: &str) -> Value {
    let answer = attempt(stage, number, script).await;
    answer.expect("the game in the pane stays")
}

/// The same; returns `None` if the game is loaded again meanwhile.
async fn attempt(stage: &Stage, number: usize, script: &str) -> Option<Value> {
    let session = &stage.browser().session;
    poll::until("the game has loaded in the pane", async || {
        session.enter_default_frame().await.ok()?;
        let frame = format!(".pane-{number} iframe");
        let frame = session.find(By::Css(frame)).await.ok()?;
        frame.enter_frame().await.ok()?;
        let ready = "return document.readyState === 'complete' && Boolean(window.platform)";
        let ready = session.execute(ready, vec![]).await.ok()?;
        (ready.json() == true).then_some(())
    })
    .await;
    let answer = session.execute(script, vec![]).await.ok();
    session.enter_default_frame().await.unwrap();
    Some(answer?.json().clone())
}

/// Chooses a value of a pane's first or second field: its player, or its condition.
async fn set(stage: &Stage, number: usize, field: usize, value: &str) {
    let script = "const field = document.querySelectorAll(`section.pane-${arguments[0]} select`)[arguments[1]];
        field.value = arguments[2]; field.dispatchEvent(new Event('change'))";
    let arguments = vec![json!(number), json!(field), json!(value)];
    stage.look(script, arguments).await;
}

/// Waits until a pane shows an error page of the platform that contains the text `part`.
async fn shows_error_page(stage: &Stage, number: usize, part: &str) {
    let session = &stage.browser().session;
    poll::until("the pane shows the error page", async || {
        session.enter_default_frame().await.ok()?;
        let frame = format!(".pane-{number} iframe");
        let frame = session.find(By::Css(frame)).await.ok()?;
        frame.enter_frame().await.ok()?;
        let detail = session.find(By::Css(".lead")).await.ok()?;
        detail.text().await.ok()?.contains(part).then_some(())
    })
    .await;
    session.enter_default_frame().await.unwrap();
}

/// Waits until a script in a pane returns `expected`.
async fn comes_to(stage: &Stage, number: usize, script: &str, expected: &str) {
    let mut last = Value::Null;
    let found = poll::comes(async || {
        last = attempt(stage, number, script).await?;
        (last == expected).then_some(())
    });
    assert!(found.await.is_some(), "{expected} is expected, not {last}");
}

const WHO: &str = "return platform.player().then(player => player.username)";

async fn players_side_by_side_share_neither_storage_nor_keyboard(stage: Stage) {
    let _scene = Scene::open(&stage, PageBuilder::new().before(GAME)).await;
    in_pane(&stage, 1, "return 0").await;
    stage.click("#panes-2").await;
    comes_to(&stage, 2, WHO, "test-user-2").await;
    let you = in_pane(&stage, 1, WHO).await;
    assert!(!you.as_str().unwrap().starts_with("test-"), "{you}");
    stage.click("#panes-4").await;
    comes_to(&stage, 3, WHO, "test-user-3").await;
    comes_to(&stage, 4, WHO, "test-guest-4").await;
    set(&stage, 1, 0, "guest/1").await;
    comes_to(&stage, 1, WHO, "test-guest-1").await;
    // Two players change places.
    set(&stage, 1, 0, "user/2").await;
    comes_to(&stage, 1, WHO, "test-user-2").await;
    comes_to(&stage, 2, WHO, "test-guest-1").await;

    let store = "localStorage.setItem('name', arguments[0] ?? location.host); document.cookie = 'name=' + location.host;
        return new Promise((done, failed) => {
            const asked = indexedDB.open('game');
            asked.onupgradeneeded = () => asked.result.createObjectStore('names').put(location.host, 'name');
            asked.onsuccess = () => done(0); asked.onerror = () => failed(asked.error);
        })";
    for number in 1..=4 {
        in_pane(&stage, number, store).await;
    }
    let stored = "return new Promise(done => {
        indexedDB.open('game').onsuccess = ({ target: { result } }) =>
            result.transaction('names').objectStore('names').getAll().onsuccess = ({ target }) =>
                done([location.host, localStorage.getItem('name'), document.cookie.replace('name=', ''), ...target.result]) })";
    for number in 1..=4 {
        let stored = in_pane(&stage, number, stored).await;
        let own = stored[0].as_str().unwrap();
        assert!(
            own.starts_with(&format!("pane-{number}--dev-game.")),
            "{own}"
        );
        assert_eq!(stored, json!([own, own, own, own]));
    }

    for number in [3, 1] {
        stage.click(&format!(".pane-{number} iframe")).await;
        let keys = stage.browser().session.action_chain();
        let typed = format!("{number}x");
        keys.send_keys(typed).perform().await.unwrap();
    }
    let keys = "return window.keys.join('')";
    for (number, expected) in [(1, "1x"), (2, ""), (3, "3x"), (4, "")] {
        assert_eq!(in_pane(&stage, number, keys).await, expected, "{number}");
    }

    // The log tells the players apart, by name and colour.
    in_pane(&stage, 2, "console.info('said in the second')").await;
    in_pane(&stage, 3, "console.info('said in the third')").await;
    logged(&stage, "said in the second").await;
    logged(&stage, "said in the third").await;
    let marked = "return [...document.querySelectorAll('.entry')].filter(one => one.textContent.includes('said in')).map(one =>
        [one.querySelector('.who').textContent, getComputedStyle(one).borderInlineStartColor]).sort()";
    let marked = stage.look(marked, vec![]).await;
    assert_eq!(marked[0][0], "test-guest-1");
    assert_eq!(marked[1][0], "test-user-3");
    assert_ne!(marked[0][1], marked[1][1]);
    // A game in a pane cannot get at the pane's session.
    let seen = in_pane(&stage, 1, "return document.cookie").await;
    assert!(!seen.as_str().unwrap().contains("platform-pane"), "{seen}");
}

async fn each_condition_is_met_by_the_game(stage: Stage) {
    // Engines tell of failed requests in words of their own.
    stage.tolerate_log("");
    let scene = Scene::open(&stage, PageBuilder::new().before(GAME)).await;
    let backend = Backend::listen().await;
    let answer = Answer {
        status: 200,
        headers: &[("content-type", "text/plain")],
        body: "hello",
    };
    backend.answer("/api/hello", [answer; 200]);
    let backends = &scene.platform.running.state.hosting.backends;
    backends.add("game", Environment::Dev, backend.address);
    in_pane(&stage, 1, "return 0").await;
    set(&stage, 1, 0, "user/1").await;
    comes_to(&stage, 1, WHO, "test-user-1").await;

    let told = "return platform.getAccessToken({ forceRefresh: true })
        .then(() => 'token', error => error.type.split('/').pop() || 'status ' + error.status)";
    for (condition, expected) in [
        ("session-expired", "session-expired"),
        ("account-suspended", "account-suspended"),
        ("guest-limit-reached", "guest-limit-reached"),
        ("none", "token"),
    ] {
        set(&stage, 1, 1, condition).await;
        comes_to(&stage, 1, told, expected).await;
    }
    // These need no reload: the next request meets them.
    let called = "return platform.fetch('/api/hello').then(answer => 'status ' + answer.status, error => error.type.split('/').pop() || error.name + ' ' + error.status)";
    comes_to(&stage, 1, called, "status 200").await;
    set(&stage, 1, 1, "backend-unauthorized").await;
    comes_to(&stage, 1, called, "not-signed-in").await;
    set(&stage, 1, 1, "offline").await;
    let fetched =
        "return fetch('/api/hello').then(answer => 'status ' + answer.status, error => error.name)";
    comes_to(&stage, 1, fetched, "TypeError").await;
    comes_to(&stage, 1, told, "status 0").await;
    in_pane(&stage, 1, "console.info('said while offline')").await;
    logged(&stage, "said while offline").await;
    stage.click("#reload").await;
    shows_error_page(&stage, 1, "is offline").await;
    set(&stage, 1, 1, "none").await;
    stage.click("#reload").await;
    comes_to(&stage, 1, WHO, "test-user-1").await;
    set(&stage, 1, 1, "slow").await;
    let slow = "const began = performance.now(); return fetch('/api/hello').then(() => performance.now() - began > 1900 ? 'slow' : 'fast')";
    comes_to(&stage, 1, slow, "slow").await;

    let times = "return platform.getAccessToken({ forceRefresh: true }).then(token => {
        const { iat, exp } = JSON.parse(atob(token.split('.')[1].replace(/-/g, '+').replace(/_/g, '/')));
        return exp < arguments[0] ? 'expired' : iat > arguments[0] ? 'ahead' : 'current' })";
    let now = scene.platform.clock.now() / 1_000;
    let times = times.replace("arguments[0]", &now.to_string());
    set(&stage, 1, 1, "token-expired").await;
    comes_to(&stage, 1, &times, "expired").await;
    set(&stage, 1, 1, "wrong-clock").await;
    comes_to(&stage, 1, &times, "ahead").await;
}

async fn a_phone_shows_one_of_the_panes(stage: Stage) {
    let _scene = Scene::open(&stage, PageBuilder::new().before(GAME)).await;
    in_pane(&stage, 1, "return 0").await;
    stage.click("#panes-4").await;
    comes_to(&stage, 4, WHO, "test-guest-4").await;
    examine(&stage, "four panes").await;
    let session = &stage.browser().session;
    session.set_window_rect(0, 0, 390, 844).await.unwrap();
    let shown = "return [...document.querySelectorAll('.pane')].filter(pane => pane.getClientRects().length).map(pane => pane.ariaLabel)";
    poll::until("one pane is shown", async || {
        (stage.look(shown, vec![]).await == json!(["Pane 1"])).then_some(())
    })
    .await;
    stage.click("#pane-3").await;
    assert_eq!(stage.look(shown, vec![]).await, json!(["Pane 3"]));
    comes_to(&stage, 3, WHO, "test-user-3").await;
    stage.click("#panes-2").await;
    assert_eq!(stage.look(shown, vec![]).await, json!(["Pane 1"]));
}
