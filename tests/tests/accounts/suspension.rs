//! Suspended players: no token, no new guest, no way around it, and play again as soon as the
//! suspension is lifted.

use platform_server::domain::player::PlayerState;
use platform_tests::hostile_provider::{CLIENT_ID, CLIENT_SECRET, HostileProvider};
use platform_tests::person::{Answer, Person};
use platform_tests::platform::Site;
use platform_tests::poll;
use platform_tests::server::Server;
use tempfile::TempDir;
use uuid::Uuid;

use crate::scene::{PROVIDER, Scene, sets_session};

const REASON: &str = "You have cheated in \"Arena\" <3 times>.";

fn id(sub: &str) -> Uuid {
    sub.parse().unwrap()
}

fn is_suspended(answer: &Answer, reason: Option<&str>) {
    assert_eq!(answer.status, 403);
    assert_eq!(answer.slug(), "account-suspended");
    let problem = answer.problem();
    match reason {
        Some(reason) => assert_eq!(problem.detail, reason),
        None => assert!(!problem.detail.is_empty()),
    }
    assert!(answer.headers.get("set-cookie").is_none());
}

/// Asserts that this is a page that says so, and sets no session.
fn is_suspended_page(answer: &Answer, person: &Person) {
    assert_eq!(answer.status, 403, "{answer:?}");
    assert!(answer.header("content-type").starts_with("text/html"));
    assert!(answer.body.contains("cheated"), "{}", answer.body);
    assert!(!answer.body.contains("<3 times>"), "the reason is escaped");
    assert!(!sets_session(answer, person));
}

#[tokio::test]
async fn a_suspended_account_gets_no_token_from_any_of_its_sessions() {
    let scene = Scene::set().await;
    let (mut laptop, guest) = scene.guest().await;
    laptop.become_account(PROVIDER, "alice").await;
    let (mut phone, phone_guest) = scene.guest().await;
    let old = phone.clone();
    assert_eq!(phone.become_account(PROVIDER, "alice").await.sub, guest.sub);
    let (mut other, other_guest) = scene.guest().await;

    for reason in [None, Some(REASON)] {
        scene.platform.suspend(id(&guest.sub), reason).await;
        let players = scene.platform.tables().rows("players").len();
        for person in [&mut laptop, &mut phone] {
            for game in ["demo", "dev-demo"] {
                is_suspended(&person.token_for(game).await, reason);
            }
        }
        assert_eq!(scene.platform.tables().rows("players").len(), players);
    }
    // Nobody else is suspended.
    assert_eq!(other.play().await.sub, other_guest.sub);
    // The guest that was merged into the account is as gone as before.
    let mut old = old;
    let answer = old.token().await;
    assert!(
        ["session-expired", "account-suspended"].contains(&answer.slug().as_str()),
        "{answer:?}"
    );
    assert_ne!(phone_guest.sub, guest.sub);

    scene.platform.unsuspend(id(&guest.sub)).await;
    for person in [&mut laptop, &mut phone] {
        let claims = person.play().await;
        assert_eq!(claims.sub, guest.sub);
        assert!(!claims.is_anon);
    }
}

#[tokio::test]
async fn signing_in_to_a_suspended_account_merges_nobody() {
    let scene = Scene::set().await;
    let (mut person, account) = scene.guest().await;
    person.become_account(PROVIDER, "alice").await;
    let store = scene.platform.store();
    scene.platform.suspend(id(&account.sub), Some(REASON)).await;

    // From another browser, as a guest with progress.
    let (mut other, guest) = scene.guest().await;
    let before = scene.lasting();
    let answer = other.sign_in(PROVIDER, "alice").await;
    is_suspended_page(&answer, &other);
    scene
        .came_to_nothing("suspended", &mut other, &guest, &before, &answer)
        .await;
    // From a new browser: it gets no session either.
    let mut fresh = Person::new(&scene.platform.site);
    let answer = fresh.sign_in(PROVIDER, "alice").await;
    is_suspended_page(&answer, &fresh);
    // And from the suspended browser itself, repeatedly.
    for _ in 0..2 {
        let answer = person.sign_in(PROVIDER, "alice").await;
        is_suspended_page(&answer, &person);
        is_suspended(&person.token().await, Some(REASON));
    }
    before.demand_same(&scene.lasting(), "signing in while suspended");

    // After the suspension is lifted, the guest can be merged into the account.
    scene.platform.unsuspend(id(&account.sub)).await;
    assert_eq!(
        other.become_account(PROVIDER, "alice").await.sub,
        account.sub
    );
    let merged = store.find_player(id(&guest.sub)).await.unwrap().unwrap();
    let into = id(&account.sub);
    assert_eq!(merged.state, PlayerState::Merged { into });
}

