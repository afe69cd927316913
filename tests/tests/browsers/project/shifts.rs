//! Pages that fill themselves with data do not move what is already there (Layout Instability).

use platform_protocol::log::LogLevel;
use platform_server::domain::counting::MINUTE;
use platform_tests::accessibility::Look;
use platform_tests::browser::Stage;
use serde_json::{Value, json};

use super::errors::{are_grouped, crash};
use super::page::MOVED;
use super::{Scene, entry};

platform_tests::browser_tests![
    in Chromium, because "the other engines do not tell what moved":
    nothing_moves_on_a_page_that_is_full,
];

/// The most that a page's content may move while it loads.
const MOST: f64 = 0.02;

/// Whether the page has its data: no request of it has ended in the last half second.
const QUIET: &str = "
    const ends = performance.getEntriesByType('resource').map(one => one.responseEnd);
    const load = performance.getEntriesByType('navigation')[0].loadEventEnd;
    return load > 0 && performance.now() - Math.max(load, ...ends) > 500";

/// What moved, how far and when, for the message.
const WHAT: &str = "
    const [done] = arguments;
    const all = [];
    new PerformanceObserver(list => {
        for (const { value, startTime, sources } of list.getEntries())
            all.push([value.toFixed(3), Math.round(startTime),
                ...sources.map(({ node, previousRect: from, currentRect: to }) =>
                    `${node?.nodeName}#${node?.id}.${node?.className} ${from.y}-${from.bottom} to ${to.y}-${to.bottom}`)]);
    }).observe({ type: 'layout-shift', buffered: true });
    setTimeout(() => done(all), 300)";

/// The addresses of the pages, with that of an error.
async fn pages(scene: &Scene) -> Vec<String> {
    let groups = "/api/projects/game/error-groups?env=prod";
    let (_, groups) = scene.owner.ask(reqwest::Method::GET, groups, None).await;
    let group = groups["groups"][0]["id"].as_str().unwrap();
    let tabs = ["", "errors", "logs", "players", "deployments", "settings"];
    let mut pages: Vec<String> = tabs.iter().map(|tab| scene.tab(tab)).collect();
    pages.push(format!("{}/errors/{group}?env=prod", scene.page()));
    let others = [
        "/build",
        "/build/game",
        "/docs",
        "/docs/alerts",
        "/cli",
        "/games/demo",
        "/",
    ];
    pages.extend(others.map(|path| format!("{}{path}", scene.platform.site.origin)));
    pages
}

async fn nothing_moves_on_a_page_that_is_full(stage: Stage) {
    let scene = Scene::start().await;
    let deployment = scene.deploy("prod").await;
    scene.deploy("dev").await;
    scene.play().await;
    let game = scene.environment("prod").await["url"]
        .as_str()
        .unwrap()
        .to_owned();
    let mut entries: Vec<_> = (0..20)
        .map(|number| entry(&format!("round {number}"), LogLevel::Info))
        .collect();
    for line in 1..6 {
        entries.push(crash(&format!("no ship in line {line}"), &game, line));
    }
    scene.log(deployment, MINUTE, entries).await;
    are_grouped(&scene).await;
    scene.open(&stage, "").await;
    let mut moving = Vec::new();
    for look in [Look::Phone, Look::Desk] {
        stage.show_as(look).await;
        for page in pages(&scene).await {
            // The page of before must not be asked.
            stage.open("about:blank").await;
            stage.open(&page).await;
            super::comes_to(&stage, QUIET, json!(true)).await;
            let session = &stage.browser().session;
            let moved = session.execute_async(MOVED, vec![]).await.unwrap();
            let moved = moved.json().as_f64().unwrap();
            if moved > MOST {
                let what = session.execute_async(WHAT, vec![]).await.unwrap();
                let what: &Value = what.json();
                moving.push(format!("{page}, {look:?}: {moved}: {what}"));
            }
        }
    }
    assert!(moving.is_empty(), "{}", moving.join("\n"));
}
