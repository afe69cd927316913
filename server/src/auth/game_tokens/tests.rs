//! Tests of the platform's own tokens, with a manual clock and a key ring.

use platform_protocol::claims::PrincipalKind;

use super::*;
use crate::auth::keys::KeySecrets;
use crate::clock::ManualClock;
use crate::domain::audit::Actor;
use crate::entropy::SystemEntropy;
use crate::store::{SchemaPolicy, connect};

const ISSUER: &str = "http://auth.platform.localhost:8787";
const SUB: &str = "01890a5d-ac96-774b-bcce-b302099a8057";
const MINUTE: i64 = 60 * 1_000;

struct World {
    _directory: tempfile::TempDir,
    clock: Arc<ManualClock>,
    ring: Arc<KeyRing>,
    tokens: GameTokens,
}

impl World {
    async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}/platform.db", directory.path().display());
        let store = connect(&url, SchemaPolicy::Upgrade).await.unwrap();
        let clock = Arc::new(ManualClock::new(1_800_000_000_000));
        let ring = KeyRing::open(
            store,
            clock.clone(),
            Arc::new(SystemEntropy),
            900,
            KeySecrets::default(),
        )
        .await
        .unwrap();
        let tokens = GameTokens::new(Arc::clone(&ring), clock.clone(), ISSUER.into(), 100);
        Self {
            _directory: directory,
            clock,
            ring,
            tokens,
        }
    }

    fn claims(&self) -> GameTokenClaims {
        let iat = u64::try_from(self.clock.now()).unwrap() / 1_000;
        GameTokenClaims {
            sub: SUB.into(),
            username: "swift-otter-4821".into(),
            aud: "game:demo".into(),
            iss: ISSUER.into(),
            is_anon: true,
            principal_kind: PrincipalKind::Human,
            exp: iat + 900,
            iat,
            jti: "jti".into(),
        }
    }

    fn token(&self) -> String {
        self.ring.sign(&self.claims()).unwrap()
    }

    fn verify(&self, token: &str) -> Result<(), VerifyError> {
        let verified = self.tokens.verify(token, "game:demo")?;
        assert_eq!(verified.player.to_string(), SUB);
        Ok(())
    }

    fn remembered(&self) -> u64 {
        self.tokens.verified.run_pending_tasks();
        self.tokens.verified.entry_count()
    }
}

#[tokio::test]
async fn a_token_is_verified_once_and_remembered_until_its_end() {
    let world = World::new().await;
    let token = world.token();
    for _ in 0..3 {
        assert_eq!(world.verify(&token), Ok(()));
        assert_eq!(world.remembered(), 1);
    }
    // 900 s of lifetime and 60 s of leeway, cached or not.
    world.clock.advance(16 * MINUTE - 1_000);
    assert_eq!(world.verify(&token), Ok(()));
    world.clock.advance(1_000);
    for _ in 0..2 {
        assert_eq!(world.verify(&token), Err(VerifyError::Expired));
    }
    assert_eq!(world.remembered(), 0);
}

#[tokio::test]
async fn a_remembered_token_is_good_for_its_own_audience_alone() {
    let world = World::new().await;
    let token = world.token();
    for _ in 0..2 {
        let other = world.tokens.verify(&token, "game:dev-demo").unwrap_err();
        assert_eq!(other, VerifyError::Audience);
        assert_eq!(world.verify(&token), Ok(()));
    }
}

#[tokio::test]
async fn what_was_refused_is_not_remembered() {
    let world = World::new().await;
    let token = world.token();
    let (message, _) = token.rsplit_once('.').unwrap();
    let mut claims = world.claims();
    claims.username = "another".into();
    let other = world.ring.sign(&claims).unwrap();
    let (_, signature) = other.rsplit_once('.').unwrap();
    let mixed = world.verify(&format!("{message}.{signature}"));
    assert_eq!(mixed, Err(VerifyError::Signature));
    assert!(world.verify("").is_err());
    let mut claims = world.claims();
    claims.iss = "http://auth.evil.example".into();
    let foreign = world.ring.sign(&claims).unwrap();
    assert_eq!(world.verify(&foreign), Err(VerifyError::Issuer));
    let mut claims = world.claims();
    claims.sub = "no-uuid".into();
    let odd = world.ring.sign(&claims).unwrap();
    assert_eq!(world.verify(&odd), Err(VerifyError::Claim("sub")));
    assert_eq!(world.remembered(), 0);
}

#[tokio::test]
async fn a_key_of_another_platform_is_unknown() {
    let (world, other) = (World::new().await, World::new().await);
    assert_eq!(world.verify(&other.token()), Err(VerifyError::UnknownKey));
}

#[tokio::test]
async fn tokens_of_a_rotated_key_are_verified() {
    let world = World::new().await;
    assert_eq!(world.verify(&world.token()), Ok(()));
    world.ring.rotate(Actor::Operator).await.unwrap();
    world.clock.advance(21 * MINUTE);
    world.ring.refresh().await.unwrap();
    assert_eq!(world.verify(&world.token()), Ok(()));
}

#[tokio::test]
async fn a_remembered_token_is_forgotten_with_the_key_that_signed_it() {
    let world = World::new().await;
    let token = world.token();
    assert_eq!(world.verify(&token), Ok(()));
    let kid = world.ring.list()[0].kid.clone();
    world.ring.revoke(&kid, Actor::Operator).await.unwrap();
    assert_eq!(world.verify(&token), Err(VerifyError::UnknownKey));
    assert_eq!(world.verify(&world.token()), Ok(()));
}

#[tokio::test]
async fn an_own_token_is_remembered_when_it_is_signed_and_verified_after_a_change_of_keys() {
    let world = World::new().await;
    let player = SUB.parse().unwrap();
    let token = world
        .tokens
        .sign(player, "game:demo".into(), world.claims())
        .unwrap();
    assert_eq!(world.remembered(), 1);
    let mut headers = HeaderMap::new();
    headers.insert("authorization", format!("Bearer {token}").parse().unwrap());
    assert!(!world.tokens.are_new(&headers));
    assert_eq!(world.verify(&token), Ok(()));
    let other = world.tokens.verify(&token, "game:other").unwrap_err();
    assert_eq!(other, VerifyError::Audience);

    // What is remembered is what the signature says, also with other keys.
    let verified = world.tokens.verify(&token, "game:demo").unwrap();
    let kid = world.ring.list()[0].kid.clone();
    world.ring.rotate(Actor::Operator).await.unwrap();
    let again = world.tokens.verify(&token, "game:demo").unwrap();
    assert!(!Arc::ptr_eq(&verified, &again));
    assert_eq!(again, verified);
    world.clock.advance(21 * MINUTE);
    world.ring.refresh().await.unwrap();
    world.ring.revoke(&kid, Actor::Operator).await.unwrap();
    let gone = world.tokens.verify(&token, "game:demo").unwrap_err();
    assert_eq!(gone, VerifyError::UnknownKey);
}
