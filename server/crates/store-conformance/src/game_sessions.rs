//! The requirements on sessions of games that are apart.

use platform_domain::audit::Actor;
use platform_domain::clock::Millis;
use platform_domain::game_session::{
    BLANK_MILLIS, GameOfSession, GameSession, GameSessionHash, HAND_OFF_MILLIS, HandOff,
    HandOffHash, PER_PARENT, Purpose, Redemption,
};
use platform_domain::player::UNCONFIRMED_MILLIS;
use platform_domain::session::{KEPT_MILLIS, SessionHash, SessionStatus};
use platform_domain::sign_in::SignIn;
use platform_store::{NewGuest, Store};
use uuid::Uuid;

use super::{NOW, Place, assert_conflict, by, entropy, guest, sign_in};

const GAME: &str = "game:one";
const ORIGIN: &str = "https://one.games.example";

/// A code for this player's session.
fn hand_off(player: Uuid, parent: SessionHash) -> HandOff {
    HandOff {
        code: HandOffHash(entropy().bytes()),
        purpose: Purpose::Play,
        player,
        parent,
        game: GAME.to_owned(),
        origin: ORIGIN.to_owned(),
        state: entropy().bytes(),
        made_at: NOW,
    }
}

/// What redeems a code.
fn redemption(hand_off: &HandOff, now: Millis) -> Redemption {
    Redemption {
        code: hand_off.code,
        game: hand_off.game.clone(),
        origin: hand_off.origin.clone(),
        state: hand_off.state,
        session: GameSessionHash(entropy().bytes()),
        now,
    }
}

/// A session of the game that comes from this one.
async fn child(store: &dyn Store, player: Uuid, parent: SessionHash) -> GameSessionHash {
    let code = hand_off(player, parent);
    store.add_hand_off(code.clone()).await.unwrap();
    let redemption = redemption(&code, NOW + 1);
    assert!(store.redeem_hand_off(redemption.clone()).await.unwrap());
    redemption.session
}

async fn found(store: &dyn Store, hash: &GameSessionHash) -> GameSession {
    store.lookup_game_session(hash).await.unwrap().unwrap()
}

async fn status(store: &dyn Store, hash: &GameSessionHash) -> Option<SessionStatus> {
    let session = found(store, hash).await.session;
    session.map(|session| session.status(NOW + 9))
}

async fn add(store: &dyn Store, name: &str) -> NewGuest {
    let new = guest(&[name]);
    store.add_guest(new.clone()).await.unwrap();
    new
}

pub async fn a_code_is_redeemed_once_by_its_game_and_its_browser(place: &dyn Place) {
    let store = place.open().await;
    let new = add(&*store, "otter").await;
    let code = hand_off(new.id, new.session);
    store.add_hand_off(code.clone()).await.unwrap();
    assert_conflict(
        store.add_hand_off(code.clone()).await,
        ("hand_offs", "code"),
    );
    let right = redemption(&code, NOW + HAND_OFF_MILLIS - 1);
    for wrong in [
        Redemption {
            code: HandOffHash([0; 32]),
            ..right.clone()
        },
        Redemption {
            game: "game:dev-one".to_owned(),
            ..right.clone()
        },
        Redemption {
            origin: "https://other.games.example".to_owned(),
            ..right.clone()
        },
        Redemption {
            state: [0; 32],
            ..right.clone()
        },
        Redemption {
            now: NOW + HAND_OFF_MILLIS,
            ..right.clone()
        },
    ] {
        assert!(
            !store.redeem_hand_off(wrong.clone()).await.unwrap(),
            "{wrong:?}"
        );
    }
    assert!(store.redeem_hand_off(right.clone()).await.unwrap());
    let session = found(&*store, &right.session).await;
    assert_eq!((session.player, session.parent), (new.id, new.session));
    assert_eq!((session.game.as_str(), session.used_at), (GAME, right.now));
    assert_eq!(session.created_at, right.now);
    assert_eq!(session.session.unwrap().player.id, new.id);
    let again = Redemption {
        session: GameSessionHash(entropy().bytes()),
        ..right
    };
    assert!(!store.redeem_hand_off(again.clone()).await.unwrap());
    assert_eq!(
        store.lookup_game_session(&again.session).await.unwrap(),
        None
    );
}

pub async fn a_code_to_sign_out_names_its_session_once(place: &dyn Place) {
    let store = place.open().await;
    let new = add(&*store, "otter").await;
    let play = hand_off(new.id, new.session);
    let out = HandOff {
        purpose: Purpose::SignOut,
        ..hand_off(new.id, new.session)
    };
    for code in [&play, &out] {
        store.add_hand_off(code.clone()).await.unwrap();
    }
    let take = async |code: &HandOff, now| store.take_sign_out(&code.code, now).await.unwrap();
    assert_eq!(take(&play, NOW).await, None, "it is for playing");
    assert!(!store.redeem_hand_off(redemption(&out, NOW)).await.unwrap());
    assert_eq!(take(&out, NOW + HAND_OFF_MILLIS).await, None);
    assert_eq!(take(&out, NOW + 1).await, Some(new.session));
    assert_eq!(take(&out, NOW + 1).await, None);
}

