//! The platform as a whole: its keys, projects and audit log.

use platform_server::clock::{Clock as _, SystemClock};
use platform_server::domain::audit::Actor;
use platform_tests::browser::Stage;
use platform_tests::poll;

use super::{Account, Scene, answered, choose, guest, happened, question, text};

platform_tests::browser_tests![
    in Chromium, because "it is the page's own logic":
    an_administrator_rotates_and_revokes_the_signing_keys,
    an_administrator_sees_that_the_server_is_the_only_node,
    an_administrator_gives_a_project_to_another_player,
    an_administrator_disables_a_project_and_its_owner_reads_why,
    an_administrator_filters_and_turns_over_the_audit_log,
];

async fn an_administrator_rotates_and_revokes_the_signing_keys(stage: Stage) {
    let scene = Scene::open(&stage, "/admin/keys").await;
    stage.press("Rotate…").await;
    let asked = question(&stage).await.unwrap();
    assert!(asked.contains("signs in 21 minutes"), "{asked}");
    stage.press("Cancel").await;
    answered(&stage).await;
    stage.press("Rotate…").await;
    stage.press("Rotate").await;
    answered(&stage).await;
    stage.says("A new key is published.").await;
    stage.says("then you can rotate again").await;
    let shown = "return [...document.querySelectorAll('#keys li')].map(row => [
        row.querySelector('b').textContent, row.querySelector('code').textContent])";
    let shown = stage.look(shown, vec![]).await;
    assert_eq!(shown[0][0], "Signing");
    assert_eq!(shown[1][0], "Published, signs later");
    let kid = shown[1][1].as_str().unwrap();
    let admin = &scene.admin.name;
    happened(
        &stage,
        &format!("The signing key {kid} was added, by {admin}."),
    )
    .await;
    let keys = || scene.platform.running.state.auth.keys.list();
    assert_eq!(keys().len(), 2);

    let old = shown[0][1].as_str().unwrap();
    stage.press(&format!("Revoke… {old}")).await;
    let asked = question(&stage).await.unwrap();
    assert!(asked.contains("A new key signs at once"), "{asked}");
    stage.press("Revoke").await;
    answered(&stage).await;
    stage.says("The key is revoked.").await;
    // A new key signs without a waiting time; the published one stays.
    let signing = "return [...document.querySelectorAll('#keys li')]
        .find(row => row.querySelector('b').textContent === 'Signing').querySelector('code').textContent";
    let signing = stage.look(signing, vec![]).await;
    let new = signing.as_str().unwrap();
    assert!(new != old && new != kid, "{new}");
    happened(
        &stage,
        &format!("The signing key {new} was added, by {admin}."),
    )
    .await;
    stage
        .says(&format!("The signing key {old} was revoked, by {admin}."))
        .await;
    assert!(keys().iter().all(|key| key.kid != old));
}

async fn an_administrator_sees_that_the_server_is_the_only_node(stage: Stage) {
    let _scene = Scene::open(&stage, "/admin/nodes").await;
    stage.says("This is the only server").await;
    stage.press("Look again").await;
    let nodes = text(&stage, "#nodes").await;
    assert!(nodes.contains("program "), "{nodes}");
    // What several nodes tell each other is of no interest here.
    let page = text(&stage, "main").await;
    assert!(
        !page.contains("version") && !page.contains("live node"),
        "{page}"
    );
}

