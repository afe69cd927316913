//! The Build page with the mouse: a game on its dev address, its log while it is played, its
//! deployments.

use std::time::Duration;

use platform_protocol::limits::LOG_RECORDS;
use platform_protocol::paths;
use platform_tests::accessibility::Look;
use platform_tests::browser::{Engine, Stage};
use platform_tests::owner::Owner;
use platform_tests::platform::{Platform, Site};
use platform_tests::poll;
use platform_tests::sign_in::Way;
use platform_tests::visitor::{Visitor, claims};
use platform_tests::world::PageBuilder;
use reqwest::Method;
use reqwest::header::CONTENT_TYPE;
use serde_json::{Value, json};
use thirtyfour::By;
use tokio::time::Instant;

platform_tests::browser_tests![
    a_project_is_made_and_deployed_and_its_preview_takes_the_keyboard,
    an_error_in_the_preview_is_on_the_page_within_a_second,
    the_build_page_has_no_barrier_and_fits_a_phone;
    in Chromium, because "it is the page's own logic":
    who_is_not_signed_in_is_led_there_and_back,
    what_players_log_is_inert_text,
    repeats_fold_and_the_log_is_filtered_paused_and_cleared,
    an_earlier_deployment_is_shown_again,
    a_project_of_somebody_else_tells_nothing,
];

/// A game that cancels every press, and reports which keys it received.
const GAME: &str = r#"<style>body { margin: 0; background: #246; color: #fff; font: 20px sans-serif } #board { height: 300px }</style>
    <script>
        window.keys = [];
        for (const type of ['pointerdown', 'mousedown', 'touchstart'])
            addEventListener(type, event => { event.preventDefault(); event.stopImmediatePropagation(); }, { passive: false });
        addEventListener('keydown', event => keys.push(event.key));
        addEventListener('DOMContentLoaded', () => document.body.innerHTML = '<div id="board">The board</div>');
    </script>"#;

/// A platform, an owner of a game on it, and their browser.
pub(crate) struct Scene {
    pub(crate) platform: Platform,
    pub(crate) owner: Owner,
}

impl Scene {
    /// Opens the Build page of Ada's project `game`, with `page` on its dev address.
    pub(crate) async fn open(stage: &Stage, page: PageBuilder) -> Self {
        let platform = Platform::start(&[]).await;
        Self::open_on(platform, stage, &[("index.html", &page.html())]).await
    }

    /// Opens it on `platform`, with `files` on the dev address.
    pub(crate) async fn open_on(platform: Platform, stage: &Stage, files: &[(&str, &str)]) -> Self {
        let owner = Owner::sign_in(&platform.site, "Ada").await;
        owner.create("game").await;
        owner.deploy("game", "dev", files).await;
        let scene = Self { platform, owner };
        stage.open(&scene.page()).await;
        stage.press("Sign in").await;
        Way::BuiltIn.sign_in(stage, "Ada").await;
        stage.arrives_at(&scene.page()).await;
        stage.says("Live").await;
        scene
    }

    /// Sends records as a page of the game does, with the player's token.
    pub(crate) async fn log(&self, records: &[Value], token: Option<&str>) {
        let Site { origin, address } = &self.platform.site;
        let (_, port) = origin.rsplit_once(':').unwrap();
        let visitor = Visitor::new(*address, port.parse().unwrap());
        for batch in records.chunks(LOG_RECORDS) {
            let body = json!({ "page": "AAAAAAAAAAAAAAAAAAAAAA", "records": batch });
            let mut request = visitor.request(Method::POST, "dev-game", paths::LOGS);
            if let Some(token) = token {
                request = request.bearer_auth(token);
            }
            let request = request.header(CONTENT_TYPE, "application/json");
            let answer = request.body(body.to_string()).send().await.unwrap();
            assert_eq!(answer.status(), 204);
        }
    }

    pub(crate) fn page(&self) -> String {
        format!("{}/build/game", self.platform.site.origin)
    }
}

