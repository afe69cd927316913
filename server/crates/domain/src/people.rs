//! The people of a project, and the invitations by which they join it.
//!
//! A project has one owner, whom its row names. Everybody else is a member, with a role below the
//! owner's. An invitation is a secret that makes whoever has it a member, once. The owner can offer the
//! project to one of its developers, who owns it only after accepting.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use platform_protocol::names::Environment;
use platform_protocol::people::{HANDOVER_DAYS, INVITATION_DAYS, INVITATION_PREFIX, Role};
use uuid::Uuid;

use crate::clock::Millis;
use crate::device::TokenHash;
use crate::entropy::Entropy;
use crate::project::Project;

/// How long an invitation is valid.
pub const INVITATION_MILLIS: Millis = INVITATION_DAYS as Millis * 24 * 60 * 60 * 1_000;
/// How long the offer of a project is valid.
pub const HANDOVER_MILLIS: Millis = HANDOVER_DAYS as Millis * 24 * 60 * 60 * 1_000;
/// Bytes of an invitation's secret.
const SECRET: usize = 32;

/// The secret of an invitation: 256 random bits. The store has its [`TokenHash`].
#[derive(Clone, PartialEq, Eq)]
pub struct InvitationSecret(String);

impl InvitationSecret {
    /// A new secret.
    #[must_use]
    pub fn generate(entropy: &dyn Entropy) -> Self {
        let bytes: [u8; SECRET] = entropy.bytes();
        let body = URL_SAFE_NO_PAD.encode(bytes);
        Self(format!("{INVITATION_PREFIX}{body}"))
    }

    /// Reads a secret that a client sent. Returns `None` for every text that was never issued as it
    /// is.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let body = text.strip_prefix(INVITATION_PREFIX)?;
        let bytes = URL_SAFE_NO_PAD.decode(body).ok()?;
        (bytes.len() == SECRET).then(|| Self(text.to_owned()))
    }

    /// The text, only for whoever created the invitation.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The hash that the store keeps.
    #[must_use]
    pub fn hash(&self) -> TokenHash {
        TokenHash::of(&self.0)
    }
}

impl fmt::Debug for InvitationSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InvitationSecret(hidden)")
    }
}

/// Somebody with a role in a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Person {
    /// The account.
    pub player: Uuid,
    /// Its name now.
    pub username: String,
    /// What the person may do.
    pub role: Role,
    /// When the person joined; `None` for the owner.
    pub since: Option<Millis>,
}

/// By what right somebody decides about the people of a project. The store compares it with what is so
/// at the moment of the change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Right {
    /// As this player, who must own the project.
    Owner(Uuid),
    /// As this member, who decides about nobody but themselves.
    Member(Uuid),
    /// As an administrator, whoever owns the project.
    Administrator,
}

impl Right {
    /// Whether this right is one over a member of a project with this owner.
    #[must_use]
    pub fn holds(self, owner: Option<Uuid>, member: Uuid) -> bool {
        match self {
            Self::Owner(player) => owner == Some(player),
            Self::Member(player) => player == member,
            Self::Administrator => true,
        }
    }

    /// Whether this right is one over the whole of a project with this owner.
    #[must_use]
    pub fn decides(self, owner: Option<Uuid>) -> bool {
        match self {
            Self::Owner(player) => owner == Some(player),
            Self::Member(_) => false,
            Self::Administrator => true,
        }
    }
}

/// An invitation that nobody has accepted yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invitation {
    /// Its id, which is not secret.
    pub id: Uuid,
    /// The role that it gives, never the owner's.
    pub role: Role,
    /// When it was created.
    pub created_at: Millis,
    /// When it expires.
    pub expires_at: Millis,
}

/// A new invitation.
#[derive(Clone, Debug)]
pub struct NewInvitation {
    /// The invitation.
    pub invitation: Invitation,
    /// The hash of its secret.
    pub hash: TokenHash,
    /// The player who creates it, and must own the project at this moment.
    pub owner: Uuid,
    /// How many open invitations the project may have with this one.
    pub most: usize,
}

/// The result of adding an invitation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddedInvitation {
    /// It was added.
    Done,
    /// The project belongs to somebody else.
    NotOwner,
    /// The project has as many open invitations as it may.
    TooMany,
}

/// An invitation with its project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundInvitation {
    /// The invitation.
    pub invitation: Invitation,
    /// Its project, which is not deleted.
    pub project: Project,
}

/// How many people and projects there may be after somebody joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeopleLimits {
    /// People of the project, with its owner.
    pub people: usize,
    /// Projects of others that the account is in.
    pub projects: usize,
}

/// The result of accepting an invitation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AcceptedInvitation {
    /// The player has this role in the project with this slug now. The invitation is used up.
    Done(String, Role),
    /// The player had this role or a greater one before. The invitation stays open.
    Already(String, Role),
    /// There is no such invitation: it was used, withdrawn, has expired, or its project is deleted.
    Gone,
    /// A guest, which may be lost with its cookie.
    NotAnAccount,
    /// The project has as many people as it may.
    TooManyPeople,
    /// The player is in as many projects of others as an account may be.
    TooManyProjects,
}

/// Where data of a project goes, by an address that its people set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outlet {
    /// The webhook, which is told about errors.
    Webhook,
    /// The backend of an environment, which gets requests of players with their tokens.
    Backend(Environment),
}

