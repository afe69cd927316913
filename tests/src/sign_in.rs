//! Signing in as players do: by pressing what the pages offer.

use platform_protocol::paths;
use thirtyfour::Key;

use crate::browser::Stage;
use crate::identity_provider::ExternalProvider;
use crate::world::World;

/// Who vouches for players.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The provider that a platform under `localhost` brings along.
    BuiltIn,
    /// Somebody else's.
    Elsewhere,
}

impl Way {
    /// A platform whose players sign in this way.
    pub async fn world(self) -> World {
        World::start_with(async |config| {
            if self == Self::Elsewhere {
                let auth = config.origin.as_ref().expect("an origin").auth_url();
                let provider = ExternalProvider::shared().await.register(&auth).await;
                config.identity_providers.push(provider);
            }
        })
        .await
    }

    /// What stands on the button of the sign-in page.
    #[must_use]
    pub const fn button(self) -> &'static str {
        match self {
            Self::BuiltIn => "Sign in with Demo",
            Self::Elsewhere => "Sign in with Elsewhere",
        }
    }

    /// What stands on the link of the page that comes before the provider's where
    /// the button was pressed at once.
    const fn onward(self) -> &'static str {
        match self {
            Self::BuiltIn => "Go on to Demo",
            Self::Elsewhere => "Go on to Elsewhere",
        }
    }

    /// Presses the button of the sign-in page, and goes on to the provider.
    pub async fn choose(self, stage: &Stage) {
        stage.press(self.button()).await;
        self.go_on(stage).await;
    }

    /// From the press of the button on: tests press at once, so where a game or
    /// the console led to the sign-in page, a page says so first.
    ///
    /// # Panics
    /// When its link takes no key.
    pub async fn go_on(self, stage: &Stage) {
        let left = stage.arrives_away_from(paths::LOGIN).await;
        if left.starts_with(&format!("{}/", paths::LOGIN)) {
            // By the keyboard, for which the link is there at once.
            let link = stage.control(self.onward()).await;
            let enter = Key::Enter.value().to_string();
            link.send_keys(enter).await.expect("the link takes a key");
        }
    }

    /// From the sign-in page, as somebody whom the provider has not seen in
    /// this browser before.
    pub async fn sign_in(self, stage: &Stage, login: &str) {
        self.choose(stage).await;
        let (label, button) = match self {
            Self::BuiltIn => ("Name", "Sign in"),
            Self::Elsewhere => ("Login", "Continue"),
        };
        stage.fill(label, login).await;
        stage.press(button).await;
    }

    /// From the sign-in page, as the one who signed in before in this browser.
    pub async fn sign_in_again(self, stage: &Stage, login: &str) {
        match self {
            Self::BuiltIn => self.sign_in(stage, login).await,
            // It remembers them, and asks nothing.
            Self::Elsewhere => self.choose(stage).await,
        }
    }
}
