//! Tests of the key ring with a store and a manual clock; its tokens are verified by another
//! library than the one that signs.

use std::collections::HashMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use platform_protocol::claims::{GameTokenClaims, PrincipalKind};
use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{KeyError, KeyRing, KeySecret, KeySecrets};
use crate::clock::{Clock, ManualClock, Millis};
use crate::domain::audit::Actor;
use crate::domain::key::KeyPhase;
use crate::entropy::SystemEntropy;
use crate::store::{SchemaPolicy, Store, connect};

const MINUTE: Millis = 60 * 1_000;
const DAY: Millis = 24 * 60 * MINUTE;
const TOKEN_SECONDS: u64 = 900;

struct World {
    _directory: tempfile::TempDir,
    store: Arc<dyn Store>,
    clock: Arc<ManualClock>,
}

/// The current secret and the previous one.
fn key_secrets(secrets: [Option<&str>; 2]) -> KeySecrets {
    let [present, former] =
        secrets.map(|secret| secret.map(|letter| KeySecret::new(&letter.repeat(32)).unwrap()));
    KeySecrets { present, former }
}

impl World {
    async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}/platform.db", directory.path().display());
        let store = connect(&url, SchemaPolicy::Upgrade).await.unwrap();
        let clock = Arc::new(ManualClock::new(1_800_000_000_000));
        Self {
            _directory: directory,
            store,
            clock,
        }
    }

    async fn try_ring(&self, secret: Option<&str>) -> Result<Arc<KeyRing>, KeyError> {
        self.ring_with([secret, None], TOKEN_SECONDS).await
    }

    /// Opens a ring with these secrets, the current one and the previous one.
    async fn ring_with(
        &self,
        secrets: [Option<&str>; 2],
        token_seconds: u64,
    ) -> Result<Arc<KeyRing>, KeyError> {
        let (store, clock) = (Arc::clone(&self.store), Arc::clone(&self.clock));
        KeyRing::open(
            store,
            clock,
            Arc::new(SystemEntropy),
            token_seconds,
            key_secrets(secrets),
        )
        .await
    }

    /// Returns a ring with these secrets that has not read the keys.
    fn unread(&self, secrets: [Option<&str>; 2]) -> KeyRing {
        let (store, clock) = (Arc::clone(&self.store), Arc::clone(&self.clock));
        let entropy = Arc::new(SystemEntropy);
        KeyRing::empty(store, clock, entropy, TOKEN_SECONDS, key_secrets(secrets))
    }

    async fn ring(&self) -> Arc<KeyRing> {
        self.try_ring(None).await.unwrap()
    }

    fn claims(&self) -> GameTokenClaims {
        let iat = u64::try_from(self.clock.now()).unwrap() / 1_000;
        GameTokenClaims {
            sub: "01890a5d-ac96-774b-bcce-b302099a8057".into(),
            username: "swift-otter-4821".into(),
            aud: "game:demo".into(),
            iss: "http://auth.platform.localhost:8787".into(),
            is_anon: true,
            principal_kind: PrincipalKind::Human,
            exp: iat + TOKEN_SECONDS,
            iat,
            jti: "jti".into(),
        }
    }
}

fn published(key_set: &str) -> HashMap<String, Value> {
    let set: Value = serde_json::from_str(key_set).unwrap();
    let keys = set["keys"].as_array().unwrap().iter();
    keys.map(|key| (key["kid"].as_str().unwrap().to_owned(), key.clone()))
        .collect()
}

fn part(token: &str, index: usize) -> Value {
    let bytes = URL_SAFE_NO_PAD
        .decode(token.split('.').nth(index).unwrap())
        .unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

fn kid(token: &str) -> String {
    part(token, 0)["kid"].as_str().unwrap().to_owned()
}

fn verifies(token: &str, jwk: &Value) -> bool {
    let coordinate = |name: &str| URL_SAFE_NO_PAD.decode(jwk[name].as_str().unwrap()).unwrap();
    let point = [vec![4], coordinate("x"), coordinate("y")].concat();
    let (message, signature) = token.rsplit_once('.').unwrap();
    let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
    UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point)
        .verify(message.as_bytes(), &signature)
        .is_ok()
}

