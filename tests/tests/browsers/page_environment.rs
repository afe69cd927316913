//! How games, frameworks and frames change the page around the runtime.

use axum::body::Bytes;
use platform_tests::browser::Stage;
use platform_tests::poll;
use platform_tests::world::{PageBuilder, World};
use serde_json::json;
use thirtyfour::By;

use crate::logs::{QUIET, messages, open};

platform_tests::browser_tests![
    what_a_framework_replaces_after_the_tag_the_runtime_does_not_use,
    two_tags_record_a_line_once,
    a_frame_without_an_origin_is_told_so_and_harms_nobody,
];

/// Breaks everything that frameworks, test tools and extensions replace.
///
/// A driver's own scripts use the page's functions, so this only fails for the runtime.
const REPLACED: &str = "
    window.calls = [];
    for (const name of ['fetch', 'Promise', 'setInterval', 'URL', 'Request', 'Date']) {
        const native = window[name];
        const replaced = function (...values) {
            if (/runtime\\.js/.test(new Error().stack)) {
                calls.push(name);
                throw new Error(`${name} is not the browser's`);
            }
            return new.target ? new native(...values) : native(...values);
        };
        window[name] = Object.setPrototypeOf(replaced, native);
        if (native.prototype) replaced.prototype = native.prototype;
    }
    const native = console.log;
    console.log = (...values) => native('[framework]', ...values);
";

async fn what_a_framework_replaces_after_the_tag_the_runtime_does_not_use(stage: Stage) {
    let page = PageBuilder::new()
        .before(QUIET)
        .after(r#"<script defer src="framework.js"></script>"#)
        .file("framework.js", REPLACED)
        .file("other.html", &PageBuilder::new().html());
    let world = World::start().await;
    stage.open(&world.publish(page).await).await;
    let seen = stage
        .run(
            "const answer = await platform.fetch('/api/any', { method: 'POST', body: 'four' });
            console.log('a line');
            await platform.reportError('a report');
            return [(await answer.json()).length, typeof await platform.getAccessToken({ forceRefresh: true }),
                platform.loginUrl().length > 20, calls]",
        )
        .await;
    assert_eq!(seen, json!([4, "string", true, []]));
    stage.open(&world.url("arena", "/other.html")).await;
    world.record("a report").await;
    assert_eq!(
        messages(&world.records())[..2],
        ["[framework] a line", "a report"]
    );
}

async fn two_tags_record_a_line_once(stage: Stage) {
    stage.expect_log("twice", 1);
    let page = PageBuilder::new().after(r#"<script defer src="/__platform/runtime.js"></script>"#);
    let world = open(&stage, page).await;
    stage.run("console.log('one line'); await pass(6)").await;
    let records = world.flushed(&stage).await;
    let lines: Vec<_> = records
        .iter()
        .filter(|record| record.message == "one line")
        .collect();
    assert_eq!(lines.len(), 1, "{records:?}");
    assert_eq!(lines[0].count, None);
    world.beats_reach(1).await;
    let pages: Vec<_> = world.beats().into_iter().map(|beat| beat.page).collect();
    assert_eq!(pages.len(), 1);
}

async fn a_frame_without_an_origin_is_told_so_and_harms_nobody(stage: Stage) {
    stage.tolerate_log("");
    let world = World::start().await;
    let game = world
        .publish(
            PageBuilder::new()
                .after(r#"<script defer src="game.js"></script>"#)
                .file(
                    "game.js",
                    "platform.getAccessToken().catch(error => { document.title = [error.name, error.type, error.status].join(' ') });
                    console.log('from nowhere');",
                ),
        )
        .await;
    let around = format!(
        "<!doctype html><title>Around</title><link rel=icon href=data:,><iframe id=game sandbox=allow-scripts src='{game}'></iframe>"
    );
    world
        .deploy(
            "around",
            vec![("index.html".to_owned(), Bytes::from(around))],
        )
        .await;
    stage.open(&world.url("around", "/")).await;
    let session = &stage.browser().session;
    let frame = session.find(By::Id("game")).await.unwrap();
    frame.enter_frame().await.unwrap();
    poll::until("the error", async || {
        let title = session
            .execute("return document.title", vec![])
            .await
            .ok()?;
        (title.json() == "PlatformError unsupported-context 0").then_some(())
    })
    .await;
    assert_eq!(world.gateway.token_requests(), 0, "nobody is made a guest");
    session.enter_default_frame().await.unwrap();
}
