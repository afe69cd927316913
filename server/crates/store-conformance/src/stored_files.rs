//! The requirements on files that several nodes share: no sweep removes what a deploy uses.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use platform_domain::clock::Millis;
use platform_protocol::names::Environment::Prod;
use platform_store::{CLAIM_HOLDS, Store, UNUSED_FILES_STAY};

use super::deployments::{add, deployment, with_project};
use super::{Handles, NOW, Place};

/// When a file that was touched at [`NOW`] may go.
const LATER: Millis = NOW + UNUSED_FILES_STAY;

/// The names of files whose contents are these letters.
fn names(letters: &str) -> Vec<String> {
    let name = |letter: char| letter.to_string().repeat(64);
    letters.chars().map(name).collect()
}

/// The name of a file with this number.
fn numbered(number: usize) -> String {
    format!("{number:064x}")
}

async fn touch(store: &dyn Store, letters: &str, now: Millis) -> Vec<String> {
    store.touch_files(names(letters), now).await.unwrap()
}

async fn claim(store: &dyn Store, now: Millis) -> Vec<String> {
    let mut claimed = store.claim_unused_files(10, now).await.unwrap();
    claimed.sort();
    claimed
}

pub async fn an_unused_file_is_claimed_after_a_day_and_forgotten(place: &dyn Place) {
    let store = place.open().await;
    // A text that is not the name of a file is ignored.
    let asked = [names("ab"), vec!["readme.txt".to_owned()]].concat();
    assert_eq!(store.touch_files(asked, NOW).await.unwrap(), [""; 0]);
    assert_eq!(touch(&*store, "b", NOW + 5).await, [""; 0]);
    // A clock that is slow makes no file older.
    assert_eq!(touch(&*store, "b", NOW - 5).await, [""; 0]);
    assert_eq!(claim(&*store, LATER - 1).await, [""; 0]);
    assert_eq!(claim(&*store, LATER).await, names("a"));
    assert_eq!(claim(&*store, LATER + 4).await, [""; 0]);
    assert_eq!(claim(&*store, LATER + 5).await, names("b"));
    store.forget_files(names("a"), LATER).await.unwrap();
    store.forget_files(names("b"), LATER + 5).await.unwrap();
    let long_after = LATER + CLAIM_HOLDS * 2;
    assert_eq!(claim(&*store, long_after).await, [""; 0]);
    let everything = store.touch_files(names("abc"), LATER).await;
    assert_eq!(everything.unwrap(), [""; 0]);
    let limited = store.claim_unused_files(2, LATER * 2).await.unwrap();
    assert_eq!(limited.len(), 2);
}

pub async fn a_file_of_a_deployment_is_never_claimed(place: &dyn Place) {
    let store = with_project(place, "demo").await;
    touch(&*store, "abc", NOW).await;
    let old = deployment("demo", Prod, NOW, &[("1", 'a'), ("2", 'b')]);
    let new = deployment("demo", Prod, NOW + 1, &[("1", 'b')]);
    add(&*store, &old).await;
    add(&*store, &new).await;
    assert_eq!(claim(&*store, LATER).await, names("c"));
    store.sweep_deployments("demo", Prod, 1).await.unwrap();
    assert_eq!(claim(&*store, LATER).await, names("a"));
    assert_eq!(claim(&*store, LATER).await, [""; 0]);
}

pub async fn a_claimed_file_is_not_touched_until_its_claim_has_expired(place: &dyn Place) {
    let store = place.open().await;
    touch(&*store, "ab", NOW).await;
    assert_eq!(claim(&*store, LATER).await, names("ab"));
    assert_eq!(touch(&*store, "bc", LATER + 1).await, names("b"));
    let expired = LATER + CLAIM_HOLDS;
    assert_eq!(touch(&*store, "b", expired - 1).await, names("b"));
    // What was recorded beside it is as young as it was said to be.
    assert_eq!(claim(&*store, expired - 1).await, [""; 0]);
    assert_eq!(touch(&*store, "b", expired).await, [""; 0]);
    assert_eq!(claim(&*store, expired).await, names("a"));
    assert_eq!(
        claim(&*store, expired + UNUSED_FILES_STAY).await,
        names("abc")
    );
}

