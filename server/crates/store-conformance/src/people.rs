//! The requirements on the people of projects, and on invitations.

use std::sync::Arc;

use platform_domain::administration::Transferred;
use platform_domain::audit::{Actor, ActorKind, AuditEvent, AuditKind, AuditQuery, By};
use platform_domain::clock::Millis;
use platform_domain::environment_setting::EnvironmentSetting;
use platform_domain::people::{
    AcceptedInvitation, AddedInvitation, ChangedMember, INVITATION_MILLIS, Invitation,
    InvitationSecret, NewInvitation, Outlet, PeopleLimits, Right, WithdrawnInvitation,
};
use platform_domain::project::BackendSettings;
use platform_domain::takedown::Change;
use platform_domain::webhook::{NewWebhook, WebhookSecret};
use platform_protocol::names::Environment;
use platform_protocol::people::Role;
use platform_store::{Removed, Store, StoreError};
use uuid::Uuid;

use super::{Handles, NOW, Place, entropy, guest, project, sign_in};

const LIMITS: PeopleLimits = PeopleLimits {
    people: 50,
    projects: 100,
};

/// Returns the account with this name.
pub(super) async fn account(store: &dyn Store, name: &str) -> Uuid {
    let signed_in = store.complete_sign_in(sign_in(name)).await.unwrap();
    signed_in.player().unwrap().id
}

/// An account with this project.
pub(super) async fn owner(store: &dyn Store, slug: &str) -> Uuid {
    let owner = account(store, &format!("of-{slug}")).await;
    let added = store.add_project(project(slug, Some(owner))).await;
    added.unwrap();
    owner
}

pub(super) fn new(owner: Uuid, role: Role, most: usize) -> (NewInvitation, InvitationSecret) {
    let secret = InvitationSecret::generate(entropy());
    let invitation = Invitation {
        id: entropy().uuid_v7(NOW),
        role,
        created_at: NOW,
        expires_at: NOW + INVITATION_MILLIS,
    };
    let hash = secret.hash();
    let new = NewInvitation {
        invitation,
        hash,
        owner,
        most,
    };
    (new, secret)
}

pub(super) async fn invite(
    store: &dyn Store,
    slug: &str,
    owner: Uuid,
    role: Role,
) -> InvitationSecret {
    let (new, secret) = new(owner, role, 20);
    let added = store.add_invitation(slug, new, Actor::Own.into()).await;
    assert_eq!(added.unwrap(), AddedInvitation::Done);
    secret
}

pub(super) async fn accept(
    store: &dyn Store,
    secret: &InvitationSecret,
    player: Uuid,
    now: Millis,
) -> AcceptedInvitation {
    let by = Actor::Member(player).into();
    let accepted = store.accept_invitation(secret.hash(), player, LIMITS, by, now);
    accepted.await.unwrap()
}

/// Makes the player a member of the project.
pub(super) async fn join(store: &dyn Store, slug: &str, owner: Uuid, (player, role): (Uuid, Role)) {
    let secret = invite(store, slug, owner, role).await;
    let accepted = accept(store, &secret, player, NOW + 1).await;
    assert_eq!(accepted, AcceptedInvitation::Done(slug.into(), role));
}

pub(super) async fn role(store: &dyn Store, slug: &str, player: Uuid) -> Option<Role> {
    let found = store.find_project_for(slug, player).await.unwrap();
    found.unwrap().1
}

pub(super) async fn events_of(store: &dyn Store, player: Uuid) -> Vec<AuditEvent> {
    let query = AuditQuery::of(player, 20);
    store.list_audit_events(query).await.unwrap()
}

