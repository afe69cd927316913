//! How the Build page handles interruptions: connections that break, tokens and sessions that end,
//! more records than anybody can read.

use std::sync::Arc;

use platform_server::clock::Clock as _;
use platform_server::domain::audit::Actor;
use platform_server::origin::PlatformOrigin;
use platform_tests::browser::Stage;
use platform_tests::gateway::{Fault, Gateway};
use platform_tests::owner::Owner;
use platform_tests::platform::Platform;
use platform_tests::poll;
use platform_tests::sign_in::Way;
use platform_tests::visitor::claims;
use platform_tests::world::PageBuilder;
use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::build::{Scene, choose, entries, logged, open_drawer};

platform_tests::browser_tests![
    a_stream_that_breaks_off_again_and_again_loses_and_repeats_nothing,
    the_three_variables_are_copied;
    in Chromium, because "it is the page's own logic":
    a_token_that_is_refused_is_renewed_once,
    a_session_that_is_over_leads_to_a_new_one,
    a_suspended_account_reads_so_and_may_sign_in_as_somebody_else,
    a_flood_is_folded_and_cut_and_leaves_the_page_usable,
    records_are_filtered_by_player_source_and_level,
    a_roll_back_that_is_refused_says_why,
];

/// A page that logs nothing, in a frame that requests nothing.
pub(crate) const QUIET: &str =
    "<!doctype html><html lang=en><title>Quiet</title><link rel=icon href=data:,>";
pub(crate) const LOGS: &str = "/api/projects/game/logs";
pub(crate) const ENVIRONMENT: &str = "/api/projects/game/environments/dev";

/// Opens a Build page whose browser reaches the platform only through a gateway.
pub(crate) async fn behind_a_gateway(stage: &Stage) -> (Scene, Gateway) {
    let gateway = Gateway::listen().await;
    let origin = PlatformOrigin::local(gateway.port());
    let platform = Platform::start_with(&[], |config| config.origin = Some(origin)).await;
    gateway.lead_to(platform.site.address);
    let scene = Scene::open_on(platform, stage, &[("index.html", QUIET)]).await;
    (scene, gateway)
}

pub(crate) fn record(level: &str, message: &str) -> Value {
    json!({ "time": 0, "level": level, "source": "console", "message": message })
}

/// Returns the player who uses the page.
fn owner_of(scene: &Scene) -> Uuid {
    claims(&scene.owner.token).sub.parse().unwrap()
}

/// Returns how often the page itself, and not the game, has requested a token.
fn tokens(scene: &Scene, gateway: &Gateway) -> usize {
    let asked = gateway.seen(&Method::POST, "/token");
    let own = |origin: &str| origin == scene.platform.site.origin;
    let origins = asked.iter().filter_map(|seen| seen.headers.get("origin"));
    origins
        .filter(|origin| own(origin.to_str().unwrap()))
        .count()
}

async fn a_stream_that_breaks_off_again_and_again_loses_and_repeats_nothing(stage: Stage) {
    // An engine may report that a connection broke.
    for part in ["Failed to load", "network connection", "ERR_", "connection"] {
        stage.tolerate_log(part);
    }
    let (scene, gateway) = behind_a_gateway(&stage).await;
    // The same applies to all later streams, including the first one of the reloaded page.
    gateway.stop_streams_after(6_000);
    stage.reload().await;
    stage.says("Live").await;
    let texts: Vec<String> = (0..60)
        .map(|number| format!("line {number:03} ü"))
        .collect();
    let records: Vec<Value> = texts.iter().map(|text| record("info", text)).collect();
    for batch in records.chunks(10) {
        scene.log(batch, None).await;
    }
    // Each connection shows something before it breaks.
    let mut before = 0;
    let shown = poll::until("the last record is shown", async || {
        let shown: Vec<(String, String, String)> =
            serde_json::from_value(entries(&stage).await).unwrap();
        if shown.len() > before {
            before = shown.len();
            gateway.cut_streams();
        }
        (shown.len() >= texts.len()).then_some(shown)
    })
    .await;
    let shown: Vec<String> = shown
        .into_iter()
        .rev()
        .map(|(_, times, text)| {
            assert_eq!(times, "×1", "{text}");
            text
        })
        .collect();
    assert_eq!(shown, texts);
    let streams = gateway.seen(&Method::GET, &format!("{LOGS}/stream"));
    let last: Vec<i64> = streams
        .iter()
        .map(|seen| {
            let id = seen.headers["last-event-id"].to_str().unwrap();
            id.parse().unwrap()
        })
        .collect();
    println!("followed by {} connections", last.len());
    assert!(last.len() >= 4, "it hardly broke off: {last:?}");
    // The first two are from the page before it was reloaded.
    assert!(
        last.is_sorted() && last[last.len() - 1] > last[1],
        "{last:?}"
    );
    gateway.heal();
    stage.says("Live").await;
}

