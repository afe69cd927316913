//! The requirements on offers of projects, and on who decides while a project gets another owner.

use platform_domain::audit::{Actor, AuditKind, By};
use platform_domain::clock::Millis;
use platform_domain::people::{
    AcceptedInvitation, ChangedMember, EndedHandover, HANDOVER_MILLIS, HandedOn, NewHandover,
    OfferedHandover, Right, WithdrawnInvitation,
};
use platform_domain::takedown::Change;
use platform_protocol::people::Role;
use platform_store::{Removed, Store};
use uuid::Uuid;

use super::people::{accept, account, at_once, events_of, invite, join, new, owner, role};
use super::{Handles, NOW, Place, project};

fn by() -> By {
    Actor::Own.into()
}

async fn offer(store: &dyn Store, slug: &str, owner: Uuid, heir: Uuid) -> OfferedHandover {
    let new = NewHandover {
        owner,
        heir,
        offered_at: NOW,
        expires_at: NOW + HANDOVER_MILLIS,
    };
    store.offer_handover(slug, new, by()).await.unwrap()
}

/// Offers the project, which must succeed.
async fn offered(store: &dyn Store, slug: &str, owner: Uuid, heir: Uuid) {
    match offer(store, slug, owner, heir).await {
        OfferedHandover::Done(handover) => assert_eq!(handover.heir, heir),
        other => panic!("{other:?}"),
    }
}

async fn heir_of(store: &dyn Store, slug: &str, now: Millis) -> Option<Uuid> {
    let found = store.find_handover(slug, now).await.unwrap();
    found.map(|handover| handover.heir)
}

async fn take(store: &dyn Store, slug: &str, heir: Uuid, most: u32) -> HandedOn {
    let by = Actor::Member(heir).into();
    let taken = store.accept_handover(slug, heir, most, by, NOW + 2).await;
    taken.unwrap()
}

async fn end(store: &dyn Store, right: Right, now: Millis) -> EndedHandover {
    store.end_handover("demo", right, by(), now).await.unwrap()
}

/// A project with two developers.
async fn with_developers(store: &dyn Store, slug: &str) -> (Uuid, Uuid, Uuid) {
    let owner = owner(store, slug).await;
    let ada = account(store, &format!("ada-of-{slug}")).await;
    let ben = account(store, &format!("ben-of-{slug}")).await;
    for player in [ada, ben] {
        join(store, slug, owner, (player, Role::Developer)).await;
    }
    (owner, ada, ben)
}

