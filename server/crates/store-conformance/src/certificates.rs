//! The requirements on certificates of an ACME server.

use platform_domain::certificate::{
    LONGEST_BUDGET_PERIOD, ORDER_HOLDS, OrderBudget, OrderTurn, StoredAccount, StoredCertificate,
    wait_after,
};
use platform_domain::counting::HOUR;

use super::{Handles, NOW, Place};

/// The orders in an hour, of all names and of one.
const LIMITS: (u32, u32) = (4, 2);

fn budgets(name: &str) -> [OrderBudget; 2] {
    let (in_total, of_name) = LIMITS;
    [
        OrderBudget::of_hour("all".to_owned(), in_total),
        OrderBudget::of_hour(name.to_owned(), of_name),
    ]
}

fn full(counter: &str, until: i64) -> OrderTurn {
    OrderTurn::Full {
        counter: counter.to_owned(),
        until,
    }
}

fn certificate(name: &str) -> StoredCertificate {
    StoredCertificate {
        name: name.into(),
        directory: "https://acme.example/dir".into(),
        chain: "-----BEGIN CERTIFICATE-----".into(),
        private: vec![1, 2, 3],
        sealed: name.starts_with('b'),
        valid_from: NOW - 5,
        valid_until: NOW + 5,
        obtained_at: NOW,
    }
}

fn account(directory: &str) -> StoredAccount {
    StoredAccount {
        directory: directory.into(),
        credentials: vec![4, 5, 6],
        sealed: false,
        created_at: NOW,
    }
}

pub async fn a_certificate_comes_back_as_it_was_and_a_later_one_takes_its_place(place: &dyn Place) {
    let store = place.open().await;
    assert_eq!(store.find_certificate("a.example").await.unwrap(), None);
    assert_eq!(store.list_certificates().await.unwrap(), []);
    let (one, other) = (certificate("a.example"), certificate("b.example"));
    for certificate in [&other, &one] {
        store.put_certificate(certificate.clone()).await.unwrap();
    }
    let find = async |name: &str| store.find_certificate(name).await.unwrap();
    assert_eq!(find("a.example").await, Some(one.clone()));
    assert_eq!(find("b.example").await, Some(other.clone()));
    let summaries = [one.summary(), other.summary()];
    assert_eq!(store.list_certificates().await.unwrap(), summaries);
    let later = StoredCertificate {
        directory: "https://other.example/dir".into(),
        chain: "renewed".into(),
        private: vec![9],
        sealed: true,
        valid_from: NOW,
        valid_until: NOW + 3,
        obtained_at: NOW + 1,
        ..one.clone()
    };
    store.put_certificate(later.clone()).await.unwrap();
    assert_eq!(find("a.example").await, Some(later.clone()));
    // One that was obtained before comes too late.
    store.put_certificate(one).await.unwrap();
    assert_eq!(find("a.example").await, Some(later.clone()));
    store.remove_certificate("b.example").await.unwrap();
    store.remove_certificate("c.example").await.unwrap();
    assert_eq!(find("b.example").await, None);
    store.close().await.unwrap();
    let again = place.open().await;
    assert_eq!(again.list_certificates().await.unwrap(), [later.summary()]);
}

pub async fn an_order_keeps_others_waiting_until_it_ends(place: &dyn Place) {
    let store = place.open().await;
    let begin = async |name: &str, now| {
        let known = store.find_certificate(name).await.unwrap();
        let known = known.map(|known| known.obtained_at);
        let budgets = budgets(name);
        let turn = store.begin_order(name, known, &budgets, now).await;
        turn.unwrap()
    };
    assert_eq!(begin("a.example", NOW).await, OrderTurn::Begun);
    assert_eq!(begin("a.example", NOW + 1).await, OrderTurn::Busy);
    assert_eq!(begin("b.example", NOW + 1).await, OrderTurn::Begun);
    // Its server may have been killed.
    let later = NOW + ORDER_HOLDS;
    assert_eq!(begin("a.example", later - 1).await, OrderTurn::Busy);
    assert_eq!(begin("a.example", later).await, OrderTurn::Begun);
    store
        .put_certificate(certificate("b.example"))
        .await
        .unwrap();
    assert_eq!(begin("b.example", NOW + 2).await, OrderTurn::Begun);
}

