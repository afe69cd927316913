//! Players can only cause a limited amount of work on the Build page, and failures of its requests
//! are temporary.

use platform_tests::browser::Stage;
use platform_tests::gateway::{Fault, Gateway};
use platform_tests::poll;
use reqwest::Method;
use serde_json::{Value, json};

use crate::build::{Scene, entries, logged};
use crate::build_stream::{ENVIRONMENT, LOGS, QUIET, behind_a_gateway, record};

platform_tests::browser_tests![
    an_error_of_an_earlier_deployment_is_where_its_sources_had_it;
    in Chromium, because "it is the page's own logic":
    one_script_under_many_addresses_is_read_once,
    what_nobody_sees_is_not_looked_up,
    maps_that_are_too_large_or_never_end_are_given_up,
    equal_records_of_two_deployments_are_two_entries,
    too_many_streams_read_so_until_there_is_room,
    an_answer_that_is_none_does_not_end_the_watching,
    every_player_of_what_is_shown_can_be_chosen,
];

/// Deploys a page with `scripts` that do nothing, each with a map for its first character, and
/// waits until the page shows them.
async fn deploy(scene: &Scene, stage: &Stage, scripts: &[&str]) {
    let mut files = vec![("index.html".to_owned(), QUIET.to_owned())];
    for name in scripts {
        let script = format!("0\n//# sourceMappingURL={name}.js.map\n");
        let source = format!("src/{name}.js");
        let map = json!({ "version": 3, "sources": [source], "names": [], "mappings": "AAEE" });
        files.push((format!("{name}.js"), script));
        files.push((format!("{name}.js.map"), map.to_string()));
    }
    let files: Vec<_> = files
        .iter()
        .map(|(name, text)| (&**name, &**text))
        .collect();
    deploy_files(scene, stage, &files).await;
}

async fn deploy_files(scene: &Scene, stage: &Stage, files: &[(&str, &str)]) {
    let listed = "return document.querySelectorAll('#deployments li').length";
    let before = stage.look(listed, vec![]).await;
    scene.owner.deploy("game", "dev", files).await;
    poll::until("another deployment is listed", async || {
        (stage.look(listed, vec![]).await != before).then_some(())
    })
    .await;
}

/// Returns an error at the first character of `file` of the game.
fn error_in(scene: &Scene, file: &str, message: &str) -> Value {
    let (scheme, host) = scene.platform.site.origin.split_once("://").unwrap();
    let mut record = record("error", message);
    record["url"] = json!(format!("{scheme}://dev-game.{host}/{file}"));
    record["line"] = json!(1);
    record["column"] = json!(1);
    record
}

/// Returns the position that the entry with the text `text` shows.
async fn place(stage: &Stage, text: &str) -> Value {
    let script = "const entry = [...document.querySelectorAll('.entry')].find(entry =>
            entry.querySelector('.text').textContent === arguments[0]);
        entry?.scrollIntoView({ block: 'nearest' });
        return entry?.querySelector('summary .place')?.textContent ?? null";
    stage.look(script, vec![json!(text)]).await
}

async fn placed(stage: &Stage, text: &str, wanted: &str) {
    poll::until(&format!("{text:?} is at {wanted}"), async || {
        (place(stage, text).await == wanted).then_some(())
    })
    .await;
}

/// Returns the requested paths below `path`.
fn asked(gateway: &Gateway, path: &str) -> Vec<String> {
    let seen = gateway.seen(&Method::GET, path).into_iter();
    seen.map(|seen| seen.path).collect()
}

async fn to_the_oldest(stage: &Stage) {
    let script = "const log = document.getElementById('scroller');
        log.scrollIntoView(); log.scrollTop = log.scrollHeight";
    stage.look(script, vec![]).await;
}

