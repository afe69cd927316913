//! Measures what accounts cost beside guests: the rate of `POST /token` for
//! both, in turns, and how long a callback takes without the provider's own
//! time. Prints one JSON object; times are in milliseconds.

#![expect(
    clippy::expect_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a measurement reads the clock, prints what it found, and fails loudly"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::header;
use axum::response::Response;
use platform_tests::hostile_provider::{CLIENT_ID, CLIENT_SECRET, HostileProvider};
use platform_tests::person::{GAME, Person};
use platform_tests::platform::Site;
use platform_tests::server::Server;
use serde_json::json;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// Turns of each kind of player; the first one warms up and does not count.
const TURNS: usize = 41;
/// How long a turn is: short, so that another program's noise falls on both.
const TURN: Duration = Duration::from_millis(300);
/// Connections that ask for tokens at once.
const CONNECTIONS: usize = 32;
/// Callbacks of each kind; the first ones warm up and do not count.
const CALLBACKS: usize = 300;
const WARM: usize = 20;
/// The provider's id in the settings.
const PROVIDER: &str = "measured";

/// Passes everything on to the provider, and adds up how long that took.
#[derive(Clone, Debug)]
struct Stopwatch {
    client: reqwest::Client,
    provider: Arc<tokio::sync::OnceCell<String>>,
    nanoseconds: Arc<AtomicU64>,
}

impl Stopwatch {
    async fn listen() -> (Self, String) {
        let watch = Self {
            client: reqwest::Client::builder()
                .no_proxy()
                .redirect(reqwest::redirect::Policy::none())
                .build()
                .expect("a client can be made"),
            provider: Arc::default(),
            nanoseconds: Arc::default(),
        };
        let listener = TcpListener::bind(("127.0.0.1", 0)).await;
        let listener = listener.expect("a port is free");
        let address = listener
            .local_addr()
            .expect("a bound socket has an address");
        let routes = Router::new().fallback(pass).with_state(watch.clone());
        tokio::spawn(async move { axum::serve(listener, routes).await });
        (watch, format!("http://{address}"))
    }

    fn passed(&self) -> Duration {
        Duration::from_nanos(self.nanoseconds.load(Ordering::SeqCst))
    }
}

async fn pass(State(watch): State<Stopwatch>, request: Request) -> Response {
    let begun = Instant::now();
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, 1 << 20).await.expect("a whole request");
    let provider = watch.provider.get().expect("the provider is known");
    let mut headers = parts.headers;
    headers.remove(header::HOST);
    let answer = watch
        .client
        .request(parts.method, format!("{provider}{}", parts.uri))
        .headers(headers)
        .body(body)
        .send()
        .await
        .expect("the provider answers");
    let mut response = Response::builder().status(answer.status());
    for (name, value) in answer.headers() {
        if name != header::TRANSFER_ENCODING && name != header::CONNECTION {
            response = response.header(name, value);
        }
    }
    let body = answer.bytes().await.expect("a whole answer");
    let response = response.body(Body::from(body)).expect("an answer");
    let took = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
    watch.nanoseconds.fetch_add(took, Ordering::SeqCst);
    response
}

#[tokio::main]
async fn main() {
    let (watch, address) = Stopwatch::listen().await;
    let provider = HostileProvider::start_behind(&address).await;
    watch
        .provider
        .set(provider.address.clone())
        .expect("the provider is set once");
    let data = TempDir::with_prefix("platform-tests-").expect("a temporary directory");
    let settings = format!(
        "[[identity_provider]]\nid = \"{PROVIDER}\"\nname = \"Measured\"\nissuer = \"{address}\"\n\
         client_id = \"{CLIENT_ID}\"\nclient_secret = \"{CLIENT_SECRET}\"\n"
    );
    let server = Server::start_set(data.path(), &settings, &[]).await;
    let site = Site::from(&server);
    let callbacks = callbacks(&site, &watch).await;
    let tokens = tokens(&site).await;
    println!("{}", json!({ "tokens": tokens, "callbacks": callbacks }));
    server.stop().await;
}

