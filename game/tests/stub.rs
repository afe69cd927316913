//! A game's own tests, which run natively: the stub is the platform.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use platform_game::{PlatformError, Player, Problem, Retry, fetch, stub};
use serde::{Deserialize, Serialize};

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Standing {
    best: u32,
}

fn unavailable() -> PlatformError {
    PlatformError::of(Problem {
        status: 503,
        ..Problem::default()
    })
}

#[tokio::test]
async fn a_test_guest_plays_until_another_player_is_set() {
    assert_eq!(
        platform_game::player().await.unwrap().username,
        "test-guest-1"
    );
    let ada = Player {
        id: "ada".into(),
        username: "Ada".into(),
        is_guest: false,
    };
    let told = Rc::new(Cell::new(0));
    let change = {
        let told = Rc::clone(&told);
        platform_game::on_player_change(move || told.set(told.get() + 1))
    };
    stub::set_player(Ok(ada.clone()));
    assert_eq!(platform_game::player().await.unwrap(), ada);
    assert_eq!(
        platform_game::access_token(false).await.unwrap(),
        "token-of-ada"
    );
    assert_eq!(told.get(), 1);
    drop(change);
    platform_game::sign_out().await.unwrap();
    assert_eq!(told.get(), 1, "nobody listens any more");
    assert!(platform_game::player().await.unwrap().is_guest);
    assert_eq!(stub::opened(), ["/"]);
}

#[tokio::test]
async fn a_backend_answers_in_turn() {
    stub::answer("GET", "/api/score", &Standing { best: 1 });
    stub::answer("GET", "/api/score", &Standing { best: 2 });
    stub::answer("PUT", "/api/score", &Standing { best: 3 });
    for best in [1, 2, 2] {
        let standing: Standing = fetch("/api/score").json().await.unwrap();
        assert_eq!(standing, Standing { best });
    }
    let put = fetch("/api/score").put(&Standing { best: 3 });
    assert_eq!(put.text().await.unwrap(), r#"{"best":3}"#);
    let sent = stub::sent();
    assert_eq!(sent.len(), 4);
    assert_eq!(sent[3].method, "PUT");
    assert_eq!(sent[3].body.as_deref(), Some(r#"{"best":3}"#));

    let unknown = fetch("/api/else").text().await.unwrap_err();
    assert!(matches!(unknown, PlatformError::Refused(problem) if problem.status == 404));
    let other = fetch("/api/score").json::<String>().await.unwrap_err();
    assert!(matches!(other, PlatformError::NotUnderstood(_)));
}

#[tokio::test]
async fn what_may_pass_is_tried_again_later_each_time() {
    for _ in 0..2 {
        stub::refuse("GET", "/api/score", unavailable());
    }
    stub::answer("GET", "/api/score", &Standing { best: 7 });
    let call = fetch("/api/score").retry(Retry::default());
    assert_eq!(call.json::<Standing>().await.unwrap().best, 7);
    assert_eq!(stub::sent().len(), 3);
    let half = Duration::from_millis(500);
    assert_eq!(stub::pauses(), [half, half * 2]);
}

#[tokio::test]
async fn it_is_given_up_after_the_last_attempt_and_at_once_if_it_is_for_good() {
    stub::refuse("GET", "/api/score", unavailable());
    let call = fetch("/api/score").retry(Retry::default());
    let failed = call.send().await.unwrap_err();
    assert!(failed.is_temporary(), "{failed:?}");
    assert_eq!((stub::sent().len(), stub::pauses().len()), (5, 4));

    let ended = PlatformError::SessionExpired(Problem::default());
    stub::set_player(Err(ended.clone()));
    assert_eq!(call.send().await.unwrap_err(), ended);
    assert_eq!(stub::pauses().len(), 4);
}

#[tokio::test]
async fn a_player_who_must_sign_in_is_led_there() {
    platform_game::log_in().unwrap();
    assert_eq!(stub::opened(), ["/__platform/login?redirect=/"]);
    platform_game::report_error("lost", &["a", "b"]);
    assert_eq!(stub::reported(), ["lost"]);
}