async fn a_token_that_is_refused_is_renewed_once(stage: Stage) {
    stage.tolerate_log("401");
    let (scene, gateway) = behind_a_gateway(&stage).await;
    let refusal = |status, slug: &str| Fault::Answer {
        status,
        headers: vec![("content-type", "application/problem+json".to_owned())],
        body: json!({ "type": format!("/problems/{slug}"), "detail": "Not you." })
            .to_string()
            .into_bytes(),
    };
    let before = tokens(&scene, &gateway);
    gateway.spoil(Method::GET, ENVIRONMENT, refusal(401, "not-signed-in"), 1);
    poll::until("the page asks with another token", async || {
        let asked = gateway.seen(&Method::GET, ENVIRONMENT);
        let refused = asked
            .iter()
            .rposition(|seen| seen.status.is_some_and(|status| status == 401))?;
        let again = asked.get(refused + 1)?;
        assert_ne!(
            again.headers["authorization"],
            asked[refused].headers["authorization"]
        );
        again
            .status
            .is_some_and(|status| status == 200)
            .then_some(())
    })
    .await;
    assert_eq!(tokens(&scene, &gateway), before + 1);
    scene.log(&[record("info", "it goes on")], None).await;
    logged(&stage, "it goes on").await;

    // A second refusal ends it: the page does not repeat the request for ever.
    gateway.spoil(
        Method::GET,
        ENVIRONMENT,
        refusal(401, "not-signed-in"),
        1_000,
    );
    stage.says("Sign in to see your projects.").await;
    stage.control("Sign in").await;
    assert_eq!(tokens(&scene, &gateway), before + 2);
    let refused = gateway
        .seen(&Method::GET, ENVIRONMENT)
        .into_iter()
        .filter(|seen| seen.status.is_some_and(|status| status == 401));
    assert_eq!(refused.count(), 3);
}

async fn a_session_that_is_over_leads_to_a_new_one(stage: Stage) {
    for part in ["401", "platform"] {
        stage.tolerate_log(part);
    }
    let scene = Scene::open(&stage, PageBuilder::new()).await;
    let player = owner_of(&scene);
    let platform = &scene.platform;
    let ended = platform.store().end_other_sessions(
        player,
        None,
        Actor::Operator.into(),
        platform.clock.now(),
    );
    assert!(ended.await.unwrap() >= 2);
    platform
        .clock
        .advance(platform.running.state.platform.config.token_seconds as i64 * 1_000 + 1_000);
    stage.says("Your session is over. Sign in to go on.").await;
    assert_eq!(
        stage
            .look("return document.getElementById('inside').hidden", vec![])
            .await,
        true
    );
    stage.press("Sign in").await;
    Way::BuiltIn.sign_in(&stage, "Ada").await;
    stage.arrives_at(&scene.page()).await;
    stage.says("Live").await;
}

async fn a_suspended_account_reads_so_and_may_sign_in_as_somebody_else(stage: Stage) {
    for part in ["403", "platform"] {
        stage.tolerate_log(part);
    }
    let scene = Scene::open(&stage, PageBuilder::new()).await;
    let another = PageBuilder::new().after("<meta name=two>").html();
    scene
        .owner
        .deploy("game", "dev", &[("index.html", &another)])
        .await;
    poll::until("there is something to roll back to", async || {
        let button = "return document.querySelector('#deployments button') !== null";
        (stage.look(button, vec![]).await == true).then_some(())
    })
    .await;
    open_drawer(&stage).await;
    stage.click("#deployments button").await;
    stage.says("Roll back?").await;
    let (platform, now) = (&scene.platform, scene.platform.clock.now());
    let suspended = platform.store().suspend_player(
        owner_of(&scene),
        Some("You know why."),
        Actor::Operator.into(),
        now,
    );
    assert!(suspended.await.unwrap());
    let state = &platform.running.state;
    let looked = state.auth.suspensions.refresh(
        &*state.platform.store,
        state.platform.config.token_seconds,
        now,
    );
    looked.await.unwrap();
    stage
        .says("Your account is suspended: You know why. Sign in as somebody else to go on.")
        .await;
    // No question stays open. A new account would get around the suspension, so this is an existing
    // one.
    Owner::sign_in(&platform.site, "Eve").await;
    stage.press("Sign in").await;
    Way::BuiltIn.sign_in(&stage, "Eve").await;
    stage.says("This project belongs to another account.").await;
}

