//! Alerts: which changes of error groups a project's webhook is told, and how many at most.

use std::collections::BTreeMap;

use platform_protocol::names::Environment;
use serde::{Deserialize, Serialize};

use crate::clock::Millis;
use crate::counting::{DAY, HOUR};
use crate::error_group::{ErrorGroup, ErrorGroupId, ErrorState, Regrouped};

/// A group that this number of players met is not the work of one of them.
const SEVERAL_PLAYERS: u64 = 3;
/// The hours before the running one with whose mean it is compared.
pub const HOURS_COMPARED: Millis = 24;
/// How many errors an hour must have before a group is said to grow.
pub const GROWING_COUNT: u64 = 50;
/// How many times the mean of the hours before this must be.
pub const GROWING_TIMES: u64 = 10;

/// Why there is an alert.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AlertReason {
    /// The group is new.
    New,
    /// It was resolved, and came back in a later deployment.
    Regressed,
    /// It has many more errors than before.
    Growing,
}

impl AlertReason {
    /// Every reason.
    pub const ALL: [Self; 3] = [Self::New, Self::Regressed, Self::Growing];

    /// The reason, as it stands in the store, and after `error.` in an event's type.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Regressed => "regressed",
            Self::Growing => "growing",
        }
    }

    /// Reads the reason from [`AlertReason::as_str`].
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.as_str() == text)
    }
}

/// What an alert says about its group, as it was then.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AlertDetail {
    /// The type of the errors; empty if it is not known.
    pub kind: String,
    /// The message of the newest one.
    pub message: String,
    /// Where it happened; empty if it is not known.
    pub place: String,
    /// How many errors in all.
    pub count: u64,
    /// How many of them in the running hour.
    pub in_hour: u64,
    /// When the first error was received.
    pub first_at: Millis,
    /// When the last error was received.
    pub last_at: Millis,
    /// How many alerts before this one were left out.
    pub left_out: u64,
}

/// A new alert.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewAlert {
    /// The group.
    pub group: ErrorGroupId,
    /// Why.
    pub reason: AlertReason,
    /// What it says.
    pub detail: AlertDetail,
}

/// An alert that is to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingAlert {
    /// Its id. No other alert ever has the same.
    pub id: i64,
    /// The project.
    pub slug: String,
    /// Which of its environments.
    pub environment: Environment,
    /// When it was made.
    pub made_at: Millis,
    /// How often sending has failed.
    pub tries: u16,
    /// What it is about.
    pub alert: NewAlert,
}

/// Who met the errors of a group. Anybody can send errors, with or without a player's token, so each class
/// has a budget of its own: alerts about one keep back none about another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AlertClass {
    /// Pages without a player's token alone.
    Strangers,
    /// One player, or two.
    Few,
    /// Several players.
    Several,
}

impl AlertClass {
    const fn of(players: u64) -> Self {
        match players {
            0 => Self::Strangers,
            1..SEVERAL_PLAYERS => Self::Few,
            _ => Self::Several,
        }
    }

    /// The maximum number of alerts of an environment in an hour. Further ones are counted, and the
    /// next one tells how many.
    const fn hour_limit(self) -> u8 {
        match self {
            Self::Strangers => 5,
            Self::Few | Self::Several => 20,
        }
    }
}

/// How many alerts an environment has had in an hour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AlertBudget {
    /// The hour.
    pub hour: Millis,
    /// How many alerts it has had: a byte for each class, the lowest one for [`AlertClass::Strangers`].
    pub made: u32,
    /// How many were left out since the last one.
    pub left_out: u64,
}

impl AlertBudget {
    /// Counts an alert. Returns whether there may be one.
    fn admit(&mut self, class: AlertClass, now: Millis) -> bool {
        let hour = hour_of(now);
        if self.hour != hour {
            (self.hour, self.made) = (hour, 0);
        }
        let mut made = self.made.to_le_bytes();
        let of_class = &mut made[class as usize];
        if *of_class >= class.hour_limit() {
            return false;
        }
        *of_class += 1;
        self.made = u32::from_le_bytes(made);
        true
    }
}

/// Returns the first hour whose counts [`make_alerts`] needs.
#[must_use]
pub const fn counted_from(now: Millis) -> Millis {
    hour_of(now) - (HOURS_COMPARED + 1) * HOUR
}