#[tokio::test]
async fn a_token_carries_the_claims_and_verifies_with_another_library() {
    let world = World::new().await;
    let ring = world.ring().await;
    let token = ring.sign(&world.claims()).unwrap();
    assert_eq!(
        part(&token, 1),
        serde_json::to_value(world.claims()).unwrap()
    );
    let keys = published(&ring.key_set());
    assert_eq!(
        part(&token, 0),
        serde_json::json!({"alg": "ES256", "typ": "JWT", "kid": kid(&token)})
    );
    assert!(verifies(&token, &keys[&kid(&token)]));
    let (message, signature) = token.rsplit_once('.').unwrap();
    let changed = format!("{}.{signature}", message.replace("eyJ", "eyK"));
    assert!(!verifies(&changed, &keys[&kid(&token)]));
}

#[tokio::test]
async fn the_key_set_has_public_members_and_the_standards_thumbprint_alone() {
    let world = World::new().await;
    let ring = world.ring().await;
    let keys = published(&ring.key_set());
    let (kid, key) = keys.iter().next().unwrap();
    let mut members: Vec<_> = key
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    members.sort_unstable();
    assert_eq!(members, ["alg", "crv", "kid", "kty", "use", "x", "y"]);
    assert_eq!((&key["kty"], &key["crv"]), (&"EC".into(), &"P-256".into()));
    assert_eq!((&key["use"], &key["alg"]), (&"sig".into(), &"ES256".into()));
    // RFC 7638 §3.1: the required members, in lexicographic order.
    let required = format!(
        r#"{{"crv":"P-256","kty":"EC","x":{},"y":{}}}"#,
        key["x"], key["y"]
    );
    assert_eq!(*kid, URL_SAFE_NO_PAD.encode(Sha256::digest(required)));
}

#[tokio::test]
async fn the_key_set_stays_the_same_string_while_the_keys_stay() {
    let world = World::new().await;
    let ring = world.ring().await;
    let before = ring.key_set();
    world.clock.advance(MINUTE);
    ring.refresh().await.unwrap();
    assert!(Arc::ptr_eq(&before, &ring.key_set()));
    ring.rotate(Actor::Operator).await.unwrap();
    assert!(!Arc::ptr_eq(&before, &ring.key_set()));
}

#[tokio::test]
async fn a_second_node_signs_with_the_same_key() {
    let world = World::new().await;
    let (first, second) = (world.ring().await, world.ring().await);
    let token = second.sign(&world.claims()).unwrap();
    assert!(verifies(&token, &published(&first.key_set())[&kid(&token)]));
    assert_eq!(first.key_set(), second.key_set());
}

/// The state after one minute of the simulated day.
struct Minute {
    token: String,
    key_set: Arc<str>,
}

/// Simulates a day: every minute the ring is refreshed, a token is signed and the key set is
/// recorded. Another process rotates at `rotations`.
async fn live_a_day(world: &World, rotations: &[usize]) -> Vec<Minute> {
    let ring = world.ring().await;
    let mut day = Vec::new();
    for minute in 0..24 * 60 {
        ring.refresh().await.unwrap();
        // The operator's process runs after the refresh, so that the server learns of the key as
        // late as possible.
        if rotations.contains(&minute) {
            world.ring().await.rotate(Actor::Operator).await.unwrap();
        }
        let token = ring.sign(&world.claims()).unwrap();
        day.push(Minute {
            token,
            key_set: ring.key_set(),
        });
        world.clock.advance(MINUTE);
    }
    ring.refresh().await.unwrap();
    day
}

fn assert_every_token_verifies(day: &[Minute]) {
    let sets: Vec<_> = day
        .iter()
        .map(|minute| published(&minute.key_set))
        .collect();
    for (signed, minute) in day.iter().enumerate() {
        let kid = kid(&minute.token);
        // A verifier's key set is up to ten minutes older than the token, and may be fetched at any
        // later minute of the token's lifetime.
        let life = usize::try_from(TOKEN_SECONDS / 60).unwrap();
        let window = signed.saturating_sub(10)..=(signed + life).min(day.len() - 1);
        let mut known: Option<&Value> = None;
        for fetched in window {
            let key = sets[fetched].get(&kid);
            let key = key.unwrap_or_else(|| {
                panic!("a token of minute {signed} has no key in the set of minute {fetched}")
            });
            if known != Some(key) {
                assert!(
                    verifies(&minute.token, key),
                    "minutes {signed} and {fetched}"
                );
                known = Some(key);
            }
        }
    }
}