async fn the_three_variables_are_copied(stage: Stage) {
    let scene = Scene::open(&stage, PageBuilder::new()).await;
    let (status, environment) = scene.owner.ask(Method::GET, ENVIRONMENT, None).await;
    assert_eq!(status, 200);
    let variables = environment["variables"].as_object().unwrap();
    assert_eq!(variables.len(), 3);
    open_drawer(&stage).await;
    let field = "const field = document.createElement('textarea'); field.id = 'paste';
        document.querySelector('h1').after(field)";
    stage.look(field, vec![]).await;
    for (name, value) in variables {
        let wanted = format!("{name}={}", value.as_str().unwrap());
        stage.press(&format!("Copy {name}")).await;
        let said = poll::until("the page says that it was copied", async || {
            let said = stage
                .look("return document.getElementById('news').textContent", vec![])
                .await;
            let said = said.as_str()?.to_owned();
            said.ends_with(&wanted).then_some(said)
        })
        .await;
        if said.starts_with("Selected") {
            let selected = stage.look("return getSelection().toString()", vec![]).await;
            assert_eq!(selected.as_str().unwrap().trim(), wanted);
            println!("{}: selected to be copied", stage.engine());
            continue;
        }
        let session = &stage.browser().session;
        stage
            .look("document.getElementById('paste').value = ''", vec![])
            .await;
        stage.click("#paste").await;
        let paste = session
            .action_chain()
            .key_down(thirtyfour::Key::Control)
            .send_keys("v");
        paste
            .key_up(thirtyfour::Key::Control)
            .perform()
            .await
            .unwrap();
        poll::until("it can be pasted", async || {
            let pasted = stage
                .look("return document.getElementById('paste').value", vec![])
                .await;
            (pasted == json!(wanted)).then_some(())
        })
        .await;
    }
}

async fn a_flood_is_folded_and_cut_and_leaves_the_page_usable(stage: Stage) {
    let scene = Scene::open_on(Platform::start(&[]).await, &stage, &[("index.html", QUIET)]).await;
    // The longest time that any other task of the page has waited.
    let watch = "let last = performance.now();
        const note = now => { const data = document.documentElement.dataset;
            data.longest = Math.max(Number(data.longest ?? 0), now - last); last = now; };
        setInterval(() => note(performance.now()), 20)";
    stage.look(watch, vec![]).await;
    let records: Vec<Value> = (0..5_000)
        .map(|number| match number {
            1_000..2_000 => record("warn", "the same again"),
            _ => record(
                if number % 50 == 0 { "error" } else { "info" },
                &format!("flood {number} {}", "x".repeat(200)),
            ),
        })
        .collect();
    let scene = Arc::new(scene);
    let sent = records.chunks(500).map(|part| {
        let scene = Arc::clone(&scene);
        async move { scene.log(part, None).await }
    });
    futures_util::future::join_all(sent).await;
    // In order, so that nothing else waits to be shown when this is shown.
    scene
        .log(&[record("error", "the last of them")], None)
        .await;
    logged(&stage, "the last of them").await;
    stage.press("Pause").await;
    stage.says("Paused").await;
    let state = "return [document.querySelectorAll('.entry').length, document.querySelectorAll('*').length,
        document.querySelectorAll('.gap').length, Number(document.documentElement.dataset.longest)]";
    let state = stage.look(state, vec![]).await;
    println!("entries, elements, gaps, longest wait in ms: {state}");
    assert!((100..=500).contains(&state[0].as_u64().unwrap()), "{state}");
    assert!(state[1].as_u64().unwrap() < 8_000, "{state}");
    assert!(state[2].as_u64().unwrap() <= 10, "{state}");
    // Nobody can read that fast, but a busy machine must not make this test fail.
    assert!(state[3].as_f64().unwrap() < 3_000.0, "{state}");
    // The page is not longer than its visible content: the list has its own scrollbar.
    let below = "const end = document.body.getBoundingClientRect().bottom + scrollY;
        return document.documentElement.scrollHeight - Math.max(innerHeight, end)";
    let below = stage.look(below, vec![]).await;
    assert!(below.as_f64().unwrap() < 2.0, "{below} pixels of nothing");
    // The rest is still in the log, and was not announced line by line.
    stage.press("Show errors only").await;
    let level = "return document.getElementById('level').value";
    assert_eq!(stage.look(level, vec![]).await, "error");
    stage.press("Clear").await;
    assert_eq!(entries(&stage).await, json!([]));
    stage.press("Paused").await;
    let again: Vec<Value> = (0..1_000)
        .map(|_| record("error", "the same again"))
        .collect();
    scene.log(&again, None).await;
    poll::until("a thousand are one line", async || {
        (entries(&stage).await == json!([["Error", "×1000", "the same again"]])).then_some(())
    })
    .await;
}