pub async fn a_games_session_ends_with_its_parent_or_alone(place: &dyn Place) {
    let store = place.open().await;
    let new = add(&*store, "otter").await;
    let (one, other) = (
        child(&*store, new.id, new.session).await,
        child(&*store, new.id, new.session).await,
    );
    store.end_game_session(&one).await.unwrap();
    assert_eq!(store.lookup_game_session(&one).await.unwrap(), None);
    assert_eq!(status(&*store, &other).await, Some(SessionStatus::Good));
    store
        .end_session(&new.session, Actor::Own.into(), NOW + 2)
        .await
        .unwrap();
    assert_eq!(status(&*store, &other).await, Some(SessionStatus::Stranger));
}

pub async fn a_games_session_follows_its_guest_into_an_account(place: &dyn Place) {
    let store = place.open().await;
    let new = add(&*store, "otter").await;
    let game = child(&*store, new.id, new.session).await;
    let on_its_way = hand_off(new.id, new.session);
    store.add_hand_off(on_its_way.clone()).await.unwrap();
    let linking = by(&new, "ann");
    store.complete_sign_in(linking.clone()).await.unwrap();
    let arriving = redemption(&on_its_way, NOW + 1);
    assert!(store.redeem_hand_off(arriving.clone()).await.unwrap());
    assert_eq!(
        found(&*store, &arriving.session).await.parent,
        linking.session
    );
    let session = found(&*store, &game).await;
    assert_eq!((session.player, session.parent), (new.id, linking.session));
    assert_eq!(status(&*store, &game).await, Some(SessionStatus::Good));

    // The account proves itself again in the same browser.
    let again = SignIn {
        held: Some(linking.session),
        ..sign_in("ann")
    };
    store.complete_sign_in(again.clone()).await.unwrap();
    assert_eq!(found(&*store, &game).await.parent, again.session);

    // A session that was ended does not come back with the next sign-in.
    store
        .end_session(&again.session, Actor::Operator.into(), NOW + 3)
        .await
        .unwrap();
    let late = SignIn {
        held: Some(again.session),
        ..sign_in("ann")
    };
    store.complete_sign_in(late).await.unwrap();
    assert_eq!(status(&*store, &game).await, Some(SessionStatus::Expired));
}

pub async fn a_games_session_ends_when_its_guest_is_merged(place: &dyn Place) {
    let store = place.open().await;
    store.complete_sign_in(sign_in("ann")).await.unwrap();
    let new = add(&*store, "otter").await;
    let game = child(&*store, new.id, new.session).await;
    store.complete_sign_in(by(&new, "ann")).await.unwrap();
    assert_eq!(status(&*store, &game).await, Some(SessionStatus::Expired));
}

pub async fn a_blank_session_has_its_guest_to_be_until_it_has_one(place: &dyn Place) {
    let store = place.open().await;
    let to_be = guest(&["otter"]);
    let blank = async |session| store.find_blank_session(session).await.unwrap();
    assert_eq!(blank(&to_be.session).await, None, "nobody knows it");
    let code = hand_off(to_be.id, to_be.session);
    store.add_hand_off(code.clone()).await.unwrap();
    assert_eq!(blank(&to_be.session).await, Some(to_be.id));
    let redemption = redemption(&code, NOW + 1);
    store.redeem_hand_off(redemption.clone()).await.unwrap();
    assert_eq!(blank(&to_be.session).await, Some(to_be.id));
    assert_eq!(found(&*store, &redemption.session).await.session, None);
    let other = child(&*store, entropy().uuid_v4(), SessionHash([5; 32])).await;
    store
        .end_blank_session(&SessionHash([5; 32]))
        .await
        .unwrap();
    assert_eq!(store.lookup_game_session(&other).await.unwrap(), None);
    store.add_guest(to_be.clone()).await.unwrap();
    store.end_blank_session(&to_be.session).await.unwrap();
    assert_eq!(blank(&to_be.session).await, None);
    let session = found(&*store, &redemption.session).await.session;
    assert_eq!(session.unwrap().player.id, to_be.id);
}

pub async fn a_session_has_a_bounded_number_of_sessions_of_one_game(place: &dyn Place) {
    let store = place.open().await;
    let new = add(&*store, "otter").await;
    let other = add(&*store, "heron").await;
    let redeemed = async |code: HandOff, now| {
        store.add_hand_off(code.clone()).await.unwrap();
        let redemption = redemption(&code, now);
        assert!(store.redeem_hand_off(redemption.clone()).await.unwrap());
        redemption.session
    };
    let is_there = async |hash| store.lookup_game_session(hash).await.unwrap().is_some();
    let first = redeemed(hand_off(new.id, new.session), NOW + 1).await;
    let second = redeemed(hand_off(new.id, new.session), NOW + 1).await;
    store.touch_game_session(&first, NOW + 9).await.unwrap();
    let beside = [
        redeemed(hand_off(other.id, other.session), NOW + 1).await,
        redeemed(
            HandOff {
                game: "game:other".to_owned(),
                ..hand_off(new.id, new.session)
            },
            NOW + 1,
        )
        .await,
    ];
    let mut last = second;
    for _ in 2..PER_PARENT {
        last = redeemed(hand_off(new.id, new.session), NOW + 2).await;
    }
    assert!(is_there(&second).await);
    // The least recently used one makes room, even for one that is older by its clock.
    let newest = redeemed(hand_off(new.id, new.session), NOW).await;
    assert!(!is_there(&second).await);
    for hash in [&first, &beside[0], &beside[1], &last, &newest] {
        assert!(is_there(hash).await);
    }
}

