//! What the auth service's handlers are handed.

use std::sync::Arc;

use uuid::Uuid;

use crate::auth::demo_provider::DemoProvider;
use crate::auth::devices::DeviceLimits;
use crate::auth::endings::Endings;
use crate::auth::guests::GuestLimits;
use crate::auth::keys::KeyRing;
use crate::auth::oidc::Providers;
use crate::auth::refusals::RefusalLimits;
use crate::auth::suspensions::Suspensions;
use crate::auth::tokens::GameTokens;
use crate::clock::Clock;
use crate::config::Config;
use crate::games::GamesState;
use crate::http::client_address::Network;
use crate::http::limiter::{Limiter, Period, Rate};
use crate::platform::Platform;

/// How often one player may take another name. Each is an event that is kept.
const RENAMES: Rate = Rate::new(10, Period::Hour, 10);
/// Calls of the project API that one player may make: far more than a command
/// line ever does, and too few to keep the store busy.
const CALLS: Rate = Rate::new(20, Period::Second, 200);

/// The parts of the auth service.
#[derive(Debug)]
pub struct AuthState {
    /// What every slice uses.
    pub platform: Arc<Platform>,
    /// The games that players come from and go back to.
    pub games: Arc<GamesState>,
    /// The signing keys.
    pub keys: Arc<KeyRing>,
    /// Who signs players in.
    pub providers: Providers,
    /// The built-in provider, where there is one.
    pub demo_provider: Option<Arc<DemoProvider>>,
    /// Verifies game tokens.
    pub tokens: GameTokens,
    /// Whose tokens are still valid and no longer wanted.
    pub suspensions: Suspensions,
    /// Whose tokens are still valid and of a session that ended.
    pub endings: Endings,
    /// How often players may do what costs something.
    pub limits: AuthLimits,
}

/// How often players, and those who want to be some, may do what costs something.
#[derive(Debug)]
pub struct AuthLimits {
    /// The edge limits on guest creation.
    pub guests: GuestLimits,
    /// The limit on sign-ins that begin.
    pub sign_ins: Limiter<Network>,
    /// The limits on devices that sign in.
    pub devices: DeviceLimits,
    /// The limit on new names, for one player.
    pub renames: Limiter<Uuid>,
    /// How many refusals the log of events keeps.
    pub refusals: RefusalLimits,
    /// The limit on calls of the project API, by player.
    pub calls: Limiter<Uuid>,
}

impl AuthLimits {
    /// The limits of the settings.
    #[must_use]
    pub fn new(config: &Config, clock: &Arc<dyn Clock>) -> Self {
        Self {
            guests: GuestLimits::new(&config.guest_rate, clock),
            sign_ins: Limiter::new(&config.sign_in_rate, Arc::clone(clock)),
            devices: DeviceLimits::new(clock),
            renames: Limiter::new(&RENAMES, Arc::clone(clock)),
            refusals: RefusalLimits::new(clock),
            calls: Limiter::new(&CALLS, Arc::clone(clock)),
        }
    }

    /// Forgets those who have been quiet for long enough.
    pub fn sweep(&self) {
        self.guests.sweep();
        self.sign_ins.sweep();
        self.devices.sweep();
        self.renames.sweep();
        self.refusals.sweep();
        self.calls.sweep();
    }
}