const fn hour_of(at: Millis) -> Millis {
    at - at.rem_euclid(HOUR)
}

/// Returns the alerts about groups that were added to, and notes in them what was told and what was left
/// out. `before` are their errors by hour since [`counted_from`], without the new ones.
pub fn make_alerts(
    regrouped: &mut Regrouped,
    before: &[(ErrorGroupId, Millis, u64)],
    budget: &mut AlertBudget,
    now: Millis,
) -> Vec<NewAlert> {
    let mut counts: BTreeMap<(ErrorGroupId, Millis), u64> = BTreeMap::new();
    for (id, hour, count) in before.iter().chain(&regrouped.hours) {
        let known = counts.entry((*id, *hour)).or_default();
        *known = known.saturating_add(*count);
    }
    let mut alerts = Vec::new();
    for group in &mut regrouped.groups {
        let hour = hour_of(group.last_at);
        let in_hour = counts.get(&(group.id, hour)).copied().unwrap_or(0);
        let told = regrouped.changed.get(&group.id).copied();
        let told = told.or_else(|| {
            let earlier = (group.id, hour - HOURS_COMPARED * HOUR)..(group.id, hour);
            let sum = counts.range(earlier).map(|(_, count)| *count);
            let sum = sum.fold(0, u64::saturating_add);
            grows(group, (in_hour, sum), now).then_some(AlertReason::Growing)
        });
        if told == Some(AlertReason::Growing) {
            group.detail.grew_at = Some(now);
        }
        // One that was left out is told with a later error, as soon as there is room for it.
        let earlier = group.detail.untold.take();
        let earlier = earlier.filter(|_| group.state == ErrorState::Open);
        let Some(reason) = told.or(earlier) else {
            continue;
        };
        if !budget.admit(AlertClass::of(group.players.count()), now) {
            group.detail.untold = Some(reason);
            if earlier.is_none() {
                budget.left_out = budget.left_out.saturating_add(1);
            }
            continue;
        }
        let left_out = std::mem::take(&mut budget.left_out);
        alerts.push(NewAlert {
            group: group.id,
            reason,
            detail: detail(group, in_hour, left_out),
        });
    }
    alerts
}

/// Whether a group grows suddenly: `in_hour` errors in the hour of the last one, and `sum` in the
/// hours before it.
fn grows(group: &ErrorGroup, (in_hour, sum): (u64, u64), now: Millis) -> bool {
    let hour = hour_of(group.last_at);
    let hours = HOURS_COMPARED.unsigned_abs();
    group.id != ErrorGroupId::OTHERS
        && group.state == ErrorState::Open
        // A new group was told, and so was one that has just come back.
        && group.first_at < hour
        && group.detail.regressed_at.is_none_or(|at| at < hour)
        // Errors that waited long are no news.
        && hour >= hour_of(now) - HOUR
        && group.detail.grew_at.is_none_or(|at| now - at >= DAY)
        && in_hour >= GROWING_COUNT
        && in_hour.saturating_mul(hours) >= sum.saturating_mul(GROWING_TIMES)
}

