//! The requirements on the storage of frontend log records: its size is known exactly, and the
//! oldest records of a project over its quota are removed first.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use platform_domain::audit::Actor;
use platform_domain::clock::Millis;
use platform_domain::counting::HOUR;
use platform_domain::log::{ErrorQuery, LogEntry, LogQuery, NewLogRecords};
use platform_domain::page::PageId;
use platform_domain::takedown::Change;
use platform_protocol::log::{LogLevel, LogSource};
use platform_protocol::names::Environment;
use platform_store::Store;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use tokio::runtime::Handle;
use uuid::Uuid;

use super::{Handles, NOW, Place, project};

/// The size of a record without its texts.
const EACH: u64 = 160;
const PROJECTS: [&str; 3] = ["a", "b", "c"];

/// One step of a history.
#[derive(Clone, Debug)]
enum Act {
    /// A page sends records with texts of these lengths.
    Write(Write),
    /// Records received this long ago are removed, at most `limit`.
    Sweep { age: Millis, limit: usize },
    /// The quota has this many bytes.
    Quota { bytes: u64, limit: usize },
    /// The process ends, and another one starts.
    Restart,
}

#[derive(Clone, Debug)]
struct Write {
    project: usize,
    environment: Environment,
    strange: bool,
    after: Millis,
    levels: Vec<(usize, usize)>,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let environment = prop_oneof![Just(Environment::Dev), Just(Environment::Prod)];
    let levels = prop::collection::vec((0..4_usize, 0..40_usize), 0..5);
    // Records of one millisecond have no order between environments.
    let write = (
        0..PROJECTS.len(),
        environment,
        any::<bool>(),
        1..5_i64,
        levels,
    );
    let write = write.prop_map(|(project, environment, strange, after, levels)| Write {
        project,
        environment,
        strange,
        after,
        levels,
    });
    let act = prop_oneof![
        6 => write.prop_map(Act::Write),
        1 => (0..20_i64, 1..6_usize).prop_map(|(age, limit)| Act::Sweep { age, limit }),
        2 => (0..3_000_u64, 1..6_usize).prop_map(|(bytes, limit)| Act::Quota { bytes, limit }),
        1 => Just(Act::Restart),
    ];
    prop::collection::vec(act, 1..40)
}

/// A record in the model.
#[derive(Clone, Debug)]
struct Known {
    project: usize,
    environment: Environment,
    strange: bool,
    received_at: Millis,
    message: String,
    bytes: u64,
}

/// All expected records, oldest first.
#[derive(Debug, Default)]
struct Model {
    now: Millis,
    written: usize,
    records: Vec<Known>,
}

impl Model {
    fn bytes(&self, project: usize) -> u64 {
        let of_project = self.records.iter().filter(|one| one.project == project);
        of_project.map(|one| one.bytes).sum()
    }

    fn strangers_bytes(&self, project: usize) -> u64 {
        let of_project = self.records.iter().filter(|one| one.project == project);
        let strange = of_project.filter(|one| one.strange);
        strange.map(|one| one.bytes).sum()
    }

    /// Adds a page's records to the model, and returns them.
    fn write(&mut self, write: &Write) -> NewLogRecords {
        self.now += write.after;
        let mut new = request(PROJECTS[write.project], write.environment, self.now);
        if write.strange {
            new.player = None;
        }
        for &(level, length) in &write.levels {
            self.written += 1;
            let entry = entry(self.written, LogLevel::ALL[level], length);
            let texts = [&entry.stack, &entry.url, &entry.metadata];
            let lengths = texts.map(|text| text.as_ref().map_or(0, String::len));
            let bytes = entry.message.len() + lengths.iter().sum::<usize>();
            self.records.push(Known {
                project: write.project,
                environment: write.environment,
                strange: write.strange,
                received_at: self.now,
                message: entry.message.clone(),
                bytes: EACH + bytes as u64,
            });
            new.entries.push(entry);
        }
        new
    }

    fn sweep(&mut self, before: Millis, limit: usize) -> usize {
        let old = |one: &&Known| one.received_at < before;
        let removed = self.records.iter().take_while(old).count().min(limit);
        self.records.drain(..removed);
        removed
    }

    /// Each project over the quota has a share, and a flooded one eight. Records without a player
    /// are removed first, while they take more than half.
    fn sweep_quota(&mut self, quota: u64, limit: usize) -> usize {
        let over = (0..PROJECTS.len()).filter(|project| self.bytes(*project) > quota);
        let over: Vec<usize> = over.collect();
        let share = limit.div_ceil(over.len().max(1));
        let mut removed = 0;
        for project in over {
            let flooded = self.bytes(project) / 2 > quota;
            let mut left = if flooded { share * 8 } else { share };
            while left > 0 && self.bytes(project) > quota {
                let strangers_first = self.strangers_bytes(project) > quota / 2;
                let goes =
                    |one: &Known| one.project == project && (one.strange || !strangers_first);
                let oldest = self.records.iter().position(goes);
                self.records.remove(oldest.unwrap());
                left -= 1;
                removed += 1;
            }
        }
        removed
    }
}

