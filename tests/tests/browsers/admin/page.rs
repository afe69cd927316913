//! Who may see administration, and its pages as a whole.

use platform_server::clock::{Clock as _, SystemClock};
use platform_server::domain::administration::Granted;
use platform_server::domain::audit::Actor;
use platform_server::domain::project::Project;
use platform_tests::browser::Stage;
use platform_tests::sign_in::Way;
use serde_json::json;

use super::{Account, REASON, Scene, answered, guest, question, text};
use crate::build::examine;

platform_tests::browser_tests![
    administration_has_no_barrier_and_fits_a_phone;
    in Chromium, because "it is the page's own logic":
    who_may_not_administer_reads_what_to_do,
    who_may_administer_no_longer_reads_so_below_each_form,
    administration_of_an_old_sign_in_leads_to_a_fresh_one_and_back,
    what_players_wrote_is_inert_in_administration,
];

async fn who_may_not_administer_reads_what_to_do(stage: Stage) {
    stage.tolerate_log("403");
    let scene = Scene::set().await;
    let pages = ["", "/guests", "/projects", "/keys", "/events"];
    stage.open(&scene.url("/admin")).await;
    stage.says("You are a guest here.").await;
    stage.press("Sign in").await;
    Way::BuiltIn.sign_in(&stage, "Eve").await;
    stage.arrives_at(&scene.url("/admin")).await;
    let command = format!("platform-server admin grant {}", scene.eve.sub);
    for page in pages {
        stage.open(&scene.url(&format!("/admin{page}"))).await;
        stage.says("Only administrators may do this.").await;
        stage.says(&command).await;
        let inside = "return document.getElementById('inside').getClientRects().length";
        assert_eq!(stage.look(inside, vec![]).await, 0, "{page}");
    }
    stage.open(&scene.page_of(&scene.admin)).await;
    stage.says(&command).await;
    assert!(!text(&stage, "main").await.contains(&scene.admin.name));
    let link = "const link = document.querySelector('a[href=\"/admin\"]');
        return [getComputedStyle(document.getElementById('inside')).display, link.getClientRects().length]";
    stage.press("Your projects").await;
    stage.says("You have no project yet").await;
    assert_eq!(stage.look(link, vec![]).await, json!(["grid", 0]));

    // The operator follows the page's advice, and nothing is restarted.
    let granted = scene.platform.store().grant_admin(
        scene.eve.sub,
        Actor::Operator.into(),
        SystemClock.now(),
    );
    assert_eq!(granted.await.unwrap(), Granted::Done);
    stage.reload().await;
    stage.press("Administration").await;
    stage.says("Find a player").await;
}

async fn who_may_administer_no_longer_reads_so_below_each_form(stage: Stage) {
    let scene = Scene::open(&stage, "/admin").await;
    let store = scene.platform.store();
    let command = format!("platform-server admin grant {}", scene.admin.sub);
    stage.tolerate_log("403");
    for (path, field, button) in [
        ("/admin", "Name or id", "Find"),
        ("/admin/guests", "Address", "Find"),
        ("/admin/events", "Player", "Show"),
    ] {
        stage.open(&scene.url(path)).await;
        stage.fill(field, "127.0.0.1").await;
        let revoked =
            store.revoke_admin(scene.admin.sub, Actor::Operator.into(), SystemClock.now());
        assert!(revoked.await.unwrap());
        stage.press(button).await;
        stage.says("Only administrators may do this.").await;
        stage.says(&command).await;
        let granted = store.grant_admin(scene.admin.sub, Actor::Operator.into(), SystemClock.now());
        assert_eq!(granted.await.unwrap(), Granted::Done);
        stage.press("Try again").await;
        stage.field(field).await;
    }
}

async fn administration_of_an_old_sign_in_leads_to_a_fresh_one_and_back(stage: Stage) {
    for status in ["401", "403"] {
        stage.tolerate_log(status);
    }
    let scene = Scene::open(&stage, "/admin/events").await;
    stage.says("What happened").await;
    scene.platform.clock.advance(16 * 60 * 1_000);
    let page = scene.url("/admin/events?kind=created");
    stage.open(&page).await;
    stage
        .says("Administration needs a sign-in within the last 15 minutes.")
        .await;
    stage.press("Sign in again").await;
    stage.says("and you go on where you were").await;
    Way::BuiltIn.sign_in(&stage, "Ada").await;
    stage.arrives_at(&page).await;
    stage.says("made an account").await;
}

