//! Heartbeats: who counts as playing, and until when.

use std::time::Duration;

use platform_tests::browser::Stage;
use platform_tests::gateway::{Exchange, Fault};
use platform_tests::poll;
use platform_tests::world::{PageBuilder, World};
use reqwest::Method;
use serde_json::json;
use thirtyfour::By;

use crate::identity::player;
use crate::journey::playing;
use crate::logs::open;

platform_tests::browser_tests![
    the_first_beat_comes_after_five_visible_seconds_and_then_every_thirty,
    a_page_beats_as_often_as_the_operator_has_set,
    a_hidden_page_does_not_beat,
    an_idle_page_stops_and_a_touch_of_it_resumes,
    a_moving_gamepad_is_use_of_the_page,
    a_page_that_is_left_says_farewell,
    a_page_that_never_counted_says_no_farewell,
    a_beat_with_a_token_that_is_too_old_has_the_page_look_who_plays,
    a_page_learns_with_its_next_beat_that_its_player_signed_out_elsewhere,
    a_page_restored_from_the_cache_has_a_new_id,
    a_page_rendered_ahead_makes_no_guest_and_no_beat,
    the_runtime_listens_for_nothing_that_forbids_the_cache,
    a_page_that_loads_for_real_beats_within_seconds,
    a_first_visitor_is_among_the_players_within_ten_seconds,
    a_browser_without_cookies_asks_once_more_and_stays_the_same_guest,
    a_test_program_does_not_count_on_a_platform_elsewhere,
];

/// Sends two requests of the page's own, so that everything that it sent before has arrived.
async fn catch_up(stage: &Stage) {
    stage
        .run("for (const n of [1, 2]) await (await fetch('/?caught-up')).text()")
        .await;
}

async fn the_first_beat_comes_after_five_visible_seconds_and_then_every_thirty(stage: Stage) {
    let world = open(&stage, PageBuilder::new()).await;
    stage.run("await pass(4)").await;
    catch_up(&stage).await;
    assert_eq!(world.beats().len(), 0);
    assert_eq!(world.gateway.token_requests(), 0);
    stage.run("await pass(1)").await;
    let first = world.beats_reach(1).await.remove(0);
    assert_eq!(first.body, format!("{{\"page\":\"{}\"}}", first.page));
    let token = stage.run("return platform.getAccessToken()").await;
    assert_eq!(first.token.as_deref(), token.as_str());
    // A new guest asks once more, so that it counts.
    assert_eq!(world.gateway.token_requests(), 2);
    stage.run("await pass(29)").await;
    catch_up(&stage).await;
    assert_eq!(world.beats().len(), 1);
    stage
        .run("await pass(1); console.log('line'); await pass(30)")
        .await;
    let beats = world.beats_reach(3).await;
    assert!(
        beats
            .iter()
            .all(|beat| beat.page == first.page && !beat.leaving)
    );
    world.record("line").await;
    assert_eq!(world.batches()[0].page, first.page, "a page has one id");
    // A reloaded page is another page.
    stage.reload().await;
    stage.run("await pass(5)").await;
    let beats = poll::until("a beat of the other page", async || {
        let beats = world.beats();
        (beats.last()?.page != first.page).then_some(beats)
    })
    .await;
    // The guest came back, and asks once.
    assert_eq!(world.gateway.token_requests(), 3);
    assert!(beats[3].leaving && beats[3].page == first.page, "{beats:?}");
}

async fn a_page_beats_as_often_as_the_operator_has_set(stage: Stage) {
    let world = World::start_with(async |config| config.heartbeat_seconds = 7).await;
    let page = PageBuilder::new().clock();
    stage.open(&world.publish(page).await).await;
    stage.run("await pass(5)").await;
    world.beats_reach(1).await;
    stage.run("await pass(6)").await;
    catch_up(&stage).await;
    assert_eq!(world.beats().len(), 1);
    stage.run("await pass(1)").await;
    world.beats_reach(2).await;
    stage.run("await pass(70)").await;
    catch_up(&stage).await;
    assert_eq!(world.beats().len(), 12);
}

