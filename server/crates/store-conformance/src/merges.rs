//! Linking and merging under random histories of sign-ins, sign-outs and suspensions.

use std::collections::{BTreeMap, HashMap};

use platform_domain::audit::Actor;
use platform_domain::player::PlayerState;
use platform_domain::session::SessionHash;
use platform_domain::sign_in::{SignIn, SignInOutcome};
use platform_store::Store;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use tokio::runtime::Handle;
use uuid::Uuid;

use super::{Handles, NOW, Place, entropy, guest, lives, sign_in, state};

const BROWSERS: usize = 3;
const IDENTITIES: usize = 2;

/// An act of a browser or of the operator.
#[derive(Clone, Copy, Debug)]
enum Act {
    /// The browser visits a game; without a session it becomes a guest.
    Visit(usize),
    /// The browser goes to the provider, as its present player.
    Begin(usize),
    /// The browser comes back from there as this identity, with its cookie, or without it, as from
    /// a browser inside another app.
    Finish(usize, usize, bool),
    SignOut(usize),
    /// The operator suspends the browser's player, or lifts the suspension.
    Suspend(usize, bool),
    /// The player ends all sessions but the browser's own.
    EndOthers(usize),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        3 => (0..BROWSERS).prop_map(Act::Visit),
        3 => (0..BROWSERS).prop_map(Act::Begin),
        4 => (0..BROWSERS, 0..IDENTITIES, prop::bool::weighted(0.8))
            .prop_map(|(browser, who, cookie)| Act::Finish(browser, who, cookie)),
        1 => (0..BROWSERS).prop_map(Act::SignOut),
        1 => (0..BROWSERS, any::<bool>()).prop_map(|(browser, on)| Act::Suspend(browser, on)),
        1 => (0..BROWSERS).prop_map(Act::EndOthers),
    ];
    prop::collection::vec(act, 1..24)
}

/// The expected state of a player.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Known {
    account: bool,
    merged: Option<Uuid>,
    suspended: bool,
}

/// The expected state of everything.
#[derive(Default)]
struct Model {
    players: HashMap<Uuid, Known>,
    /// Sessions that have not ended.
    sessions: HashMap<[u8; 32], Uuid>,
    accounts: BTreeMap<usize, Uuid>,
    /// The cookie of each browser.
    cookies: HashMap<usize, SessionHash>,
    /// The guest that was stored with each browser's sign-in.
    begun: HashMap<usize, Option<Uuid>>,
    /// Every session that ever ended.
    dead: Vec<SessionHash>,
}

impl Model {
    fn held(&self, browser: usize) -> Option<Uuid> {
        let cookie = self.cookies.get(&browser)?;
        self.sessions.get(&cookie.0).copied()
    }

    fn add(&mut self, browser: usize, player: Uuid, session: SessionHash) {
        self.sessions.insert(session.0, player);
        self.cookies.insert(browser, session);
    }

    fn end(&mut self, which: impl Fn(&[u8; 32], &Uuid) -> bool) {
        let ended: Vec<_> = self
            .sessions
            .iter()
            .filter(|(hash, player)| which(hash, player))
            .map(|(hash, _)| *hash)
            .collect();
        for hash in ended {
            self.sessions.remove(&hash);
            self.dead.push(SessionHash(hash));
        }
    }

    /// The player whose progress counts in this sign-in.
    fn candidate(&self, request: &SignIn) -> Option<Uuid> {
        let counts = |id: &Uuid| {
            let living = self.sessions.values().any(|player| player == id);
            living || self.players[id].suspended
        };
        let held = request.held.map(|held| self.sessions[&held.0]);
        request.guest.filter(counts).or(held.filter(counts))
    }

