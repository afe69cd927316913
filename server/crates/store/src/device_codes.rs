//! The sign-in of a device without a browser, from its codes to its first tokens.

use async_trait::async_trait;
use platform_domain::audit::By;
use platform_domain::clock::Millis;
use platform_domain::device::{
    Decided, DeviceAuthorization, FreshDevice, NewDeviceAuthorization, Redeemed, TokenHash,
    UserCode,
};
use uuid::Uuid;

use super::StoreError;

/// Operations on the codes of devices. [`Store`](super::Store) documents what every
/// method guarantees.
#[async_trait]
pub trait DeviceCodeStore: Send + Sync {
    /// Stores a sign-in that a device begins. Returns the code for the person:
    /// the first that no other sign-in has.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] on `user_code` if every code is taken.
    async fn add_device_authorization(
        &self,
        authorization: NewDeviceAuthorization,
    ) -> Result<UserCode, StoreError>;

    /// Returns the sign-in with this code that waits for a decision at `now`.
    async fn find_device_authorization(
        &self,
        user_code: &UserCode,
        now: Millis,
    ) -> Result<Option<DeviceAuthorization>, StoreError>;

    /// Approves or denies the sign-in with this code. The first of several
    /// decisions holds.
    async fn decide_device_authorization(
        &self,
        user_code: &UserCode,
        player: Uuid,
        approve: bool,
        by: By,
        now: Millis,
    ) -> Result<Decided, StoreError>;

    /// Exchanges an approved device code for a device. Several requests at once
    /// make one device.
    async fn redeem_device_code(
        &self,
        device_code: &TokenHash,
        fresh: FreshDevice,
    ) -> Result<Redeemed, StoreError>;
}