/// A record whose texts have about this length, in letters of two bytes.
fn entry(number: usize, level: LogLevel, length: usize) -> LogEntry {
    let text = |part: usize| Some("ä".repeat(length / part)).filter(|text| !text.is_empty());
    LogEntry {
        time: NOW,
        level,
        source: LogSource::Console,
        message: format!("{number} {}", "ö".repeat(length)),
        stack: text(2),
        url: text(3),
        line: None,
        column: None,
        metadata: text(4).map(|text| format!("\"{text}\"")),
        count: 1,
    }
}

fn request(slug: &str, environment: Environment, received_at: Millis) -> NewLogRecords {
    NewLogRecords {
        slug: slug.into(),
        environment,
        deployment: None,
        player: Some(Uuid::from_u128(3)),
        page: PageId([9; 16]),
        received_at,
        entries: Vec::new(),
    }
}

async fn messages(store: &dyn Store, slug: &str, environment: Environment) -> Vec<String> {
    let query = LogQuery {
        slug: slug.into(),
        environment,
        level: LogLevel::Debug,
        before: None,
        limit: 10_000,
        bytes: usize::MAX,
    };
    let found = store.list_log_records(query).await.unwrap().records;
    let oldest_first = found.into_iter().rev();
    oldest_first.map(|record| record.entry.message).collect()
}

/// Checks that the store matches the model.
async fn agree(store: &dyn Store, model: &Model) -> Result<(), TestCaseError> {
    for (project, slug) in PROJECTS.into_iter().enumerate() {
        prop_assert_eq!(store.log_bytes(slug).await.unwrap(), model.bytes(project));
        for environment in [Environment::Dev, Environment::Prod] {
            let known = model.records.iter().filter(|one| one.project == project);
            let known: Vec<&str> = known
                .filter(|one| one.environment == environment)
                .map(|one| one.message.as_str())
                .collect();
            prop_assert_eq!(messages(store, slug, environment).await, known);
        }
    }
    Ok(())
}

async fn play(place: &dyn Place, acts: &[Act]) -> Result<(), TestCaseError> {
    let mut handles = Handles::open(place).await;
    // Removes the data of the previous case.
    while handles
        .next()
        .sweep_log_records(NOW * 2, 100)
        .await
        .unwrap()
        > 0
    {}
    // A store may remember the last id of an environment, so each history is later than all others.
    static HISTORIES: AtomicI64 = AtomicI64::new(0);
    let mut model = Model {
        now: NOW + HISTORIES.fetch_add(1, Ordering::Relaxed) * HOUR,
        ..Model::default()
    };
    for act in acts {
        let store = handles.next();
        match act {
            Act::Write(write) => {
                let new = model.write(write);
                store.add_log_records(new).await.unwrap();
            }
            Act::Sweep { age, limit } => {
                let before = model.now - age;
                let removed = store.sweep_log_records(before, *limit).await.unwrap();
                prop_assert_eq!(removed, model.sweep(before, *limit));
            }
            Act::Quota { bytes, limit } => {
                let removed = store.sweep_log_quota(*bytes, *limit).await.unwrap();
                prop_assert_eq!(removed, model.sweep_quota(*bytes, *limit));
            }
            Act::Restart => {
                drop((store, handles));
                handles = Handles::open(place).await;
            }
        }
        agree(&*handles.next(), &model).await?;
    }
    Ok(())
}

pub async fn the_room_of_records_is_known_exactly_whatever_happens(place: &dyn Place) {
    let config = Config {
        cases: 48,
        failure_persistence: None,
        ..Config::default()
    };
    let outcome = tokio::task::block_in_place(|| {
        TestRunner::new(config).run(&acts(), |acts| {
            Handle::current().block_on(play(place, &acts))
        })
    });
    outcome.unwrap();
}

async fn fill(store: &Arc<dyn Store>, slug: &str, from: Millis, count: usize) {
    for number in 0..count {
        let at = from + Millis::try_from(number).unwrap() * 2;
        // Both environments and all levels, so that none of them decides the order.
        let environment = [Environment::Dev, Environment::Prod][number % 2];
        let mut new = request(slug, environment, at);
        new.entries = vec![entry(number, LogLevel::ALL[number / 2 % 4], 0)];
        store.add_log_records(new).await.unwrap();
    }
}

