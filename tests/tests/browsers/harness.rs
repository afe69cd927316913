//! The harness itself: what it says about a page is what happened there.

use platform_tests::backend::{Answer, Backend};
use platform_tests::browser::Stage;
use serde_json::json;

platform_tests::browser_tests![
    warnings_errors_and_rejections_of_a_page_are_complaints,
    a_script_runs_in_the_realm_of_the_page,
    every_request_of_a_page_is_seen,
];

const PAGE: &str = "<!doctype html><title>page</title><link rel=icon href=data:,>";

async fn warnings_errors_and_rejections_of_a_page_are_complaints(stage: Stage) {
    stage.open(&format!("data:text/html,{PAGE}")).await;
    stage
        .run(
            "console.log('quiet'); console.warn('careful'); console.error('broken');
             Promise.reject(new Error('nobody cares'));
             queueMicrotask(() => { throw new Error('thrown') });",
        )
        .await;
    let complaints = stage.complaints().await.join("\n");
    for part in ["careful", "broken", "nobody cares", "thrown"] {
        assert!(
            complaints.contains(part),
            "{part} is missing in: {complaints}"
        );
        stage.expect_log(part, 1);
    }
    assert!(!complaints.contains("quiet"), "{complaints}");
    stage.expect_log("said late", 1);
    assert_eq!(
        stage.complaints().await.len(),
        1,
        "announced and not said is a complaint"
    );
    stage.run("console.warn('said late')").await;
    assert_eq!(
        stage.complaints().await,
        [""; 0],
        "everything said was announced"
    );
}

async fn a_script_runs_in_the_realm_of_the_page(stage: Stage) {
    stage
        .open("data:text/html,<!doctype html><script>function Own() {}; var own = new Own</script>")
        .await;
    assert_eq!(stage.run("return own instanceof Own").await, json!(true));
    let error = stage.refused("throw new RangeError('too far')").await;
    assert_eq!(
        (error.name.as_str(), error.message.as_str()),
        ("RangeError", "too far")
    );
}

async fn every_request_of_a_page_is_seen(stage: Stage) {
    let backend = Backend::listen().await;
    let page = Answer {
        status: 200,
        headers: &[("content-type", "text/html")],
        body: PAGE,
    };
    backend.answer("/page", [page]);
    stage.open(&format!("{}/page", backend.url())).await;
    stage
        .run("await (await fetch('/again', { method: 'POST', body: 'four' })).text()")
        .await;
    assert_eq!(backend.calls("/again")[0].body, "four");
    let seen = stage.requests();
    assert!(
        seen.iter()
            .any(|seen| seen.method == "POST" && seen.url == format!("{}/again", backend.url())),
        "{seen:?}"
    );
}