async fn an_administrator_gives_a_project_to_another_player(stage: Stage) {
    let scene = Scene::open(&stage, "/admin").await;
    let (admin, eve) = (&scene.admin.name, &scene.eve.name);
    for slug in ["first-game", "other-game"] {
        scene.eve.owner.create(slug).await;
    }
    let bob = Account::sign_in(&scene.platform, "Bob").await;
    stage.press("Projects").await;
    stage.says("3 projects").await;
    stage.fill("Slug or owner", "Other").await;
    stage.says("1 of 3 projects").await;
    stage.fill("Slug or owner", eve).await;
    stage.says("2 of 3 projects").await;
    stage.press("Transfer… other-game").await;
    stage.fill("New owner", "nobody-here").await;
    stage.press("Go on").await;
    stage.says("This player does not exist.").await;
    stage.fill("New owner", eve).await;
    stage.press("Go on").await;
    stage.says("It is this player's already.").await;
    stage.fill("New owner", &bob.name.to_uppercase()).await;
    stage.press("Go on").await;
    stage.says("Transfer it to this player?").await;
    let asked = question(&stage).await.unwrap();
    for part in [
        &format!("other-game goes to {}", bob.name),
        &bob.sub.to_string(),
        eve,
    ] {
        assert!(asked.contains(part), "{asked}");
    }
    stage.press("Transfer").await;
    answered(&stage).await;
    let news = format!("other-game belongs to {} now.", bob.name);
    assert_eq!(text(&stage, "#news").await, news);
    let sentence = format!(
        "The project other-game went to {} from {eve}, by {admin}.",
        bob.name
    );
    happened(&stage, &sentence).await;
    stage.says("1 of 3 projects").await;
    let (status, _) = bob
        .owner
        .ask(reqwest::Method::GET, "/api/projects/other-game", None)
        .await;
    assert_eq!(status, 200);

    // A guest cannot own a project; the page says so before the last question.
    let guest = guest(&scene).await;
    stage.fill("Slug or owner", "other").await;
    stage.press("Transfer… other-game").await;
    stage.fill("New owner", &guest).await;
    stage.press("Go on").await;
    stage.says("A guest cannot own a project").await;
    stage.says("Transfer this project?").await;
}

async fn an_administrator_disables_a_project_and_its_owner_reads_why(stage: Stage) {
    let scene = Scene::open(&stage, "/admin").await;
    scene.eve.owner.create("first-game").await;
    stage.press("Projects").await;
    stage.press("Disable… first-game").await;
    stage
        .says("Its owner reads it on the project’s page.")
        .await;
    stage.press("Disable").await;
    stage.says("Write a sentence for the owner.").await;
    // Longer than any name.
    let reason = "It sends players to a site that asks them for the password of their mail.";
    stage.fill("Reason", reason).await;
    stage.press("Disable").await;
    answered(&stage).await;
    assert_eq!(text(&stage, "#news").await, "first-game is disabled now.");
    let standing = scene.platform.store().find_standing("first-game").await;
    let disabled = standing.unwrap().unwrap().disabled.unwrap();
    assert_eq!(disabled.reason.as_deref(), Some(reason));
    // The other question of this page still asks for its own input.
    stage.press("Transfer… first-game").await;
    stage.fill("New owner", "nobody-here").await;
    stage.press("Go on").await;
    stage.says("This player does not exist.").await;
}

async fn an_administrator_filters_and_turns_over_the_audit_log(stage: Stage) {
    let scene = Scene::open(&stage, "/admin").await;
    let (store, eve) = (scene.platform.store(), &scene.eve);
    for round in 0..30 {
        let now = SystemClock.now() + round;
        let by = Actor::Admin(scene.admin.sub);
        assert!(
            store
                .suspend_player(eve.sub, None, by.into(), now)
                .await
                .unwrap()
        );
        assert!(
            store
                .unsuspend_player(eve.sub, by.into(), now)
                .await
                .unwrap()
        );
    }
    stage.press("Audit log").await;
    let rows = "return document.querySelectorAll('#events li').length";
    let listed = async |number: u64| {
        poll::until(&format!("{number} events are listed"), async || {
            (stage.look(rows, vec![]).await == number).then_some(())
        })
        .await;
    };
    listed(50).await;
    stage.press("Older").await;
    stage
        .says("became an administrator, by the operator.")
        .await;
    stage.press("Newest").await;
    listed(50).await;
    choose(&stage, "kind", "suspended").await;
    stage.press("Show").await;
    listed(30).await;
    choose(&stage, "actor", "operator").await;
    stage.press("Show").await;
    stage.says("Nothing of what happened is like this.").await;
    choose(&stage, "kind", "").await;
    stage.press("Show").await;
    listed(1).await;
    choose(&stage, "actor", "").await;
    stage.fill("Player", "nobody-here").await;
    stage.press("Show").await;
    stage.says("This player does not exist.").await;
    stage.fill("Player", &eve.name).await;
    choose(&stage, "kind", "created").await;
    stage.press("Show").await;
    listed(1).await;
    happened(&stage, &format!("{} made an account, with demo.", eve.name)).await;
}