pub async fn a_claim_that_was_taken_over_forgets_nothing(place: &dyn Place) {
    let store = place.open().await;
    touch(&*store, "ab", NOW).await;
    claim(&*store, LATER).await;
    let expired = LATER + CLAIM_HOLDS;
    assert_eq!(touch(&*store, "b", expired).await, [""; 0]);
    assert_eq!(claim(&*store, expired).await, names("a"));
    // The first sweep was asleep meanwhile.
    store.forget_files(names("ab"), LATER).await.unwrap();
    assert_eq!(touch(&*store, "a", expired).await, names("a"));
    assert_eq!(
        claim(&*store, expired + UNUSED_FILES_STAY).await,
        names("ab")
    );
}

pub async fn files_of_deployments_are_adopted_once(place: &dyn Place) {
    let store = with_project(place, "demo").await;
    let added = deployment("demo", Prod, NOW, &[("1", 'a'), ("2", 'b'), ("3", 'a')]);
    add(&*store, &added).await;
    touch(&*store, "b", NOW).await;
    assert_eq!(store.adopt_files(NOW + 7).await.unwrap(), 1);
    assert_eq!(store.adopt_files(NOW + 8).await.unwrap(), 0);
    let next = deployment("demo", Prod, NOW + 1, &[("1", 'c')]);
    add(&*store, &next).await;
    store.sweep_deployments("demo", Prod, 1).await.unwrap();
    assert_eq!(claim(&*store, LATER).await, names("b"));
    assert_eq!(claim(&*store, LATER + 7).await, names("a"));
}

pub async fn of_many_sweeps_at_once_each_claims_other_files(place: &dyn Place) {
    const FILES: usize = 200;
    let handles = Handles::open(place).await;
    let all = (0..FILES).map(numbered).collect();
    handles.next().touch_files(all, NOW).await.unwrap();
    let sweeps: Vec<_> = (0..8)
        .map(|_| {
            let store = handles.next();
            tokio::spawn(async move {
                let mut mine = Vec::new();
                for _ in 0..100 {
                    mine.extend(store.claim_unused_files(7, LATER).await.unwrap());
                }
                mine
            })
        })
        .collect();
    let mut claimed = Vec::new();
    for sweep in sweeps {
        claimed.extend(sweep.await.unwrap());
    }
    assert_eq!(claimed.len(), FILES);
    assert_eq!(claimed.into_iter().collect::<BTreeSet<_>>().len(), FILES);
}

/// Deploys of files that are old enough to go, while sweeps run: a file that was touched is there
/// as long as nobody says that it is being removed.
pub async fn what_is_touched_while_others_sweep_is_never_forgotten(place: &dyn Place) {
    const ROUNDS: usize = 60;
    let handles = Handles::open(place).await;
    let all: Vec<String> = (0..40).map(numbered).collect();
    let done = std::sync::Arc::new(AtomicBool::new(false));
    let sweeps: Vec<_> = (0..3)
        .map(|sweep| {
            let (store, done) = (handles.next(), std::sync::Arc::clone(&done));
            tokio::spawn(async move {
                let (mut removed, mut round) = (0, 0);
                while !done.load(Ordering::Relaxed) {
                    // Each claim has a time of its own, before anything is touched.
                    round += 3;
                    let now = NOW - 100_000 + round + sweep;
                    let claimed = store.claim_unused_files(5, now).await.unwrap();
                    removed += claimed.len();
                    store.forget_files(claimed, now).await.unwrap();
                    tokio::task::yield_now().await;
                }
                removed
            })
        })
        .collect();
    let store = handles.next();
    let old = NOW - 3 * UNUSED_FILES_STAY;
    for round in 0..ROUNDS {
        // They are old, so sweeps remove them again at once.
        store.touch_files(all.clone(), old).await.unwrap();
        let used: Vec<String> = all.iter().skip(round % 7).step_by(7).cloned().collect();
        let mut left = used.clone();
        while !left.is_empty() {
            left = store.touch_files(left, NOW).await.unwrap();
        }
        // All of them are recorded, and as young as they were said to be.
        let later = store.touch_files(used.clone(), NOW).await.unwrap();
        assert_eq!(later, [""; 0]);
        let mut unused = BTreeSet::new();
        let mut looks = 0;
        while unused.len() < used.len() {
            // A row that another sweep looks at in this moment is left out, and found afterwards.
            let claimed = store.claim_unused_files(100, LATER).await.unwrap();
            looks += 1;
            assert!(looks < 1_000, "{used:?} were touched, {unused:?} are there");
            store.forget_files(claimed.clone(), LATER).await.unwrap();
            unused.extend(claimed.into_iter().filter(|name| used.contains(name)));
        }
    }
    done.store(true, Ordering::Relaxed);
    for sweep in sweeps {
        sweep.await.unwrap();
    }
}