pub async fn what_another_server_has_obtained_since_is_not_ordered_again(place: &dyn Place) {
    let store = place.open().await;
    let begin = async |known| {
        store
            .begin_order("a.example", known, &budgets("a.example"), NOW)
            .await
            .unwrap()
    };
    let one = certificate("a.example");
    store.put_certificate(one.clone()).await.unwrap();
    assert_eq!(begin(None).await, OrderTurn::Replaced);
    assert_eq!(begin(Some(one.obtained_at - 1)).await, OrderTurn::Replaced);
    assert_eq!(begin(Some(one.obtained_at)).await, OrderTurn::Begun);
    assert_eq!(begin(Some(one.obtained_at)).await, OrderTurn::Busy);
}

pub async fn orders_are_limited_in_total_and_for_each_name(place: &dyn Place) {
    let store = place.open().await;
    let order = async |name: &str, now| {
        let budgets = budgets(name);
        let turn = store.begin_order(name, Some(NOW), &budgets, now).await;
        let turn = turn.unwrap();
        if turn == OrderTurn::Begun {
            store.put_certificate(certificate(name)).await.unwrap();
        }
        turn
    };
    assert_eq!(order("a.example", NOW).await, OrderTurn::Begun);
    assert_eq!(order("a.example", NOW + 1).await, OrderTurn::Begun);
    let ends = NOW + HOUR;
    assert_eq!(order("a.example", NOW + 2).await, full("a.example", ends));
    assert_eq!(order("b.example", NOW + 2).await, OrderTurn::Begun);
    assert_eq!(order("c.example", NOW + 3).await, OrderTurn::Begun);
    assert_eq!(order("d.example", NOW + 4).await, full("all", ends));
    assert_eq!(order("d.example", ends - 1).await, full("all", ends));
    assert_eq!(order("d.example", ends).await, OrderTurn::Begun);
    assert_eq!(order("e.example", ends).await, full("all", ends + 1));
}

pub async fn orders_of_one_budget_leave_others_as_they_are(place: &dyn Place) {
    let store = place.open().await;
    let order = async |name: &str, budget: &OrderBudget, now| {
        let budgets = [budget.clone()];
        let turn = store.begin_order(name, Some(NOW), &budgets, now).await;
        turn.unwrap()
    };
    let one = OrderBudget::of_hour("one".to_owned(), 1);
    let other = OrderBudget::of_hour("other".to_owned(), 1);
    assert_eq!(order("a.example", &one, NOW).await, OrderTurn::Begun);
    let used_up = full("one", NOW + HOUR);
    assert_eq!(order("b.example", &one, NOW).await, used_up);
    assert_eq!(order("b.example", &other, NOW).await, OrderTurn::Begun);

    // Certificates count for a week; what failed is none.
    let week = OrderBudget::of_week("week".to_owned(), 1);
    assert_eq!(order("c.example", &week, NOW).await, OrderTurn::Begun);
    let used_up = full("week", NOW + LONGEST_BUDGET_PERIOD);
    assert_eq!(order("d.example", &week, NOW + 1).await, used_up);
    let both = [one.clone(), week.clone()];
    let failed = store.fail_order("c.example", &both, NOW + 1).await;
    failed.unwrap();
    assert_eq!(order("d.example", &week, NOW + 2).await, OrderTurn::Begun);
    let used_up = full("one", NOW + HOUR);
    assert_eq!(order("e.example", &one, NOW + 2).await, used_up);
    let later = NOW + 2 + LONGEST_BUDGET_PERIOD;
    assert_ne!(order("e.example", &week, later - 1).await, OrderTurn::Begun);
    assert_eq!(order("e.example", &week, later).await, OrderTurn::Begun);
}