async fn a_beat_with_a_token_that_is_too_old_has_the_page_look_who_plays(stage: Stage) {
    stage.tolerate_log("heartbeat");
    let world = open(&stage, PageBuilder::new()).await;
    let before = stage.run("return platform.getAccessToken()").await;
    let refusal = Fault::Answer {
        status: 401,
        headers: vec![],
        body: vec![],
    };
    let gateway = &world.gateway;
    gateway.spoil(Method::POST, "/__platform/heartbeat", refusal, 1);
    stage.run("await pass(6)").await;
    poll::until("the page looks", async || {
        (gateway.token_requests() == 3).then_some(())
    })
    .await;
    let after = stage.run("return platform.getAccessToken()").await;
    assert_ne!(after, before);
    stage.run("await pass(31)").await;
    catch_up(&stage).await;
    let asked = gateway.token_requests();
    assert_eq!(asked, 3, "once for one refusal, and once for a new guest");
}

async fn a_page_learns_with_its_next_beat_that_its_player_signed_out_elsewhere(stage: Stage) {
    stage.tolerate_log("heartbeat");
    let world = open(&stage, PageBuilder::new()).await;
    let before = player(&stage).await;
    stage
        .run("window.told = 0; addEventListener('platform:playerchange', () => { told += 1 }); await pass(6)")
        .await;
    world.beats_reach(1).await;
    // The token was issued in an earlier second.
    world.pass_reading();
    world.end_sessions(&before.sub).await;
    assert_eq!(stage.run("return told").await, 0);
    stage.run("await pass(30)").await;
    poll::until("the page is told", async || {
        (stage.run("return told").await == 1).then_some(())
    })
    .await;
    let now = player(&stage).await;
    assert_ne!(now.sub, before.sub);
    // The next heartbeat has the new player's token, and is accepted.
    stage.run("await pass(30)").await;
    let answers = poll::until("three beats are answered", async || {
        let beats = world.gateway.seen(&Method::POST, "/__platform/heartbeat");
        let answers = beats.iter().filter_map(|beat| beat.status);
        let answers: Vec<u16> = answers.map(|status| status.as_u16()).collect();
        (answers.len() == 3).then_some(answers)
    })
    .await;
    assert_eq!(answers, [204, 401, 204]);
    assert_eq!(stage.run("return told").await, 1);
}

/// Makes the page believe that it is hidden, or visible.
fn hide(hidden: bool) -> String {
    format!(
        "Object.defineProperty(document, 'hidden', {{ value: {hidden}, configurable: true }});
        Object.defineProperty(document, 'visibilityState', {{ value: {hidden} ? 'hidden' : 'visible', configurable: true }});
        document.dispatchEvent(new Event('visibilitychange'));"
    )
}

async fn a_hidden_page_does_not_beat(stage: Stage) {
    let world = open(&stage, PageBuilder::new()).await;
    stage.run(&format!("{} await pass(120)", hide(true))).await;
    catch_up(&stage).await;
    assert_eq!(world.beats().len(), 0);
    stage.run(&format!("{} await pass(4)", hide(false))).await;
    catch_up(&stage).await;
    assert_eq!(
        world.beats().len(),
        0,
        "it counts five seconds after it is seen"
    );
    stage.run("await pass(2)").await;
    world.beats_reach(1).await;
    stage.run(&format!("{} await pass(120)", hide(true))).await;
    catch_up(&stage).await;
    assert_eq!(world.beats().len(), 1);
}

async fn an_idle_page_stops_and_a_touch_of_it_resumes(stage: Stage) {
    let world = open(&stage, PageBuilder::new()).await;
    stage.run("await pass(6)").await;
    world.beats_reach(1).await;
    stage.run("await pass(600)").await;
    catch_up(&stage).await;
    let idle = world.beats_reach(10).await.len();
    assert_eq!(idle, 10, "at 5, 35, … 275 seconds");
    let session = &stage.browser().session;
    for (round, act) in ["pointer", "key"].into_iter().enumerate() {
        let chain = session.action_chain();
        let chain = if act == "key" {
            chain.send_keys("a")
        } else {
            let body = session.find(By::Tag("html")).await.unwrap();
            chain.move_to_element_with_offset(&body, 3, 3).click()
        };
        chain.perform().await.unwrap();
        stage.run("await pass(2)").await;
        world.beats_reach(idle + round * 10 + 1).await;
        stage.run("await pass(600)").await;
        catch_up(&stage).await;
        assert_eq!(world.beats().len(), idle + round * 10 + 10, "after a {act}");
    }
}

