//! Nodes whose clocks are wrong, in real programs with libfaketime.

use std::sync::Arc;

use futures_util::future::join_all;
use platform_cluster::Cluster;
use platform_server::clock::{Clock as _, SystemClock};
use platform_tests::device::{self, Device};
use platform_tests::nodes::{self, Load, Outcome, Seen};
use platform_tests::owner::Owner;
use platform_tests::person::GAME;
use platform_tests::platform::Site;
use platform_tests::visitor::{Visitor, key_of};
use platform_tests::{poll, terminal};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::{RATE, assert_none_failed, assert_the_same_players, readiness, sign_in_across, wanted};

/// By how many seconds the clocks of the nodes are ahead.
const CLOCKS: [i32; 3] = [-2, 0, 2];
/// By how many seconds a clock is ahead with which a node must not serve.
const FAR: i32 = 40;
/// How much the offsets that nodes measure may differ from these, in milliseconds.
const PRECISE: i64 = 500;
/// Tokens a second through the balancer, and past it to be verified at every node.
const TOKENS: [u32; 2] = [20, 6];
/// Sign-ins a second, and exchanges of refresh tokens.
const SIGN_INS: u32 = 1;
const REFRESHES: u32 = 4;
/// How many devices are signed in.
const DEVICES: usize = 3;
/// How often somebody plays at each node after signing in.
const PLAYED: usize = 3;
/// How many keys follow one another, unless `TESTS_ROTATIONS` has another number.
const ROTATIONS: usize = 2;
/// How long a new key is published before it signs, in milliseconds, instead of 21 minutes: as long as
/// every node needs to read it, with the differences of the clocks.
const AHEAD: i64 = 8_000;

/// Mints a token at one node, for a new guest or a known one, and lets every node verify it.
async fn verify_everywhere(nodes: Arc<Vec<Visitor>>, seen: Arc<Seen>, number: usize) -> Outcome {
    let known = if (number / nodes.len()) % 2 == 1 {
        seen.guest(number)
    } else {
        None
    };
    let cookie = known.as_ref().map(|known| &*known.cookie);
    let minted = nodes[number % nodes.len()].mint(GAME, cookie).await;
    let minted = minted.map_err(nodes::told)?;
    for (place, node) in nodes.iter().enumerate() {
        let verified = nodes::heartbeat(node, &minted).await;
        verified.map_err(|error| format!("at node {place}: {error}"))?;
    }
    match known {
        Some(known) if known.claims.sub != minted.claims.sub => Err("another player".to_owned()),
        Some(_) => Ok(()),
        None => {
            seen.add(minted);
            Ok(())
        }
    }
}

/// Signs a guest in through all nodes, and plays at each of them for a while.
async fn sign_in(sites: Arc<Vec<Site>>, nodes: Arc<Vec<Visitor>>, number: usize) -> Outcome {
    let name = format!("person {number}");
    // A step that fails panics.
    let signed_in = tokio::spawn(async move { sign_in_across(&sites, number, &name).await });
    let person = signed_in.await.map_err(|error| error.to_string())?;
    let cookie = person.session();
    for round in 0..PLAYED * nodes.len() {
        let minted = nodes[round % nodes.len()].mint(GAME, Some(&cookie)).await;
        let minted = minted.map_err(nodes::told)?;
        if minted.claims.is_anon {
            return Err("the account became a guest".to_owned());
        }
        for node in nodes.iter() {
            nodes::heartbeat(node, &minted).await?;
        }
    }
    Ok(())
}

/// Signs a device in: the code is typed at one node, and each page comes from another one. Returns its
/// refresh token.
async fn sign_in_device(sites: &[Site], nodes: &[Visitor], number: usize) -> String {
    let site = |step: usize| &sites[(number + step) % sites.len()];
    let device = Device::begin(&nodes[number % nodes.len()]).await;
    let mut person = sign_in_across(sites, number, &format!("maker {number}")).await;
    let page = person.open("/device").await;
    let typing = terminal::form(&page, "/device", "csrf");
    let mut person = person.through(site(2));
    let code = [("user_code", &*device.user_code)];
    let typed = terminal::press(&mut person, &typing, &code).await;
    let asked = typed.see_other().to_owned();
    // The node without an offset shows the form and gets it back: by the clock of another one, a
    // person may have to press again.
    let right = CLOCKS.iter().position(|seconds| *seconds == 0).unwrap();
    let mut person = person.through(&sites[right]);
    let page = person.follow(&asked).await;
    let form = terminal::form(&page, "/device", "account");
    terminal::considered(&form).await;
    let pressed = terminal::press(&mut person, &form, &[("action", "approve")]).await;
    let shown = pressed.see_other().to_owned();
    let mut person = person.through(site(1));
    let page = person.follow(&shown).await;
    assert!(page.body.contains("The device is signed in"), "{page:?}");
    device
        .redeem(&nodes[(number + 1) % nodes.len()])
        .await
        .unwrap()
}

