//! The harness itself: its reports about a page are correct.

use platform_tests::backend::{Answer, Backend};
use platform_tests::browser::Stage;
use platform_tests::poll;
use serde_json::json;

platform_tests::browser_tests![
    warnings_errors_and_rejections_of_a_page_are_complaints,
    a_script_runs_in_the_realm_of_the_page,
    every_request_of_a_page_is_seen,
    cookies_are_counted_on_every_host_and_deleted,
];

/// A page that requests nothing else.
const PAGE: Answer = Answer {
    status: 200,
    headers: &[("content-type", "text/html")],
    body: "<!doctype html><title>page</title><link rel=icon href=data:,>",
};

async fn warnings_errors_and_rejections_of_a_page_are_complaints(stage: Stage) {
    let backend = Backend::listen().await;
    backend.answer("/page", [PAGE]);
    stage.open(&format!("{}/page", backend.url())).await;
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
    let backend = Backend::listen().await;
    let body = "<!doctype html><link rel=icon href=data:,><script>function Own() {}; var own = new Own</script>";
    backend.answer("/page", [Answer { body, ..PAGE }]);
    stage.open(&format!("{}/page", backend.url())).await;
    assert_eq!(stage.run("return own instanceof Own").await, json!(true));
    let error = stage.refused("throw new RangeError('too far')").await;
    assert_eq!(
        (error.name.as_str(), error.message.as_str()),
        ("RangeError", "too far")
    );
}

async fn every_request_of_a_page_is_seen(stage: Stage) {
    let backend = Backend::listen().await;
    backend.answer("/page", [PAGE]);
    stage.open(&format!("{}/page", backend.url())).await;
    stage
        .run("await (await fetch('/again', { method: 'POST', body: 'four' })).text()")
        .await;
    assert_eq!(backend.calls("/again")[0].body, "four");
    let again = format!("{}/again", backend.url());
    // The browser's network events are independent of a script's result.
    poll::until("the page's request is seen", async || {
        let mut seen = stage.requests().into_iter();
        seen.find(|seen| seen.method == "POST" && seen.url == again)
    })
    .await;
}

async fn cookies_are_counted_on_every_host_and_deleted(stage: Stage) {
    let backend = Backend::listen().await;
    let port = backend.address.port();
    let headers = &[
        ("content-type", "text/html"),
        ("set-cookie", "hidden=1; Path=/; HttpOnly; SameSite=Lax"),
    ];
    backend.answer("/page", [Answer { headers, ..PAGE }; 2]);
    for (host, cookies) in [("one.localhost", 1), ("two.localhost", 2)] {
        stage.open(&format!("http://{host}:{port}/page")).await;
        assert_eq!(stage.cookies().await, cookies, "after {host}");
    }
    stage.browser().renew().await;
    stage
        .open(&format!("http://one.localhost:{port}/page"))
        .await;
    assert_eq!(stage.cookies().await, 0, "the jar is empty again");
}
