//! Devices without a browser: the part of the store that keeps them signed in.

use async_trait::async_trait;
use platform_domain::audit::By;
use platform_domain::clock::Millis;
use platform_domain::device::{Device, FreshDevice, Refreshed, TokenHash};
use uuid::Uuid;

use super::StoreError;

/// Operations on devices. [`Store`](super::Store) documents what every method
/// guarantees.
#[async_trait]
pub trait DeviceStore: Send + Sync {
    /// Exchanges a refresh token for the next one.
    ///
    /// The device's current token works, and is replaced by the next one. The token before it works
    /// once more for [`LOST_ANSWER_MILLIS`](platform_domain::device::LOST_ANSWER_MILLIS) after its
    /// first use, as long as its successor was not used: the successor is then replaced and must
    /// not be used any more. By the clock of this server, the first use may lie in the future
    /// ([`CLOCKS_DIFFER`](platform_domain::clock::CLOCKS_DIFFER)). Any other token of the device ends the device's sign-in.
    async fn refresh_device(
        &self,
        refresh_token: &TokenHash,
        fresh: FreshDevice,
    ) -> Result<Refreshed, StoreError>;

    /// Ends the sign-in of the device that this refresh token was ever given
    /// to. Returns whether there was one.
    async fn revoke_refresh_token(
        &self,
        refresh_token: &TokenHash,
        by: By,
        now: Millis,
    ) -> Result<bool, StoreError>;

    /// Ends a device's sign-in, if the device is the player's. Returns whether
    /// it was.
    async fn end_device(
        &self,
        player: Uuid,
        device: Uuid,
        by: By,
        now: Millis,
    ) -> Result<bool, StoreError>;

    /// Returns the player's devices that are signed in at `now`. The device
    /// with the latest use comes first.
    async fn list_devices(&self, player: Uuid, now: Millis) -> Result<Vec<Device>, StoreError>;
}