/// Exchanges a device's refresh token at a node. Every second time, the response is lost, and the
/// device asks again, at another node.
async fn refresh(
    nodes: Arc<Vec<Visitor>>,
    devices: Arc<Vec<Mutex<String>>>,
    number: usize,
) -> Outcome {
    let mut token = devices[number % devices.len()].lock().await;
    // Every pair of nodes has its turn, whichever device it is.
    let turn = number / devices.len();
    let (first, second) = (turn % nodes.len(), turn / nodes.len() % nodes.len());
    let mut next = device::refresh(&nodes[first], &token).await?;
    if (turn / nodes.len().pow(2)).is_multiple_of(2) {
        let again = device::refresh(&nodes[second], &token).await;
        next = again.map_err(|error| format!("at {second} after {first}: {error}"))?;
    }
    *token = next;
    Ok(())
}

/// Publishes a key that signs in some seconds, and waits until every node signs with it.
async fn rotate(cluster: &Cluster, nodes: &[Visitor], round: usize) {
    let node = &cluster.nodes[round % cluster.nodes.len()];
    let said = node.operate(&["keys", "rotate"]).unwrap();
    let kid = said.split_whitespace().next().unwrap();
    // As if the 21 minutes had almost passed.
    let soon = SystemClock.now() + AHEAD;
    let statement = format!(
        "UPDATE signing_keys SET signs_from = {soon} WHERE kid = '{kid}' AND signs_from > {soon}
         RETURNING kid"
    );
    let changed = cluster
        .postgres
        .primary
        .sql("platform", &statement)
        .unwrap();
    assert_eq!(changed, kid);
    for node in nodes {
        poll::until("a node signs with the new key", async || {
            let token = node.mint(GAME, None).await.unwrap().token;
            (key_of(&token) == kid).then_some(())
        })
        .await;
    }
}

/// Returns what an administrator sees of a node: its offset, and what works less well.
async fn shown(owner: &Owner, port: u16) -> Option<(i64, Value)> {
    let (status, listed) = owner.ask(Method::GET, "/api/admin/nodes", None).await;
    assert_eq!(status, 200, "{listed}");
    let nodes = listed["nodes"].as_array().unwrap();
    let is_it = |node: &&Value| {
        let address = node["address"].as_str().unwrap();
        node["live"] == true && address.ends_with(&format!(":{port}"))
    };
    let node = nodes.iter().find(is_it)?;
    Some((node["clock_offset"].as_i64()?, node["degraded"].clone()))
}

/// Waits until an administrator sees the node with a clock that is so many seconds ahead.
async fn until_shown(owner: &Owner, port: u16, seconds: i32) -> i64 {
    let off = i64::from(seconds) * 1_000;
    let degraded = if seconds == 0 {
        json!([])
    } else {
        json!(["clock"])
    };
    poll::until(&format!("a clock is {seconds} s ahead"), async || {
        let (offset, names) = shown(owner, port).await?;
        ((offset - off).abs() < PRECISE && names == degraded).then_some(offset)
    })
    .await
}

/// Returns how many requests the balancer has sent to a node.
fn balanced_to(cluster: &Cluster, name: &str) -> usize {
    let log = cluster.balancer.process.output().unwrap();
    log.matches(&format!("_nodes/{name} ")).count()
}

