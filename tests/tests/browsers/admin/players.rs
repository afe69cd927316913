//! Players: suspending them, ending their sessions, guests by their address.

use platform_server::clock::{Clock as _, SystemClock};
use platform_server::domain::audit::Actor;
use platform_server::domain::deletion::{AskDeletion, REGRET_MILLIS};
use platform_tests::browser::Stage;
use thirtyfour::Key;

use super::{REASON, Scene, answered, guest, happened, question, text};
use crate::build::examine;

platform_tests::browser_tests![
    in Chromium, because "it is the page's own logic":
    an_administrator_suspends_a_player_and_lets_them_go,
    an_administrator_cannot_lock_themselves_out,
    an_administrator_ends_a_players_sessions,
    an_administrator_finds_guests_by_their_address,
    an_administrator_sees_that_a_player_is_to_be_deleted,
];

async fn an_administrator_suspends_a_player_and_lets_them_go(stage: Stage) {
    let scene = Scene::open(&stage, "/admin").await;
    let (admin, eve) = (&scene.admin.name, &scene.eve.name);
    stage.says("What happened last").await;
    stage
        .says(&format!(
            "was merged into {admin}, who signed in with demo."
        ))
        .await;
    stage.press("Find").await;
    stage.says("Write a name or an id.").await;
    stage.fill("Name or id", &scene.eve.sub.to_string()).await;
    stage.press("Find").await;
    assert_eq!(text(&stage, "#players a").await, *eve);
    stage.fill("Name or id", "nobody-here").await;
    stage.press("Find").await;
    stage.says("No player's name begins so.").await;
    stage.fill("Name or id", &eve.to_uppercase()).await;
    stage.press("Find").await;
    stage.press(eve).await;
    stage.arrives_at(&scene.page_of(&scene.eve)).await;
    stage.says("Hash of issuer and subject").await;

    stage.press("Suspend…").await;
    let asked = question(&stage).await.unwrap();
    assert!(
        asked.contains(&format!("{eve}, an account, can neither play nor sign in")),
        "{asked}"
    );
    stage.press("Suspend").await;
    stage.says("Write a sentence for the player.").await;
    stage.fill("Reason", REASON).await;
    stage.press("Cancel").await;
    answered(&stage).await;
    happened(&stage, &format!("{eve} made an account, with demo.")).await;

    stage.press("Suspend…").await;
    let field = stage.field("Reason").await;
    assert_eq!(field.value().await.unwrap().as_deref(), Some(""));
    stage.fill("Reason", REASON).await;
    stage.press("Suspend").await;
    answered(&stage).await;
    assert_eq!(text(&stage, "#news").await, format!("{eve} is suspended."));
    stage
        .says(&format!("Suspended. The player reads: {REASON}"))
        .await;
    happened(
        &stage,
        &format!("{eve} was suspended, by {admin}: {REASON}"),
    )
    .await;
    let (status, answer) = scene
        .eve
        .owner
        .ask(reqwest::Method::GET, "/api/projects", None)
        .await;
    assert_eq!(status, 403, "{answer}");

    stage.reload().await;
    stage.press("Lift the suspension…").await;
    let asked = question(&stage).await.unwrap();
    assert!(asked.contains(eve), "{asked}");
    stage.press("Lift").await;
    answered(&stage).await;
    assert_eq!(
        text(&stage, "#news").await,
        format!("{eve} may play again.")
    );
    let lifted = format!("The suspension of {eve} was lifted, by {admin}.");
    happened(&stage, &lifted).await;
    let (status, _) = scene
        .eve
        .owner
        .ask(reqwest::Method::GET, "/api/projects", None)
        .await;
    assert_eq!(status, 200);
}

async fn an_administrator_cannot_lock_themselves_out(stage: Stage) {
    let scene = Scene::open(&stage, "/admin").await;
    stage.open(&scene.page_of(&scene.admin)).await;
    stage
        .says("Only another administrator may suspend you.")
        .await;
    let hidden = "return document.getElementById('suspend').hidden";
    assert_eq!(stage.look(hidden, vec![]).await, true);
}