/// Runs a script in the game's frame, and returns to the page.
pub(crate) async fn in_game(stage: &Stage, script: &str) -> Value {
    let session = &stage.browser().session;
    poll::until("the game has loaded", async || {
        session.enter_default_frame().await.ok()?;
        let frame = session.find(By::Tag("iframe")).await.ok()?;
        frame.enter_frame().await.ok()?;
        let ready = "return document.readyState === 'complete' && Boolean(window.platform)";
        let ready = session.execute(ready, vec![]).await.ok()?;
        (ready.json() == true).then_some(())
    })
    .await;
    let answer = session.execute(script, vec![]).await.unwrap();
    session.enter_default_frame().await.unwrap();
    answer.json().clone()
}

/// Runs a script of the game itself, which fails as the game does.
pub(crate) async fn play(stage: &Stage, script: &str) {
    let script = format!(
        "const script = document.createElement('script'); script.textContent = {}; document.head.append(script)",
        json!(script)
    );
    in_game(stage, &script).await;
}

/// Returns the visible entries of the log: level, count, text.
pub(crate) async fn entries(stage: &Stage) -> Value {
    let script = "return [...document.querySelectorAll('.entry')].filter(entry => !entry.hidden).map(entry => [
        entry.querySelector('.level').textContent,
        entry.querySelector('.times [aria-hidden]').textContent,
        entry.querySelector('.text').textContent])";
    stage.look(script, vec![]).await
}

/// Waits until an entry contains the text `part`.
pub(crate) async fn logged(stage: &Stage, part: &str) {
    poll::until(&format!("the log says {part:?}"), async || {
        let entries = entries(stage).await;
        let mut entries = entries.as_array()?.iter();
        entries
            .any(|entry| entry[2].as_str().is_some_and(|text| text.contains(part)))
            .then_some(())
    })
    .await;
}

/// Opens the drawer with the warnings, the deployments and the backend's variables.
pub(crate) async fn open_drawer(stage: &Stage) {
    stage.click("#drawer > summary").await;
}

pub(crate) async fn choose(stage: &Stage, field: &str, value: &str) {
    let script = "const field = document.getElementById(arguments[0]);
        field.value = arguments[1]; field.dispatchEvent(new Event('change'))";
    stage.look(script, vec![json!(field), json!(value)]).await;
}

async fn who_is_not_signed_in_is_led_there_and_back(stage: Stage) {
    let platform = Platform::start(&[]).await;
    let page = format!("{}/build", platform.site.origin);
    stage.open(&page).await;
    stage.says("You are a guest here").await;
    stage.press("Sign in").await;
    stage.says("to go on to your projects").await;
    Way::BuiltIn.sign_in(&stage, "Ada").await;
    stage.arrives_at(&page).await;
    stage.says("You have no project yet").await;
    stage.says("platform deploy").await;
    let owner = Owner::sign_in(&platform.site, "Ada").await;
    let name = claims(&owner.token).username;
    stage.says(&format!("Signed in as {name}")).await;
    stage.press(&name).await;
    stage.says("Your profile").await;
    stage.press("Back to your projects").await;
    stage.arrives_at(&page).await;
}

async fn a_project_is_made_and_deployed_and_its_preview_takes_the_keyboard(stage: Stage) {
    let platform = Platform::start(&[]).await;
    let origin = &platform.site.origin;
    stage.open(&format!("{origin}/build")).await;
    stage.press("Sign in").await;
    Way::BuiltIn.sign_in(&stage, "Ada").await;
    stage.says("You have no project yet").await;
    stage.tolerate_log("400");
    stage.fill("Slug", "No Slug").await;
    stage.press("Create project").await;
    stage.says("A slug has 3 to 40").await;
    stage.fill("Slug", "game").await;
    stage.press("Create project").await;
    let project = format!("{origin}/projects/game?env=dev");
    stage.arrives_at(&project).await;
    stage.says("Nothing is deployed to dev yet").await;
    stage.says("platform deploy --project game").await;
    stage.press("Build page").await;
    stage.arrives_at(&format!("{origin}/build/game")).await;
    stage.says("Nothing is deployed here yet").await;

    // It appears without a reload, and has a player.
    let owner = Owner::sign_in(&platform.site, "Ada").await;
    let html = PageBuilder::new().before(GAME).html();
    owner.deploy("game", "dev", &[("index.html", &html)]).await;
    in_game(&stage, "return 0").await;
    stage.click("iframe").await;
    let keys = stage.browser().session.action_chain().send_keys("abc");
    keys.perform().await.unwrap();
    let pressed = in_game(&stage, "return window.keys").await;
    assert_eq!(pressed, json!(["a", "b", "c"]));
    let token = "return platform.getAccessToken().then(token => JSON.parse(atob(
        token.split('.')[1].replace(/-/g, '+').replace(/_/g, '/'))).aud)";
    assert_eq!(in_game(&stage, token).await, "game:dev-game");
}

