//! What players notice when one part of a cluster dies, is cut off, or is restarted.

mod clocks;
mod databases;
mod equality;
mod files;
mod network;
mod race;
mod redis;
mod restarts;
mod starts;
mod streams;

use std::collections::HashSet;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use platform_cluster::{Cluster, Node, Postgres, PostgresPair};
use platform_protocol::claims::GameTokenClaims;
use platform_tests::nodes::{self, Seen};
use platform_tests::person::Person;
use platform_tests::platform::Site;
use platform_tests::{settings, terminal};
use serde_json::Value;

/// Requests a second of the steady load.
const RATE: u32 = 50;
/// How long an answer may take at most, whatever is broken.
const LONGEST: Duration = Duration::from_secs(6);
/// How many lines of each node's log are shown when requests have failed.
const COMPLAINTS: usize = 10;
/// How many people have an account before something is broken.
const ACCOUNTS: usize = 3;
/// How many players are asked for at once.
const AT_ONCE: usize = 16;

/// Returns the number in a variable that makes a test longer, or the usual one.
fn wanted(variable: &str, usual: usize) -> usize {
    settings::variable(variable).map_or(usual, |number| number.parse().unwrap())
}

/// Returns how many rounds a test has: `TESTS_ROUNDS`, or the usual number.
fn rounds(usual: usize) -> usize {
    wanted("TESTS_ROUNDS", usual)
}

/// Returns what a node says about itself at `/readyz`, with the status; `None` if there is no answer.
async fn readiness(node: &Node) -> Option<(u16, Value)> {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let url = format!("http://{}/readyz", node.operations);
    let answer = client.get(&url).send().await.ok()?;
    let status = answer.status().as_u16();
    Some((status, answer.json().await.ok()?))
}

/// Asserts that no request failed. Otherwise, shows what the nodes have said about it.
fn assert_none_failed(cluster: &Cluster, what: &str, seen: &Seen) {
    let failures = seen.failures();
    if !failures.is_empty() {
        let said = cluster.nodes.iter().map(complaints).collect::<Vec<_>>();
        panic!("{what}: {failures:?}\n{}", said.concat());
    }
}

/// Returns the last warnings and errors in a node's log.
fn complaints(node: &Node) -> String {
    let log = node.process.output().unwrap_or_default();
    let lines = log
        .lines()
        .filter(|line| line.contains("WARN") || line.contains("ERROR"));
    let mut lines: Vec<_> = lines
        .map(|line| format!("{}: {line}\n", node.name))
        .collect();
    lines.drain(..lines.len().saturating_sub(COMPLAINTS));
    lines.concat()
}

/// Signs a guest in at the demo provider, each step through another node, from the one in this place
/// on. The nodes exchange the code through the balancer, with any node.
async fn sign_in_across(sites: &[Site], first: usize, name: &str) -> Person {
    let site = |step: usize| &sites[(first + step) % sites.len()];
    let mut person = Person::new(site(0));
    assert!(person.play().await.is_anon);
    let game = person.game();
    let address = person.begin("demo", &game).await;
    let mut person = person.through(site(1));
    let page = person.follow(&address).await;
    let form = terminal::form(&page, "/demo-provider/authorize", "request");
    let mut person = person.through(site(2));
    let typed = [("name", name), ("action", "sign-in")];
    let answered = terminal::press(&mut person, &form, &typed).await;
    let callback = answered.see_other().to_owned();
    let mut person = person.through(site(3));
    assert_eq!(person.follow(&callback).await.see_other(), game);
    person
}

/// Returns the PostgreSQL server to which nodes write: the standby if it was promoted.
fn writable(cluster: &Cluster) -> &Postgres {
    let PostgresPair { primary, standby } = &cluster.postgres;
    let recovering = standby.sql("platform", "SELECT pg_is_in_recovery()");
    match recovering.as_deref() {
        Ok("f") => standby,
        _ => primary,
    }
}

/// Asserts that the database has all of these players, with their names and a session. Nodes cannot
/// be asked: a guest whose rows were lost is added again, with the same id, when its cookie comes.
fn assert_kept(cluster: &Cluster, players: &[GameTokenClaims]) {
    let every = "SELECT DISTINCT p.id, p.username, NOT p.linked FROM players p
        JOIN sessions s ON s.player = p.id AND s.ended_at IS NULL WHERE p.merged_into IS NULL";
    let kept = writable(cluster).sql("platform", every).unwrap();
    let kept: HashSet<&str> = kept.lines().collect();
    let is_kept = |player: &GameTokenClaims| {
        let is_guest = if player.is_anon { 't' } else { 'f' };
        kept.contains(format!("{}|{}|{is_guest}", player.sub, player.username).as_str())
    };
    let lost: Vec<_> = players.iter().filter(|player| !is_kept(player)).collect();
    assert!(lost.is_empty(), "{} were lost: {lost:?}", lost.len());
}

/// Signs some people in, whose accounts are to last.
async fn sign_some_in(cluster: &Cluster) -> Vec<(Person, GameTokenClaims)> {
    let sites = nodes::sites(cluster);
    let mut accounts = Vec::new();
    for number in 0..ACCOUNTS {
        let person = sign_in_across(&sites, number, &format!("Lasting {number}")).await;
        let mut person = person.through(sites.last().unwrap());
        let claims = person.play().await;
        assert!(!claims.is_anon);
        accounts.push((person, claims));
    }
    accounts
}

/// Asserts that these people are still signed in to the same accounts.
async fn assert_the_same_accounts(cluster: &Cluster, accounts: Vec<(Person, GameTokenClaims)>) {
    let claims: Vec<_> = accounts.iter().map(|(_, claims)| claims.clone()).collect();
    assert_kept(cluster, &claims);
    for (mut person, before) in accounts {
        let now = person.play().await;
        assert_eq!((now.sub, now.is_anon), (before.sub, false));
    }
}

/// Asserts that every acknowledged guest is still the same player.
async fn assert_the_same_players(cluster: &Cluster, seen: &Seen) {
    let guests: Vec<_> = seen
        .guests()
        .into_iter()
        .map(|guest| guest.claims)
        .collect();
    assert_kept(cluster, &guests);
    let visitor = nodes::visitor(cluster);
    assert_eq!(seen.strangers(), 0, "a known cookie became another player");
    let guests = stream::iter(seen.guests()).map(|guest| {
        let visitor = visitor.clone();
        async move { (visitor.mint("demo", Some(&guest.cookie)).await, guest) }
    });
    let mut guests = guests.buffer_unordered(AT_ONCE);
    while let Some((again, guest)) = guests.next().await {
        let again = again.unwrap_or_else(|error| {
            let balancer = cluster.balancer.process.output().unwrap_or_default();
            panic!("no token: {error:?}\n{balancer}")
        });
        assert_eq!(again.claims.sub, guest.claims.sub, "a guest was lost");
        assert_eq!(again.claims.username, guest.claims.username);
    }
}