async fn one_script_under_many_addresses_is_read_once(stage: Stage) {
    let (scene, gateway) = behind_a_gateway(&stage).await;
    deploy(&scene, &stage, &["bundle"]).await;
    let records: Vec<Value> = (0..200)
        .map(|number| {
            let file = match number % 4 {
                0 => format!("bundle.js?{number}"),
                1 => format!("b%75ndle.js?{number}"),
                2 => format!("a/../bundle.js?{number}#{number}"),
                _ => format!("%62undle%2Ejs?{number}"),
            };
            error_in(&scene, &file, &format!("failed {number}"))
        })
        .collect();
    scene.log(&records, None).await;
    for number in 196..200 {
        placed(&stage, &format!("failed {number}"), "src/bundle.js:3:3").await;
    }
    to_the_oldest(&stage).await;
    for number in 0..4 {
        placed(&stage, &format!("failed {number}"), "src/bundle.js:3:3").await;
    }
    assert_eq!(asked(&gateway, "/bundle"), ["/bundle.js", "/bundle.js.map"]);
    for spelling in ["/b%75", "/%62", "/a/"] {
        assert!(asked(&gateway, spelling).is_empty(), "{spelling}");
    }
}

async fn what_nobody_sees_is_not_looked_up(stage: Stage) {
    // Every engine has a different message for a missing script.
    stage.tolerate_log("/missing-");
    let (scene, gateway) = behind_a_gateway(&stage).await;
    let records: Vec<Value> = (0..200)
        .map(|number| {
            error_in(
                &scene,
                &format!("missing-{number}.js"),
                &format!("failed {number}"),
            )
        })
        .collect();
    scene.log(&records, None).await;
    logged(&stage, "failed 199").await;
    let before = asked(&gateway, "/missing-").len();
    // The earlier log arrives all at once.
    stage.reload().await;
    logged(&stage, "failed 199").await;
    to_the_oldest(&stage).await;
    poll::until("the oldest is looked up", async || {
        let asked = asked(&gateway, "/missing-");
        asked[before..]
            .contains(&"/missing-0.js".to_owned())
            .then_some(())
    })
    .await;
    let number = asked(&gateway, "/missing-").len() - before;
    println!("{number} of 200 were looked up");
    assert!(number < 100, "{number}");
}