pub async fn an_invitation_is_accepted_once_within_its_week(place: &dyn Place) {
    let store = place.open().await;
    let store = &*store;
    let owner = owner(store, "demo").await;
    let (ada, ben) = (account(store, "ada").await, account(store, "ben").await);
    let secret = invite(store, "demo", owner, Role::Developer).await;
    let late = NOW + INVITATION_MILLIS;
    assert_eq!(
        accept(store, &secret, ada, late).await,
        AcceptedInvitation::Gone
    );
    assert_eq!(
        store.find_invitation(secret.hash(), late).await.unwrap(),
        None
    );
    assert_eq!(store.list_invitations("demo", late).await.unwrap(), []);
    let found = store
        .find_invitation(secret.hash(), NOW)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(found.project, project("demo", Some(owner)));
    let listed = store.list_invitations("demo", NOW).await.unwrap();
    assert_eq!(listed, [found.invitation]);
    assert_eq!(store.list_invitations("other", NOW).await.unwrap(), []);
    let done = AcceptedInvitation::Done("demo".into(), Role::Developer);
    assert_eq!(accept(store, &secret, ada, late - 1).await, done);
    assert_eq!(
        accept(store, &secret, ben, NOW + 1).await,
        AcceptedInvitation::Gone
    );
    assert_eq!(store.list_invitations("demo", NOW).await.unwrap(), []);
    let people = store.list_people("demo").await.unwrap();
    let people: Vec<_> = people
        .iter()
        .map(|one| (one.player, one.role, one.since))
        .collect();
    let expected = [
        (owner, Role::Owner, None),
        (ada, Role::Developer, Some(late - 1)),
    ];
    assert_eq!(people, expected);
    assert_eq!(role(store, "demo", ada).await, Some(Role::Developer));
    assert_eq!(role(store, "demo", ben).await, None);
    assert_eq!(store.find_project_for("none", ada).await.unwrap(), None);
    let told = events_of(store, ada).await;
    assert_eq!(told[0].kind, AuditKind::MemberJoined);
    assert_eq!(told[0].actor, Actor::Member(ada));
    assert_eq!((told[0].player, told[0].other), (Some(owner), Some(ada)));
    assert_eq!(told[0].detail.as_deref(), Some("developer"));
}

pub async fn an_invitation_gives_more_and_never_less(place: &dyn Place) {
    let store = place.open().await;
    let store = &*store;
    let owner = owner(store, "demo").await;
    let ada = account(store, "ada").await;
    join(store, "demo", owner, (ada, Role::Viewer)).await;
    let same = invite(store, "demo", owner, Role::Viewer).await;
    let already = |role| AcceptedInvitation::Already("demo".into(), role);
    assert_eq!(accept(store, &same, ada, NOW).await, already(Role::Viewer));
    assert_eq!(accept(store, &same, owner, NOW).await, already(Role::Owner));
    join(store, "demo", owner, (ada, Role::Developer)).await;
    assert_eq!(
        accept(store, &same, ada, NOW).await,
        already(Role::Developer)
    );
    // It was not used up.
    let ben = account(store, "ben").await;
    let done = AcceptedInvitation::Done("demo".into(), Role::Viewer);
    assert_eq!(accept(store, &same, ben, NOW).await, done);
    let changed = &events_of(store, ada).await[0];
    assert_eq!(changed.kind, AuditKind::MemberRoleChanged);
    assert_eq!(changed.detail.as_deref(), Some("viewer to developer"));
}

pub async fn only_an_account_joins_and_only_while_there_is_room(place: &dyn Place) {
    let store = place.open().await;
    let store = &*store;
    let owner = owner(store, "demo").await;
    let passing = store.add_guest(guest(&["heron"])).await.unwrap().id;
    let (ada, ben) = (account(store, "ada").await, account(store, "ben").await);
    let secret = invite(store, "demo", owner, Role::Viewer).await;
    let tried = async |player, people, projects| {
        let limits = PeopleLimits { people, projects };
        let by = Actor::Member(player).into();
        let accepted = store.accept_invitation(secret.hash(), player, limits, by, NOW);
        accepted.await.unwrap()
    };
    let not_an_account = AcceptedInvitation::NotAnAccount;
    assert_eq!(tried(passing, 50, 100).await, not_an_account);
    assert_eq!(tried(Uuid::max(), 50, 100).await, not_an_account);
    join(store, "demo", owner, (ada, Role::Viewer)).await;
    assert_eq!(tried(ben, 2, 100).await, AcceptedInvitation::TooManyPeople);
    assert_eq!(tried(ben, 3, 0).await, AcceptedInvitation::TooManyProjects);
    let by = || By::from(Actor::Operator);
    store.suspend_player(ben, None, by(), NOW).await.unwrap();
    assert_eq!(tried(ben, 3, 1).await, not_an_account);
    store.unsuspend_player(ben, by(), NOW).await.unwrap();
    assert_eq!(
        tried(ben, 3, 1).await,
        AcceptedInvitation::Done("demo".into(), Role::Viewer)
    );
}

