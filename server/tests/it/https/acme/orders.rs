//! Which handshakes make orders, and what keeps orders back.

use platform_server::domain::certificate::StoredCertificate;
use platform_server::games::panes::{self, PANES};
use platform_server::store::Store;
use rcgen::{CertificateParams, KeyPair};

use super::*;
use crate::caller::{Caller, archive};
use crate::support::send;

const PANE: &str = "pane-1--dev-demo.platform.localhost";

fn name(label: &str) -> String {
    format!("{label}.platform.localhost")
}

/// The names of a project without previews.
fn names_of(slug: &str) -> Vec<String> {
    let panes = (1..=PANES).map(|number| panes::label(number, slug));
    let labels = [slug.to_owned(), format!("dev-{slug}")].into_iter();
    labels.chain(panes).map(|label| name(&label)).collect()
}

/// Deploys a page of a project to an environment.
async fn deploy(owner: &Caller<'_>, slug: &str, environment: &str) {
    let path = format!("/api/projects/{slug}/environments/{environment}/deployment");
    let request = owner.ask(reqwest::Method::PUT, &path);
    let request = request.header("content-type", "application/gzip");
    let deployed = send(request.body(archive(&[("index.html", b"x")]))).await;
    assert_eq!(deployed.status, 201, "{deployed:?}");
}

async fn is_served(certified: &Certified, root: &str, name: &str) -> bool {
    connect(certified.address(), root, name).await.is_ok()
}

#[tokio::test]
async fn handshakes_for_names_with_nothing_deployed_order_nothing() {
    let app = TestApp::start().await;
    let owner = Caller::account(&app).await;
    let slugs: Vec<String> = (0..8).map(|number| format!("empty-{number}")).collect();
    for slug in &slugs {
        assert_eq!(owner.create(slug).await.status, 201);
    }
    let certified = Certified::after(app, |_, _| {}).await;
    let (root, address) = (certified.pebble.root(), certified.address());
    let names: Vec<String> = slugs.iter().flat_map(|slug| names_of(slug)).collect();
    assert_eq!(names.len(), 48);
    for name in &names {
        let refused = refusal(connect(address, &root, name).await);
        assert!(refused.contains("AccessDenied"), "{name}: {refused}");
    }
    assert_eq!(certified.pebble.orders(), 2, "the platform's own");
    assert_eq!(certified.until_there(2).await, OWN);
    assert!(is_served(&certified, &root, DEMO).await);
}

#[tokio::test]
async fn the_names_of_a_project_have_one_certificate() {
    let certified = Certified::start().await;
    let root = certified.pebble.root();
    // What is asked for first does not matter.
    let mut names = names_of("demo");
    names.reverse();
    for name in &names {
        assert!(is_served(&certified, &root, name).await, "{name}");
    }
    assert_eq!(certified.until_there(3).await, [OWN[0], DEMO, OWN[1]]);
    assert_eq!(certified.pebble.orders(), 3);
}

#[tokio::test]
async fn orders_for_strangers_keep_back_neither_renewals_nor_what_matters_more() {
    let app = TestApp::start().await;
    let owner = Caller::account(&app).await;
    for slug in ["one", "two", "three", "four"] {
        assert_eq!(owner.create(slug).await.status, 201);
        let environment = if slug == "four" { "prod" } else { "dev" };
        deploy(&owner, slug, environment).await;
    }
    // Two first orders for production, one for what is developed, and two renewals.
    let certified = Certified::after(app, |config, _| config.tls.acme.orders_per_hour = 4).await;
    let (root, address) = (certified.pebble.root(), certified.address());
    let served = async |name: &str| is_served(&certified, &root, name).await;
    let first = shown(address, &root, DEMO).await;
    let due = certified.demo().await.renewed_from();
    certified.set_clock(due + DAY);

    assert!(served(&name("dev-one")).await);
    for label in ["dev-two", "dev-three", "pane-1--dev-two"] {
        assert!(!served(&name(label)).await, "{label}");
    }
    assert_eq!(certified.orders("held-back").await, 2, "the node remembers");
    // What is developed leaves production its own, and neither takes part in renewals.
    assert!(served(&name("four")).await);
    assert_eq!(shown(address, &root, DEMO).await, first);
    certified.acme().renew().await.unwrap();
    assert_ne!(shown(address, &root, DEMO).await, first);
    // The platform's own, and the two that end first.
    assert_eq!(certified.pebble.orders(), 3 + 2 + 2 + 2);

    certified.app.clock.advance(HOUR);
    assert!(served(&name("dev-two")).await);
    assert!(!served(&name("dev-three")).await);
}

/// Keeps a certificate of one name, as earlier versions of the program obtained them, and returns it.
async fn keep_one_of(name: &str, store: &dyn Store, (directory, now): (String, i64)) -> String {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new([name.to_owned()]).unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let old = StoredCertificate {
        name: name.to_owned(),
        directory,
        chain: certificate.pem(),
        private: key.serialize_der(),
        sealed: false,
        valid_from: now - DAY,
        valid_until: now + 90 * DAY,
        obtained_at: now,
    };
    store.put_certificate(old).await.unwrap();
    certificate.pem()
}

#[tokio::test]
async fn a_certificate_of_one_name_is_used_until_its_end_and_renewed_for_the_same_name() {
    let certified = Certified::start().await;
    let (new, address) = (certified.pebble.root(), certified.address());
    let store = &certified.app.running.state.platform.store;
    let stored = || (certified.pebble.directory(), certified.app.clock.now());
    let of_dev = keep_one_of(DEV_DEMO, &**store, stored()).await;
    connect(address, &of_dev, DEV_DEMO).await.unwrap();
    let of_demo = keep_one_of(DEMO, &**store, stored()).await;
    connect(address, &of_demo, DEMO).await.unwrap();
    assert_eq!(certified.pebble.orders(), 2);

    // Authorities count it as a renewal only if the names are the same.
    certified.app.clock.advance(70 * DAY);
    certified.acme().renew().await.unwrap();
    for name in [DEMO, DEV_DEMO] {
        shown(address, &new, name).await;
    }
    let orders = certified.pebble.orders();
    assert_eq!(certified.until_there(4).await.len(), 4);
    // A name that has none gets one with the others; then that of one name is superfluous.
    shown(address, &new, PANE).await;
    assert_eq!(certified.pebble.orders(), orders + 1);
    let all = certified.acme().follow().await.unwrap();
    let due = all.iter().map(CertificateSummary::renewed_from).max();
    certified.set_clock(due.unwrap());
    certified.acme().renew().await.unwrap();
    assert_eq!(certified.until_there(3).await, [OWN[0], DEMO, OWN[1]]);
}