    /// Applies a sign-in to the model and returns the expected result.
    fn finish(&mut self, browser: usize, who: usize, request: &SignIn) -> &'static str {
        let candidate = self.candidate(request);
        let guest = candidate.filter(|id| {
            let known = &self.players[id];
            !known.account && known.merged.is_none() && !known.suspended
        });
        let (name, player) = match self.accounts.get(&who).copied() {
            Some(account) if self.players[&account].suspended => return "suspended",
            Some(account) => match guest {
                Some(guest) => {
                    self.players.get_mut(&guest).unwrap().merged = Some(account);
                    ("merged", account)
                }
                None => ("returned", account),
            },
            None => match guest {
                Some(guest) => {
                    self.players.get_mut(&guest).unwrap().account = true;
                    ("linked", guest)
                }
                None => {
                    let known = Known {
                        account: true,
                        merged: None,
                        suspended: false,
                    };
                    self.players.insert(request.new_player, known);
                    ("created", request.new_player)
                }
            },
        };
        self.accounts.insert(who, player);
        self.end(|hash, owner| {
            Some(*owner) == guest || request.held.is_some_and(|held| held.0 == *hash)
        });
        self.add(browser, player, request.session);
        name
    }
}

fn name(outcome: &SignInOutcome) -> &'static str {
    match outcome {
        SignInOutcome::Linked(_) => "linked",
        SignInOutcome::Merged { .. } => "merged",
        SignInOutcome::Returned(_) => "returned",
        SignInOutcome::Created(_) => "created",
        SignInOutcome::Suspended { .. } => "suspended",
    }
}

/// Plays a history on the store and on the model, and compares after each act; if there are several
/// handles, through another one.
async fn play(handles: &Handles, acts: &[Act]) -> Result<(), TestCaseError> {
    let mut model = Model::default();
    let salt = entropy().uuid_v4();
    for act in acts {
        let store = handles.next();
        match *act {
            Act::Visit(browser) if model.held(browser).is_none() => {
                let new = guest(&[&format!("g{}", entropy().uuid_v4().as_fields().0)]);
                store.add_guest(new.clone()).await.unwrap();
                let known = Known {
                    account: false,
                    merged: None,
                    suspended: false,
                };
                model.players.insert(new.id, known);
                model.add(browser, new.id, new.session);
            }
            Act::Visit(_) => {}
            Act::Begin(browser) => {
                let guest = model.held(browser);
                model.begun.insert(browser, guest);
            }
            Act::Finish(browser, who, cookie) => {
                let Some(guest) = model.begun.remove(&browser) else {
                    continue;
                };
                let request = SignIn {
                    guest,
                    held: model
                        .cookies
                        .get(&browser)
                        .copied()
                        .filter(|held| cookie && model.sessions.contains_key(&held.0)),
                    ..sign_in(&format!("{salt}-{who}"))
                };
                let outcome = store.complete_sign_in(request.clone()).await.unwrap();
                prop_assert_eq!(name(&outcome), model.finish(browser, who, &request));
                if let Some(player) = outcome.player() {
                    prop_assert_eq!(player.id, model.accounts[&who]);
                }
            }
            Act::SignOut(browser) => {
                if let Some(cookie) = model.cookies.remove(&browser) {
                    let ended = store.end_session(&cookie, Actor::Own.into(), NOW + 1);
                    ended.await.unwrap();
                    model.end(|hash, _| *hash == cookie.0);
                }
            }
            Act::Suspend(browser, on) => {
                let Some(player) = model.held(browser) else {
                    continue;
                };
                if on {
                    store
                        .suspend_player(player, None, Actor::Operator.into(), NOW)
                        .await
                        .unwrap();
                } else {
                    store
                        .unsuspend_player(player, Actor::Operator.into(), NOW)
                        .await
                        .unwrap();
                }
                model.players.get_mut(&player).unwrap().suspended = on;
            }
            Act::EndOthers(browser) => {
                if let Some(player) = model.held(browser) {
                    let kept = model.cookies[&browser];
                    store
                        .end_other_sessions(player, Some(&kept), Actor::Operator.into(), NOW + 1)
                        .await
                        .unwrap();
                    model.end(|hash, owner| *owner == player && *hash != kept.0);
                }
            }
        }
        compare(&*handles.next(), &model).await?;
    }
    Ok(())
}