async fn an_error_in_the_preview_is_on_the_page_within_a_second(stage: Stage) {
    stage.tolerate_log("deliberate");
    let _scene = Scene::open(&stage, PageBuilder::new().before(GAME)).await;
    in_game(&stage, "return platform.getAccessToken()").await;
    let mut taken = Vec::new();
    for round in 0..5 {
        let began = Instant::now();
        let throw = format!("setTimeout(() => {{ throw new Error('deliberate {round}') }})");
        play(&stage, &throw).await;
        logged(&stage, &format!("deliberate {round}")).await;
        taken.push(began.elapsed());
    }
    taken.sort();
    println!("an error is on the page after {taken:?}");
    assert!(taken[2] < Duration::from_secs(1), "{taken:?}");
    assert_eq!(entries(&stage).await[0][0], "Error");
    stage.says("5 errors").await;
    let open = "document.querySelector('.entry summary').click()";
    stage.look(open, vec![]).await;
    poll::until("the entry opens", async || {
        let facts = stage.look(
            "return document.querySelectorAll('.entry dd').length",
            vec![],
        );
        (facts.await.as_u64()? > 2).then_some(())
    })
    .await;
    stage.says("You").await;
}

async fn what_players_log_is_inert_text(stage: Stage) {
    stage.tolerate_log("deliberate");
    let _scene = Scene::open(&stage, PageBuilder::new()).await;
    let hostile = r#"
        const texts = [
            '<img src=x onerror="window.hurt = 1">',
            '<script>window.hurt = 1</scr' + 'ipt>',
            'javascript:window.hurt = 1',
            '</bdi></li></ol><h1>taken over</h1>',
            '\u202egnp.exe\u202c',
            '\u001b[31mred\u0007',
            '{{7*7}} ${7*7}',
        ];
        for (const text of texts) platform.reportError('deliberate ' + text, { [text]: [text, { __proto__: null, constructor: text }] });
        const error = new Error('deliberate <b>bold</b>');
        error.stack = 'Error: <b>\n    at <img src=x onerror=hurt=1> (javascript:hurt=1:1:2)\n    at f (https://evil.example/\u202e<svg onload=hurt=1>:3:4)';
        Promise.reject(error);"#;
    play(&stage, hostile).await;
    logged(&stage, "bold").await;
    logged(&stage, "{{7*7}} ${7*7}").await;
    let open = "document.querySelectorAll('.entry summary').forEach(summary => summary.click())";
    stage.look(open, vec![]).await;
    poll::until("every entry opens", async || {
        let all = "return [...document.querySelectorAll('.entry')].every(entry => entry.querySelector('dl'))";
        (stage.look(all, vec![]).await == true).then_some(())
    })
    .await;
    let found = stage
        .look(
            "const log = document.getElementById('records');
            const names = new Set([...log.querySelectorAll('*')].map(element => element.localName));
            return [[...names].sort(), window.hurt ?? null, document.querySelectorAll('h1').length,
                /[\\u0000-\\u0008\\u001b\\u202a-\\u202e]/.test(log.textContent),
                [...log.querySelectorAll('*')].some(element => element.hasAttribute('href') || element.hasAttribute('src') || element.hasAttribute('style'))]",
            vec![],
        )
        .await;
    let names = [
        "bdi", "code", "dd", "details", "dl", "dt", "li", "ol", "pre", "span", "summary", "time",
    ];
    assert_eq!(found, json!([names, null, 1, false, false]));
    logged(&stage, "‹U+202E›gnp.exe‹U+202C›").await;
    logged(&stage, "␛[31mred␇").await;
    logged(&stage, "</bdi></li></ol><h1>taken over</h1>").await;
}