pub async fn a_project_is_handed_on_to_a_developer_who_accepts(place: &dyn Place) {
    let store = place.open().await;
    let store = &*store;
    let owner = owner(store, "demo").await;
    let (ada, ben) = (account(store, "ada").await, account(store, "ben").await);
    let not_a_developer = OfferedHandover::NotADeveloper;
    assert_eq!(offer(store, "demo", owner, ada).await, not_a_developer);
    join(store, "demo", owner, (ada, Role::Viewer)).await;
    assert_eq!(offer(store, "demo", owner, ada).await, not_a_developer);
    join(store, "demo", owner, (ada, Role::Developer)).await;
    join(store, "demo", owner, (ben, Role::Viewer)).await;
    let not_owner = OfferedHandover::NotOwner;
    assert_eq!(offer(store, "demo", ben, ada).await, not_owner);
    assert_eq!(offer(store, "none", owner, ada).await, not_owner);
    let operator = || By::from(Actor::Operator);
    let suspended = store.suspend_player(ada, None, operator(), NOW).await;
    suspended.unwrap();
    let refused = offer(store, "demo", owner, ada).await;
    assert_eq!(refused, OfferedHandover::Suspended);
    store.unsuspend_player(ada, operator(), NOW).await.unwrap();
    assert_eq!(take(store, "demo", ada, 9).await, HandedOn::NotOffered);
    let secret = invite(store, "demo", owner, Role::Developer).await;
    offered(store, "demo", owner, ada).await;
    // Until it is accepted, the owner stays.
    assert_eq!(role(store, "demo", owner).await, Some(Role::Owner));
    assert_eq!(role(store, "demo", ada).await, Some(Role::Developer));
    let found = store.find_handover("demo", NOW).await.unwrap().unwrap();
    let times = (found.offered_at, found.expires_at);
    assert_eq!(times, (NOW, NOW + HANDOVER_MILLIS));
    assert_eq!(take(store, "demo", ben, 9).await, HandedOn::NotOffered);
    assert_eq!(take(store, "demo", ada, 0).await, HandedOn::TooManyProjects);
    let suspended = store.suspend_player(ada, None, operator(), NOW).await;
    suspended.unwrap();
    assert_eq!(take(store, "demo", ada, 9).await, HandedOn::Suspended);
    store.unsuspend_player(ada, operator(), NOW).await.unwrap();
    assert_eq!(take(store, "demo", ada, 1).await, HandedOn::Done);
    assert_eq!(take(store, "demo", ada, 9).await, HandedOn::NotOffered);
    let people = store.list_people("demo").await.unwrap();
    let people: Vec<_> = people.iter().map(|one| (one.player, one.role)).collect();
    let expected = [
        (ada, Role::Owner),
        (ben, Role::Viewer),
        (owner, Role::Developer),
    ];
    assert_eq!(people, expected);
    // The former owner's invitations are not the new one's.
    let gone = AcceptedInvitation::Gone;
    assert_eq!(accept(store, &secret, owner, NOW).await, gone);
    let told = events_of(store, owner).await;
    assert_eq!(told[0].kind, AuditKind::ProjectHandedOn);
    assert_eq!(told[0].actor, Actor::Member(ada));
    assert_eq!((told[0].player, told[0].other), (Some(owner), Some(ada)));
    assert_eq!(told[1].kind, AuditKind::HandoverOffered);
}

pub async fn an_offer_ends_when_it_is_withdrawn_declined_or_late(place: &dyn Place) {
    let store = place.open().await;
    let store = &*store;
    let (owner, ada, ben) = with_developers(store, "demo").await;
    let not_offered = EndedHandover::NotOffered;
    assert_eq!(end(store, Right::Owner(owner), NOW).await, not_offered);
    let ways = [
        (Right::Owner(owner), AuditKind::HandoverWithdrawn),
        (Right::Member(ada), AuditKind::HandoverDeclined),
        (Right::Administrator, AuditKind::HandoverWithdrawn),
    ];
    for (right, kind) in ways {
        offered(store, "demo", owner, ada).await;
        assert_eq!(end(store, Right::Member(ben), NOW).await, not_offered);
        assert_eq!(end(store, Right::Member(owner), NOW).await, not_offered);
        let refused = end(store, Right::Owner(ada), NOW).await;
        assert_eq!(refused, EndedHandover::NotOwner);
        assert_eq!(heir_of(store, "demo", NOW).await, Some(ada));
        match end(store, right, NOW).await {
            EndedHandover::Done(handover) => assert_eq!(handover.heir, ada),
            other => panic!("{other:?}"),
        }
        assert_eq!(end(store, right, NOW).await, not_offered);
        assert_eq!(take(store, "demo", ada, 9).await, HandedOn::NotOffered);
        let told = &events_of(store, ada).await[0];
        assert_eq!(told.kind, kind);
        assert_eq!((told.player, told.other), (Some(owner), Some(ada)));
    }
    // A later offer takes the place of an earlier one.
    offered(store, "demo", owner, ada).await;
    offered(store, "demo", owner, ben).await;
    assert_eq!(take(store, "demo", ada, 9).await, HandedOn::NotOffered);
    let late = NOW + HANDOVER_MILLIS;
    assert_eq!(heir_of(store, "demo", late - 1).await, Some(ben));
    assert_eq!(heir_of(store, "demo", late).await, None);
    assert_eq!(end(store, Right::Member(ben), late).await, not_offered);
    let taken = store.accept_handover("demo", ben, 9, by(), late).await;
    assert_eq!(taken.unwrap(), HandedOn::NotOffered);
    assert_eq!(take(store, "demo", ben, 9).await, HandedOn::Done);
}