async fn what_players_wrote_is_inert_in_administration(stage: Stage) {
    stage.tolerate_log("400");
    let scene = Scene::open(&stage, "/admin").await;
    let store = scene.platform.store();
    let now = SystemClock.now();
    // Names and slugs are checked when they are set; these simulate a check that fails.
    let hostile = [
        "<img src onerror=hurt=1>",
        "javascript:hurt=1//",
        "\u{202e}</bdi></a>\u{1b}[31m",
    ];
    let mut players = Vec::new();
    for (number, text) in hostile.iter().enumerate() {
        let player = Account::sign_in(&scene.platform, &format!("Mallory {number}")).await;
        let project = Project {
            slug: format!("{text}-{number}"),
            owner: Some(player.sub),
            created_at: now,
        };
        store.add_project(project).await.unwrap();
        store
            .rename_player(player.sub, text, Actor::Own.into(), now)
            .await
            .unwrap();
        let by = Actor::Admin(player.sub);
        let suspended = store.suspend_player(player.sub, Some(text), by.into(), now);
        assert!(suspended.await.unwrap());
        players.push(player);
    }
    let looked = "
        const text = document.getElementById('inside').textContent;
        const elements = [...document.querySelectorAll('#inside *, #ask *')];
        return [window.hurt ?? null, document.querySelectorAll('h1').length,
            elements.some(element => ['img', 'script', 'svg', 'style', 'iframe'].includes(element.localName)),
            elements.some(element => [...element.attributes].some(({ name, value }) =>
                /^(on|style|src)/.test(name) || /^\\s*javascript/i.test(value))),
            /[\\u0000-\\u0008\\u001b\\u202a-\\u202e]/.test(text + document.title)]";
    let inert = async |what: &str| {
        let found = stage.look(looked, vec![]).await;
        assert_eq!(found, json!([null, 1, false, false, false]), "{what}");
    };
    for (player, text) in players.iter().zip(hostile) {
        stage.open(&scene.page_of(player)).await;
        stage.says("Suspended. The player reads:").await;
        let cut = "const facts = document.getElementById('who');
            return facts.scrollHeight - facts.clientHeight > 1";
        assert_eq!(stage.look(cut, vec![]).await, json!(false), "a fact is cut");
        let shown = text.replace('\u{202e}', "‹U+202E›").replace('\u{1b}', "␛");
        stage.says(&shown).await;
        inert(text).await;
        stage.press("Lift the suspension…").await;
        assert!(question(&stage).await.unwrap().contains(&shown));
        inert(text).await;
        stage.press("Lift").await;
        answered(&stage).await;
        inert(text).await;
        stage.press("Suspend…").await;
        // Invisible characters in a field are refused.
        let reason = text.replace(['\u{1b}', '\u{202e}'], "");
        stage.fill("Reason", &reason).await;
        stage.press("Suspend").await;
        answered(&stage).await;
        inert(text).await;
    }
    stage.open(&scene.url("/admin/projects")).await;
    stage.says("4 projects").await;
    inert("the projects").await;
    let button = "document.querySelectorAll('#projects button')[1].click()";
    stage.look(button, vec![]).await;
    assert!(question(&stage).await.is_some());
    inert("the question before a transfer").await;
    stage.open(&scene.url("/admin/events")).await;
    stage.says("was suspended, by").await;
    inert("the log").await;
    stage.open(&scene.url("/admin?query=%3Cimg")).await;
    stage.says("suspended").await;
    inert("the players").await;
}

async fn administration_has_no_barrier_and_fits_a_phone(stage: Stage) {
    stage.tolerate_log("403");
    let scene = Scene::open(&stage, "/admin").await;
    let eve = &scene.eve;
    for slug in ["harbour-lights", "paper-planes-over-the-seven-seas"] {
        eve.owner.create(slug).await;
    }
    let start = &eve.name[..2];
    stage.says("Find a player").await;
    examine(&stage, "the first page").await;
    stage
        .open(&scene.url(&format!("/admin?query={start}")))
        .await;
    stage.control(&eve.name).await;
    examine(&stage, "players").await;
    stage.open(&scene.page_of(eve)).await;
    stage.press("Suspend…").await;
    examine(&stage, "the question before a suspension").await;
    stage.press("Suspend").await;
    stage.says("Write a sentence").await;
    examine(&stage, "a suspension without a reason").await;
    stage.fill("Reason", REASON).await;
    stage.press("Suspend").await;
    answered(&stage).await;
    examine(&stage, "a player who is suspended").await;
    stage.press("End sessions…").await;
    examine(&stage, "the question before sessions are ended").await;
    guest(&scene).await;
    stage.open(&scene.url("/admin/guests")).await;
    stage.control("127.0.0.1").await;
    examine(&stage, "guests by address").await;
    stage
        .open(&scene.url("/admin/guests?address=127.0.0.1"))
        .await;
    stage.says("Its guests").await;
    examine(&stage, "the guests of an address").await;
    stage.open(&scene.url("/admin/projects")).await;
    stage.press("Transfer… harbour-lights").await;
    stage.fill("New owner", &scene.admin.name).await;
    examine(&stage, "the question to whom a project goes").await;
    stage.press("Go on").await;
    stage.says("Transfer it to this player?").await;
    examine(&stage, "the question before a transfer").await;
    stage.press("Transfer").await;
    answered(&stage).await;
    examine(&stage, "the projects").await;
    stage.open(&scene.url("/admin/keys")).await;
    stage.press("Rotate…").await;
    examine(&stage, "the question before keys rotate").await;
    stage.press("Rotate").await;
    answered(&stage).await;
    examine(&stage, "the keys").await;
    stage.open(&scene.url("/admin/events")).await;
    stage.says("was suspended, by").await;
    examine(&stage, "the log").await;
    let store = scene.platform.store();
    let revoked = store.revoke_admin(scene.admin.sub, Actor::Operator.into(), SystemClock.now());
    assert!(revoked.await.unwrap());
    stage.open(&scene.url("/admin")).await;
    stage.says("Only administrators may do this.").await;
    examine(&stage, "the page of who may not").await;
}
