//! What is left of a game in a browser after it was taken down.

use platform_tests::browser::Stage;
use platform_tests::poll;
use platform_tests::world::{PageBuilder, World};
use serde_json::json;

platform_tests::browser_tests![
    a_visitor_who_has_a_disabled_games_worker_sees_that_it_is_down_and_loses_the_worker,
];

/// A worker that responds for the game on its own, for ever.
const WORKER: &str = "
    self.addEventListener('install', () => self.skipWaiting());
    self.addEventListener('activate', (event) => event.waitUntil(self.clients.claim()));
    self.addEventListener('fetch', (event) => {
        if (event.request.mode !== 'navigate') return;
        const page = '<!doctype html><link rel=icon href=data:,><p>The worker answers.</p>';
        event.respondWith(new Response(page, { headers: { 'Content-Type': 'text/html' } }));
    });";

async fn a_visitor_who_has_a_disabled_games_worker_sees_that_it_is_down_and_loses_the_worker(
    stage: Stage,
) {
    let world = World::start().await;
    let game = world
        .publish(PageBuilder::new().file("sw.js", WORKER))
        .await;
    // Its requests are refused, which browsers log.
    stage.tolerate_log("403");
    stage.open(&game).await;
    stage
        .run(
            "localStorage.setItem('progress', '7');
             await navigator.serviceWorker.register('/sw.js');
             await navigator.serviceWorker.ready",
        )
        .await;
    stage.open(&game).await;
    stage.says("The worker answers.").await;

    world.disable().await;
    // The worker still handles a navigation. About a second later, unless there was another
    // navigation in between, the browser looks for a newer worker, and gets the one that
    // unregisters itself.
    stage.open(&game).await;
    stage.says("The worker answers.").await;
    poll::until("the worker is gone", async || {
        let count = "return navigator.serviceWorker.getRegistrations().then((all) => all.length)";
        (stage.look(count, vec![]).await == json!(0)).then_some(())
    })
    .await;
    stage.open(&game).await;
    stage.says("taken down").await;
    let left = stage
        .look(
            "return Promise.all([
                 navigator.serviceWorker.getRegistrations().then((all) => all.length),
                 localStorage.getItem('progress'),
             ])",
            vec![],
        )
        .await;
    assert_eq!(left, json!([0, null]));
}
