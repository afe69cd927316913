//! The requirements on custom domains.

use std::slice;

use platform_domain::audit::{Actor, AuditKind, AuditQuery, By};
use platform_domain::clock::Millis;
use platform_domain::custom_domain::{
    AddedDomain, CustomDomain, DomainProof, DomainState, DomainToken, FAILING_MILLIS, HostedDomain,
    NewDomain, NotedProof, PENDING_MILLIS, PER_PROJECT, SetCanonical,
};
use platform_domain::domain_name::DomainName;
use platform_domain::node::Topic;
use platform_domain::takedown::Change;
use platform_protocol::names::Environment::{self, Dev, Prod};
use platform_store::{Removed, Store};
use uuid::Uuid;

use super::deployments::assert_missing;
use super::{Handles, NOW, Place, entropy, guest, project};

const DAY: Millis = 24 * 60 * 60 * 1_000;

fn own() -> By {
    Actor::Own.into()
}

fn name(text: &str) -> DomainName {
    DomainName::parse(text).unwrap()
}

fn token() -> DomainToken {
    DomainToken::generate(entropy())
}

fn new(slug: &str, environment: Environment, domain: &str) -> NewDomain {
    NewDomain {
        slug: slug.into(),
        environment,
        name: name(domain),
        token: token(),
        most: PER_PROJECT,
        now: NOW,
    }
}

async fn owned(store: &dyn Store, slug: &str) -> Uuid {
    let owner = store.add_guest(guest(&[&format!("of-{slug}")])).await;
    let owner = owner.unwrap().id;
    let added = store.add_project(project(slug, Some(owner))).await;
    added.unwrap();
    owner
}

async fn claim(store: &dyn Store, slug: &str, domain: &str) -> CustomDomain {
    match store.add_domain(new(slug, Prod, domain), own()).await {
        Ok(AddedDomain::Done(domain)) => domain,
        other => panic!("{other:?}"),
    }
}

fn lacking() -> DomainProof {
    DomainProof::Lacking("There is no record.".into())
}

async fn look(
    store: &dyn Store,
    domain: &CustomDomain,
    proof: &DomainProof,
    now: Millis,
) -> NotedProof {
    let noted = store.note_domain_proof(domain, proof, token(), own(), now);
    noted.await.unwrap()
}

async fn noted(
    store: &dyn Store,
    domain: &CustomDomain,
    proof: &DomainProof,
    now: Millis,
) -> CustomDomain {
    match look(store, domain, proof, now).await {
        NotedProof::Done(domain) => domain,
        other => panic!("{other:?}"),
    }
}

async fn activate(store: &dyn Store, domain: &CustomDomain) -> CustomDomain {
    let active = noted(store, domain, &DomainProof::Given, NOW + 1).await;
    assert_eq!(active.state, DomainState::Active);
    active
}

async fn hosted(store: &dyn Store, slug: Option<&str>) -> Vec<(String, bool)> {
    let mut hosted = store.list_hosted_domains(slug).await.unwrap();
    hosted.sort_by(|one, other| one.name.cmp(&other.name));
    let shown = |one: HostedDomain| (format!("{} {}", one.slug, one.name), one.leads);
    hosted.into_iter().map(shown).collect()
}

pub async fn a_claimed_domain_comes_back_as_it_was(place: &dyn Place) {
    let store = place.open().await;
    let owner = owned(&*store, "demo").await;
    owned(&*store, "other").await;
    let wanted = new("demo", Dev, "game.example");
    let expected = CustomDomain::claimed(&wanted);
    let added = store.add_domain(wanted, own()).await.unwrap();
    assert_eq!(added, AddedDomain::Done(expected.clone()));
    let second = claim(&*store, "demo", "a.example").await;
    let listed = store.list_domains("demo").await.unwrap();
    assert_eq!(listed, [second, expected.clone()]);
    assert_eq!(store.list_domains("other").await.unwrap(), []);
    assert_eq!(store.list_domains("none").await.unwrap(), []);
    assert_eq!(hosted(&*store, None).await, []);

    let again = store.add_domain(new("demo", Prod, "game.example"), own());
    assert_eq!(again.await.unwrap(), AddedDomain::Known(Dev));
    let missing = store.add_domain(new("none", Prod, "game.example"), own());
    assert_missing(missing.await, "projects");

    let looked = noted(&*store, &expected, &lacking(), NOW + 1).await;
    assert_eq!(looked.detail.as_deref(), Some("There is no record."));
    assert_eq!(store.list_domains("demo").await.unwrap()[1], looked);
    let events = store.list_audit_events(AuditQuery::of(owner, 10)).await;
    let events = events.unwrap();
    assert_eq!(events.len(), 2);
    assert_eq!(events[1].kind, AuditKind::DomainAdded);
    assert_eq!(events[1].detail.as_deref(), Some("dev game.example"));
}

