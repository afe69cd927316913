//! Offers of projects: the part of the store by which an owner hands a project on to a developer who
//! accepts it.

use async_trait::async_trait;
use platform_domain::audit::By;
use platform_domain::clock::Millis;
use platform_domain::people::{
    EndedHandover, HandedOn, Handover, NewHandover, OfferedHandover, Right,
};
use uuid::Uuid;

use super::StoreError;

/// Operations on offers of projects. [`Store`](super::Store) documents what every method guarantees.
///
/// A project has at most one offer. It counts only while the player who made it owns the project and
/// is not suspended, the heir is one of its developers, and the project is not deleted.
#[async_trait]
pub trait HandoverStore: Send + Sync {
    /// Offers a project to one of its developers, in place of an earlier offer.
    async fn offer_handover(
        &self,
        slug: &str,
        new: NewHandover,
        by: By,
    ) -> Result<OfferedHandover, StoreError>;

    /// Returns the offer of a project.
    async fn find_handover(&self, slug: &str, now: Millis) -> Result<Option<Handover>, StoreError>;

    /// Ends the offer of a project: its owner or an administrator withdraws it, or the heir declines
    /// it.
    async fn end_handover(
        &self,
        slug: &str,
        right: Right,
        by: By,
        now: Millis,
    ) -> Result<EndedHandover, StoreError>;

    /// Makes the heir, who accepts the offer and may own at most `most` projects, the project's
    /// owner. The former owner becomes a developer. The project's deploy tokens, its webhook and its
    /// open invitations end, since the former owner made them.
    async fn accept_handover(
        &self,
        slug: &str,
        heir: Uuid,
        most: u32,
        by: By,
        now: Millis,
    ) -> Result<HandedOn, StoreError>;
}