async fn an_administrator_ends_a_players_sessions(stage: Stage) {
    let scene = Scene::open(&stage, "/admin").await;
    let (admin, eve) = (&scene.admin.name, &scene.eve.name);
    stage.open(&scene.page_of(&scene.eve)).await;
    // With the keyboard only: nothing is done by accident, and Escape closes the question.
    let button = stage.control("End sessions…").await;
    button.send_keys(Key::Enter + "").await.unwrap();
    let asked = question(&stage).await.unwrap();
    let said =
        format!("{eve} is signed out of 1 browser. Signing in again brings the same player back.");
    assert!(asked.contains(&said), "{asked}");
    assert_eq!(stage.focused().await, Some(("Cancel".to_owned(), true)));
    let chain = stage.browser().session.action_chain();
    chain.send_keys(Key::Escape + "").perform().await.unwrap();
    answered(&stage).await;
    let (name, _) = stage.focused().await.unwrap();
    assert_eq!(name, "End sessions…");
    stage.press("End sessions…").await;
    stage.press("End sessions").await;
    answered(&stage).await;
    let news = format!("{eve} was signed out: 1 session ended.");
    assert_eq!(text(&stage, "#news").await, news);
    happened(
        &stage,
        &format!("Sessions of {eve} were ended, by {admin}."),
    )
    .await;
    stage.says("Nowhere.").await;
    let ended = "return document.getElementById('end').disabled";
    assert_eq!(stage.look(ended, vec![]).await, true);
    let now = SystemClock.now();
    let left = scene.platform.store().list_sessions(scene.eve.sub, now);
    assert_eq!(left.await.unwrap().len(), 0);
}

async fn an_administrator_finds_guests_by_their_address(stage: Stage) {
    let scene = Scene::open(&stage, "/admin/guests").await;
    let guest = guest(&scene).await;
    stage.reload().await;
    stage
        .says("One address may have 1000000 guests at the same time")
        .await;
    stage.press("127.0.0.1").await;
    stage
        .arrives_at(&scene.url("/admin/guests?address=127.0.0.1"))
        .await;
    stage.says("Its guests, newest first").await;
    stage.control(&guest).await;
    stage.fill("Address", "2001:db8::9").await;
    stage.press("Find").await;
    stage.says("This address has no guests.").await;
    stage.tolerate_log("400");
    stage.fill("Address", "nobody").await;
    stage.press("Find").await;
    stage.says("This is not an IPv4 address").await;
    stage.fill("Address", "::ffff:127.0.0.1").await;
    stage.press("Find").await;
    stage.press(&guest).await;
    stage.says("None: the player has not signed in").await;
    // Ending a guest's only session loses the player; the question says so.
    stage.press("End sessions…").await;
    let asked = question(&stage).await.unwrap();
    assert!(asked.contains("is gone for good"), "{asked}");
}

async fn an_administrator_sees_that_a_player_is_to_be_deleted(stage: Stage) {
    let scene = Scene::open(&stage, "/admin").await;
    stage.open(&scene.page_of(&scene.eve)).await;
    let about = text(&stage, "#who").await;
    assert!(
        about.contains("Account") && !about.contains("Deletion"),
        "{about}"
    );
    let now = SystemClock.now();
    let ask = AskDeletion {
        player: scene.eve.sub,
        browser: None,
        at: now + REGRET_MILLIS,
        by: Actor::Own.into(),
        now,
    };
    let asked = scene.platform.store().ask_for_deletion(ask);
    asked.await.unwrap();
    stage.open(&scene.page_of(&scene.eve)).await;
    let about = text(&stage, "#who").await;
    assert!(
        about.contains("Deletion") && about.contains("asked for"),
        "{about}"
    );
    examine(&stage, "a player who is to be deleted").await;
}