async fn a_moving_gamepad_is_use_of_the_page(stage: Stage) {
    let pad = "<script>
        window.pad = { timestamp: 1 };
        navigator.getGamepads = () => [null, pad];
    </script>";
    let world = open(&stage, PageBuilder::new().before(pad)).await;
    stage.run("await pass(6)").await;
    world.beats_reach(1).await;
    stage.run("await pass(600)").await;
    catch_up(&stage).await;
    let idle = world.beats().len();
    assert_eq!(idle, 10, "a pad that lies still is no use");
    stage.run("pad.timestamp++; await pass(1)").await;
    world.beats_reach(idle + 1).await;
    // A frame may be forbidden to read gamepads.
    stage
        .run("navigator.getGamepads = () => { throw new DOMException('no', 'SecurityError') }; await pass(30)")
        .await;
    world.beats_reach(idle + 2).await;
}

async fn a_page_that_is_left_says_farewell(stage: Stage) {
    let page = PageBuilder::new().file("other.html", &PageBuilder::new().html());
    let world = open(&stage, page).await;
    stage.run("await pass(6)").await;
    let first = world.beats_reach(1).await.remove(0);
    stage.open(&world.url("arena", "/other.html")).await;
    let farewell = tokio::time::timeout(Duration::from_secs(2), world.beats_reach(2));
    let beats = farewell.await.expect("a farewell within two seconds");
    assert!(beats[1].leaving);
    assert_eq!(beats[1].page, first.page);
    assert_eq!(beats[1].token, first.token, "the server knows who leaves");
}

async fn a_page_that_never_counted_says_no_farewell(stage: Stage) {
    let page = PageBuilder::new().file("other.html", &PageBuilder::new().html());
    let world = open(&stage, page).await;
    stage
        .run("await pass(3); console.log('leaving early')")
        .await;
    stage.open(&world.url("arena", "/other.html")).await;
    world.record("leaving early").await;
    catch_up(&stage).await;
    assert_eq!(world.beats().len(), 0);
}

async fn a_page_restored_from_the_cache_has_a_new_id(stage: Stage) {
    let page = PageBuilder::new()
        .before("<script>addEventListener('pageshow', event => { window.persisted = event.persisted })</script>")
        .file("other.html", &PageBuilder::new().html());
    let world = open(&stage, page).await;
    stage.run("await pass(6)").await;
    let first = world.beats_reach(1).await.remove(0);
    stage.open(&world.url("arena", "/other.html")).await;
    world.beats_reach(2).await;
    stage.browser().session.back().await.unwrap();
    stage.arrives_at(&world.url("arena", "/")).await;
    println!(
        "restored from the cache: {}",
        stage.run("return persisted").await
    );
    stage.run("await pass(4)").await;
    catch_up(&stage).await;
    assert_eq!(
        world.beats().len(),
        2,
        "it counts five seconds after it is back"
    );
    stage.run("await pass(2); console.log('again')").await;
    let again = world.beats_reach(3).await.remove(2);
    assert_ne!(again.page, first.page);
    assert!(!again.leaving);
    stage.run("await pass(6)").await;
    world.record("again").await;
    assert_eq!(world.batches().last().unwrap().page, again.page);
}