fn signers(day: &[Minute]) -> usize {
    let mut kids: Vec<_> = day.iter().map(|minute| kid(&minute.token)).collect();
    kids.dedup();
    kids.len()
}

#[tokio::test]
async fn no_token_of_a_day_with_two_rotations_is_ever_rejected() {
    let world = World::new().await;
    let day = live_a_day(&world, &[100, 700]).await;
    assert_every_token_verifies(&day);
    assert_eq!(signers(&day), 3);
    // A day later, the old private keys have been removed from the store.
    world.clock.advance(DAY);
    world.ring().await.refresh().await.unwrap();
    assert_eq!(world.store.list_keys().await.unwrap().len(), 1);
}

#[tokio::test]
async fn two_rotations_within_a_minute_of_each_other_reject_no_token() {
    let world = World::new().await;
    let day = live_a_day(&world, &[100, 101]).await;
    assert_every_token_verifies(&day);
    assert_eq!(signers(&day), 3);
}

#[tokio::test]
async fn the_rotated_key_signs_after_twenty_one_minutes_and_the_old_one_lingers() {
    let world = World::new().await;
    let ring = world.ring().await;
    let old = ring.list()[0].kid.clone();
    let new = ring.rotate(Actor::Operator).await.unwrap();
    let phases = || ring.list().iter().map(|key| key.phase).collect::<Vec<_>>();
    assert_eq!(phases(), [KeyPhase::Signing, KeyPhase::Published]);
    world.clock.advance(21 * MINUTE - 1);
    assert_eq!(kid(&ring.sign(&world.claims()).unwrap()), old);
    world.clock.advance(1);
    assert_eq!(kid(&ring.sign(&world.claims()).unwrap()), new);
    assert_eq!(phases(), [KeyPhase::Retiring, KeyPhase::Signing]);
    // Half an hour for the longest-lived token, one of a test player, and ten minutes.
    world.clock.advance(40 * MINUTE - 1);
    ring.refresh().await.unwrap();
    assert!(published(&ring.key_set()).contains_key(&old));
    world.clock.advance(1);
    ring.refresh().await.unwrap();
    assert_eq!(phases(), [KeyPhase::Signing]);
    assert!(!published(&ring.key_set()).contains_key(&old));
    assert_eq!(world.store.list_keys().await.unwrap().len(), 1);
}

#[tokio::test]
async fn an_old_key_is_believed_as_long_as_the_longest_token_that_it_signed() {
    let world = World::new().await;
    let long = world.ring_with([None, None], 7_200).await.unwrap();
    let old = long.list()[0].kid.clone();
    // The setting is shorter after a restart, but earlier tokens are still valid.
    let ring = world.ring().await;
    ring.rotate(Actor::Operator).await.unwrap();
    world.clock.advance((21 + 120 + 10) * MINUTE - 1);
    ring.refresh().await.unwrap();
    assert!(published(&ring.key_set()).contains_key(&old));
    world.clock.advance(1);
    ring.refresh().await.unwrap();
    assert!(!published(&ring.key_set()).contains_key(&old));
}

#[tokio::test]
async fn a_revoked_key_is_gone_at_once_and_a_new_one_signs() {
    let world = World::new().await;
    let (ring, beside) = (world.ring().await, world.ring().await);
    let old = ring.list()[0].kid.clone();
    let new = ring.revoke(&old, Actor::Operator).await.unwrap().unwrap();
    let check = |ring: &KeyRing| {
        let token = ring.sign(&world.claims()).unwrap();
        assert_eq!(kid(&token), new);
        let keys = published(&ring.key_set());
        assert_eq!(keys.keys().collect::<Vec<_>>(), [&new]);
        assert!(verifies(&token, &keys[&new]));
    };
    check(&ring);
    beside.refresh().await.unwrap();
    check(&beside);
    let again = ring.revoke(&old, Actor::Operator).await.unwrap_err();
    assert!(matches!(again, KeyError::Unknown { .. }), "{again:?}");
}

