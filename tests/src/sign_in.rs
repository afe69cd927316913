//! Signing in as players do: by pressing what the pages offer.

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

    /// From the sign-in page, as somebody whom the provider has not seen in
    /// this browser before.
    pub async fn sign_in(self, stage: &Stage, login: &str) {
        stage.press(self.button()).await;
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
            Self::Elsewhere => stage.press(self.button()).await,
        }
    }
}
