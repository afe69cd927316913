//! A store that cannot write while somebody signs in: another program holds its lock.

use crate::browser::Browser;
use crate::support::TestApp;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sign_in_that_cannot_be_written_is_unavailable_and_succeeds_when_it_is_repeated() {
    let app = TestApp::start().await;
    let game = format!("{}/", app.origin("demo"));
    let mut browser = Browser::new(&app);
    let guest = browser.token().await.claims();
    let fields = [("name", "Ann"), ("action", "sign-in")];
    let callback = browser.at_demo_provider(&game, &fields).await.location();

    let other = rusqlite::Connection::open(app.directory.path().join("platform.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let refused = browser.get(&callback).await;
    assert_eq!(refused.status, 503, "{refused:?}");
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(refused.problem(), "unavailable");
    // The guest plays on, since nothing must be written for that.
    let still = browser.token().await.claims();
    assert_eq!((still.sub, still.is_anon), (guest.sub.clone(), true));
    other.execute_batch("ROLLBACK").unwrap();

    // Loading the page again goes on with the same sign-in.
    let done = browser.get(&callback).await;
    assert_eq!(done.location(), game);
    let account = browser.token().await.claims();
    assert_eq!((account.sub, account.is_anon), (guest.sub, false));
}