pub async fn the_oldest_of_a_project_go_first_and_other_projects_keep_theirs(place: &dyn Place) {
    let store = place.open().await;
    fill(&store, "a", NOW, 40).await;
    fill(&store, "b", NOW - 50, 20).await;
    let (a, b) = (
        store.log_bytes("a").await.unwrap(),
        store.log_bytes("b").await.unwrap(),
    );
    assert!(b < a);
    assert_eq!(store.sweep_log_quota(a, 9).await.unwrap(), 0);
    // The operator lowers it to a value above the size of `b`.
    let numbers_of_b = messages(&*store, "b", Environment::Dev).await;
    assert_eq!(store.sweep_log_quota(b + EACH, 9).await.unwrap(), 9);
    let numbers = |texts: Vec<String>| -> Vec<usize> {
        let numbers = texts.iter().map(|text| text.trim().parse().unwrap());
        numbers.collect()
    };
    let dev = numbers(messages(&*store, "a", Environment::Dev).await);
    let prod = numbers(messages(&*store, "a", Environment::Prod).await);
    assert_eq!(dev, (10..40).step_by(2).collect::<Vec<_>>());
    assert_eq!(prod, (9..40).step_by(2).collect::<Vec<_>>());
    while store.sweep_log_quota(b, 9).await.unwrap() > 0 {}
    let left = store.log_bytes("a").await.unwrap();
    assert!(left <= b && b - left < 2 * EACH, "no more than needed");
    assert_eq!(store.log_bytes("b").await.unwrap(), b);
    assert_eq!(messages(&*store, "b", Environment::Dev).await, numbers_of_b);
    while store.sweep_log_quota(0, 1_000).await.unwrap() > 0 {}
    assert_eq!(store.log_bytes("a").await.unwrap(), 0);
    assert_eq!(store.log_bytes("nobody").await.unwrap(), 0);
}

pub async fn a_flood_of_strangers_takes_no_record_of_a_player_away(place: &dyn Place) {
    let store = place.open().await;
    fill(&store, "a", NOW, 20).await;
    let of_players = store.log_bytes("a").await.unwrap();
    for number in 0..100 {
        let mut flood = request("a", Environment::Prod, NOW + 1_000 + number);
        flood.player = None;
        flood.entries = vec![entry(1_000, LogLevel::Error, 30)];
        store.add_log_records(flood).await.unwrap();
    }
    let quota = of_players * 2;
    while store.sweep_log_quota(quota, 9).await.unwrap() > 0 {}
    let left = store.log_bytes("a").await.unwrap();
    assert!(left <= quota && quota - left < 1_000, "no more than needed");
    let dev = messages(&*store, "a", Environment::Dev).await;
    assert_eq!(dev.len(), 10, "all of the players'");
    let prod = messages(&*store, "a", Environment::Prod).await;
    let strange = prod.iter().filter(|text| text.starts_with("1000")).count();
    assert_eq!(prod.len() - strange, 10, "all of the players'");
    assert!(strange > 0, "and the newest of the others");
}

pub async fn what_is_known_of_the_room_outlives_the_process(place: &dyn Place) {
    let store = place.open().await;
    fill(&store, "a", NOW, 10).await;
    let before = store.log_bytes("a").await.unwrap();
    drop(store);
    let store = place.open().await;
    assert_eq!(store.log_bytes("a").await.unwrap(), before);
    assert_eq!(store.sweep_log_records(NOW + 10, 100).await.unwrap(), 5);
    assert_eq!(store.log_bytes("a").await.unwrap(), before / 2);
}

pub async fn the_records_of_a_removed_project_go_with_it_and_no_others(place: &dyn Place) {
    let store = place.open().await;
    for slug in ["a", "b"] {
        store.add_project(project(slug, None)).await.unwrap();
    }
    // A project with unknown numbers, as in a restored copy, is not touched.
    for slug in PROJECTS {
        fill(&store, slug, NOW, 20).await;
    }
    let errors = async |slug: &str| {
        let query = ErrorQuery {
            slug: slug.to_owned(),
            environment: Environment::Prod,
            from: NOW - HOUR,
            to: NOW + HOUR,
            limit: 10,
        };
        store.count_errors(query).await.unwrap().len()
    };
    let bytes = async |slug: &str| store.log_bytes(slug).await.unwrap();
    let kept = bytes("b").await;
    assert!(errors("a").await > 0);
    let deleted = store.change_standing("a", Change::Delete, Actor::Operator.into(), NOW);
    deleted.await.unwrap();
    assert_eq!(store.sweep_removed_logs(9).await.unwrap(), 0, "not yet");
    while store.remove_deleted(NOW, NOW).await.unwrap().is_some() {}
    for expected in [9, 9, 2, 2, 0, 0] {
        assert_eq!(store.sweep_removed_logs(9).await.unwrap(), expected);
    }
    assert_eq!((bytes("a").await, errors("a").await), (0, 0));
    for environment in Environment::ALL {
        assert_eq!(messages(&*store, "a", environment).await, [""; 0]);
    }
    for slug in ["b", "c"] {
        assert_eq!(bytes(slug).await, kept);
        assert!(errors(slug).await > 0);
    }
    // Late records are removed by the next sweep.
    fill(&store, "a", NOW, 2).await;
    assert_eq!(store.sweep_removed_logs(9).await.unwrap(), 2);
}