/// The rate of tokens for a guest and for an account, in turns.
async fn tokens(site: &Site) -> serde_json::Value {
    let (guest, _) = Person::guest(site).await;
    let (mut account, _) = Person::guest(site).await;
    account.become_account(PROVIDER, "the-account").await;
    let (mut of_guest, mut of_account, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for turn in 0..TURNS {
        // Whoever is first may find the machine in another mood.
        let (first, second) = if turn % 2 == 0 {
            (&guest, &account)
        } else {
            (&account, &guest)
        };
        let rates = [rate(site, first).await, rate(site, second).await];
        let [guest, account] = if turn % 2 == 0 {
            rates
        } else {
            [rates[1], rates[0]]
        };
        if turn > 0 {
            of_guest.push(guest);
            of_account.push(account);
            ratios.push(account / guest);
        }
    }
    json!({
        "guest_per_second": percentile(&mut of_guest, 50),
        "account_per_second": percentile(&mut of_account, 50),
        "account_by_guest": percentile(&mut ratios, 50),
    })
}

/// Tokens a second for one player on many connections. The requests are bytes
/// made beforehand, so that the server is what is measured.
async fn rate(site: &Site, person: &Person) -> f64 {
    let request = format!(
        "POST /token HTTP/1.1\r\nHost: {}\r\nOrigin: {}\r\nCookie: {}={}\r\nContent-Length: 0\r\n\r\n",
        site.host("auth"),
        site.url(GAME, ""),
        person.session_name(),
        person.session()
    );
    let request: Arc<[u8]> = request.into_bytes().into();
    let begun = Instant::now();
    let connections = (0..CONNECTIONS).map(|_| {
        let request = Arc::clone(&request);
        tokio::spawn(ask_until(site.address, request, begun + TURN))
    });
    let mut answers = 0_u32;
    for connection in connections.collect::<Vec<_>>() {
        answers += connection.await.expect("a connection lasts");
    }
    f64::from(answers) / begun.elapsed().as_secs_f64()
}

async fn ask_until(address: std::net::SocketAddr, request: Arc<[u8]>, end: Instant) -> u32 {
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    stream.set_nodelay(true).expect("a socket option");
    let mut buffer = vec![0; 16 << 10];
    let mut answers = 0;
    while Instant::now() < end {
        stream.write_all(&request).await.expect("the server reads");
        let mut filled = 0;
        loop {
            let read = stream.read(&mut buffer[filled..]).await;
            let read = read.expect("the server answers");
            assert!(read > 0, "the server closed the connection");
            filled += read;
            if is_whole(&buffer[..filled]) {
                break;
            }
        }
        assert!(buffer.starts_with(b"HTTP/1.1 200 "), "a token");
        answers += 1;
    }
    answers
}

/// Whether an answer with a `Content-Length` is there to its end.
fn is_whole(answer: &[u8]) -> bool {
    let text = std::str::from_utf8(answer).unwrap_or_default();
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        let is_length = name.eq_ignore_ascii_case("content-length");
        is_length.then(|| value.trim().parse::<usize>().ok())?
    });
    body.len() >= length.expect("an answer says its length")
}

/// How long callbacks take, without the time that the provider took of it.
async fn callbacks(site: &Site, watch: &Stopwatch) -> serde_json::Value {
    let mut samples: [Vec<f64>; 3] = Default::default();
    for round in 0..CALLBACKS + WARM {
        let subject = format!("subject-{round}");
        // The first sign-in links, the second one merges, the third returns.
        let (mut first, _) = Person::guest(site).await;
        let (mut second, _) = Person::guest(site).await;
        let mut third = Person::new(site);
        for (kind, person) in [&mut first, &mut second, &mut third]
            .into_iter()
            .enumerate()
        {
            let callback = person.reach_callback(PROVIDER, &subject).await;
            let (begun, before) = (Instant::now(), watch.passed());
            let answer = person.follow(&callback).await;
            let whole = begun.elapsed();
            let provider = watch.passed() - before;
            assert_eq!(answer.see_other(), person.game());
            assert!(provider > Duration::ZERO, "the provider was asked");
            if round >= WARM {
                samples[kind].push(whole.saturating_sub(provider).as_secs_f64() * 1_000.0);
            }
        }
    }
    let mut all = samples.concat();
    let [mut link, mut merge, mut again] = samples;
    let figures = |values: &mut Vec<f64>| json!({ "p50": percentile(values, 50), "p99": percentile(values, 99) });
    json!({
        "count": all.len(),
        "all": figures(&mut all),
        "link": figures(&mut link),
        "merge": figures(&mut merge),
        "return": figures(&mut again),
    })
}

/// The value that `percent` of the values do not exceed.
fn percentile(values: &mut [f64], percent: usize) -> f64 {
    values.sort_by(f64::total_cmp);
    let place = (values.len() * percent).div_ceil(100).saturating_sub(1);
    values.get(place).copied().unwrap_or(f64::NAN)
}
