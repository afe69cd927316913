//! Signing in as players do, with the controls of the pages.

use platform_protocol::paths;
use thirtyfour::Key;

use crate::browser::Stage;
use crate::identity_provider::ExternalProvider;
use crate::world::World;

/// The identity provider to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The built-in provider of a platform under `localhost`.
    BuiltIn,
    /// An independent provider.
    Elsewhere,
}

impl Way {
    /// Starts a platform whose players sign in this way.
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

    /// Returns the text of the button on the sign-in page.
    #[must_use]
    pub const fn button(self) -> &'static str {
        match self {
            Self::BuiltIn => "Sign in with Demo",
            Self::Elsewhere => "Sign in with Elsewhere",
        }
    }

    /// Returns the text of the link on the page that appears before the provider's if the button
    /// was pressed immediately.
    const fn onward(self) -> &'static str {
        match self {
            Self::BuiltIn => "Go on to Demo",
            Self::Elsewhere => "Go on to Elsewhere",
        }
    }

    /// Presses the button of the sign-in page, and continues to the provider.
    pub async fn choose(self, stage: &Stage) {
        stage.press(self.button()).await;
        self.go_on(stage).await;
    }

    /// Continues after the button was pressed: tests press immediately, so if a game or the console
    /// led to the sign-in page, a page that explains this appears first.
    ///
    /// # Panics
    /// Panics if its link does not react to a key.
    pub async fn go_on(self, stage: &Stage) {
        let left = stage.arrives_away_from(paths::LOGIN).await;
        if left.starts_with(&format!("{}/", paths::LOGIN)) {
            // With the keyboard, the link can be used immediately.
            let link = stage.control(self.onward()).await;
            let enter = Key::Enter.value().to_string();
            link.send_keys(enter).await.expect("the link takes a key");
        }
    }

    /// Signs in from the sign-in page, as a person whom the provider has not seen in this browser
    /// before.
    pub async fn sign_in(self, stage: &Stage, login: &str) {
        self.choose(stage).await;
        let (label, button) = match self {
            Self::BuiltIn => ("Name", "Sign in"),
            Self::Elsewhere => ("Login", "Continue"),
        };
        stage.fill(label, login).await;
        stage.press(button).await;
    }

    /// Signs in from the sign-in page, as the person who signed in before in this browser.
    pub async fn sign_in_again(self, stage: &Stage, login: &str) {
        match self {
            Self::BuiltIn => self.sign_in(stage, login).await,
            // The provider remembers the person, and asks nothing.
            Self::Elsewhere => self.choose(stage).await,
        }
    }
}