pub async fn failed_orders_wait_longer_and_a_certificate_forgets_them(place: &dyn Place) {
    let store = place.open().await;
    let begin = async |now| {
        let turn = store.begin_order("a.example", Some(NOW), &[], now).await;
        turn.unwrap()
    };
    let mut now = NOW;
    for failures in 1..=6 {
        assert_eq!(begin(now).await, OrderTurn::Begun, "{failures}");
        let not_before = store.fail_order("a.example", &[], now).await.unwrap();
        assert_eq!(not_before, now + wait_after(failures));
        assert_eq!(begin(not_before - 1).await, OrderTurn::Later(not_before));
        now = not_before;
    }
    assert_eq!(begin(now).await, OrderTurn::Begun);
    store
        .put_certificate(certificate("a.example"))
        .await
        .unwrap();
    assert_eq!(begin(now).await, OrderTurn::Begun);
    let not_before = store.fail_order("a.example", &[], now).await.unwrap();
    assert_eq!(not_before, now + wait_after(1));
}

pub async fn a_challenge_is_answered_until_it_ends(place: &dyn Place) {
    let store = place.open().await;
    let find = async |name: &str, now| store.find_challenge(name, now).await.unwrap();
    assert_eq!(find("a.example", NOW).await, None);
    let begun = store
        .begin_order("a.example", None, &budgets("a.example"), NOW)
        .await
        .unwrap();
    assert_eq!(begun, OrderTurn::Begun);
    assert_eq!(find("a.example", NOW).await, None);
    let put = async |digest, until| {
        store
            .put_challenge("a.example", digest, until)
            .await
            .unwrap();
    };
    put([1; 32], NOW + 5).await;
    put([2; 32], NOW + 10).await;
    assert_eq!(find("a.example", NOW + 9).await, Some([2; 32]));
    assert_eq!(find("a.example", NOW + 10).await, None);
    assert_eq!(find("b.example", NOW).await, None);
    // It says nothing about the order.
    let turn = store
        .begin_order("a.example", None, &budgets("a.example"), NOW)
        .await
        .unwrap();
    assert_eq!(turn, OrderTurn::Busy);
    store.fail_order("a.example", &[], NOW).await.unwrap();
    assert_eq!(find("a.example", NOW + 1).await, None);
    put([3; 32], NOW + 10).await;
    store
        .put_certificate(certificate("a.example"))
        .await
        .unwrap();
    assert_eq!(find("a.example", NOW + 1).await, None);
}

pub async fn an_account_is_created_once_and_replaced_knowingly(place: &dyn Place) {
    let store = place.open().await;
    let (one, other) = (account("https://a/dir"), account("https://b/dir"));
    let find = async |directory: &str| store.find_acme_account(directory).await.unwrap();
    assert_eq!(find("https://a/dir").await, None);
    let put = async |account: &StoredAccount, before: Option<&[u8]>| {
        let before = before.map(<[u8]>::to_vec);
        store
            .put_acme_account(account.clone(), before)
            .await
            .unwrap()
    };
    assert!(put(&other, None).await && put(&one, None).await);
    let second = StoredAccount {
        credentials: vec![7],
        sealed: true,
        created_at: NOW + 1,
        ..one.clone()
    };
    assert!(!put(&second, None).await && !put(&second, Some(&[8])).await);
    assert_eq!(find("https://a/dir").await, Some(one.clone()));
    assert!(put(&second, Some(&one.credentials)).await);
    assert_eq!(find("https://a/dir").await, Some(second.clone()));
    assert_eq!(store.list_acme_accounts().await.unwrap(), [second, other]);
    let unknown = account("https://c/dir");
    assert!(!put(&unknown, Some(&[1])).await);
}

pub async fn of_many_orders_at_once_one_begins(place: &dyn Place) {
    let handles = Handles::open(place).await;
    let tasks: Vec<_> = (0..8)
        .map(|number| {
            let store = handles.next();
            tokio::spawn(async move {
                let turn = store
                    .begin_order("a.example", None, &budgets("a.example"), NOW)
                    .await
                    .unwrap();
                let name = format!("{number}.example");
                let budgets = budgets(&name);
                let other = store.begin_order(&name, None, &budgets, NOW).await;
                (turn, other.unwrap())
            })
        })
        .collect();
    let (mut same, mut others) = (0, 0);
    for task in tasks {
        let (turn, other) = task.await.unwrap();
        same += u32::from(turn == OrderTurn::Begun);
        others += u32::from(other == OrderTurn::Begun);
    }
    assert_eq!((same, others), (1, LIMITS.0 - 1));
}
