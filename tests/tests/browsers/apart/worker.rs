//! A game on a site of its own whose service worker answers navigations and other requests.

use platform_tests::browser::{Engine, Stage};
use platform_tests::world::{PageBuilder, World};
use reqwest::Method;
use serde_json::json;

use super::{game_url, player, world};

platform_tests::browser_tests![a_games_worker_is_never_sent_away_and_the_game_plays_from_its_cache,];

/// Keeps the start page and a file, and asks the network for everything else.
const WORKER: &str = "
    addEventListener('install', event => event.waitUntil((async () => {
        const cache = await caches.open('game');
        await cache.addAll(['/', '/level.txt']);
        await skipWaiting();
    })()));
    addEventListener('activate', event => event.waitUntil(clients.claim()));
    addEventListener('fetch', event => {
        const { origin, pathname } = new URL(event.request.url);
        if (origin !== location.origin || pathname.startsWith('/__platform/')) return;
        event.respondWith((async () =>
            await caches.match(event.request, { ignoreVary: true }) ?? await fetch(event.request))());
    });";

/// Registers the worker, and waits until it answers the page's requests.
const REGISTER: &str = "
    await navigator.serviceWorker.register('/worker.js');
    await navigator.serviceWorker.ready;
    if (!navigator.serviceWorker.controller) {
        await new Promise(done =>
            navigator.serviceWorker.addEventListener('controllerchange', done, { once: true }));
    }";

const UNREGISTER: &str = "
    for (const one of await navigator.serviceWorker.getRegistrations()) await one.unregister();";

/// How often the pages of the game were asked for at this path, and how often over the auth service.
fn asked(world: &World, path: &str) -> [usize; 2] {
    let seen = |path: &str, host: &str| {
        let mut seen = world.gateway.seen(&Method::GET, path);
        seen.retain(|seen| seen.path == path || path == "/continue");
        seen.retain(|seen| seen.host.starts_with(host));
        seen.len()
    };
    [seen(path, "arena."), seen("/continue", "auth.")]
}

/// The last requests with what they are for (Fetch Metadata), for the message of a failure.
fn last_requests(world: &World) -> String {
    let mut seen = world.gateway.seen(&Method::GET, "/");
    seen.extend(world.gateway.seen(&Method::POST, "/"));
    seen.sort_by_key(|one| one.arrived);
    let lines = seen.iter().rev().take(16).rev().map(|one| {
        let (method, status) = (&one.method, one.status);
        let is_for = ["sec-fetch-mode", "sec-fetch-dest"].map(|name| one.headers.get(name));
        format!(
            "{method} {}{}: {status:?}, {is_for:?}\n",
            one.host, one.path
        )
    });
    lines.collect()
}

async fn a_games_worker_is_never_sent_away_and_the_game_plays_from_its_cache(stage: Stage) {
    // Firefox asks the network once more for a page that its driver reloads.
    if stage.engine() == Engine::Firefox {
        return;
    }
    let world = world().await;
    let page = PageBuilder::new()
        .file("worker.js", WORKER)
        .file("level.txt", "level")
        .file("other.txt", "other")
        .file("other.html", &PageBuilder::new().html());
    world.publish(page).await;
    let start = game_url(&world, "arena", "/");
    stage.open(&start).await;
    let sub = player(&stage).await;
    let [pages, over] = asked(&world, "/");
    assert_eq!(over, 1);

    // The worker's own request for a page has the page, without a redirect.
    stage.run(REGISTER).await;
    assert_eq!(asked(&world, "/"), [pages + 1, over]);
    let mut seen = world.gateway.seen(&Method::GET, "/");
    seen.retain(|seen| seen.path == "/");
    let status = seen.last().unwrap().status.unwrap().as_u16();
    // 304 if the browser has cached the page.
    assert!(matches!(status, 200 | 304), "{status}");
    let own = stage
        .run(
            "const { redirected, status } = await fetch('/other.html');
             return [redirected, status]",
        )
        .await;
    assert_eq!(own, json!([false, 200]));

    // Navigations from the cache never reach the platform, and the player stays.
    stage.reload().await;
    assert_eq!(player(&stage).await, sub);
    assert_eq!(asked(&world, "/"), [pages + 1, over]);

    // Nor is anything sent away when the browser has lost the game's session.
    let session = &stage.browser().session;
    session.delete_all_cookies().await.unwrap();
    stage.reload().await;
    let alone = player(&stage).await;
    assert_ne!(alone, sub, "a guest of this game alone");
    let read = stage
        .run(
            "const read = async path => {
                 const response = await fetch(path);
                 return [await response.text(), response.redirected];
             };
             return [await read('/level.txt'), await read('/other.txt')]",
        )
        .await;
    assert_eq!(read, json!([["level", false], ["other", false]]));
    stage.reload().await;
    assert_eq!(player(&stage).await, alone, "who stays");
    assert_eq!(asked(&world, "/"), [pages + 1, over]);

    // WebKit at times goes on asking a worker that was unregistered, also for later visits.
    if stage.engine() == Engine::WebKit {
        return;
    }
    // Without the worker, the next visit finds the browser's player again. The worker ends with the last
    // page that it controls.
    stage.run(UNREGISTER).await;
    stage.open("about:blank").await;
    stage.open(&game_url(&world, "arena", "/other.html")).await;
    assert_eq!(player(&stage).await, sub, "{}", last_requests(&world));
    assert_eq!(asked(&world, "/")[1], over + 1);
}
