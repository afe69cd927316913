//! `platform.fetch`: responses that are errors for the game.

use platform_tests::backend::Answer;
use platform_tests::browser::Stage;
use platform_tests::gateway::Fault;
use reqwest::Method;
use serde_json::json;

use crate::calls::open;

platform_tests::browser_tests![
    no_answer_of_the_backend_is_status_zero;
    in Chromium, because "the answer is read by the runtime's own rules":
    a_problem_of_the_backend_arrives_as_platform_error,
    an_answer_without_a_problem_still_has_a_plain_sentence,
];

async fn a_problem_of_the_backend_arrives_as_platform_error(stage: Stage) {
    let world = open(&stage).await;
    let problem = Answer {
        status: 409,
        headers: &[("content-type", "application/problem+json")],
        body: r#"{"type":"https://game.example/problems/no-lives","title":"No lives","detail":"You have no lives left.","request_id":"abc-123"}"#,
    };
    let kinds = [
        r#"{"type":"urn:game:no-lives","detail":"Sentence."}"#,
        r##"{"type":"https://game.example/problems#no-lives","detail":"Sentence."}"##,
        r#"{"type":"no-lives","detail":"Sentence."}"#,
    ];
    let others = kinds.map(|body| Answer { body, ..problem });
    world
        .backend
        .answer("/api/lives", [problem].into_iter().chain(others));
    let facts = "try { await platform.fetch('/api/lives') } catch (error) {
        return [error instanceof platform.PlatformError, error.status, error.message, error.type, error.requestId,
            error.is('no-lives'), error.is(error.type), error.is('lives'), error.is('')] }";
    let expected = json!([
        true,
        409,
        "You have no lives left.",
        "https://game.example/problems/no-lives",
        "abc-123",
        true,
        true,
        false,
        false
    ]);
    assert_eq!(stage.run(facts).await, expected);
    let untyped = "return new platform.PlatformError(0, 'x', '', '').is('')";
    assert_eq!(
        stage.run(untyped).await,
        json!(false),
        "no type is no problem"
    );
    for kind in kinds {
        let facts = stage.run(facts).await;
        assert_eq!(facts[5], json!(true), "{kind}");
        assert_eq!(facts[7], json!(false), "{kind}");
    }
}

async fn an_answer_without_a_problem_still_has_a_plain_sentence(stage: Stage) {
    let world = open(&stage).await;
    let bodies = [
        (500, "text/html", "<h1>Internal error</h1>"),
        (502, "text/plain", "upstream said no"),
        (503, "application/problem+json", ""),
        (404, "application/problem+json", "{\"type\":"),
        (418, "application/json", "[1,2]"),
        (400, "application/json", "null"),
        (
            422,
            "application/problem+json",
            r#"{"type":7,"detail":{"no":"text"}}"#,
        ),
    ];
    for (status, kind, body) in bodies {
        let headers = vec![
            ("content-type", kind.to_owned()),
            ("x-request-id", "from-the-header".to_owned()),
        ];
        let answer = Fault::Answer {
            status,
            headers,
            body: body.as_bytes().to_vec(),
        };
        world.gateway.spoil(Method::GET, "/api/odd", answer, 1);
        let error = stage.refused("await platform.fetch('/api/odd')").await;
        assert_eq!(error.name, "PlatformError", "{body}");
        assert_eq!(
            (error.status, error.kind.as_deref()),
            (Some(status), Some("")),
            "{body}"
        );
        assert_eq!(
            error.request_id.as_deref(),
            Some("from-the-header"),
            "{body}"
        );
        assert!(
            error.message.len() > 10 && error.message.ends_with('.'),
            "{:?}",
            error.message
        );
        assert!(!error.message.contains('<'), "{:?}", error.message);
    }
}

async fn no_answer_of_the_backend_is_status_zero(stage: Stage) {
    let world = open(&stage).await;
    assert_eq!(
        stage
            .run("return (await platform.fetch('/api/any')).status")
            .await,
        json!(200)
    );
    world
        .gateway
        .spoil(Method::POST, "/api/any", Fault::Drop, 1);
    let error = stage
        .refused("await platform.fetch('/api/any', { method: 'POST', body: 'x' })")
        .await;
    assert_eq!(
        (error.name.as_str(), error.status),
        ("PlatformError", Some(0))
    );
    assert_eq!(
        (error.kind.as_deref(), error.request_id.as_deref()),
        (Some(""), Some(""))
    );
    assert!(error.message.ends_with('.'), "{:?}", error.message);
    assert_eq!(
        world.gateway.token_requests(),
        1,
        "the token is not to blame"
    );
}
