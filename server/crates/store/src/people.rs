//! The people of projects: the part of the store that knows who may do what with a project besides
//! its owner, and who is invited.

use async_trait::async_trait;
use platform_domain::audit::By;
use platform_domain::clock::Millis;
use platform_domain::device::TokenHash;
use platform_domain::people::{
    AcceptedInvitation, AddedInvitation, ChangedMember, FoundInvitation, Invitation, NewInvitation,
    PeopleLimits, Person, Right, SetOutlet, WithdrawnInvitation,
};
use platform_domain::project::Project;
use platform_protocol::people::Role;
use uuid::Uuid;

use super::StoreError;

/// Operations on the people of projects. [`Store`](super::Store) documents what every method
/// guarantees.
#[async_trait]
pub trait PeopleStore: Send + Sync {
    /// Returns the project with this slug, and the role that the player has in it.
    async fn find_project_for(
        &self,
        slug: &str,
        player: Uuid,
    ) -> Result<Option<(Project, Option<Role>)>, StoreError>;

    /// Returns the projects in which the player has a role, by slug.
    async fn list_projects_for(&self, player: Uuid) -> Result<Vec<(Project, Role)>, StoreError>;

    /// Returns the people of a project: its owner first, then its members in the order in which
    /// they joined.
    async fn list_people(&self, slug: &str) -> Result<Vec<Person>, StoreError>;

    /// Returns where data of a project goes, the webhook first, and who set each address.
    async fn list_outlets(&self, slug: &str) -> Result<Vec<SetOutlet>, StoreError>;

    /// Adds an invitation to a project, and removes those of its invitations that have expired.
    ///
    /// # Errors
    /// [`StoreError::Missing`] on `projects` if there is no such project.
    async fn add_invitation(
        &self,
        slug: &str,
        new: NewInvitation,
        by: By,
    ) -> Result<AddedInvitation, StoreError>;

    /// Returns the open invitations of a project, newest first.
    async fn list_invitations(
        &self,
        slug: &str,
        now: Millis,
    ) -> Result<Vec<Invitation>, StoreError>;

    /// Returns the open invitation with this secret, unless its project is deleted.
    async fn find_invitation(
        &self,
        hash: TokenHash,
        now: Millis,
    ) -> Result<Option<FoundInvitation>, StoreError>;

    /// Withdraws an open invitation of this project. The owner may, and administrators.
    async fn withdraw_invitation(
        &self,
        slug: &str,
        right: Right,
        id: Uuid,
        by: By,
        now: Millis,
    ) -> Result<WithdrawnInvitation, StoreError>;

    /// Makes the player a member of the project of the open invitation with this secret, or raises
    /// a member's role to that of the invitation. This uses the invitation up.
    async fn accept_invitation(
        &self,
        hash: TokenHash,
        player: Uuid,
        limits: PeopleLimits,
        by: By,
        now: Millis,
    ) -> Result<AcceptedInvitation, StoreError>;

    /// Gives a member another role, which is not the owner's. `owner` must own the project at this
    /// moment. If the role is less, the open invitations for more are withdrawn, each with an event
    /// of its own, and an offer of the project to somebody who is no developer any more ends.
    async fn change_role(
        &self,
        slug: &str,
        owner: Uuid,
        (player, role): (Uuid, Role),
        by: By,
        now: Millis,
    ) -> Result<ChangedMember, StoreError>;

    /// Removes a member from a project: the member, the owner and administrators may. An offer of the
    /// project to the member ends. If it is not the member who does it, all open invitations are
    /// withdrawn, each with an event of its own.
    async fn remove_member(
        &self,
        slug: &str,
        right: Right,
        player: Uuid,
        by: By,
        now: Millis,
    ) -> Result<ChangedMember, StoreError>;
}