async fn a_page_rendered_ahead_makes_no_guest_and_no_beat(stage: Stage) {
    let ahead = "<script>
        for (const name of ['prerendering', 'hidden'])
            Object.defineProperty(document, name, { value: true, configurable: true });
    </script>";
    let page = PageBuilder::new()
        .before(ahead)
        .after(r#"<script defer src="early.js"></script>"#)
        .file("early.js", "window.early = platform.fetch('/api/early')");
    let world = open(&stage, page).await;
    stage.run("await pass(60)").await;
    catch_up(&stage).await;
    assert_eq!(world.gateway.token_requests(), 0);
    assert_eq!(world.beats().len(), 0);
    let status = stage
        .run(
            "for (const name of ['prerendering', 'hidden'])
                Object.defineProperty(document, name, { value: false, configurable: true });
            document.dispatchEvent(new Event('prerenderingchange'));
            return (await early).status",
        )
        .await;
    assert_eq!(status, json!(200));
    stage.run("await pass(6)").await;
    world.beats_reach(1).await;
    // A new guest asks once more, so that it counts.
    assert_eq!(world.gateway.token_requests(), 2);
}

async fn the_runtime_listens_for_nothing_that_forbids_the_cache(stage: Stage) {
    let listen = "<script>
        window.listened = [];
        const native = EventTarget.prototype.addEventListener;
        EventTarget.prototype.addEventListener = function (type, ...rest) {
            listened.push(type);
            return native.call(this, type, ...rest);
        };
    </script>";
    let _world = open(&stage, PageBuilder::new().before(listen)).await;
    stage
        .run("await platform.fetch('/api/any'); await pass(40)")
        .await;
    let facts = "return [listened.includes('pagehide'), listened.includes('unload'), listened.includes('beforeunload'),
        window.onunload, window.onbeforeunload, navigator.locks ? (await navigator.locks.query()).held : []]";
    assert_eq!(
        stage.run(facts).await,
        json!([true, false, false, null, null, []])
    );
}

async fn a_page_that_loads_for_real_beats_within_seconds(stage: Stage) {
    let world = World::start().await;
    stage.open(&world.publish(PageBuilder::new()).await).await;
    world.beats_reach(1).await;
    let since = stage.run("return performance.now()").await;
    assert!(since.as_f64() > Some(5_000.0), "after {since} ms");
}

async fn a_first_visitor_is_among_the_players_within_ten_seconds(stage: Stage) {
    let world = World::start().await;
    stage.open(&world.url("demo", "/")).await;
    let visitor = world.visitor();
    let since = poll::until("the visitor counts", async || {
        let now = playing(&visitor, "demo").await;
        if now != json!(1) {
            return None;
        }
        stage.run("return performance.now()").await.as_f64()
    })
    .await;
    assert!(since < 10_000.0, "after {since} ms");
}

async fn a_browser_without_cookies_asks_once_more_and_stays_the_same_guest(stage: Stage) {
    // Without credentials no cookie is sent, and none is kept.
    let without = "<script>
        const native = window.fetch;
        window.fetch = (input, init) => native(input, init && { ...init, credentials: 'omit' });
        window.changes = 0;
        addEventListener('platform:playerchange', () => { changes += 1 });
    </script>";
    let world = open(&stage, PageBuilder::new().before(without)).await;
    let before = player(&stage).await;
    stage.run("await pass(70)").await;
    world.beats_reach(3).await;
    assert_eq!(world.gateway.token_requests(), 2);
    assert_eq!(player(&stage).await.sub, before.sub);
    assert_eq!(stage.run("return changes").await, 0);
}

async fn a_test_program_does_not_count_on_a_platform_elsewhere(stage: Stage) {
    let world = World::start().await;
    let page = world.publish(PageBuilder::new().clock()).await;
    let own = format!("\"http://platform.localhost:{}\"", world.gateway.port());
    let runtime = world.runtime_js().await;
    assert_eq!(runtime.matches(&own).count(), 1);
    let answer = Fault::Answer {
        status: 200,
        headers: vec![("content-type", "text/javascript; charset=utf-8".to_owned())],
        body: runtime
            .replace(&own, "\"https://games.example\"")
            .into_bytes(),
    };
    world
        .gateway
        .spoil(Method::GET, "/__platform/runtime.js", answer, 1);
    stage.open(&page).await;
    let fetched = world.gateway.seen(&Method::GET, "/__platform/runtime.js");
    let by_page = |seen: &Exchange| seen.host.starts_with("arena.");
    assert!(fetched.iter().any(by_page), "not the one in the cache");
    stage.run("console.log('here'); await pass(60)").await;
    world.record("here").await;
    catch_up(&stage).await;
    assert_eq!(world.beats().len(), 0);
    assert_eq!(stage.run("return navigator.webdriver").await, json!(true));
}