impl Outlet {
    /// Every outlet.
    pub const ALL: [Self; 3] = [
        Self::Webhook,
        Self::Backend(Environment::Dev),
        Self::Backend(Environment::Prod),
    ];

    /// The name in the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Webhook => "webhook",
            Self::Backend(Environment::Dev) => "backend-dev",
            Self::Backend(Environment::Prod) => "backend-prod",
        }
    }

    /// What it is called in a sentence.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Webhook => "the webhook",
            Self::Backend(Environment::Dev) => "the backend of dev",
            Self::Backend(Environment::Prod) => "the backend of prod",
        }
    }
}

/// Who set an outlet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setter {
    /// The account.
    pub player: Uuid,
    /// Its name now.
    pub username: String,
}

/// An outlet that a project has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetOutlet {
    /// Which one.
    pub outlet: Outlet,
    /// Who set it last, if that is known.
    pub set_by: Option<Setter>,
}

/// Returns the outlets that this player has set last.
#[must_use]
pub fn set_by(outlets: Vec<SetOutlet>, player: Uuid) -> Vec<Outlet> {
    let theirs = outlets.into_iter();
    let theirs = theirs.filter(|one| one.set_by.as_ref().is_some_and(|by| by.player == player));
    theirs.map(|one| one.outlet).collect()
}

/// What a change of a member's role, or the removal of a member, came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberChange {
    /// The person with its role as it is now, which it may have had before; or who was removed.
    pub person: Person,
    /// How many open invitations were withdrawn with it.
    pub withdrawn: u32,
    /// What the person has set that stays, if they may not set it any more.
    pub left: Vec<Outlet>,
}

/// Returns the roles whose open invitations end when somebody else lowers a member's role to
/// `after`, or removes the member (`None`): the member may know their links.
pub fn regainable(before: Role, after: Option<Role>) -> impl Iterator<Item = Role> {
    let is_less = after < Some(before);
    let roles = Role::ALL.into_iter();
    roles.filter(move |role| is_less && *role != Role::Owner && Some(*role) > after)
}

/// The result of changing a member's role, or of removing a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangedMember {
    /// What it came to.
    Done(MemberChange),
    /// The project belongs to somebody else.
    NotOwner,
    /// The player is no member.
    NotAMember,
}

/// The result of withdrawing an invitation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WithdrawnInvitation {
    /// The invitation, which is withdrawn.
    Done(Invitation),
    /// The project belongs to somebody else.
    NotOwner,
    /// The project has no such invitation.
    Gone,
}

/// The offer of a project to one of its developers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handover {
    /// Who owns the project after accepting.
    pub heir: Uuid,
    /// The heir's name now.
    pub username: String,
    /// When it was offered.
    pub offered_at: Millis,
    /// When the offer expires.
    pub expires_at: Millis,
}

/// A new offer of a project.
#[derive(Clone, Copy, Debug)]
pub struct NewHandover {
    /// Who offers the project, and must own it at this moment.
    pub owner: Uuid,
    /// One of its developers.
    pub heir: Uuid,
    /// When it is offered.
    pub offered_at: Millis,
    /// When the offer expires.
    pub expires_at: Millis,
}

/// The result of offering a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OfferedHandover {
    /// The offer, in place of an earlier one.
    Done(Handover),
    /// There is no such project, or it belongs to somebody else.
    NotOwner,
    /// The other player is not one of its developers.
    NotADeveloper,
    /// The other player is suspended.
    Suspended,
}

/// The result of withdrawing or declining an offer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndedHandover {
    /// The offer, which has ended.
    Done(Handover),
    /// The project belongs to somebody else.
    NotOwner,
    /// The project is not offered, or not to this player.
    NotOffered,
}

/// The result of accepting a project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandedOn {
    /// It belongs to the other player now.
    Done,
    /// The project is not offered to the player, or not any more.
    NotOffered,
    /// The player is suspended.
    Suspended,
    /// The player owns as many projects as an account may.
    TooManyProjects,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entropy::SystemEntropy;

    #[test]
    fn who_lost_a_role_cannot_get_it_back_by_an_invitation_that_was_open() {
        use Role::{Developer, Viewer};
        for (before, after, expected) in [
            (Viewer, None, vec![Viewer, Developer]),
            (Developer, None, vec![Viewer, Developer]),
            (Developer, Some(Viewer), vec![Developer]),
            (Viewer, Some(Developer), vec![]),
            (Viewer, Some(Viewer), vec![]),
            (Developer, Some(Developer), vec![]),
        ] {
            let roles: Vec<_> = regainable(before, after).collect();
            assert_eq!(roles, expected, "{before:?} to {after:?}");
        }
    }

    #[test]
    fn a_secret_is_read_as_it_was_issued_and_in_no_other_form() {
        let secret = InvitationSecret::generate(&SystemEntropy);
        assert_eq!(
            InvitationSecret::parse(secret.expose()),
            Some(secret.clone())
        );
        assert_eq!(format!("{secret:?}"), "InvitationSecret(hidden)");
        let body = secret.expose().strip_prefix(INVITATION_PREFIX).unwrap();
        assert_eq!(body.len(), 43);
        let short = &secret.expose()[..secret.expose().len() - 1];
        let long = format!("{}A", secret.expose());
        for text in ["", INVITATION_PREFIX, body, short, &long] {
            assert_eq!(InvitationSecret::parse(text), None, "{text}");
        }
        assert_ne!(InvitationSecret::generate(&SystemEntropy), secret);
    }
}
