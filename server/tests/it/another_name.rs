//! A platform that gets another name: what stays and what does not, as docs/hosting.md says it.

use crate::support::{TestApp, send};

#[tokio::test]
async fn under_another_name_accounts_games_and_keys_stay_and_tokens_have_another_issuer() {
    let app = TestApp::start().await;
    let keys = async |app: &TestApp| {
        let keys = send(app.get("auth", "/.well-known/jwks.json")).await;
        keys.text().to_owned()
    };
    let known = keys(&app).await;
    let (port, cookie) = (app.port(), app.sign_in("ada", None).await);
    let before = send(app.post_token().header("cookie", cookie))
        .await
        .claims();
    assert_eq!(before.iss, format!("http://auth.platform.localhost:{port}"));

    let name = "http://arcade.localhost";
    let app = app
        .restart(|config| config.origin = Some(name.parse().unwrap()))
        .await;
    assert_eq!(keys(&app).await, known);
    assert_eq!(send(app.get("demo", "/")).await.status, 200);
    // Browsers keep the old cookie for the old name, so an account signs in again, and is the same player.
    let cookie = app.sign_in("ada", None).await;
    let after = send(app.post_token().header("cookie", cookie))
        .await
        .claims();
    assert_eq!(after.sub, before.sub);
    assert_eq!(after.aud, before.aud);
    assert_eq!(after.iss, "http://auth.arcade.localhost");
    // The old name is nobody's.
    let old = app.request_host(reqwest::Method::GET, "demo.platform.localhost", "/");
    assert_eq!(send(old).await.problem(), "unknown-host");
}