fn detail(group: &ErrorGroup, in_hour: u64, left_out: u64) -> AlertDetail {
    AlertDetail {
        kind: group.detail.kind.clone(),
        message: group.detail.message.clone(),
        place: group.detail.place.clone(),
        count: group.count,
        in_hour,
        first_at: group.first_at,
        last_at: group.last_at,
        left_out,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error_group::{Occurrence, Occurrences, Sample, regroup};
    use crate::log::LogId;
    use uuid::Uuid;

    /// The beginning of an hour.
    const NOW: Millis = 500_000 * HOUR;

    fn id(number: u8) -> ErrorGroupId {
        ErrorGroupId([number; 16])
    }

    fn errors(number: u8, count: u32, at: Millis) -> Occurrences {
        errors_of(number, count, at, Some(1))
    }

    fn errors_of(number: u8, count: u32, at: Millis, player: Option<u128>) -> Occurrences {
        let one = Occurrence {
            record: LogId::first_of(at),
            count,
            player: player.map(Uuid::from_u128),
            deployment: Some((Uuid::from_u128(5), Some(at))),
            engine: None,
            sample: Sample {
                kind: "Error".to_owned(),
                ..Sample::default()
            },
        };
        Occurrences::new(id(number), one)
    }

    fn known(number: u8, at: Millis) -> ErrorGroup {
        let new = regroup(Vec::new(), (0, 0), vec![errors(number, 1, at)]);
        new.groups.into_iter().next().unwrap()
    }

    fn reasons(alerts: &[NewAlert]) -> Vec<AlertReason> {
        alerts.iter().map(|alert| alert.reason).collect()
    }

    #[test]
    fn a_group_is_told_when_it_is_new_and_when_it_comes_back() {
        let mut budget = AlertBudget::default();
        let mut new = regroup(Vec::new(), (0, 0), vec![errors(1, 3, NOW)]);
        let alerts = make_alerts(&mut new, &[], &mut budget, NOW);
        assert_eq!(reasons(&alerts), [AlertReason::New]);
        let detail = &alerts[0].detail;
        assert_eq!((detail.count, detail.in_hour, detail.left_out), (3, 3, 0));
        let mut group = new.groups.remove(0);
        let mut again = regroup(vec![group.clone()], (1, 0), vec![errors(1, 3, NOW)]);
        assert_eq!(make_alerts(&mut again, &[], &mut budget, NOW), []);
        for (state, expected) in [
            (ErrorState::Resolved, vec![AlertReason::Regressed]),
            (ErrorState::Ignored, vec![]),
        ] {
            group.decide(state, Some(NOW), NOW + 1);
            let mut later = regroup(vec![group.clone()], (1, 0), vec![errors(1, 60, NOW + 2)]);
            let alerts = make_alerts(&mut later, &[], &mut budget, NOW + 2);
            assert_eq!(reasons(&alerts), expected, "{state:?}");
        }
    }

    #[test]
    fn a_group_grows_if_an_hour_has_ten_times_as_many_errors_as_those_before() {
        let grew = |count: u32, before: &[(ErrorGroupId, Millis, u64)]| {
            let group = known(1, NOW - 30 * HOUR);
            let mut more = regroup(vec![group], (1, 0), vec![errors(1, count, NOW + 5)]);
            let alerts = make_alerts(&mut more, before, &mut AlertBudget::default(), NOW + 9);
            let told = more.groups.remove(0).detail.grew_at;
            assert_eq!(told.is_some(), !alerts.is_empty());
            reasons(&alerts) == [AlertReason::Growing]
        };
        assert!(grew(50, &[]));
        assert!(!grew(49, &[]));
        // With those of the same hour that are known already.
        assert!(grew(1, &[(id(1), NOW, 49)]));
        // Five an hour is a tenth of 50.
        let before: Vec<_> = (1..=24).map(|hour| (id(1), NOW - hour * HOUR, 5)).collect();
        assert!(grew(50, &before));
        let more = [before, vec![(id(1), NOW - HOUR, 1)]].concat();
        assert!(!grew(50, &more));
        // Those of other groups, and of hours long before, do not count.
        assert!(grew(
            50,
            &[(id(2), NOW - HOUR, 9_000), (id(1), NOW - 25 * HOUR, 9_000)]
        ));
    }

    #[test]
    fn growth_is_told_once_a_day_and_not_of_a_new_group() {
        let grows = |group: &ErrorGroup, now: Millis| {
            let more = vec![errors(1, 1_000, now)];
            let mut more = regroup(vec![group.clone()], (1, 0), more);
            !make_alerts(&mut more, &[], &mut AlertBudget::default(), now).is_empty()
        };
        let mut group = known(1, NOW);
        assert!(!grows(&group, NOW + 5), "it is new");
        assert!(grows(&group, NOW + HOUR));
        group.detail.grew_at = Some(NOW);
        assert!(!grows(&group, NOW + DAY - 1));
        assert!(grows(&group, NOW + DAY));
        // Errors that were received long ago.
        let mut late = regroup(
            vec![known(1, NOW)],
            (1, 0),
            vec![errors(1, 1_000, NOW + HOUR)],
        );
        let mut budget = AlertBudget::default();
        assert_eq!(make_alerts(&mut late, &[], &mut budget, NOW + 3 * HOUR), []);
    }

    #[test]
    fn further_alerts_of_an_hour_are_counted_and_told_in_the_next_one() {
        let mut budget = AlertBudget::default();
        let new = (1..=25).map(|number| errors(number, 1, NOW)).collect();
        let mut many = regroup(Vec::new(), (0, 0), new);
        let alerts = make_alerts(&mut many, &[], &mut budget, NOW);
        assert_eq!(alerts.len(), 20);
        assert_eq!(budget.left_out, 5);
        let next = |number, budget: &mut AlertBudget| {
            let mut one = regroup(Vec::new(), (25, 0), vec![errors(number, 1, NOW)]);
            let alerts = make_alerts(&mut one, &[], budget, NOW + HOUR);
            alerts[0].detail.left_out
        };
        assert_eq!(next(30, &mut budget), 5);
        assert_eq!(next(31, &mut budget), 0);
    }

    #[test]
    fn alerts_about_strangers_and_few_players_keep_back_none_about_others() {
        let mut budget = AlertBudget::default();
        let mut told = |from: u8, players: &[Option<u128>]| {
            let numbers = from..from + 30;
            let new = numbers.map(|number| {
                let mut all = errors_of(number, 1, NOW, players[0]);
                let rest = players[1..].iter().flatten();
                all.players.extend(rest.map(|one| Uuid::from_u128(*one)));
                all
            });
            let mut new = regroup(Vec::new(), (0, 0), new.collect());
            make_alerts(&mut new, &[], &mut budget, NOW).len()
        };
        assert_eq!(told(1, &[None]), 5);
        assert_eq!(told(40, &[Some(1)]), 20);
        assert_eq!(told(80, &[Some(1), Some(2)]), 0);
        assert_eq!(told(120, &[Some(1), Some(2), Some(3)]), 20);
        assert_eq!(told(160, &[Some(4), Some(5), Some(6)]), 0);
    }

    #[test]
    fn what_was_left_out_is_told_when_more_players_met_it_or_in_a_later_hour() {
        let mut budget = AlertBudget::default();
        let new = (1..=9).map(|number| errors_of(number, 1, NOW, None));
        let mut new = regroup(Vec::new(), (0, 0), new.collect());
        assert_eq!(make_alerts(&mut new, &[], &mut budget, NOW).len(), 5);
        let is_untold = |group: &&ErrorGroup| group.detail.untold.is_some();
        let untold: Vec<ErrorGroup> = new.groups.iter().filter(is_untold).cloned().collect();
        assert_eq!((untold.len(), budget.left_out), (4, 4));
        let mut again = |group: &ErrorGroup, player: Option<u128>, now: Millis| {
            let more = errors_of(group.id.0[0], 1, now, player);
            let mut more = regroup(vec![group.clone()], (9, 9), vec![more]);
            let alerts = make_alerts(&mut more, &[], &mut budget, now);
            let left_out = alerts.iter().map(|alert| alert.detail.left_out).sum();
            (reasons(&alerts), left_out, more.groups.remove(0))
        };
        // It is not counted again.
        let (told, _, same) = again(&untold[0], None, NOW + 1);
        assert_eq!((told, same.detail.untold), (vec![], Some(AlertReason::New)));
        // A player met it.
        let (told, left_out, same) = again(&same, Some(1), NOW + 2);
        assert_eq!((told, left_out), (vec![AlertReason::New], 4));
        assert_eq!(again(&same, Some(1), NOW + 3).0, []);
        let (told, left_out, _) = again(&untold[1], None, NOW + HOUR);
        assert_eq!((told, left_out), (vec![AlertReason::New], 0));
        // A developer has looked at it.
        let mut ignored = untold[2].clone();
        ignored.decide(ErrorState::Ignored, None, NOW);
        assert_eq!(again(&ignored, None, NOW + HOUR).0, []);
    }

    #[test]
    fn the_group_of_all_others_is_never_told() {
        let group = known(1, NOW - 30 * HOUR);
        let others = ErrorGroup {
            id: ErrorGroupId::OTHERS,
            ..group
        };
        let full = (crate::error_group::GROUPS, 0);
        for known in [vec![], vec![others]] {
            let mut more = regroup(known, full, vec![errors(9, 1_000, NOW)]);
            assert_eq!(more.groups[0].id, ErrorGroupId::OTHERS);
            let alerts = make_alerts(&mut more, &[], &mut AlertBudget::default(), NOW);
            assert_eq!(alerts, []);
        }
    }
}
