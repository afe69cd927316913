//! An independent library accepts a minted token, and only where it should.

#![expect(clippy::unwrap_used, reason = "a test reports by failing")]

use std::process::Stdio;

use platform_tests::server::Server;
use platform_tests::{npm, poll, settings};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

/// Returns the response of `verify.js` to `question`.
async fn ask(question: &Value) -> Value {
    let mut node = Command::new(settings::program("NODE", &["node"]))
        .arg("verify.js")
        .current_dir(npm::packages("npm").await)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut input = node.stdin.take().unwrap();
    input
        .write_all(question.to_string().as_bytes())
        .await
        .unwrap();
    drop(input);
    let output = poll::within("node", node.wait_with_output()).await.unwrap();
    assert!(
        output.status.success(),
        "verify.js failed; its words are above"
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

#[tokio::test]
async fn jose_accepts_a_minted_token_and_refuses_it_elsewhere() {
    let data = TempDir::with_prefix("platform-tests-").unwrap();
    let server = Server::start(data.path()).await;
    let minted = server.visitor().mint("demo", None).await.unwrap();
    let issuer = server.origin.replace("://", "://auth.");
    let question = |token: &str, issuer: &str, audience: &str| {
        json!({
            "token": token,
            "issuer": issuer,
            "audience": audience,
            "jwksUrl": format!("{}/.well-known/jwks.json", server.origin.replace("://", "://auth.")),
            "address": server.address.to_string(),
        })
    };

    let verified = ask(&question(&minted.token, &issuer, "game:demo")).await;
    assert_eq!(
        verified["claims"],
        serde_json::to_value(&minted.claims).unwrap()
    );
    assert_eq!(verified["header"]["alg"], "ES256");
    assert_eq!(verified["header"]["typ"], "JWT");
    assert_eq!(minted.claims.iss, issuer);
    assert!(minted.claims.is_anon);

    let elsewhere = ask(&question(&minted.token, &issuer, "game:dev-demo")).await;
    assert_eq!(
        elsewhere,
        json!({ "refused": "ERR_JWT_CLAIM_VALIDATION_FAILED", "claim": "aud" })
    );
    let other = ask(&question(&minted.token, "http://auth.example", "game:demo")).await;
    assert_eq!(
        other,
        json!({ "refused": "ERR_JWT_CLAIM_VALIDATION_FAILED", "claim": "iss" })
    );

    let mut parts: Vec<&str> = minted.token.split('.').collect();
    let other = if parts[2].starts_with('A') { "B" } else { "A" };
    let signature = format!("{other}{}", &parts[2][1..]);
    parts[2] = &signature;
    let forged = ask(&question(&parts.join("."), &issuer, "game:demo")).await;
    assert_eq!(forged["refused"], "ERR_JWS_SIGNATURE_VERIFICATION_FAILED");
    server.stop().await;
}