#[tokio::test]
async fn revoking_a_key_that_does_not_sign_leaves_the_one_that_does() {
    let world = World::new().await;
    let ring = world.ring().await;
    let signing = ring.list()[0].kid.clone();
    let waiting = ring.rotate(Actor::Operator).await.unwrap();
    assert_eq!(ring.revoke(&waiting, Actor::Operator).await.unwrap(), None);
    assert_eq!(ring.list().len(), 1);
    let next = ring.rotate(Actor::Operator).await.unwrap();
    world.clock.advance(22 * MINUTE);
    // It only verifies now; it must not sign again when it is alone with the other's successor.
    let successor = ring.revoke(&next, Actor::Operator).await.unwrap().unwrap();
    assert_eq!(kid(&ring.sign(&world.claims()).unwrap()), successor);
    assert_eq!(ring.revoke(&signing, Actor::Operator).await.unwrap(), None);
    assert_eq!(ring.list().len(), 1);
}

#[tokio::test]
async fn two_operators_who_revoke_the_signing_key_at_once_leave_one_that_signs() {
    let world = World::new().await;
    let (first, second) = (world.ring().await, world.ring().await);
    let old = first.list()[0].kid.clone();
    let (one, other) = futures_util::join!(
        first.revoke(&old, Actor::Operator),
        second.revoke(&old, Actor::Operator)
    );
    assert_eq!(usize::from(one.is_ok()) + usize::from(other.is_ok()), 1);
    let keys = world.store.list_keys().await.unwrap();
    assert!(keys.len() == 1 && keys[0].kid != old, "{keys:?}");
}

#[tokio::test]
async fn keys_are_sealed_anew_beside_a_ring_that_has_both_secrets() {
    let world = World::new().await;
    let unsealed = world.ring().await;
    assert!(matches!(unsealed.reseal().await, Err(KeyError::NoSecret)));
    let ring = world.try_ring(Some("a")).await.unwrap();
    let token = ring.sign(&world.claims()).unwrap();
    assert_eq!(ring.reseal().await.unwrap(), 1);
    assert_eq!(ring.reseal().await.unwrap(), 0);
    let key_set = ring.key_set();
    assert!(ring.list()[0].sealed);
    // A ring that was opened before already has the key.
    unsealed.refresh().await.unwrap();
    assert_eq!(unsealed.key_set(), key_set);
    assert!(world.try_ring(None).await.is_err());

    let both = world.ring_with([Some("b"), Some("a")], TOKEN_SECONDS);
    let both = both.await.unwrap();
    assert_eq!(both.reseal().await.unwrap(), 1);
    assert!(world.try_ring(Some("a")).await.is_err());
    let moved = world.try_ring(Some("b")).await.unwrap();
    assert!(verifies(&token, &published(&moved.key_set())[&kid(&token)]));
}

#[tokio::test]
async fn two_nodes_that_find_the_key_overdue_add_one_key() {
    let world = World::new().await;
    let (first, second) = (world.ring().await, world.ring().await);
    world.clock.advance(90 * DAY - 1);
    first.refresh().await.unwrap();
    assert_eq!(first.list().len(), 1);
    world.clock.advance(1);
    let (one, other) = futures_util::join!(first.refresh(), second.refresh());
    one.unwrap();
    other.unwrap();
    assert_eq!(world.store.list_keys().await.unwrap().len(), 2);
    assert_eq!(first.key_set(), second.key_set());
    assert_eq!(first.list()[1].phase, KeyPhase::Published);
}

#[tokio::test]
async fn many_nodes_that_start_on_an_empty_store_make_one_key() {
    let world = World::new().await;
    let rings = futures_util::future::join_all((0..6).map(|_| world.ring())).await;
    assert_eq!(world.store.list_keys().await.unwrap().len(), 1);
    assert!(
        rings
            .iter()
            .all(|ring| ring.key_set() == rings[0].key_set())
    );
}

#[tokio::test]
async fn two_operators_who_rotate_at_once_both_get_a_key() {
    let world = World::new().await;
    let (first, second) = (world.ring().await, world.ring().await);
    let (one, other) = futures_util::join!(
        first.rotate(Actor::Operator),
        second.rotate(Actor::Operator)
    );
    assert_ne!(one.unwrap(), other.unwrap());
    assert_eq!(world.store.list_keys().await.unwrap().len(), 3);
}