async fn maps_that_are_too_large_or_never_end_are_given_up(stage: Stage) {
    let (scene, gateway) = behind_a_gateway(&stage).await;
    let names = ["endless", "forever", "large", "strange", "good"];
    deploy(&scene, &stage, &names).await;
    let watch = "let last = performance.now();
        setInterval(() => { const now = performance.now(); const data = document.documentElement.dataset;
            data.longest = Math.max(Number(data.longest ?? 0), now - last); last = now; }, 20)";
    stage.look(watch, vec![]).await;
    for name in ["endless", "forever"] {
        let path = format!("/{name}.js.map");
        gateway.spoil(Method::GET, &path, Fault::Endless(&[b';'; 65_536]), 1);
    }
    let answer = |body: Vec<u8>| Fault::Answer {
        status: 200,
        headers: vec![("access-control-allow-origin", "*".to_owned())],
        body,
    };
    let begin = br#"{"version":3,"sources":["src/large.js"],"mappings":"AAEE"#;
    let large = [&begin[..], &vec![b';'; 50_000_000], br#""}"#].concat();
    gateway.spoil(Method::GET, "/large.js.map", answer(large), 1);
    let strange = br#"{"version":3,"sources":7,"mappings":"AAEE"}"#;
    gateway.spoil(Method::GET, "/strange.js.map", answer(strange.to_vec()), 1);
    // First, as many as are read at the same time.
    for name in names {
        let record = error_in(&scene, &format!("{name}.js"), name);
        scene.log(&[record], None).await;
        poll::until("its map is asked for", async || {
            // Once it is visible.
            place(&stage, name).await;
            (asked(&gateway, &format!("/{name}.js")).len() == 2).then_some(())
        })
        .await;
    }
    placed(&stage, "good", "src/good.js:3:3").await;
    for name in &names[..4] {
        assert_eq!(place(&stage, name).await, format!("{name}.js:1:1"));
    }
    let longest = "return Number(document.documentElement.dataset.longest)";
    let longest = stage.look(longest, vec![]).await.as_f64().unwrap();
    println!("the page waited for {longest} ms at most");
    assert!(longest < 3_000.0, "{longest}");
}

async fn equal_records_of_two_deployments_are_two_entries(stage: Stage) {
    let (scene, _gateway) = behind_a_gateway(&stage).await;
    for wanted in [
        json!([["Error", "×2", "the same"]]),
        json!([["Error", "×2", "the same"], ["Error", "×2", "the same"]]),
    ] {
        for _ in 0..2 {
            scene.log(&[record("error", "the same")], None).await;
        }
        poll::until("both are shown", async || {
            (entries(&stage).await == wanted).then_some(())
        })
        .await;
        deploy(&scene, &stage, &[]).await;
    }
}

async fn an_error_of_an_earlier_deployment_is_where_its_sources_had_it(stage: Stage) {
    let (scene, gateway) = behind_a_gateway(&stage).await;
    deploy(&scene, &stage, &["bundle"]).await;
    scene
        .log(&[error_in(&scene, "bundle.js", "of before")], None)
        .await;
    placed(&stage, "of before", "src/bundle.js:3:3").await;
    deploy(&scene, &stage, &["other"]).await;
    let before = asked(&gateway, "/bundle").len();
    stage.reload().await;
    placed(&stage, "of before", "src/bundle.js:3:3").await;
    // The game's own address does not have it any more.
    assert_eq!(asked(&gateway, "/bundle").len(), before);
}

async fn too_many_streams_read_so_until_there_is_room(stage: Stage) {
    stage.tolerate_log("429");
    let (_scene, gateway) = behind_a_gateway(&stage).await;
    let refusal = Fault::Answer {
        status: 429,
        headers: vec![("content-type", "application/problem+json".to_owned())],
        body: br#"{"type":"/problems/too-many-requests","detail":"You already follow too many logs. Close some of them."}"#.to_vec(),
    };
    gateway.spoil(Method::GET, &format!("{LOGS}/stream"), refusal, 1_000);
    stage.reload().await;
    stage
        .says("You already follow too many logs. Close some of them. Trying again…")
        .await;
    gateway.heal();
    stage.says("Live").await;
}

async fn an_answer_that_is_none_does_not_end_the_watching(stage: Stage) {
    let (scene, gateway) = behind_a_gateway(&stage).await;
    let answer = Fault::Answer {
        status: 200,
        headers: vec![("content-type", "text/html".to_owned())],
        body: b"<!doctype html><title>Sign in to this network</title>".to_vec(),
    };
    let before = gateway.seen(&Method::GET, ENVIRONMENT).len();
    gateway.spoil(Method::GET, ENVIRONMENT, answer, 1);
    poll::until("it was answered", async || {
        let seen = gateway.seen(&Method::GET, ENVIRONMENT);
        seen.get(before)?.status.map(|_| ())
    })
    .await;
    deploy(&scene, &stage, &[]).await;
}

async fn every_player_of_what_is_shown_can_be_chosen(stage: Stage) {
    let (_scene, gateway) = behind_a_gateway(&stage).await;
    let players: Vec<String> = (0..120)
        .map(|number| format!("player-{number:08}"))
        .collect();
    let records: Vec<Value> = players
        .iter()
        .map(|player| {
            json!({ "id": "1", "time": "2026-01-01T00:00:00.000Z", "level": "info", "source": "console",
                "message": "hello", "stack": null, "url": null, "line": null, "column": null,
                "count": 1, "metadata": null, "player": player, "deployment": null })
        })
        .collect();
    let past = Fault::Answer {
        status: 200,
        headers: vec![],
        body: json!({ "records": records }).to_string().into_bytes(),
    };
    gateway.spoil(Method::GET, &format!("{LOGS}?"), past, 1);
    stage.reload().await;
    stage.says("Live").await;
    let offered = "return [...document.getElementById('player').options].slice(1).map(option => option.value)";
    assert_eq!(stage.look(offered, vec![]).await, json!(players));
    stage.press("Clear").await;
    assert_eq!(stage.look(offered, vec![]).await, json!([]));
}