async fn repeats_fold_and_the_log_is_filtered_paused_and_cleared(stage: Stage) {
    stage.tolerate_log("deliberate");
    let _scene = Scene::open(&stage, PageBuilder::new()).await;
    // A record names the player once the page knows it.
    in_game(&stage, "return platform.getAccessToken()").await;
    play(
        &stage,
        "for (let round = 0; round < 30; round++) console.warn('deliberate again');
        console.info('so far so good'); console.error('deliberate trouble')",
    )
    .await;
    logged(&stage, "deliberate trouble").await;
    let shown = json!([
        ["Error", "×1", "deliberate trouble"],
        ["Info", "×1", "so far so good"],
        ["Warning", "×30", "deliberate again"],
    ]);
    assert_eq!(entries(&stage).await, shown);
    choose(&stage, "level", "warn").await;
    assert_eq!(entries(&stage).await, json!([shown[0], shown[2]]));
    stage.press("Show errors only").await;
    assert_eq!(entries(&stage).await, json!([shown[0]]));
    choose(&stage, "source", "resource").await;
    assert_eq!(entries(&stage).await, json!([]));
    stage.says("Nothing of what was logged is like this.").await;
    choose(&stage, "level", "debug").await;
    choose(&stage, "source", "").await;
    let player = "return document.getElementById('player').options[1].textContent";
    assert_eq!(stage.look(player, vec![]).await, "You");

    stage.press("Pause").await;
    in_game(&stage, "console.info('while it is paused')").await;
    stage.press("Paused · 1 new record").await;
    logged(&stage, "while it is paused").await;
    stage.press("Clear").await;
    assert_eq!(entries(&stage).await, json!([]));
    in_game(&stage, "console.info('after it was cleared')").await;
    logged(&stage, "after it was cleared").await;
    // A page that is opened again shows the earlier records, once each.
    stage.reload().await;
    logged(&stage, "deliberate trouble").await;
    let again = entries(&stage).await;
    assert_eq!(again.as_array().map(Vec::len), Some(5), "{again}");
}

async fn an_earlier_deployment_is_shown_again(stage: Stage) {
    let page = |title: &str| format!("{}<h1>{title}</h1>", PageBuilder::new().html());
    let scene = Scene::open(&stage, PageBuilder::new().after("<meta name=one>")).await;
    open_drawer(&stage).await;
    stage.says("The page loads the runtime as it should.").await;
    let bare = "<!doctype html><title>Two</title><h1>two</h1>";
    scene
        .owner
        .deploy("game", "dev", &[("index.html", bare)])
        .await;
    stage.says("runtime-not-loaded").await;
    scene
        .owner
        .deploy("game", "dev", &[("index.html", &page("three"))])
        .await;
    poll::until("the third deployment is listed", async || {
        let listed = "return document.querySelectorAll('#deployments li').length";
        (stage.look(listed, vec![]).await == 3).then_some(())
    })
    .await;
    let heading = "return document.querySelector('h1')?.textContent ?? null";
    assert_eq!(in_game(&stage, heading).await, "three");

    let oldest = "#deployments li:last-child button";
    stage.click(oldest).await;
    stage.says("Roll back?").await;
    stage.press("Cancel").await;
    assert_eq!(in_game(&stage, heading).await, "three");
    stage.click(oldest).await;
    stage.click("#rollback-yes").await;
    poll::until("the first one is shown", async || {
        let current =
            "return document.querySelector('#deployments li:last-child .now')?.textContent ?? null";
        (stage.look(current, vec![]).await == "Shown now").then_some(())
    })
    .await;
    let first = in_game(
        &stage,
        "return document.querySelector('meta[name=one]') !== null",
    )
    .await;
    assert_eq!(first, true);
    stage.says("The page loads the runtime as it should.").await;
}

async fn a_project_of_somebody_else_tells_nothing(stage: Stage) {
    stage.tolerate_log("403");
    stage.tolerate_log("404");
    let platform = Platform::start(&[]).await;
    let owner = Owner::sign_in(&platform.site, "Ada").await;
    owner.create("game").await;
    let page = |slug: &str| format!("{}/build/{slug}", platform.site.origin);
    stage.open(&page("game")).await;
    stage.press("Sign in").await;
    Way::BuiltIn.sign_in(&stage, "Eve").await;
    stage.says("This project belongs to another account.").await;
    stage.open(&page("nothing")).await;
    stage.says("This project does not exist.").await;
    let ways = "return [...document.querySelectorAll('main a')]
        .filter(link => link.getClientRects().length).map(link => link.textContent)";
    assert_eq!(stage.look(ways, vec![]).await, json!(["Your projects"]));
    stage.press("Your projects").await;
    stage.says("You have no project yet").await;
}