pub async fn open_invitations_are_few_and_the_owners(place: &dyn Place) {
    let store = place.open().await;
    let store = &*store;
    let owner = owner(store, "demo").await;
    let ada = account(store, "ada").await;
    let add = async |slug, (new, _): (NewInvitation, InvitationSecret)| {
        store.add_invitation(slug, new, Actor::Own.into()).await
    };
    let first = new(owner, Role::Viewer, 1);
    let id = first.0.invitation.id;
    assert_eq!(add("demo", first).await.unwrap(), AddedInvitation::Done);
    let second = || new(owner, Role::Viewer, 1);
    assert_eq!(
        add("demo", second()).await.unwrap(),
        AddedInvitation::TooMany
    );
    let of_ada = add("demo", new(ada, Role::Viewer, 9)).await.unwrap();
    assert_eq!(of_ada, AddedInvitation::NotOwner);
    let missing = add("none", second()).await.unwrap_err();
    assert!(matches!(missing, StoreError::Missing { table: "projects" }));
    let withdraw = async |slug, right| {
        let withdrawn = store.withdraw_invitation(slug, right, id, Actor::Own.into(), NOW);
        withdrawn.await.unwrap()
    };
    let gone = WithdrawnInvitation::Gone;
    assert_eq!(withdraw("none", Right::Administrator).await, gone);
    for right in [Right::Owner(ada), Right::Member(ada), Right::Member(owner)] {
        let withdrawn = withdraw("demo", right).await;
        assert_eq!(withdrawn, WithdrawnInvitation::NotOwner, "{right:?}");
    }
    match withdraw("demo", Right::Owner(owner)).await {
        WithdrawnInvitation::Done(invitation) => assert_eq!(invitation.id, id),
        other => panic!("{other:?}"),
    }
    assert_eq!(withdraw("demo", Right::Owner(owner)).await, gone);
    assert_eq!(add("demo", second()).await.unwrap(), AddedInvitation::Done);
    // One that has expired makes room.
    let mut later = second();
    later.0.invitation.created_at = NOW + INVITATION_MILLIS;
    later.0.invitation.expires_at = NOW + 2 * INVITATION_MILLIS;
    assert_eq!(add("demo", later).await.unwrap(), AddedInvitation::Done);
    let kinds = events_of(store, owner).await;
    let kinds: Vec<_> = kinds.iter().take(4).map(|event| event.kind).collect();
    let created = AuditKind::InvitationCreated;
    let withdrawn = AuditKind::InvitationWithdrawn;
    assert_eq!(kinds, [created, created, withdrawn, created]);
}