#[tokio::test]
async fn a_clock_set_back_stops_neither_signing_nor_verifying() {
    let world = World::new().await;
    let ring = world.ring().await;
    world.clock.advance(-DAY);
    ring.refresh().await.unwrap();
    let token = ring.sign(&world.claims()).unwrap();
    assert!(verifies(&token, &published(&ring.key_set())[&kid(&token)]));
}

#[tokio::test]
async fn sealed_keys_open_with_their_secret_alone() {
    let world = World::new().await;
    let ring = world.try_ring(Some("a")).await.unwrap();
    let token = ring.sign(&world.claims()).unwrap();
    assert!(ring.list()[0].sealed);
    let again = world.try_ring(Some("a")).await.unwrap();
    assert!(verifies(&token, &published(&again.key_set())[&kid(&token)]));
    let wrong = world.try_ring(Some("b")).await.unwrap_err();
    assert!(matches!(wrong, KeyError::WrongSecret { .. }), "{wrong:?}");
    let missing = world.try_ring(None).await.unwrap_err();
    assert!(
        matches!(missing, KeyError::SecretMissing { .. }),
        "{missing:?}"
    );
}

#[tokio::test]
async fn keys_whose_secret_is_lost_are_revoked_and_a_new_one_signs() {
    let world = World::new().await;
    let lost = world.try_ring(Some("a")).await.unwrap();
    lost.rotate(Actor::Operator).await.unwrap();
    let old: Vec<String> = lost.list().into_iter().map(|key| key.kid).collect();
    assert!(world.try_ring(Some("b")).await.is_err());
    let ring = world.unread([Some("b"), None]);
    let revoked = ring.revoke_unreadable(Actor::Operator).await.unwrap();
    assert_eq!(revoked, old);
    // Other nodes start with the new secret.
    let ring = world.try_ring(Some("b")).await.unwrap();
    let keys = ring.list();
    assert!(keys.len() == 1 && keys[0].sealed, "{keys:?}");
    let token = ring.sign(&world.claims()).unwrap();
    assert!(verifies(&token, &published(&ring.key_set())[&kid(&token)]));
    let none = ring.revoke_unreadable(Actor::Operator).await.unwrap();
    assert_eq!(none, Vec::<String>::new());
    assert_eq!(ring.list(), keys);
}

#[tokio::test]
async fn with_the_former_secret_nothing_is_unreadable() {
    let world = World::new().await;
    world.try_ring(Some("a")).await.unwrap();
    let both = world.unread([Some("b"), Some("a")]);
    let revoked = both.revoke_unreadable(Actor::Operator).await.unwrap();
    assert_eq!(revoked, Vec::<String>::new());
    world.try_ring(Some("a")).await.unwrap();
}

#[tokio::test]
async fn a_secret_that_is_given_later_seals_the_next_key() {
    let world = World::new().await;
    world.ring().await;
    let ring = world.try_ring(Some("a")).await.unwrap();
    ring.rotate(Actor::Operator).await.unwrap();
    assert_eq!(
        ring.list().iter().map(|key| key.sealed).collect::<Vec<_>>(),
        [false, true]
    );
}

#[tokio::test]
async fn a_private_key_under_anothers_kid_is_refused() {
    let world = World::new().await;
    world.ring().await;
    let stored = world.store.list_keys().await.unwrap().remove(0);
    let mut exchanged = stored.clone();
    exchanged.kid = "x".repeat(43);
    world
        .store
        .add_key(exchanged, Some(&stored.kid), Actor::Own.into())
        .await
        .unwrap();
    let error = world.try_ring(None).await.unwrap_err();
    assert!(matches!(error, KeyError::Malformed { .. }), "{error:?}");
}

#[tokio::test]
async fn no_private_part_shows_in_debug_output() {
    let world = World::new().await;
    let ring = world.try_ring(Some("a")).await.unwrap();
    let open = World::new().await;
    let stored = open.ring().await;
    let private = open.store.list_keys().await.unwrap().remove(0).private;
    let shown = format!("{ring:?} {stored:?}");
    assert!(!shown.contains(&format!("{private:?}")));
    assert!(shown.contains("KeySecret(hidden)") && !shown.contains("aaaaaaaa"));
}