/// A node whose clock is far off gets no request, and says why.
async fn assert_far_off_is_left_out(cluster: &mut Cluster, owner: &Owner) {
    let load = Load::of_guests(&nodes::visitor(cluster), RATE);
    let far = cluster.nodes.len() - 1;
    cluster.nodes[far].stop().unwrap();
    cluster.nodes[far].set_clock(FAR);
    cluster.nodes[far].begin().unwrap();
    let (node, port) = (&cluster.nodes[far], cluster.nodes[far].address.port());
    let said = poll::until("a node says why it is not ready", async || {
        readiness(node).await
    })
    .await;
    assert_eq!(said, (503, json!({ "ready": false, "because": ["clock"] })));
    let before = balanced_to(cluster, &node.name);
    assert!(before > 0, "it was balanced to");
    let offset = until_shown(owner, port, FAR).await;
    load.seen
        .until_more_passed(4 * usize::try_from(RATE).unwrap())
        .await;
    assert_eq!(balanced_to(cluster, &node.name), before);
    assert_eq!(readiness(node).await.unwrap().0, 503);

    cluster.nodes[far].stop().unwrap();
    cluster.nodes[far].set_clock(0);
    cluster.nodes[far].restart().unwrap();
    until_shown(owner, port, 0).await;
    load.seen.until_more_passed(100).await;
    let seen = load.end().await;
    println!("{offset} ms ahead: left out; {} passed", seen.passed());
    assert_none_failed(cluster, "tokens", &seen);
    assert_the_same_players(cluster, &seen).await;
}

/// An administrator, whose sign-in ended at the node that is ahead, at the one that is behind.
async fn administrator(cluster: &Cluster, sites: &[Site]) -> Owner {
    let (ahead, behind) = (&sites[2], &sites[0]);
    let mut person = sign_in_across(sites, 2, "the administrator")
        .await
        .through(ahead);
    let sub = person.play().await.sub;
    cluster.nodes[1].operate(&["admin", "grant", &sub]).unwrap();
    Owner::of(&mut person.through(behind), behind).await
}

#[tokio::test(flavor = "multi_thread")]
async fn clocks_that_differ_by_seconds_reject_no_token_and_sign_nobody_out() {
    let mut cluster = nodes::start_at(&CLOCKS);
    let mut sites = nodes::sites(&cluster);
    sites.truncate(CLOCKS.len());
    let (sites, nodes) = (Arc::new(sites), Arc::new(nodes::direct_visitors(&cluster)));
    let admin = administrator(&cluster, &sites).await;
    for (node, seconds) in cluster.nodes.iter().zip(CLOCKS) {
        let offset = until_shown(&admin, node.address.port(), seconds).await;
        let names = if seconds == 0 {
            json!([])
        } else {
            json!(["clock"])
        };
        let said = json!({ "ready": true, "degraded": names });
        assert_eq!(readiness(node).await, Some((200, said)));
        println!("{} is {offset} ms ahead", node.name);
    }

    let devices = (0..DEVICES).map(|number| sign_in_device(&sites, &nodes, number));
    let devices = Arc::new(
        join_all(devices)
            .await
            .into_iter()
            .map(Mutex::new)
            .collect::<Vec<_>>(),
    );
    let balanced = Load::of_guests(&nodes::visitor(&cluster), TOKENS[0]);
    let (everywhere, signing, refreshed) = (nodes.clone(), nodes.clone(), nodes.clone());
    let tokens = Load::steady(TOKENS[1], move |seen, number| {
        verify_everywhere(everywhere.clone(), seen, number)
    });
    let sign_ins = Load::steady(SIGN_INS, move |_, number| {
        sign_in(sites.clone(), signing.clone(), number)
    });
    let refreshes = Load::steady(REFRESHES, move |_, number| {
        refresh(refreshed.clone(), devices.clone(), number)
    });
    for round in 0..wanted("TESTS_ROTATIONS", ROTATIONS) {
        rotate(&cluster, &nodes, round).await;
    }
    for (what, load) in [
        ("tokens through the balancer", balanced),
        ("tokens, each verified at every node", tokens),
        ("sign-ins through every node", sign_ins),
        ("exchanges of refresh tokens, half of them twice", refreshes),
    ] {
        let seen = load.end().await;
        println!("{} {what}, {} failed", seen.passed(), seen.failures().len());
        assert_none_failed(&cluster, what, &seen);
        assert_the_same_players(&cluster, &seen).await;
    }
    let kept = cluster
        .postgres
        .primary
        .sql("platform", "SELECT count(*) FROM devices");
    assert_eq!(kept.unwrap(), DEVICES.to_string());
    assert_far_off_is_left_out(&mut cluster, &admin).await;
}