pub async fn an_offer_ends_with_what_made_it_possible(place: &dyn Place) {
    let store = place.open().await;
    let store = &*store;
    let (owner, ada, ben) = with_developers(store, "demo").await;
    // A role that was taken away and given again brings no offer back.
    offered(store, "demo", owner, ada).await;
    for role in [Role::Viewer, Role::Developer] {
        let changed = store.change_role("demo", owner, (ada, role), by(), NOW);
        changed.await.unwrap();
        assert_eq!(heir_of(store, "demo", NOW).await, None);
    }
    offered(store, "demo", owner, ada).await;
    let removed = store.remove_member("demo", Right::Owner(owner), ada, by(), NOW);
    removed.await.unwrap();
    join(store, "demo", owner, (ada, Role::Developer)).await;
    assert_eq!(take(store, "demo", ada, 9).await, HandedOn::NotOffered);
    // The change of somebody else ends nothing.
    offered(store, "demo", owner, ada).await;
    let removed = store.remove_member("demo", Right::Member(ben), ben, by(), NOW);
    removed.await.unwrap();
    assert_eq!(heir_of(store, "demo", NOW).await, Some(ada));
    join(store, "demo", owner, (ben, Role::Developer)).await;
    let operator = || By::from(Actor::Operator);
    // No project leaves an owner's suspension by an offer of before.
    let suspended = store.suspend_player(owner, None, operator(), NOW).await;
    suspended.unwrap();
    assert_eq!(heir_of(store, "demo", NOW).await, None);
    assert_eq!(take(store, "demo", ada, 9).await, HandedOn::NotOffered);
    let again = store.unsuspend_player(owner, operator(), NOW).await;
    again.unwrap();
    assert_eq!(heir_of(store, "demo", NOW).await, Some(ada));
    for to in [ben, owner] {
        let given = store.transfer_project("demo", to, operator(), NOW).await;
        given.unwrap();
        assert_eq!(heir_of(store, "demo", NOW).await, None);
    }
    offered(store, "demo", owner, ada).await;
    let deleted = store.change_standing("demo", Change::Delete, operator(), NOW);
    deleted.await.unwrap();
    assert_eq!(take(store, "demo", ada, 9).await, HandedOn::NotOffered);
    let restored = store.change_standing("demo", Change::Restore, operator(), NOW);
    restored.await.unwrap();
    assert_eq!(heir_of(store, "demo", NOW).await, None);
    let deleted = store.change_standing("demo", Change::Delete, operator(), NOW);
    deleted.await.unwrap();
    let removed = store.remove_deleted(NOW, NOW).await.unwrap();
    assert_eq!(removed, Some(Removed::Whole("demo".into())));
    assert_eq!(heir_of(store, "demo", NOW).await, None);
}

pub async fn a_developer_who_leaves_while_accepting_owns_the_project_or_left(place: &dyn Place) {
    let handles = Handles::open(place).await;
    let store = handles.next();
    for round in 0..10 {
        let slug = format!("game-{round}");
        let owner = owner(&*store, &slug).await;
        let ada = account(&*store, &format!("ada-{round}")).await;
        join(&*store, &slug, owner, (ada, Role::Developer)).await;
        offered(&*store, &slug, owner, ada).await;
        let (taken, left) = at_once(
            &handles,
            async |store| take(&*store, &slug, ada, 9).await,
            async |store| {
                let right = Right::Member(ada);
                store.remove_member(&slug, right, ada, by(), NOW).await
            },
        )
        .await;
        let people = store.list_people(&slug).await.unwrap();
        let roles: Vec<_> = people.iter().map(|one| (one.player, one.role)).collect();
        match left.unwrap() {
            ChangedMember::Done(_) => {
                assert_eq!(taken, HandedOn::NotOffered);
                assert_eq!(roles, [(owner, Role::Owner)]);
            }
            other => {
                assert_eq!(other, ChangedMember::NotAMember);
                assert_eq!(taken, HandedOn::Done);
                assert_eq!(roles, [(ada, Role::Owner), (owner, Role::Developer)]);
            }
        }
    }
}

