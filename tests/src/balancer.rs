//! A balancer before several nodes: each request goes to a node that is chosen at random, also if
//! the client keeps its connection. Nothing is changed on the way, so that what a test sends and
//! receives is the node's.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use hyper::body::Incoming;
use hyper::header::UPGRADE;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode, client, server, upgrade};
use hyper_util::rt::TokioIo;
use platform_server::origin::PlatformOrigin;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

use crate::racing;

/// The maximum size of a request's head, which is that of the platform's.
const HEAD: usize = 1 << 20;

/// Why a request has no response: the client's connection ends.
type Lost = Box<dyn std::error::Error + Send + Sync>;

/// A running balancer. It has a thread of its own, because tests may block theirs.
#[derive(Debug)]
pub struct Balancer {
    /// Where it listens.
    pub address: SocketAddr,
    nodes: Arc<Nodes>,
    /// The thread ends when the sender is dropped.
    running: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

/// The nodes, and which one is next.
#[derive(Debug)]
struct Nodes {
    addresses: Mutex<Vec<SocketAddr>>,
    random: Mutex<fastrand::Rng>,
}

impl Nodes {
    fn choose(&self) -> Option<SocketAddr> {
        let addresses = self.addresses.lock();
        let addresses = addresses.unwrap_or_else(PoisonError::into_inner);
        let mut random = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        random.choice(&*addresses).copied()
    }
}

impl Balancer {
    /// Listens on this port of the loopback address, 0 for a free one, and prints how to get the
    /// same choice of nodes again.
    ///
    /// # Panics
    /// Panics if the port is not free.
    #[must_use]
    pub fn listen(port: u16) -> Self {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, port));
        let listener = listener.expect("the balancer's port is free");
        let address = listener.local_addr();
        let address = address.expect("a bound socket has an address");
        let prepared = listener.set_nonblocking(true);
        prepared.expect("a socket can be read without blocking");
        let nodes = Arc::new(Nodes {
            addresses: Mutex::default(),
            random: Mutex::new(racing::random()),
        });
        let (running, ended) = oneshot::channel();
        let shared = Arc::clone(&nodes);
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime can be made");
            runtime.block_on(async {
                tokio::select! {
                    () = accept(listener, shared) => {}
                    _ = ended => {}
                }
            });
        });
        Self {
            address,
            nodes,
            running: Some((running, thread)),
        }
    }

    /// Returns the origin of a platform on this machine whose nodes are behind it.
    #[must_use]
    pub fn origin(&self) -> PlatformOrigin {
        PlatformOrigin::local(self.address.port())
    }

    /// Sends requests to these nodes from now on.
    pub fn lead_to(&self, nodes: Vec<SocketAddr>) {
        let addresses = self.nodes.addresses.lock();
        *addresses.unwrap_or_else(PoisonError::into_inner) = nodes;
    }
}

impl Drop for Balancer {
    /// Waits until the port is free, so that a platform can start there again.
    fn drop(&mut self) {
        if let Some((running, thread)) = self.running.take() {
            drop(running);
            // It has panicked, and said why.
            let _ = thread.join();
        }
    }
}

async fn accept(listener: std::net::TcpListener, nodes: Arc<Nodes>) {
    let listener = TcpListener::from_std(listener).expect("a socket for the runtime");
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(serve(stream, Arc::clone(&nodes)));
    }
}

async fn serve(stream: TcpStream, nodes: Arc<Nodes>) {
    // Otherwise every small response may wait for a delayed acknowledgement.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| pass_on(request, Arc::clone(&nodes)));
    // An error means that the client or a node closed its connection.
    let _ = server::conn::http1::Builder::new()
        .max_buf_size(HEAD)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades()
        .await;
}

/// Sends a request to any node, over a connection of its own, and returns the response as it comes.
async fn pass_on(
    mut request: Request<Incoming>,
    nodes: Arc<Nodes>,
) -> Result<Response<Incoming>, Lost> {
    let node = nodes.choose().ok_or("there is no node")?;
    let stream = TcpStream::connect(node).await?;
    stream.set_nodelay(true)?;
    let connected = client::conn::http1::Builder::new()
        .max_buf_size(HEAD)
        .handshake(TokioIo::new(stream));
    let (mut sender, connection) = connected.await?;
    tokio::spawn(connection.with_upgrades());
    let wanted = request.headers().contains_key(UPGRADE);
    let from_client = wanted.then(|| upgrade::on(&mut request));
    let mut answer = sender.send_request(request).await?;
    if let Some(from_client) = from_client
        && answer.status() == StatusCode::SWITCHING_PROTOCOLS
    {
        tokio::spawn(join(from_client, upgrade::on(&mut answer)));
    }
    Ok(answer)
}

/// Passes bytes in both directions until one side ends, as for a WebSocket.
async fn join(client: upgrade::OnUpgrade, node: upgrade::OnUpgrade) {
    if let (Ok(client), Ok(node)) = (client.await, node.await) {
        let (mut client, mut node) = (TokioIo::new(client), TokioIo::new(node));
        // An error means that one side ended without saying so.
        let _ = tokio::io::copy_bidirectional(&mut client, &mut node).await;
    }
}
