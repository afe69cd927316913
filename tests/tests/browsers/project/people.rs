//! Inviting somebody into a project, joining it, and what roles change on its page.

use platform_tests::browser::Stage;
use platform_tests::owner::Owner;
use platform_tests::sign_in::Way;
use reqwest::Method;
use serde_json::json;

use super::{Scene, comes_to};

platform_tests::browser_tests![
    somebody_joins_by_the_link_of_an_invitation,
    the_owner_invites_changes_roles_and_hands_the_project_on,
];

impl Scene {
    /// Returns the link of a new invitation.
    async fn invite(&self, role: &str) -> String {
        let wanted = Some(json!({ "role": role }));
        let path = "/api/projects/game/invitations";
        let (status, made) = self.owner.ask(Method::POST, path, wanted).await;
        assert_eq!(status, 201, "{made}");
        made["link"].as_str().unwrap().to_owned()
    }

    /// Somebody joins the project over the API.
    async fn joins(&self, name: &str, role: &str) -> Owner {
        let link = self.invite(role).await;
        let (_, secret) = link.split_once('#').unwrap();
        let member = Owner::sign_in(&self.platform.site, name).await;
        let secret = Some(json!({ "secret": secret }));
        let path = "/api/invitations/accept";
        let (status, joined) = member.ask(Method::POST, path, secret).await;
        assert_eq!(status, 200, "{joined}");
        member
    }
}

async fn somebody_joins_by_the_link_of_an_invitation(stage: Stage) {
    let scene = Scene::start().await;
    let link = scene.invite("viewer").await;
    stage.open(&link).await;
    stage.says("You are invited to a project.").await;
    stage.press("Sign in").await;
    Way::BuiltIn.sign_in(&stage, "Ben").await;
    // The tab remembers the secret, which no address has any more.
    let (page, _) = link.split_once('#').unwrap();
    stage.arrives_at(page).await;
    stage.says("to the project game as a viewer.").await;
    stage.press("Join the project").await;
    stage.arrives_at(&scene.tab("")).await;
    stage.says("You are a viewer of this project").await;
    stage
        .open(&format!("{}/build", scene.platform.site.origin))
        .await;
    stage.says("You are a viewer").await;
    // A viewer is not offered what the platform would refuse.
    stage.open(&scene.tab("settings")).await;
    stage.says("You are a viewer of this project.").await;
    let shown = "return ['people-owners', 'takedown-card', 'listing', 'handover']
        .map((id) => document.getElementById(id).hidden)";
    comes_to(&stage, shown, json!([true, true, true, true])).await;
    stage.says("The game is not listed.").await;
    stage.open(&scene.tab("deployments")).await;
    stage.says("None yet. The last ten are kept").await;
    let shown = "return document.getElementById('upload').hidden";
    comes_to(&stage, shown, json!(true)).await;
    stage.open(&scene.tab("settings")).await;
    stage.press("Leave… the project").await;
    stage.says("Leave this project?").await;
    stage.press("Leave").await;
    stage
        .arrives_at(&format!("{}/build", scene.platform.site.origin))
        .await;
    stage.tolerate_log("403");
    stage.open(&scene.tab("")).await;
    stage.says("This project belongs to another account.").await;
    // The link was used up.
    stage.tolerate_log("404");
    stage.open(&link).await;
    stage.says("Ask the project's owner for a new one.").await;
}

async fn the_owner_invites_changes_roles_and_hands_the_project_on(stage: Stage) {
    let scene = Scene::start().await;
    let other = scene.joins("Ben", "viewer").await;
    let cleo = scene.joins("Cleo", "developer").await;
    scene.open(&stage, "settings").await;
    stage.says("You are the owner of this project.").await;
    stage.press("Create a link").await;
    stage
        .says("Whoever opens this link first joins as a developer")
        .await;
    let kind = "return document.getElementById('invite-link').textContent.includes('/invitations#platform_in_')";
    comes_to(&stage, kind, json!(true)).await;
    stage.press("Withdraw the invitation for a developer").await;
    stage.says("The invitation is withdrawn.").await;
    let people = "return [...document.querySelectorAll('#people > li')]
        .map((item) => item.querySelector('.host').textContent.split(':')[0])";
    let roles = json!(["owner", "viewer", "developer"]);
    comes_to(&stage, people, roles).await;
    let name = "return document.querySelector('#people > li:nth-child(2) bdi').textContent";
    let ben = stage.look(name, vec![]).await;
    let ben = ben.as_str().unwrap();
    stage.press(&format!("Make developer {ben}")).await;
    let roles = json!(["owner", "developer", "developer"]);
    comes_to(&stage, people, roles).await;
    let webhook = Some(json!({ "url": "https://hooks.example/alerts" }));
    let path = "/api/projects/game/webhook";
    let (status, set) = other.ask(Method::PUT, path, webhook).await;
    assert_eq!(status, 200, "{set}");
    stage.press("Create a link").await;
    comes_to(&stage, kind, json!(true)).await;
    stage.press(&format!("Remove… {ben}")).await;
    stage.says("Remove this person?").await;
    stage.press("Remove").await;
    comes_to(&stage, people, json!(["owner", "developer"])).await;
    // What Ben has set stays, and Ben may know the link.
    stage
        .says("is not in the project any more, set the webhook")
        .await;
    stage
        .says("is removed, and one open invitation is withdrawn.")
        .await;
    let shown = "return document.getElementById('invite-shown').hidden
        && document.querySelectorAll('#invitations > li').length === 0";
    comes_to(&stage, shown, json!(true)).await;
    stage
        .click("#people > li:nth-child(2) button:nth-of-type(2)")
        .await;
    stage.says("Offer the project?").await;
    stage.press("Offer").await;
    stage.says("who has not accepted yet, until").await;
    stage.press("Withdraw the offer of the project").await;
    stage.says("The offer is withdrawn.").await;
    let accept = "/api/projects/game/handover/accept";
    let (status, _) = cleo.ask(Method::POST, accept, None).await;
    assert_eq!(status, 404);
    stage
        .click("#people > li:nth-child(2) button:nth-of-type(2)")
        .await;
    stage.says("Offer the project?").await;
    stage.press("Offer").await;
    stage.says("who has not accepted yet, until").await;
    let (status, project) = cleo.ask(Method::POST, accept, None).await;
    assert_eq!(status, 200, "{project}");
    assert_eq!(project["role"], "owner");
    // The new owner offers it back, and the former one accepts on the page.
    let (_, list) = cleo
        .ask(Method::GET, "/api/projects/game/people", None)
        .await;
    let heir = json!({ "sub": list["people"][1]["sub"] });
    let path = "/api/projects/game/handover";
    let (status, offer) = cleo.ask(Method::PUT, path, Some(heir)).await;
    assert_eq!(status, 200, "{offer}");
    stage.open(&scene.tab("settings")).await;
    stage.says("You are a developer of this project.").await;
    stage.says("The owner offers you this project, until").await;
    stage.press("Accept… the offer of the project").await;
    stage.says("Accept this project?").await;
    stage.press("Accept").await;
    stage.says("You are the owner of this project.").await;
}