pub async fn who_lost_a_project_decides_nothing_about_it(place: &dyn Place) {
    let handles = Handles::open(place).await;
    let store = handles.next();
    for round in 0..10 {
        let slug = format!("game-{round}");
        let (owner, ada, ben) = with_developers(&*store, &slug).await;
        offered(&*store, &slug, owner, ada).await;
        let (taken, removed) = at_once(
            &handles,
            async |store| take(&*store, &slug, ada, 9).await,
            async |store| {
                let right = Right::Owner(owner);
                store.remove_member(&slug, right, ben, by(), NOW).await
            },
        )
        .await;
        assert_eq!(taken, HandedOn::Done);
        let is_there = role(&*store, &slug, ben).await.is_some();
        assert_eq!(is_there, removed.unwrap() == ChangedMember::NotOwner);
        // What the former owner still does has no effect, and no invitation of theirs is left.
        let refused = offer(&*store, &slug, owner, ada).await;
        assert_eq!(refused, OfferedHandover::NotOwner);
        let secret = invite(&*store, &slug, ada, Role::Viewer).await;
        let found = store.find_invitation(secret.hash(), NOW).await.unwrap();
        let id = found.unwrap().invitation.id;
        let right = Right::Owner(owner);
        let withdrawn = store.withdraw_invitation(&slug, right, id, by(), NOW);
        assert_eq!(withdrawn.await.unwrap(), WithdrawnInvitation::NotOwner);
        // An invitation of the owner and the owner's loss: nobody joins by it afterwards.
        offered(&*store, &slug, ada, owner).await;
        let (invitation, secret) = new(ada, Role::Viewer, 20);
        let (added, taken) = at_once(
            &handles,
            async |store| store.add_invitation(&slug, invitation, by()).await,
            async |store| take(&*store, &slug, owner, 9).await,
        )
        .await;
        added.unwrap();
        assert_eq!(taken, HandedOn::Done);
        let cleo = account(&*store, &format!("cleo-{round}")).await;
        let accepted = accept(&*store, &secret, cleo, NOW).await;
        assert_eq!(accepted, AcceptedInvitation::Gone);
    }
}

pub async fn of_many_projects_accepted_at_once_no_more_are_than_may(place: &dyn Place) {
    let handles = Handles::open(place).await;
    let store = handles.next();
    let ada = account(&*store, "ada").await;
    let mut taking = Vec::new();
    for number in 0..6 {
        let slug = format!("game-{number}");
        let owner = account(&*store, &format!("otter-{number}")).await;
        let added = store.add_project(project(&slug, Some(owner))).await;
        added.unwrap();
        join(&*store, &slug, owner, (ada, Role::Developer)).await;
        offered(&*store, &slug, owner, ada).await;
        let store = handles.next();
        taking.push(tokio::spawn(
            async move { take(&*store, &slug, ada, 3).await },
        ));
    }
    let mut taken = Vec::new();
    for taking in taking {
        taken.push(taking.await.unwrap());
    }
    let number = |wanted| taken.iter().filter(|one| **one == wanted).count();
    assert_eq!(number(HandedOn::Done), 3);
    assert_eq!(number(HandedOn::TooManyProjects), 3);
    let owned = store.list_projects_for(ada).await.unwrap();
    let owned = owned.iter().filter(|(_, role)| *role == Role::Owner);
    assert_eq!(owned.count(), 3);
}
