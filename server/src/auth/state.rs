//! The state of the auth service's handlers.

use std::sync::Arc;

use uuid::Uuid;

use crate::auth::demo_provider::DemoProvider;
use crate::auth::devices::DeviceLimits;
use crate::auth::ended_sessions::Endings;
use crate::auth::game_tokens::GameTokens;
use crate::auth::guest_limits::GuestLimits;
use crate::auth::keys::KeyRing;
use crate::auth::refusal_log::RefusalLimits;
use crate::auth::suspensions::Suspensions;
use crate::auth::unknown_tokens::UnknownTokens;
use crate::clock::Clock;
use crate::config::Config;
use crate::games::GamesState;
use crate::platform::Platform;
use crate::platform::shared_limits::{SharedLimiter, SharedLimits};
use crate::web::client_address::Network;
use crate::web::limiter::{Period, Rate};
use platform_openid::Providers;

/// How often one player may change their name. Each change is a stored event.
const RENAMES: Rate = Rate::new(10, Period::Hour, 10);
/// How often one player may have everything about them written into a file, which reads a lot.
const EXPORTS: Rate = Rate::new(6, Period::Hour, 3);
/// How many calls of the project API one player may make: many more than a command line needs, and
/// too few to overload the store.
const CALLS: Rate = Rate::new(20, Period::Second, 200);

/// How many visitors one network may hand to games on sites of their own. Each is a row for a
/// minute.
const HAND_OFFS: Rate = Rate::new(300, Period::Minute, 150);

/// The parts of the auth service.
#[derive(Debug)]
pub struct AuthState {
    /// The state that every slice uses.
    pub platform: Arc<Platform>,
    /// The games: where players come from and return to.
    pub games: Arc<GamesState>,
    /// The signing keys.
    pub keys: Arc<KeyRing>,
    /// The identity providers.
    pub providers: Providers,
    /// The built-in provider, if it exists.
    pub demo_provider: Option<Arc<DemoProvider>>,
    /// Verifies game tokens.
    pub tokens: GameTokens,
    /// Suspended players whose tokens are still valid.
    pub suspensions: Suspensions,
    /// Ended sessions whose tokens are still valid.
    pub endings: Endings,
    /// Rate limits for expensive actions.
    pub limits: AuthLimits,
}

/// Rate limits for expensive actions of players and visitors.
#[derive(Debug)]
pub struct AuthLimits {
    /// The rate limits on guest creation.
    pub guests: GuestLimits,
    /// The limit on starting sign-ins.
    pub sign_ins: SharedLimiter<Network>,
    /// The limit on handing visitors to games on sites of their own.
    pub hand_offs: SharedLimiter<Network>,
    /// The limits on devices that sign in.
    pub devices: DeviceLimits,
    /// The limit on new names per player.
    pub renames: SharedLimiter<Uuid>,
    /// The limit on files with everything about a player.
    pub exports: SharedLimiter<Uuid>,
    /// The limits on refusals in the audit log.
    pub refusals: RefusalLimits,
    /// The limit on calls of the project API per player.
    pub calls: SharedLimiter<Uuid>,
    /// The limit on deploy tokens that are not valid, per network.
    pub unknown_tokens: UnknownTokens,
}

impl AuthLimits {
    /// Creates the limits of the settings.
    #[must_use]
    pub fn new(config: &Config, clock: &Arc<dyn Clock>, shared: &SharedLimits) -> Self {
        Self {
            guests: GuestLimits::new(&config.guest_rate, clock, shared),
            sign_ins: shared.limiter("sign-ins", &config.sign_in_rate, clock),
            hand_offs: shared.limiter("hand-offs", &HAND_OFFS, clock),
            devices: DeviceLimits::new(clock, shared),
            renames: shared.limiter("renames", &RENAMES, clock),
            exports: shared.limiter("exports", &EXPORTS, clock),
            refusals: RefusalLimits::new(clock),
            calls: shared.limiter("calls", &CALLS, clock),
            unknown_tokens: UnknownTokens::new(clock),
        }
    }

    /// Removes keys that have been quiet for long enough.
    pub fn sweep(&self) {
        self.guests.sweep();
        self.sign_ins.sweep();
        self.hand_offs.sweep();
        self.devices.sweep();
        self.renames.sweep();
        self.exports.sweep();
        self.refusals.sweep();
        self.calls.sweep();
        self.unknown_tokens.sweep();
    }
}
