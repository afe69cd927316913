//! The section about alerts: setting a webhook, its secret, a test, and removing it.

use platform_tests::browser::Stage;
use platform_tests::poll;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::{Scene, comes_to};
use crate::build::examine;

platform_tests::browser_tests![
    in Chromium, because "it is the page's own logic":
    a_webhook_is_set_tested_given_a_new_secret_and_removed,
];

/// Responds with 204 to every request, on a port of its own. Returns its address.
async fn receiver() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let mut piece = vec![0; 65_536];
                if stream.read(&mut piece).await.is_ok_and(|read| read > 0) {
                    let answer = b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n";
                    let _ = stream.write_all(answer).await;
                }
            });
        }
    });
    url
}

const SECRET: &str = "return document.getElementById('webhook-secret').textContent";

async fn a_webhook_is_set_tested_given_a_new_secret_and_removed(stage: Stage) {
    let scene = Scene::start().await;
    let url = receiver().await;
    scene.open(&stage, "settings").await;
    stage.says("Nobody is told about errors.").await;
    stage.press("Save the webhook").await;
    stage.says("A webhook has an address").await;
    stage.tolerate_log("400");
    stage.fill("Webhook", "hooks.example").await;
    stage.press("Save the webhook").await;
    stage.says("A webhook's address is https://").await;
    let wrong = "return document.getElementById('webhook-url').ariaInvalid";
    comes_to(&stage, wrong, json!("true")).await;
    stage.fill("Webhook", &url).await;
    stage.press("Save the webhook").await;
    stage.says("The webhook is saved.").await;
    comes_to(&stage, wrong, Value::Null).await;
    let first = stage.look(SECRET, vec![]).await;
    assert!(first.as_str().unwrap().starts_with("whsec_"), "{first}");
    stage.press("Send a test").await;
    stage.says("It responded with 204 in ").await;
    stage.says(": it responded with 204.").await;
    examine(&stage, "the alerts of a project").await;
    stage.press("New secret").await;
    stage.says("The secret is replaced.").await;
    poll::until("another secret is shown", async || {
        let second = stage.look(SECRET, vec![]).await;
        (second != first && second != json!("")).then_some(())
    })
    .await;
    stage.press("Hide the secret").await;
    comes_to(&stage, SECRET, json!("")).await;
    stage.press("Remove the webhook").await;
    stage.says("The webhook is removed.").await;
    let path = "/api/projects/game/webhook";
    let (_, read) = scene.owner.ask(Method::GET, path, None).await;
    assert_eq!(read, json!({ "webhook": null }));
}