pub async fn a_members_role_is_changed_by_the_owner_alone(place: &dyn Place) {
    let store = place.open().await;
    let store = &*store;
    let owner = owner(store, "demo").await;
    let (ada, ben) = (account(store, "ada").await, account(store, "ben").await);
    join(store, "demo", owner, (ada, Role::Viewer)).await;
    let change = async |by: Uuid, player| {
        let to = (player, Role::Developer);
        let changed = store.change_role("demo", by, to, Actor::Own.into(), NOW);
        changed.await.unwrap()
    };
    assert_eq!(change(ben, ada).await, ChangedMember::NotOwner);
    assert_eq!(change(owner, ben).await, ChangedMember::NotAMember);
    assert_eq!(change(owner, owner).await, ChangedMember::NotAMember);
    for _ in 0..2 {
        match change(owner, ada).await {
            ChangedMember::Done(done) => assert_eq!(done.person.role, Role::Developer),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(role(store, "demo", ada).await, Some(Role::Developer));
    // What was so before is no event.
    let told = events_of(store, ada).await;
    assert_eq!(told[0].kind, AuditKind::MemberRoleChanged);
    assert_eq!(told[1].kind, AuditKind::MemberJoined);
}

pub async fn a_removed_member_has_no_role_any_more(place: &dyn Place) {
    let store = place.open().await;
    let store = &*store;
    let owner = owner(store, "demo").await;
    let (ada, ben) = (account(store, "ada").await, account(store, "ben").await);
    join(store, "demo", owner, (ada, Role::Developer)).await;
    join(store, "demo", owner, (ben, Role::Viewer)).await;
    let remove = async |slug, right, player| {
        let removed = store.remove_member(slug, right, player, Actor::Member(player).into(), NOW);
        removed.await.unwrap()
    };
    let not_a_member = ChangedMember::NotAMember;
    assert_eq!(remove("none", Right::Member(ada), ada).await, not_a_member);
    assert_eq!(
        remove("demo", Right::Member(owner), owner).await,
        not_a_member
    );
    for right in [Right::Member(ben), Right::Owner(ben)] {
        let removed = remove("demo", right, ada).await;
        assert_eq!(removed, ChangedMember::NotOwner, "{right:?}");
    }
    match remove("demo", Right::Member(ada), ada).await {
        ChangedMember::Done(done) => assert_eq!(done.person.player, ada),
        other => panic!("{other:?}"),
    }
    assert_eq!(remove("demo", Right::Owner(owner), ada).await, not_a_member);
    assert_eq!(role(store, "demo", ada).await, None);
    assert_eq!(role(store, "demo", ben).await, Some(Role::Viewer));
    assert_eq!(store.list_projects_for(ada).await.unwrap(), []);
    let query = AuditQuery {
        actor: Some(ActorKind::Member),
        ..AuditQuery::of(ada, 20)
    };
    let told = store.list_audit_events(query).await.unwrap();
    let told: Vec<_> = told.iter().map(|event| (event.kind, event.actor)).collect();
    let by = Actor::Member(ada);
    let expected = [
        (AuditKind::MemberRemoved, by),
        (AuditKind::MemberJoined, by),
    ];
    assert_eq!(told, expected);
    let query = AuditQuery {
        actor: Some(ActorKind::Own),
        ..AuditQuery::newest(20)
    };
    let own = store.list_audit_events(query).await.unwrap();
    assert!(own.iter().all(|event| event.actor == Actor::Own));
}

pub async fn who_lost_a_role_does_not_get_it_back_by_an_open_invitation(place: &dyn Place) {
    let store = place.open().await;
    let store = &*store;
    let (owner, other) = (owner(store, "demo").await, owner(store, "other").await);
    let ada = account(store, "ada").await;
    join(store, "demo", owner, (ada, Role::Developer)).await;
    let elsewhere = invite(store, "other", other, Role::Developer).await;
    let count = async || store.list_invitations("demo", NOW).await.unwrap().len();
    let withdrawn = |changed: Result<ChangedMember, StoreError>| match changed.unwrap() {
        ChangedMember::Done(done) => done.withdrawn,
        other => panic!("{other:?}"),
    };
    let change = async |role| {
        let changed = store.change_role("demo", owner, (ada, role), Actor::Own.into(), NOW);
        withdrawn(changed.await)
    };
    let for_viewers = invite(store, "demo", owner, Role::Viewer).await;
    let for_developers = invite(store, "demo", owner, Role::Developer).await;
    assert_eq!(change(Role::Developer).await, 0, "nothing changes");
    assert_eq!(change(Role::Viewer).await, 1, "the one for developers");
    assert_eq!(count().await, 1);
    let gone = AcceptedInvitation::Gone;
    assert_eq!(accept(store, &for_developers, ada, NOW).await, gone);
    let already = AcceptedInvitation::Already("demo".into(), Role::Viewer);
    assert_eq!(accept(store, &for_viewers, ada, NOW).await, already);
    assert_eq!(change(Role::Developer).await, 0);
    // Who leaves takes nothing away from those who are invited.
    let left = store.remove_member(
        "demo",
        Right::Member(ada),
        ada,
        Actor::Member(ada).into(),
        NOW,
    );
    assert_eq!(withdrawn(left.await), 0);
    assert_eq!(count().await, 1);
    join(store, "demo", owner, (ada, Role::Viewer)).await;
    invite(store, "demo", owner, Role::Developer).await;
    // Of three, one has expired when an administrator removes the member.
    let mut short = new(owner, Role::Viewer, 20).0;
    short.invitation.expires_at = NOW + 1;
    let added = store.add_invitation("demo", short, Actor::Own.into()).await;
    assert_eq!(added.unwrap(), AddedInvitation::Done);
    let by = Actor::Admin(other).into();
    let removed = store.remove_member("demo", Right::Administrator, ada, by, NOW + 1);
    assert_eq!(withdrawn(removed.await), 2);
    assert_eq!(accept(store, &for_viewers, ada, NOW).await, gone);
    let elsewhere = store.find_invitation(elsewhere.hash(), NOW).await.unwrap();
    assert!(elsewhere.is_some());
    let query = AuditQuery {
        kind: Some(AuditKind::InvitationWithdrawn),
        ..AuditQuery::newest(20)
    };
    let told = store.list_audit_events(query).await.unwrap();
    let told: Vec<_> = told.iter().map(|one| (one.player, one.actor)).collect();
    let by_admin = (Some(owner), Actor::Admin(other));
    assert_eq!(told, [by_admin, by_admin, (Some(owner), Actor::Own)]);
}

async fn set_webhook(store: &dyn Store, by: Actor) {
    let new = NewWebhook {
        url: "https://hooks.example/a".into(),
        secret: WebhookSecret::generate(entropy()),
        rotate: false,
        wants: None,
    };
    let set = store.set_webhook("demo", new, by.into(), NOW);
    set.await.unwrap();
}

async fn set_backend(store: &dyn Store, environment: Environment, by: Actor) {
    let backend = BackendSettings {
        url: "https://game.example".into(),
        paths: vec!["/api/".into()],
    };
    let backend = EnvironmentSetting::Backend(Some(backend));
    let set = store.set_environment("demo", environment, backend, by.into(), NOW);
    set.await.unwrap();
}

pub async fn it_is_known_who_set_where_data_of_a_project_goes(place: &dyn Place) {
    let store = place.open().await;
    let store = &*store;
    let owner = owner(store, "demo").await;
    let (ada, ben) = (account(store, "ada").await, account(store, "ben").await);
    join(store, "demo", owner, (ada, Role::Developer)).await;
    join(store, "demo", owner, (ben, Role::Developer)).await;
    let outlets = async || {
        let outlets = store.list_outlets("demo").await.unwrap();
        let each = outlets.into_iter();
        each.map(|one| (one.outlet, one.set_by.map(|by| by.player)))
            .collect::<Vec<_>>()
    };
    assert_eq!(outlets().await, []);
    let (dev, prod) = (Environment::Dev, Environment::Prod);
    set_webhook(store, Actor::Own).await;
    set_webhook(store, Actor::Member(ada)).await;
    set_backend(store, dev, Actor::Operator).await;
    set_backend(store, prod, Actor::Member(ada)).await;
    let (of_dev, of_prod) = (Outlet::Backend(dev), Outlet::Backend(prod));
    let expected = [
        (Outlet::Webhook, Some(ada)),
        (of_dev, None),
        (of_prod, Some(ada)),
    ];
    assert_eq!(outlets().await, expected);
    let named = &store.list_outlets("demo").await.unwrap()[0];
    let people = store.list_people("demo").await.unwrap();
    let ada_now = people.iter().find(|one| one.player == ada).unwrap();
    let name = named.set_by.as_ref().map(|by| &by.username);
    assert_eq!(name, Some(&ada_now.username));
    let left = |changed: Result<ChangedMember, StoreError>| match changed.unwrap() {
        ChangedMember::Done(done) => done.left,
        other => panic!("{other:?}"),
    };
    let own = || By::from(Actor::Own);
    let to = (ada, Role::Viewer);
    let lowered = store.change_role("demo", owner, to, own(), NOW).await;
    assert_eq!(left(lowered), [Outlet::Webhook, of_prod]);
    let told = &events_of(store, ada).await[0];
    let detail = "developer to viewer; had set the webhook, the backend of prod";
    assert_eq!(told.detail.as_deref(), Some(detail));
    // Who saves it again answers for it from then on, also if nothing changes.
    set_backend(store, prod, Actor::Member(ben)).await;
    let removed = store.remove_member("demo", Right::Owner(owner), ada, own(), NOW);
    assert_eq!(left(removed.await), [Outlet::Webhook]);
    let told = &events_of(store, ada).await[0];
    assert_eq!(told.detail.as_deref(), Some("viewer; had set the webhook"));
    set_webhook(store, Actor::Own).await;
    let none = EnvironmentSetting::Backend(None);
    let none = store.set_environment("demo", dev, none, own(), NOW);
    none.await.unwrap();
    let expected = [(Outlet::Webhook, Some(owner)), (of_prod, Some(ben))];
    assert_eq!(outlets().await, expected);
    assert_eq!(store.list_outlets("none").await.unwrap(), []);
}

pub async fn projects_are_listed_with_the_role_in_each(place: &dyn Place) {
    let store = place.open().await;
    let store = &*store;
    let (zebra, bear) = (owner(store, "zebra").await, owner(store, "bear").await);
    store.add_project(project("ape", Some(bear))).await.unwrap();
    store.add_project(project("demo", None)).await.unwrap();
    join(store, "zebra", zebra, (bear, Role::Viewer)).await;
    let listed = store.list_projects_for(bear).await.unwrap();
    let listed = listed.iter().map(|(one, role)| (one.slug.as_str(), *role));
    let expected = [
        ("ape", Role::Owner),
        ("bear", Role::Owner),
        ("zebra", Role::Viewer),
    ];
    assert!(listed.eq(expected));
    assert_eq!(role(store, "demo", bear).await, None);
    assert_eq!(store.list_people("demo").await.unwrap(), []);
}

pub async fn members_stay_with_a_transferred_project_and_go_with_a_removed_one(place: &dyn Place) {
    let store = place.open().await;
    let store = &*store;
    let owner = owner(store, "demo").await;
    let (ada, ben) = (account(store, "ada").await, account(store, "ben").await);
    join(store, "demo", owner, (ada, Role::Viewer)).await;
    join(store, "demo", owner, (ben, Role::Developer)).await;
    let secret = invite(store, "demo", owner, Role::Developer).await;
    let by = || By::from(Actor::Operator);
    let transferred = store.transfer_project("demo", ada, by(), NOW).await;
    assert_eq!(transferred.unwrap(), Transferred::Done);
    let people = store.list_people("demo").await.unwrap();
    let people: Vec<_> = people.iter().map(|one| (one.player, one.role)).collect();
    assert_eq!(people, [(ada, Role::Owner), (ben, Role::Developer)]);
    assert_eq!(
        accept(store, &secret, owner, NOW).await,
        AcceptedInvitation::Gone
    );
    let secret = invite(store, "demo", ada, Role::Developer).await;
    let deleted = store.change_standing("demo", Change::Delete, by(), NOW);
    deleted.await.unwrap();
    assert_eq!(
        accept(store, &secret, owner, NOW).await,
        AcceptedInvitation::Gone
    );
    let removed = store.remove_deleted(NOW, NOW).await.unwrap();
    assert_eq!(removed, Some(Removed::Whole("demo".into())));
    assert_eq!(store.list_projects_for(ben).await.unwrap(), []);
    assert_eq!(store.list_people("demo").await.unwrap(), []);
    assert_eq!(store.find_project_for("demo", ben).await.unwrap(), None);
}

pub async fn of_many_who_accept_an_invitation_at_once_one_joins(place: &dyn Place) {
    let handles = Handles::open(place).await;
    let store = handles.next();
    let owner = owner(&*store, "demo").await;
    let secret = invite(&*store, "demo", owner, Role::Viewer).await;
    let mut accepting = Vec::new();
    for number in 0..10 {
        let player = account(&*store, &format!("otter-{number}")).await;
        let (store, secret) = (handles.next(), secret.clone());
        accepting.push(tokio::spawn(async move {
            accept(&*store, &secret, player, NOW).await
        }));
    }
    let mut joined = 0;
    for accepting in accepting {
        match accepting.await.unwrap() {
            AcceptedInvitation::Done(..) => joined += 1,
            other => assert_eq!(other, AcceptedInvitation::Gone),
        }
    }
    assert_eq!(joined, 1);
    assert_eq!(store.list_people("demo").await.unwrap().len(), 2);
}

pub async fn of_many_who_join_at_once_no_more_do_than_may(place: &dyn Place) {
    let handles = Handles::open(place).await;
    let store = handles.next();
    let owner = owner(&*store, "demo").await;
    let mut joining = Vec::new();
    for number in 0..10 {
        let player = account(&*store, &format!("otter-{number}")).await;
        let secret = invite(&*store, "demo", owner, Role::Viewer).await;
        let store = handles.next();
        joining.push(tokio::spawn(async move {
            let limits = PeopleLimits {
                people: 5,
                projects: 1,
            };
            let by = Actor::Member(player).into();
            let accepted = store.accept_invitation(secret.hash(), player, limits, by, NOW);
            accepted.await.unwrap()
        }));
    }
    for joining in joining {
        joining.await.unwrap();
    }
    assert_eq!(store.list_people("demo").await.unwrap().len(), 5);
}

pub async fn who_accepts_an_invitation_while_being_removed_is_no_member(place: &dyn Place) {
    let handles = Handles::open(place).await;
    let store = handles.next();
    for round in 0..10 {
        let slug = format!("game-{round}");
        let owner = owner(&*store, &slug).await;
        let ada = account(&*store, &format!("ada-{round}")).await;
        join(&*store, &slug, owner, (ada, Role::Viewer)).await;
        let secret = invite(&*store, &slug, owner, Role::Developer).await;
        let (removed, accepted) = at_once(
            &handles,
            async |store| {
                let by = Actor::Own.into();
                let removed = store.remove_member(&slug, Right::Owner(owner), ada, by, NOW);
                removed.await.unwrap()
            },
            async |store| accept(&*store, &secret, ada, NOW).await,
        )
        .await;
        let ChangedMember::Done(removed) = removed else {
            panic!("{removed:?}");
        };
        match accepted {
            AcceptedInvitation::Done(..) => assert_eq!(removed.withdrawn, 0),
            other => {
                assert_eq!(other, AcceptedInvitation::Gone);
                assert_eq!(removed.withdrawn, 1);
            }
        }
        assert_eq!(role(&*store, &slug, ada).await, None);
    }
}

/// Runs both at the same time on stores of their own.
pub(super) async fn at_once<A: Send + 'static, B: Send + 'static>(
    handles: &Handles,
    one: impl AsyncFnOnce(Arc<dyn Store>) -> A,
    other: impl AsyncFnOnce(Arc<dyn Store>) -> B,
) -> (A, B) {
    tokio::join!(one(handles.next()), other(handles.next()))
}