async fn compare(store: &dyn Store, model: &Model) -> Result<(), TestCaseError> {
    for (id, known) in &model.players {
        let expected = match known {
            Known {
                merged: Some(into), ..
            } => PlayerState::Merged { into: *into },
            Known {
                suspended: true, ..
            } => PlayerState::Suspended {
                reason: None,
                linked: known.account,
            },
            Known { account: true, .. } => PlayerState::Account,
            Known { .. } => PlayerState::Guest,
        };
        prop_assert_eq!(state(store, *id).await, expected);
    }
    for (hash, player) in &model.sessions {
        let session = store.lookup_session(&SessionHash(*hash)).await.unwrap();
        let session = session.ok_or_else(|| TestCaseError::fail("a session is gone"))?;
        prop_assert!(!session.has_ended(NOW + 2), "a session ended by itself");
        prop_assert_eq!(session.player.id, *player);
    }
    for hash in &model.dead {
        prop_assert!(!lives(store, hash).await, "a session came back to life");
    }
    Ok(())
}

pub async fn any_history_of_one_place_agrees_with_the_rules(place: &dyn Place) {
    let handles = Handles::open(place).await;
    let config = Config {
        cases: 96,
        failure_persistence: None,
        ..Config::default()
    };
    tokio::task::block_in_place(|| {
        TestRunner::new(config)
            .run(&acts(), |acts| {
                Handle::current().block_on(play(&handles, &acts))
            })
            .unwrap();
    });
}

pub async fn sign_ins_at_once_leave_every_identity_one_account(place: &dyn Place) {
    let handles = Handles::open(place).await;
    let store = handles.next();
    for round in 0..100_u32 {
        let guests: Vec<_> = (0..4)
            .map(|browser| guest(&[&format!("g{round}-{browser}")]))
            .collect();
        for new in &guests {
            store.add_guest(new.clone()).await.unwrap();
        }
        // Every browser signs in twice, as from two tabs, all at the same time.
        let tasks: Vec<_> = (0..8_usize)
            .map(|index| {
                let new = &guests[index % 4];
                let who = usize::from(entropy().bytes::<1>()[0] % 2);
                let turns = usize::from(entropy().bytes::<1>()[0] % 8);
                let request = SignIn {
                    guest: Some(new.id),
                    held: Some(new.session),
                    ..sign_in(&format!("{round}-{who}"))
                };
                let store = handles.next();
                tokio::spawn(async move {
                    for _ in 0..turns {
                        tokio::task::yield_now().await;
                    }
                    let outcome = store.complete_sign_in(request.clone()).await.unwrap();
                    (who, request, outcome)
                })
            })
            .collect();
        let mut accounts: HashMap<usize, Uuid> = HashMap::new();
        let mut begun: HashMap<usize, usize> = HashMap::new();
        for task in tasks {
            let (who, request, outcome) = task.await.unwrap();
            let player = outcome.player().unwrap().id;
            assert_eq!(*accounts.entry(who).or_insert(player), player);
            assert!(lives(&*store, &request.session).await);
            if matches!(
                outcome,
                SignInOutcome::Linked(_) | SignInOutcome::Created(_)
            ) {
                *begun.entry(who).or_default() += 1;
            }
        }
        assert!(begun.values().all(|times| *times == 1), "{begun:?}");
        for new in &guests {
            assert!(!lives(&*store, &new.session).await);
            match state(&*store, new.id).await {
                PlayerState::Account => assert!(accounts.values().any(|id| *id == new.id)),
                PlayerState::Merged { into } => {
                    assert!(accounts.values().any(|id| *id == into));
                    assert_eq!(state(&*store, into).await, PlayerState::Account);
                }
                other => panic!("a guest was left behind as {other:?}"),
            }
        }
    }
}
