//! Data that several cases begin with.

use std::collections::BTreeMap;

use platform_domain::clock::Millis;
use platform_domain::entropy::{Entropy, SystemEntropy};
use platform_domain::identity::Identity;
use platform_domain::key::StoredKey;
use platform_domain::player::PlayerState;
use platform_domain::project::{Deployment, FileEntry, Made, Project};
use platform_domain::session::SessionHash;
use platform_domain::sign_in::SignIn;
use platform_protocol::names::Environment;
use platform_store::{NewGuest, Store, StoreError};
use uuid::Uuid;

pub(crate) const NOW: Millis = 1_800_000_000_000;

pub(crate) fn entropy() -> &'static dyn Entropy {
    &SystemEntropy
}

pub(crate) fn guest(names: &[&str]) -> NewGuest {
    NewGuest {
        id: entropy().uuid_v7(NOW),
        usernames: names.iter().map(|name| (*name).to_owned()).collect(),
        session: SessionHash(entropy().bytes()),
        address: "192.0.2.1".into(),
        cap: None,
        awaiting: None,
        now: NOW,
    }
}

pub(crate) fn key(letter: &str) -> StoredKey {
    StoredKey {
        kid: letter.repeat(43),
        private: vec![1, 2, 3],
        sealed: letter == "b",
        created_at: NOW,
        signs_from: NOW + 1,
        token_millis: 900_000,
    }
}

pub(crate) fn project(slug: &str, owner: Option<Uuid>) -> Project {
    Project {
        slug: slug.into(),
        owner,
        created_at: NOW,
    }
}

pub(crate) fn deployment(slug: &str, environment: Environment, paths: &[&str]) -> Deployment {
    let file = |path: &str| FileEntry {
        sha256: "0f".repeat(32),
        size: path.len() as u64,
    };
    let files: BTreeMap<_, _> = paths
        .iter()
        .map(|path| ((*path).into(), file(path)))
        .collect();
    let id = entropy().uuid_v7(NOW);
    Deployment {
        id,
        slug: slug.into(),
        environment,
        files,
        created_at: NOW,
        made: Made::default(),
        inspection: None,
    }
}

#[track_caller]
pub(crate) fn assert_conflict<T: std::fmt::Debug>(result: Result<T, StoreError>, at: (&str, &str)) {
    match result {
        Err(StoreError::Conflict { table, column }) => assert_eq!((table, column), at),
        other => panic!("a conflict on {at:?} was expected, not {other:?}"),
    }
}

/// A sign-in of `subject`, with a browser without a guest.
pub(crate) fn sign_in(subject: &str) -> SignIn {
    SignIn {
        identity: Identity::new("id", "https://id.example", subject),
        guest: None,
        held: None,
        session: SessionHash(entropy().bytes()),
        new_player: entropy().uuid_v7(NOW),
        usernames: vec![format!("made-{}", entropy().uuid_v4().as_fields().0)],
        wished_username: None,
        source: None,
        authenticated_at: NOW,
        now: NOW + 1,
    }
}

/// A sign-in of `subject`, with the browser of this guest.
pub(crate) fn by(new: &NewGuest, subject: &str) -> SignIn {
    SignIn {
        guest: Some(new.id),
        held: Some(new.session),
        ..sign_in(subject)
    }
}

pub(crate) async fn state(store: &dyn Store, player: Uuid) -> PlayerState {
    store.find_player(player).await.unwrap().unwrap().state
}

/// Whether the session exists and has not ended.
pub(crate) async fn lives(store: &dyn Store, session: &SessionHash) -> bool {
    let found = store.lookup_session(session).await.unwrap();
    found.is_some_and(|session| !session.has_ended(NOW + 2))
}