pub async fn a_domain_goes_to_the_first_project_that_proves_it(place: &dyn Place) {
    let store = place.open().await;
    owned(&*store, "demo").await;
    owned(&*store, "other").await;
    let first = claim(&*store, "demo", "game.example").await;
    let second = claim(&*store, "other", "game.example").await;
    assert_ne!(first.token, second.token);
    activate(&*store, &second).await;
    let late = look(&*store, &first, &DomainProof::Given, NOW + 2).await;
    assert_eq!(late, NotedProof::Taken);
    assert_eq!(
        store.list_domains("demo").await.unwrap(),
        slice::from_ref(&first)
    );
    let service = [("other game.example".to_owned(), false)];
    assert_eq!(hosted(&*store, None).await, service);
    assert_eq!(hosted(&*store, Some("demo")).await, []);

    owned(&*store, "third").await;
    let taken = store.add_domain(new("third", Prod, "game.example"), own());
    assert_eq!(taken.await.unwrap(), AddedDomain::Taken);

    let place = ("other", Prod, &second.name);
    assert!(store.remove_domain(place, own(), NOW + 3).await.unwrap());
    activate(&*store, &first).await;
    let again = store.add_domain(new("other", Prod, "game.example"), own());
    assert_eq!(again.await.unwrap(), AddedDomain::Taken);
}

pub async fn what_was_found_of_an_earlier_claim_is_not_noted(place: &dyn Place) {
    let store = place.open().await;
    owned(&*store, "demo").await;
    let before = claim(&*store, "demo", "game.example").await;
    let place = ("demo", Prod, &before.name);
    for elsewhere in [("demo", Dev, &before.name), ("none", Prod, &before.name)] {
        let removed = store.remove_domain(elsewhere, own(), NOW).await;
        assert!(!removed.unwrap());
    }
    assert!(store.remove_domain(place, own(), NOW).await.unwrap());
    assert!(!store.remove_domain(place, own(), NOW).await.unwrap());
    let gone = look(&*store, &before, &DomainProof::Given, NOW).await;
    assert_eq!(gone, NotedProof::Gone);
    let now = claim(&*store, "demo", "game.example").await;
    assert_ne!(now.token, before.token);
    let gone = look(&*store, &before, &DomainProof::Given, NOW).await;
    assert_eq!(gone, NotedProof::Gone);
    assert_eq!(store.list_domains("demo").await.unwrap(), [now]);
}

pub async fn a_domain_that_fails_for_too_long_is_taken_off(place: &dyn Place) {
    let store = place.open().await;
    let owner = owned(&*store, "demo").await;
    let claimed = claim(&*store, "demo", "game.example").await;
    assert_eq!(store.list_due_domains(NOW + DAY, 10).await.unwrap(), []);
    let active = activate(&*store, &claimed).await;
    let at = active.look_at.unwrap();
    assert_eq!(store.list_due_domains(at - 1, 10).await.unwrap(), []);
    assert_eq!(
        store.list_due_domains(at, 10).await.unwrap(),
        slice::from_ref(&active)
    );

    let before = store.newest_change().await.unwrap();
    let failing = noted(&*store, &active, &lacking(), at).await;
    assert_eq!(failing.state, DomainState::Failing);
    let service = [("demo game.example".to_owned(), false)];
    assert_eq!(hosted(&*store, Some("demo")).await, service);
    let end = at + FAILING_MILLIS;
    let off = noted(&*store, &failing, &lacking(), end).await;
    assert_eq!(off.state, DomainState::Pending);
    assert_ne!(off.token, claimed.token);
    assert_eq!(hosted(&*store, None).await, []);
    assert_eq!(store.list_due_domains(end + DAY, 10).await.unwrap(), []);
    assert_eq!(
        store.list_domains("demo").await.unwrap(),
        slice::from_ref(&off)
    );
    // What was found by the token before is not what the new one proves.
    let old = look(&*store, &failing, &DomainProof::Given, end).await;
    assert_eq!(old, NotedProof::Gone);

    let changes = store.list_changes(before).await.unwrap();
    assert_eq!(changes.topics, [Topic::Project("demo".into())]);
    let events = store.list_audit_events(AuditQuery::of(owner, 10)).await;
    let kinds: Vec<AuditKind> = events.unwrap().iter().map(|event| event.kind).collect();
    let expected = [
        AuditKind::DomainTakenOff,
        AuditKind::DomainFailing,
        AuditKind::DomainActivated,
        AuditKind::DomainAdded,
    ];
    assert_eq!(kinds, expected);

    let lapsed = async |now: Millis| {
        let lapsed = store.remove_lapsed_domain(now - PENDING_MILLIS, now).await;
        lapsed.unwrap()
    };
    assert_eq!(lapsed(end + PENDING_MILLIS - 1).await, None);
    let slug = lapsed(end + PENDING_MILLIS).await;
    assert_eq!(slug.as_deref(), Some("demo"));
    assert_eq!(lapsed(end + PENDING_MILLIS).await, None);
    assert_eq!(store.list_domains("demo").await.unwrap(), []);
}

