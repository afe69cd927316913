//! A folder: as the platform serves a deployment of it, and never from a cache.

use futures_util::StreamExt as _;
use http::Method;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{Error, Message};

use super::{BOUND, Dev, PAGE, scene, until};

/// What a browser says when it opens a page.
const DOCUMENT: (&str, &str) = ("sec-fetch-dest", "document");

#[tokio::test]
async fn files_have_the_types_that_they_have_when_deployed() {
    let (_platform, home) = scene().await;
    for (name, text) in [
        ("level/index.html", "level"),
        ("404.html", "nothing here"),
        (".env", "secret"),
        ("a.wasm", "0123456789"),
    ] {
        home.write(&format!("dist/{name}"), text);
    }
    for name in [
        "a.js",
        "a.mjs",
        "a.css",
        "a.json",
        "a.svg",
        "b.wasm.br",
        "a.bin",
    ] {
        home.write(&format!("dist/{name}"), "");
    }
    let dev = Dev::start(&home, &[]).await;
    for (path, kind) in [
        ("/", "text/html; charset=utf-8"),
        ("/level/", "text/html; charset=utf-8"),
        ("/a.js", "text/javascript; charset=utf-8"),
        ("/a.mjs", "text/javascript; charset=utf-8"),
        ("/a.css", "text/css; charset=utf-8"),
        ("/a.json", "application/json; charset=utf-8"),
        ("/a.svg", "image/svg+xml"),
        ("/a.wasm", "application/wasm"),
        ("/b.wasm.br", "application/wasm"),
        ("/a.bin", "application/octet-stream"),
    ] {
        let answer = dev.get(path).await;
        assert_eq!(answer.status, 200, "{path}");
        assert_eq!(answer.header("content-type"), kind, "{path}");
        assert_eq!(answer.header("cache-control"), "no-store", "{path}");
        assert_eq!(answer.header("last-modified"), "", "{path}");
    }
    let compressed = dev.get("/b.wasm.br").await;
    assert_eq!(compressed.header("content-encoding"), "br");
    let range = dev.send(Method::GET, "/a.wasm", &[("range", "bytes=2-4")]);
    let range = range.await;
    assert_eq!((range.status.as_u16(), range.body.as_str()), (206, "234"));
    let head = dev.send(Method::HEAD, "/a.wasm", &[]).await;
    assert_eq!(
        (head.header("content-length"), head.body.as_str()),
        ("10", "")
    );
    let folder = dev.get("/level?a=b").await;
    assert_eq!(folder.status, 308);
    assert_eq!(folder.header("location"), "/level/?a=b");
    for path in ["/missing", "/.env", "/src"] {
        let answer = dev.get(path).await;
        assert_eq!(answer.status, 404, "{path}");
        assert_eq!(answer.body, "nothing here", "{path}");
    }
    let post = dev.send(Method::POST, "/api/scores", &[]).await;
    assert!(post.problem(405).contains("--backend"));
}

#[tokio::test]
async fn what_is_served_is_chosen_as_a_deploy_chooses_it() {
    let (_platform, home) = scene().await;
    home.write("other/index.html", "other");
    let dev = Dev::start(&home, &["other"]).await;
    assert_eq!(dev.get("/").await.body, "other");
    let _ = dev.end().await;
    std::fs::remove_dir_all(home.path("dist")).unwrap();
    let line = ["dev", "-p", "game", "--port", "0"];
    let nothing = home.run(&line).await.ended_with(1);
    assert!(nothing.stderr.contains("build the game"), "{nothing:?}");
    home.write(
        "index.html",
        "<script type=module src=/src/main.ts></script>",
    );
    let dev = Dev::start(&home, &[]).await;
    assert_eq!(dev.get("/").await.status, 200);
    let (_, said) = dev.end().await;
    assert!(
        said.contains("/src/main.ts, which no browser runs"),
        "{said}"
    );
    assert!(
        said.contains("does not load the platform's runtime"),
        "{said}"
    );
    let none = home.run(&["dev", "--port", "0"]).await.ended_with(2);
    assert!(none.stderr.contains("No project is given"), "{none:?}");
}

#[tokio::test]
async fn a_page_is_reloaded_when_a_file_changes_and_nothing_else_is_touched() {
    let (_platform, home) = scene().await;
    let dev = Dev::start(&home, &[]).await;
    let fetched = dev.get("/").await;
    assert_eq!(fetched.body, PAGE, "what the game itself fetches");
    let page = dev.send(Method::GET, "/", &[DOCUMENT]).await;
    assert!(page.body.starts_with(PAGE), "{page:?}");
    let (_, script) = page.body.split_once("reload.js?").unwrap();
    let seen = script.split('"').next().unwrap();
    let script = dev.get(&format!("/__platform/dev/reload.js?{seen}")).await;
    assert!(script.body.contains("location.reload()"), "{script:?}");

    let address = format!("ws://localhost:{}/__platform/dev/changes?{seen}", dev.port);
    let (mut socket, _) = tokio_tungstenite::connect_async(&address).await.unwrap();
    home.write("dist/sprite.svg", "<svg/>");
    let told = tokio::time::timeout(BOUND, socket.next()).await.unwrap();
    assert_eq!(told.unwrap().unwrap(), Message::text("changed"));
    // A page that was read before the change hears of it even if it comes later.
    let (mut late, _) = tokio_tungstenite::connect_async(&address).await.unwrap();
    let told = tokio::time::timeout(BOUND, late.next()).await.unwrap();
    assert_eq!(told.unwrap().unwrap(), Message::text("changed"));
    let next = until("the page knows the change", async || {
        let page = dev.send(Method::GET, "/", &[DOCUMENT]).await.body;
        (!page.contains(&format!("reload.js?{seen}\""))).then_some(page)
    });
    assert!(next.await.starts_with(PAGE));

    let mut foreign = address.into_client_request().unwrap();
    foreign
        .headers_mut()
        .insert("origin", "http://evil.example".parse().unwrap());
    let refused = tokio_tungstenite::connect_async(foreign).await;
    assert!(matches!(refused, Err(Error::Http(answer)) if answer.status() == 404));
    let _ = dev.end().await;

    let dev = Dev::start(&home, &["--no-reload"]).await;
    assert_eq!(dev.send(Method::GET, "/", &[DOCUMENT]).await.body, PAGE);
}
