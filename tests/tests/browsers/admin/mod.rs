//! Administration with the mouse: finding players, and each action with its question and its line
//! in the audit log.

pub(crate) mod page;
pub(crate) mod platform;
pub(crate) mod players;

use platform_protocol::claims::GameTokenClaims;
use platform_server::clock::{Clock as _, SystemClock};
use platform_server::domain::administration::Granted;
use platform_server::domain::audit::Actor;
use platform_tests::browser::Stage;
use platform_tests::owner::Owner;
use platform_tests::person::Person;
use platform_tests::platform::Platform;
use platform_tests::poll;
use platform_tests::sign_in::Way;
use platform_tests::visitor::claims;
use serde_json::json;
use uuid::Uuid;

const REASON: &str = "You sold other players' lights.";

/// Somebody who has signed in.
struct Account {
    owner: Owner,
    sub: Uuid,
    name: String,
}

impl Account {
    async fn sign_in(platform: &Platform, name: &str) -> Self {
        let owner = Owner::sign_in(&platform.site, name).await;
        let GameTokenClaims { sub, username, .. } = claims(&owner.token);
        Self {
            owner,
            sub: sub.parse().unwrap(),
            name: username,
        }
    }
}

/// A platform with an administrator and another player.
struct Scene {
    platform: Platform,
    admin: Account,
    eve: Account,
}

impl Scene {
    async fn set() -> Self {
        let platform = Platform::start(&[]).await;
        let admin = Account::sign_in(&platform, "Ada").await;
        let eve = Account::sign_in(&platform, "Eve").await;
        let granted =
            platform
                .store()
                .grant_admin(admin.sub, Actor::Operator.into(), SystemClock.now());
        assert_eq!(granted.await.unwrap(), Granted::Done);
        Self {
            platform,
            admin,
            eve,
        }
    }

    /// Opens a page as the administrator.
    async fn open(stage: &Stage, path: &str) -> Self {
        let scene = Self::set().await;
        stage.open(&scene.url(path)).await;
        stage.press("Sign in").await;
        Way::BuiltIn.sign_in(stage, "Ada").await;
        stage.arrives_at(&scene.url(path)).await;
        scene
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.platform.site.origin)
    }

    fn page_of(&self, player: &Account) -> String {
        self.url(&format!("/admin/players/{}", player.sub))
    }
}

/// Returns the text of an element once it is not empty.
async fn text(stage: &Stage, selector: &str) -> String {
    poll::until(&format!("{selector} says something"), async || {
        let script = "return document.querySelector(arguments[0])?.innerText || null";
        let text = stage.look(script, vec![json!(selector)]).await;
        text.as_str().map(str::to_owned)
    })
    .await
}

/// Waits until the newest event on the page begins with this text.
async fn happened(stage: &Stage, sentence: &str) {
    poll::until(&format!("the last event is {sentence:?}"), async || {
        let script = "return document.querySelector('#events li .what')?.textContent ?? null";
        let text = stage.look(script, vec![]).await;
        (text.as_str()? == sentence).then_some(())
    })
    .await;
}

/// Returns the text of the open question, if there is one.
async fn question(stage: &Stage) -> Option<String> {
    let script =
        "const ask = document.getElementById('ask'); return ask.open ? ask.innerText : null";
    let text = stage.look(script, vec![]).await;
    text.as_str().map(str::to_owned)
}

async fn answered(stage: &Stage) {
    poll::until("the question is gone", async || {
        question(stage).await.is_none().then_some(())
    })
    .await;
}

/// Creates a guest from this browser's address whose cookie has come back, since only then it
/// counts for the address, and returns its name.
async fn guest(scene: &Scene) -> String {
    let (_, claims) = Person::guest(&scene.platform.site).await;
    claims.username
}

async fn choose(stage: &Stage, field: &str, value: &str) {
    let script = "document.getElementById(arguments[0]).value = arguments[1]";
    stage.look(script, vec![json!(field), json!(value)]).await;
}