pub async fn an_environment_has_at_most_one_canonical_domain(place: &dyn Place) {
    let store = place.open().await;
    owned(&*store, "demo").await;
    let pending = claim(&*store, "demo", "a.example").await;
    let second = claim(&*store, "demo", "b.example").await;
    let set = async |name: &DomainName, environment, canonical| {
        let place = ("demo", environment, name);
        let set = store.set_canonical_domain(place, canonical, own(), NOW + 5);
        set.await.unwrap()
    };
    let refused = set(&pending.name, Prod, true).await;
    assert_eq!(refused, SetCanonical::NotActive);
    assert_eq!(set(&pending.name, Dev, true).await, SetCanonical::Missing);
    assert_eq!(
        set(&name("c.example"), Prod, true).await,
        SetCanonical::Missing
    );
    let (one, other) = (
        activate(&*store, &pending).await,
        activate(&*store, &second).await,
    );
    for (name, expected) in [
        (
            &one.name,
            [("demo a.example", true), ("demo b.example", false)],
        ),
        (
            &other.name,
            [("demo a.example", false), ("demo b.example", true)],
        ),
    ] {
        let before = store.newest_change().await.unwrap();
        assert!(matches!(set(name, Prod, true).await, SetCanonical::Done(one) if one.canonical));
        let expected = expected.map(|(name, leads)| (name.to_owned(), leads));
        assert_eq!(hosted(&*store, None).await, expected);
        let changed = store.newest_change().await.unwrap();
        assert!(changed > before);
        set(name, Prod, true).await;
        assert_eq!(store.newest_change().await.unwrap(), changed);
    }
    // Nobody is sent to a domain that fails, and it leads again when it is in order.
    let failing = noted(&*store, &other, &lacking(), NOW + DAY).await;
    assert!(failing.canonical);
    assert!(hosted(&*store, None).await.iter().all(|(_, leads)| !leads));
    noted(&*store, &failing, &DomainProof::Given, NOW + DAY + 1).await;
    assert!(hosted(&*store, None).await[1].1);
    assert!(matches!(
        set(&other.name, Prod, false).await,
        SetCanonical::Done(_)
    ));
    assert!(hosted(&*store, None).await.iter().all(|(_, leads)| !leads));
}

pub async fn a_project_has_few_domains_and_they_go_with_it(place: &dyn Place) {
    let store = place.open().await;
    owned(&*store, "demo").await;
    for number in 0..PER_PROJECT {
        claim(&*store, "demo", &format!("g{number}.example")).await;
    }
    let more = store.add_domain(new("demo", Dev, "more.example"), own());
    assert_eq!(more.await.unwrap(), AddedDomain::TooMany);
    let first = store.list_domains("demo").await.unwrap().remove(0);
    activate(&*store, &first).await;
    let delete = store.change_standing("demo", Change::Delete, own(), NOW + 9);
    delete.await.unwrap();
    assert_eq!(hosted(&*store, None).await.len(), 1);
    let removed = store.remove_deleted(NOW + 9, NOW + 10).await.unwrap();
    assert_eq!(removed, Some(Removed::Whole("demo".into())));
    assert_eq!(hosted(&*store, None).await, []);
    owned(&*store, "other").await;
    let anew = claim(&*store, "other", first.name.as_str()).await;
    activate(&*store, &anew).await;
}

pub async fn of_many_projects_that_prove_a_domain_at_once_one_gets_it(place: &dyn Place) {
    let stores = Handles::open(place).await;
    let mut claims = Vec::new();
    for number in 0..8 {
        let slug = format!("game-{number}");
        owned(&*stores.next(), &slug).await;
        claims.push(claim(&*stores.next(), &slug, "game.example").await);
    }
    let mut running = Vec::new();
    for domain in claims {
        let store = stores.next();
        running.push(tokio::spawn(async move {
            look(&*store, &domain, &DomainProof::Given, NOW + 1).await
        }));
    }
    let (mut got, mut taken) = (0, 0);
    for one in running {
        match one.await.unwrap() {
            NotedProof::Done(domain) => {
                assert_eq!(domain.state, DomainState::Active);
                got += 1;
            }
            NotedProof::Taken => taken += 1,
            NotedProof::Gone => panic!("nobody removed it"),
        }
    }
    assert_eq!((got, taken), (1, 7));
}
