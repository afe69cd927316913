//! Groups of errors: counting, room, and coming back.

use super::*;

const NOW: Millis = 1_800_000_000_000;

fn id(number: u16) -> ErrorGroupId {
    let mut id = [1; 16];
    id[..2].copy_from_slice(&number.to_be_bytes());
    ErrorGroupId(id)
}

fn one(at: Millis, player: Option<u128>) -> Occurrence {
    Occurrence {
        record: LogId::first_of(at),
        count: 2,
        player: player.map(Uuid::from_u128),
        deployment: Some((Uuid::from_u128(7), Some(NOW))),
        engine: Some(Engine::Firefox),
        sample: Sample {
            kind: "TypeError".into(),
            message: format!("at {at}"),
            ..Sample::default()
        },
    }
}

fn group(number: u16, at: Millis) -> ErrorGroup {
    let new = vec![Occurrences::new(id(number), one(at, Some(1)))];
    regroup(Vec::new(), (0, 0), new).groups.remove(0)
}

#[test]
fn ids_are_read_back_and_nothing_else() {
    let id = id(0xabcd);
    assert_eq!(ErrorGroupId::parse(&id.to_string()), Some(id));
    for bad in ["", "0", &"g".repeat(32), &"A".repeat(32), &"+".repeat(32)] {
        assert_eq!(ErrorGroupId::parse(bad), None, "{bad}");
    }
}

#[test]
fn errors_add_up_in_their_group() {
    let mut new = Occurrences::new(id(1), one(NOW, Some(1)));
    new.add(one(NOW + HOUR, Some(2)));
    let regrouped = regroup(vec![group(1, NOW - 5)], (1, 0), vec![new]);
    let group = &regrouped.groups[0];
    assert_eq!((group.count, group.players.count()), (6, 2));
    assert_eq!((group.first_at, group.last_at), (NOW - 5, NOW + HOUR));
    assert_eq!(group.detail.message, format!("at {}", NOW + HOUR));
    assert_eq!(group.detail.engines[&Engine::Firefox], 6);
    assert_eq!(group.detail.deployments[0].count, 6);
    assert_eq!(group.detail.records[0], LogId::first_of(NOW + HOUR).0);
    assert_eq!(regrouped.hours.iter().map(|hour| hour.2).sum::<u64>(), 4);
}

#[test]
fn there_are_no_more_groups_than_may_be() {
    let new = |count: u16, player| {
        let new = |number| Occurrences::new(id(number), one(NOW, player));
        (0..count).map(new).collect::<Vec<_>>()
    };
    let regrouped = regroup(Vec::new(), (GROUPS - 3, 0), new(10, Some(1)));
    assert_eq!(regrouped.groups.len(), 4);
    let others = regrouped.groups.last().unwrap();
    assert_eq!((others.id, others.count), (ErrorGroupId::OTHERS, 14));
    assert_eq!(others.detail.message, "All other errors");
    // A known group goes on to be counted.
    let regrouped = regroup(vec![group(3, NOW)], (GROUPS, 0), new(10, Some(1)));
    assert_eq!(regrouped.groups.len(), 2);
    // Strangers leave room for players.
    let full = (GROUPS_OF_STRANGERS, GROUPS_OF_STRANGERS);
    assert_eq!(regroup(Vec::new(), full, new(10, None)).groups.len(), 1);
    assert_eq!(regroup(Vec::new(), full, new(10, Some(1))).groups.len(), 10);
}

#[test]
fn what_a_later_deployment_has_came_back() {
    let deployed = |at: Option<Millis>| {
        let mut one = one(NOW + 9, Some(1));
        one.deployment = Some((Uuid::from_u128(9), at));
        vec![Occurrences::new(id(1), one)]
    };
    let mut known = group(1, NOW);
    known.decide(ErrorState::Resolved, Some(NOW), NOW + 1);
    for (at, state) in [
        (Some(NOW), ErrorState::Resolved),
        (Some(NOW - 1), ErrorState::Resolved),
        (None, ErrorState::Resolved),
        (Some(NOW + 2), ErrorState::Open),
    ] {
        let after = regroup(vec![known.clone()], (1, 0), deployed(at))
            .groups
            .remove(0);
        assert_eq!(after.state, state, "{at:?}");
        let regressed = after.detail.regressed_at;
        assert_eq!(regressed, (state == ErrorState::Open).then_some(NOW + 9));
    }
    known.decide(ErrorState::Ignored, Some(NOW), NOW + 1);
    let after = regroup(vec![known], (1, 0), deployed(Some(NOW + 2)))
        .groups
        .remove(0);
    assert_eq!(after.state, ErrorState::Ignored);
}

#[test]
fn lists_within_a_group_stay_short() {
    let mut known = group(1, NOW);
    for number in 0..100 {
        let mut one = one(NOW + number, Some(1));
        one.deployment = Some((Uuid::from_u128(number.unsigned_abs().into()), None));
        let new = vec![Occurrences::new(id(1), one)];
        known = regroup(vec![known], (1, 0), new).groups.remove(0);
    }
    let detail = &known.detail;
    assert_eq!((detail.deployments.len(), detail.records.len()), (20, 10));
    assert_eq!(detail.deployments[0].id, Uuid::from_u128(99));
}