#[tokio::test]
async fn a_suspended_player_may_sign_out_and_another_may_sign_in_there() {
    let scene = Scene::set().await;
    let (mut bob, bobs) = scene.guest().await;
    bob.become_account(PROVIDER, "bob").await;
    let (mut person, account) = scene.guest().await;
    person.become_account(PROVIDER, "alice").await;
    let store = scene.platform.store();
    scene.platform.suspend(id(&account.sub), Some(REASON)).await;
    let kept = person.clone();

    // Bob, on Alice's machine.
    let mut shared = person.clone();
    assert_eq!(shared.become_account(PROVIDER, "bob").await.sub, bobs.sub);
    let alice = store.find_player(id(&account.sub)).await.unwrap().unwrap();
    assert!(matches!(
        alice.state,
        PlayerState::Suspended { linked: true, .. }
    ));

    // Signing out does not lead to a new guest, but it ends the session.
    person.sign_out().await;
    is_suspended(&person.token().await, Some(REASON));
    let mut kept = kept;
    is_suspended(&kept.token().await, Some(REASON));
    scene.platform.unsuspend(id(&account.sub)).await;
    assert_eq!(person.token().await.status, 401);
    assert_eq!(
        person.become_account(PROVIDER, "alice").await.sub,
        account.sub
    );
}

#[tokio::test]
async fn a_suspended_guest_gets_no_token_and_whoever_signs_in_there_is_somebody_else() {
    let scene = Scene::set().await;
    let (mut bob, bobs) = scene.guest().await;
    bob.become_account(PROVIDER, "bob").await;
    let (mut person, guest) = scene.guest().await;
    let store = scene.platform.store();
    scene.platform.suspend(id(&guest.sub), Some(REASON)).await;
    is_suspended(&person.token().await, Some(REASON));
    // Another person on the same machine.
    let mut shared = person.clone();
    let other = shared.become_account(PROVIDER, "new-identity").await;
    assert_ne!(other.sub, guest.sub);
    let left = store.find_player(id(&guest.sub)).await.unwrap().unwrap();
    assert!(matches!(
        left.state,
        PlayerState::Suspended { linked: false, .. }
    ));
    is_suspended(&person.token().await, Some(REASON));

    scene.platform.unsuspend(id(&guest.sub)).await;
    // The session ended with the sign-in, and so did the guest in this browser.
    assert_ne!(person.play().await.sub, guest.sub);
    assert_eq!(shared.play().await.sub, other.sub);
    assert_eq!(bob.play().await.sub, bobs.sub);
}

#[tokio::test]
async fn the_operators_command_suspends_beside_a_running_server() {
    let provider = HostileProvider::start().await;
    let data = TempDir::with_prefix("platform-tests-").unwrap();
    let settings = format!(
        "[[identity_provider]]\nid = \"{PROVIDER}\"\nname = \"Hostile\"\nissuer = \"{}\"\n\
         client_id = \"{CLIENT_ID}\"\nclient_secret = \"{CLIENT_SECRET}\"\n",
        provider.issuer
    );
    let server = Server::start_set(data.path(), &settings, &[]).await;
    let site = Site::from(&server);
    let (mut person, guest) = Person::guest(&site).await;
    person.become_account(PROVIDER, "alice").await;
    let sub = guest.sub.as_str();
    let operate = |arguments: &[&str]| server.operate(arguments);

    let (done, _) = operate(&["player", "suspend", sub, "--reason", REASON]);
    assert!(done);
    // A new token is refused at once: every request reads the store.
    is_suspended(&person.token().await, Some(REASON));
    let (done, shown) = operate(&["player", "show", sub]);
    assert!(done);
    assert!(shown.contains(sub) && shown.contains("cheated"), "{shown}");
    let answer = person.sign_in(PROVIDER, "alice").await;
    is_suspended_page(&answer, &person);

    let (done, _) = operate(&["player", "unsuspend", sub]);
    assert!(done);
    assert_eq!(person.play().await.sub, guest.sub);

    // Ending every session is not a suspension: the player can sign in again.
    let (done, _) = operate(&["player", "end-sessions", sub]);
    assert!(done);
    poll::until("the sessions have ended", async || {
        let answer = person.token().await;
        (answer.status == 401 && answer.slug() == "session-expired").then_some(())
    })
    .await;
    assert_eq!(
        person.become_account(PROVIDER, "alice").await.sub,
        guest.sub
    );

    // There is no player with this id.
    let nobody = "01890000-0000-7000-8000-000000000000";
    let (done, _) = operate(&["player", "suspend", nobody, "--reason", "x"]);
    assert!(!done);
    server.stop().await;
}