pub async fn the_games_of_a_players_sessions_are_listed(place: &dyn Place) {
    let store = place.open().await;
    let new = add(&*store, "otter").await;
    let other = add(&*store, "heron").await;
    let games = async |player| store.list_games_of_sessions(player).await.unwrap();
    assert_eq!(games(new.id).await, []);
    child(&*store, new.id, new.session).await;
    child(&*store, new.id, new.session).await;
    child(&*store, other.id, other.session).await;
    let expected = GameOfSession {
        parent: new.session,
        game: GAME.to_owned(),
    };
    assert_eq!(games(new.id).await, [expected]);
}

pub async fn a_session_of_a_game_stays_whose_visitor_has_played_another_one(place: &dyn Place) {
    let store = place.open().await;
    let to_be = guest(&["otter"]);
    let game = child(&*store, to_be.id, to_be.session).await;
    store.add_guest(to_be.clone()).await.unwrap();
    let sweep = async |now| store.sweep_sessions(now, 10).await.unwrap();
    assert_eq!(sweep(NOW + 1 + BLANK_MILLIS).await, 0);
    assert_eq!(sweep(NOW + 9 * BLANK_MILLIS).await, 0);
    assert_eq!(status(&*store, &game).await, Some(SessionStatus::Good));
}

pub async fn a_blank_session_ends_when_its_browser_signs_in(place: &dyn Place) {
    let store = place.open().await;
    let to_be = guest(&["otter"]);
    let game = child(&*store, to_be.id, to_be.session).await;
    let entering = SignIn {
        held: Some(to_be.session),
        ..sign_in("ann")
    };
    store.complete_sign_in(entering).await.unwrap();
    assert_eq!(store.lookup_game_session(&game).await.unwrap(), None);
    let blank = store.find_blank_session(&to_be.session).await.unwrap();
    assert_eq!(blank, None);
}

pub async fn old_codes_and_sessions_of_games_are_swept(place: &dyn Place) {
    let store = place.open().await;
    let new = add(&*store, "otter").await;
    let to_be = guest(&["heron"]);
    let played = child(&*store, new.id, new.session).await;
    let blank = child(&*store, to_be.id, to_be.session).await;
    store
        .add_hand_off(hand_off(new.id, new.session))
        .await
        .unwrap();
    let sweep = async |now| store.sweep_sessions(now, 10).await.unwrap();
    let is_there = async |hash| store.lookup_game_session(hash).await.unwrap().is_some();
    assert_eq!(sweep(NOW + HAND_OFF_MILLIS - 1).await, 0);
    assert_eq!(sweep(NOW + HAND_OFF_MILLIS).await, 1, "the code");
    assert_eq!(sweep(NOW + BLANK_MILLIS).await, 0);
    assert_eq!(sweep(NOW + 1 + BLANK_MILLIS).await, 1);
    assert!(!is_there(&blank).await);
    store.touch_game_session(&played, NOW + 9).await.unwrap();
    store.touch_game_session(&played, NOW + 5).await.unwrap();
    assert_eq!(found(&*store, &played).await.used_at, NOW + 9);
    store
        .renew_session(&new.session, NOW + KEPT_MILLIS)
        .await
        .unwrap();
    sweep(NOW + 8 + KEPT_MILLIS).await;
    assert!(is_there(&played).await);
    sweep(NOW + 9 + KEPT_MILLIS).await;
    assert!(!is_there(&played).await);

    // A guest whose cookie did not come back takes them along.
    let awaited = NewGuest {
        awaiting: Some(GAME.to_owned()),
        ..guest(&["newt"])
    };
    store.add_guest(awaited.clone()).await.unwrap();
    let game = child(&*store, awaited.id, awaited.session).await;
    sweep(NOW + UNCONFIRMED_MILLIS).await;
    assert!(!is_there(&game).await);
}

pub async fn of_many_who_redeem_a_code_at_once_one_does(place: &dyn Place) {
    let store = place.open().await;
    let new = add(&*store, "otter").await;
    let code = hand_off(new.id, new.session);
    store.add_hand_off(code.clone()).await.unwrap();
    let all = (0..8).map(|_| store.redeem_hand_off(redemption(&code, NOW + 1)));
    let redeemed = futures_util::future::join_all(all).await;
    let redeemed = redeemed.into_iter().filter(|one| *one.as_ref().unwrap());
    assert_eq!(redeemed.count(), 1);
}