async fn the_build_page_has_no_barrier_and_fits_a_phone(stage: Stage) {
    stage.tolerate_log("deliberate");
    let scene = Scene::open(&stage, PageBuilder::new().before(GAME)).await;
    open_drawer(&stage).await;
    let bare = "<!doctype html><html lang=en><title>Two</title><h1>two</h1>";
    scene
        .owner
        .deploy("game", "dev", &[("index.html", bare)])
        .await;
    stage.says("runtime-not-loaded").await;
    let html = PageBuilder::new().before(GAME).html();
    scene
        .owner
        .deploy("game", "dev", &[("index.html", &html)])
        .await;
    poll::until("the game is there", async || {
        let listed = "return document.querySelectorAll('#deployments li').length";
        (stage.look(listed, vec![]).await == 3).then_some(())
    })
    .await;
    play(
        &stage,
        "for (let round = 0; round < 30; round++) console.warn('deliberate again');
        console.info('so far so good', { round: 3, players: ['ada', 'eve'] });
        console.debug('x'.repeat(2000));
        platform.reportError('deliberate report', { level: 3, seed: 'a1b2' });
        setTimeout(function lose() { throw new TypeError('deliberate: the ship is not a function') })",
    )
    .await;
    logged(&stage, "the ship is not a function").await;
    examine(&stage, "the Build page").await;
    lies_side_by_side_where_there_is_room(&stage).await;
    stage
        .look(
            "document.querySelector('.entry.error summary').click()",
            vec![],
        )
        .await;
    examine(&stage, "an error's details").await;
    stage
        .look(
            "document.querySelector('#deployments button').click()",
            vec![],
        )
        .await;
    stage.says("Roll back?").await;
    examine(&stage, "the question before a roll-back").await;
    stage.press("Cancel").await;
    stage
        .open(&format!("{}/build", scene.platform.site.origin))
        .await;
    stage.says("Deployed to dev").await;
    examine(&stage, "the projects").await;
    stage.browser().renew().await;
    stage.open(&scene.page()).await;
    stage.says("You are a guest here").await;
    examine(&stage, "the page of a guest").await;
}

/// In a wide window, the log is next to the preview, and nothing overflows.
async fn lies_side_by_side_where_there_is_room(stage: &Stage) {
    let session = &stage.browser().session;
    let before = session.get_window_rect().await.unwrap();
    session.set_window_rect(0, 0, 1500, 950).await.unwrap();
    let beside = "const [preview, log] = ['.preview', '.logs'].map(part => document.querySelector(part).getBoundingClientRect());
        return innerWidth > 1200 && preview.top === log.top && preview.right < log.left && log.bottom <= innerHeight
            && document.documentElement.scrollWidth <= innerWidth";
    poll::until("preview and log are side by side", async || {
        (stage.look(beside, vec![]).await == true).then_some(())
    })
    .await;
    let barriers = stage.barriers().await;
    assert!(barriers.is_empty(), "wide:\n{}", barriers.join("\n"));
    let size = [before.width, before.height].map(|side| u32::try_from(side).unwrap());
    let back = session.set_window_rect(before.x, before.y, size[0], size[1]);
    back.await.unwrap();
}

/// Checks the page in every display mode, also for elements that are wider than it, and for scripts
/// other than its own modules.
pub(crate) async fn examine(stage: &Stage, what: &str) {
    if stage.engine() != Engine::WebKit {
        let active = "return [...document.scripts].filter(script =>
            script.textContent || !script.src.startsWith(location.origin + '/static/console/')).map(script => script.outerHTML)";
        assert_eq!(stage.look(active, vec![]).await, json!([]), "{what}");
    }
    for look in Look::of(stage.engine()) {
        stage.show_as(*look).await;
        let too_wide = "return document.documentElement.scrollWidth > innerWidth";
        assert_eq!(
            stage.look(too_wide, vec![]).await,
            false,
            "{what}, {look:?}"
        );
        let barriers = stage.barriers().await;
        assert!(
            barriers.is_empty(),
            "{what}, {look:?}:\n{}",
            barriers.join("\n")
        );
    }
    stage.show_plainly().await;
}
