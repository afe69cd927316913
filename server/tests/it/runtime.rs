//! `runtime.js` as every game's address serves it.

use std::io::Read as _;

use reqwest::Method;

use crate::support::{Answer, TestApp, send};

async fn script(app: &TestApp, accept: Option<&str>) -> Answer {
    let mut request = app.get("demo", "/__platform/runtime.js");
    if let Some(accept) = accept {
        request = request.header("accept-encoding", accept);
    }
    send(request).await
}

#[tokio::test]
async fn the_script_has_the_settings_in_it_and_the_promised_headers() {
    let app = TestApp::start().await;
    let answer = script(&app, None).await;
    assert_eq!(
        answer.header("content-type"),
        Some("text/javascript; charset=utf-8")
    );
    assert_eq!(
        answer.header("cache-control"),
        Some("public, max-age=300, stale-while-revalidate=86400")
    );
    assert_eq!(answer.header("vary"), Some("Accept-Encoding"));
    assert_eq!(
        answer.header("cross-origin-resource-policy"),
        Some("cross-origin")
    );
    assert_eq!(answer.header("content-encoding"), None);
    let settings = format!("[\"{}\",\"{}\",30]", app.origin("auth"), app.running.origin);
    assert_eq!(answer.text().matches(&settings).count(), 1);
    assert_eq!(script(&app, None).await.body, answer.body);
    let dev = send(app.get("dev-demo", "/__platform/runtime.js")).await;
    assert_eq!(dev.body, answer.body);
}

#[tokio::test]
async fn brotli_and_gzip_hold_the_same_script() {
    let app = TestApp::start().await;
    let plain = script(&app, None).await;
    let gzip = script(&app, Some("gzip, br;q=0.1")).await;
    assert_eq!(gzip.header("content-encoding"), Some("gzip"));
    let mut text = Vec::new();
    flate2::read::GzDecoder::new(&gzip.body[..])
        .read_to_end(&mut text)
        .unwrap();
    assert_eq!(text, plain.body);

    let brotli = script(&app, Some("gzip, deflate, br, zstd")).await;
    assert_eq!(brotli.header("content-encoding"), Some("br"));
    let mut text = Vec::new();
    brotli::Decompressor::new(&brotli.body[..], 4_096)
        .read_to_end(&mut text)
        .unwrap();
    assert_eq!(text, plain.body);
    assert!(brotli.body.len() < gzip.body.len() && gzip.body.len() < plain.body.len());
}

#[tokio::test]
async fn a_script_that_has_not_changed_is_not_sent_again() {
    let app = TestApp::start().await;
    let mut etags = std::collections::HashSet::new();
    for accept in ["identity", "gzip", "br"] {
        let first = script(&app, Some(accept)).await;
        let etag = first.header("etag").unwrap().to_owned();
        assert!(etag.starts_with('"'), "{etag} is strong");
        let again = app
            .get("demo", "/__platform/runtime.js")
            .header("accept-encoding", accept)
            .header("if-none-match", format!("\"other\", {etag}"));
        let again = send(again).await;
        assert_eq!(again.status, 304);
        assert!(again.body.is_empty());
        assert_eq!(again.header("etag"), Some(etag.as_str()));
        assert_eq!(again.header("cache-control"), first.header("cache-control"));
        etags.insert(etag);
    }
    assert_eq!(etags.len(), 3, "each coding is other bytes");
}

#[tokio::test]
async fn the_source_map_lies_beside_it() {
    let app = TestApp::start().await;
    let map = send(app.request(Method::GET, "demo", "/__platform/runtime.js.map")).await;
    assert_eq!(
        map.header("content-type"),
        Some("application/json; charset=utf-8")
    );
    assert_eq!(map.json::<serde_json::Value>()["version"], 3);
}