async fn records_are_filtered_by_player_source_and_level(stage: Stage) {
    let scene = Scene::open_on(Platform::start(&[]).await, &stage, &[("index.html", QUIET)]).await;
    let mut names = Vec::new();
    for number in [1, 2] {
        let test = scene.owner.test_token("game", "user", number).await;
        let token = test["access_token"].as_str().unwrap();
        names.push(claims(token).sub);
        let mut failed = record("error", &format!("failed for {number}"));
        failed["source"] = json!("resource");
        let records = [record("info", &format!("said by {number}")), failed];
        scene.log(&records, Some(token)).await;
    }
    scene.log(&[record("warn", "said by nobody")], None).await;
    logged(&stage, "said by nobody").await;
    let of = |number: usize| json!(["Error", "×1", format!("failed for {number}")]);
    let said = |number: usize| json!(["Info", "×1", format!("said by {number}")]);
    let nobody = json!(["Warning", "×1", "said by nobody"]);
    assert_eq!(
        entries(&stage).await,
        json!([nobody, of(2), said(2), of(1), said(1)])
    );
    let players = "return [...document.getElementById('player').options].map(option => [option.value, option.textContent])";
    let short = |id: &str| format!("Player {}", &id[id.len() - 8..]);
    let offered = json!([
        ["", "All"],
        ["none", "Unknown"],
        [names[1], short(&names[1])],
        [names[0], short(&names[0])]
    ]);
    assert_eq!(stage.look(players, vec![]).await, offered);
    choose(&stage, "player", &names[1]).await;
    assert_eq!(entries(&stage).await, json!([of(2), said(2)]));
    choose(&stage, "source", "resource").await;
    assert_eq!(entries(&stage).await, json!([of(2)]));
    choose(&stage, "player", "none").await;
    assert_eq!(entries(&stage).await, json!([]));
    choose(&stage, "source", "").await;
    choose(&stage, "level", "warn").await;
    assert_eq!(entries(&stage).await, json!([nobody]));
    choose(&stage, "player", "").await;
    assert_eq!(entries(&stage).await, json!([nobody, of(2), of(1)]));
    // Later records are filtered as well.
    scene
        .log(
            &[record("info", "too small"), record("error", "grave")],
            None,
        )
        .await;
    logged(&stage, "grave").await;
    assert_eq!(entries(&stage).await[1], nobody);
}

async fn a_roll_back_that_is_refused_says_why(stage: Stage) {
    stage.tolerate_log("409");
    let (scene, gateway) = behind_a_gateway(&stage).await;
    scene
        .owner
        .deploy(
            "game",
            "dev",
            &[("index.html", &QUIET.replace("Quiet", "Second"))],
        )
        .await;
    let shown = "return [...document.querySelectorAll('#deployments li')].map(one => one.querySelector('.now') !== null)";
    let listed = async |wanted: Value| {
        poll::until("the deployments are as wanted", async || {
            (stage.look(shown, vec![]).await == wanted).then_some(())
        })
        .await;
    };
    listed(json!([true, false])).await;
    let refusal = Fault::Answer {
        status: 409,
        headers: vec![("content-type", "application/problem+json".to_owned())],
        body: br#"{"type":"/problems/conflict","detail":"Somebody \u202eelse deploys."}"#.to_vec(),
    };
    gateway.spoil(Method::POST, &format!("{ENVIRONMENT}/rollback"), refusal, 1);
    let open = "return document.getElementById('rollback').open";
    let keys = async |key: thirtyfour::Key| {
        let chain = stage.browser().session.action_chain().send_keys(key);
        chain.perform().await.unwrap();
    };
    open_drawer(&stage).await;
    stage.click("#deployments button").await;
    stage.says("Roll back?").await;
    assert_eq!(stage.focused().await.unwrap().0, "Cancel");
    keys(thirtyfour::Key::Escape).await;
    poll::until("it is closed", async || {
        (stage.look(open, vec![]).await == false).then_some(())
    })
    .await;

    stage.click("#deployments button").await;
    stage.click("#rollback-yes").await;
    stage.says("Somebody ‹U+202E›else deploys.").await;
    assert_eq!(stage.look(open, vec![]).await, true);
    assert_eq!(stage.look(shown, vec![]).await, json!([true, false]));
    stage.click("#rollback-yes").await;
    listed(json!([false, true])).await;
    assert_eq!(stage.look(open, vec![]).await, false);
}
