//! A web server whose only handler returns a file from memory, or 304: the maximum that the
//! framework can do on this machine. `cargo xtask bench` compares hosting with it.
//!
//! `bare_file <folder> axum|hyper|loop [threads]`: serves `file.js.br` and `large.bin` of the folder,
//! with axum, with hyper alone, or with the connections and limits of the platform (`serve.rs`). With
//! `threads`, every processor has a runtime and a listening socket of its own.

#![expect(
    clippy::print_stdout,
    reason = "the ready line, as the server prints it"
)]

use std::convert::Infallible;
use std::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use axum::routing::get;
use axum::serve::ListenerExt;
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use platform_web::request_id::RequestId;
use platform_web::serve::{Application, ConnectionLimits, serve as serve_connections};
use socket2::{Domain, Socket, Type};
use tokio::net::TcpListener;
use tokio::sync::watch;

/// The `ETag`.
const TAG: &str = "\"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"";

/// The files.
#[derive(Clone)]
struct Files {
    small: Bytes,
    large: Bytes,
}

impl Files {
    /// The status and the body of a response; an empty one if the client has the file.
    fn find<T>(&self, request: &hyper::Request<T>) -> (StatusCode, Bytes) {
        let known = request.headers().get(header::IF_NONE_MATCH);
        if known.is_some_and(|known| known.as_bytes() == TAG.as_bytes()) {
            return (StatusCode::NOT_MODIFIED, Bytes::new());
        }
        let is_large = request.uri().path() == "/large.bin";
        let file = if is_large { &self.large } else { &self.small };
        (StatusCode::OK, file.clone())
    }
}

/// The response with the headers of a deployed file.
fn answer<B>(status: StatusCode, body: B) -> hyper::Response<B> {
    let mut response = hyper::Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    for (name, value) in [
        (header::ETAG, TAG),
        (header::CONTENT_TYPE, "text/javascript; charset=utf-8"),
        (header::CACHE_CONTROL, "no-cache"),
        (header::VARY, "Accept-Encoding"),
        (header::CONTENT_ENCODING, "br"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

async fn file(State(files): State<Files>, request: Request) -> Response {
    let (status, bytes) = files.find(&request);
    answer(status, Body::from(bytes))
}

async fn with_axum(listener: TcpListener, files: Files) -> std::io::Result<()> {
    let app = Router::new().route("/{*path}", get(file)).with_state(files);
    let listener = listener.tap_io(|stream| {
        // Otherwise small responses may be delayed, and the comparison would be unfair.
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, app).await
}

async fn with_hyper(listener: TcpListener, files: Files) -> std::io::Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let files = files.clone();
        let service = service_fn(move |request: hyper::Request<Incoming>| {
            let (status, bytes) = files.find(&request);
            std::future::ready(Ok::<_, Infallible>(answer(status, Full::new(bytes))))
        });
        let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        tokio::spawn(connection);
    }
}

impl Application for Files {
    async fn answer(&self, _: SocketAddr, request: Request) -> Response {
        let (status, bytes) = self.find(&request);
        answer(status, Body::from(bytes))
    }

    fn explain_unread(&self, _: StatusCode) -> (RequestId, Vec<u8>) {
        (RequestId::unknown(), Vec::new())
    }

    fn trusts(&self, _: IpAddr) -> bool {
        false
    }
}

/// Listens at `address`, where other sockets of this process may listen as well.
fn listen(address: SocketAddr) -> std::io::Result<std::net::TcpListener> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.set_reuse_port(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(1_024)?;
    Ok(socket.into())
}

async fn serve(
    listener: std::net::TcpListener,
    framework: &str,
    files: Files,
) -> std::io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    match framework {
        "axum" => with_axum(listener, files).await,
        "loop" => {
            let (_never, stopping) = watch::channel(false);
            let limits = ConnectionLimits::of_this_process();
            serve_connections(listener, files, limits, stopping).await;
            Ok(())
        }
        _ => with_hyper(listener, files).await,
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (folder, framework) = match &arguments[..] {
        [folder, framework, ..] => (PathBuf::from(folder), framework.clone()),
        _ => return Err("name a folder, and axum, hyper or loop".into()),
    };
    let read = |name: &str| std::fs::read(folder.join(name)).map(Bytes::from);
    let files = Files {
        small: read("file.js.br")?,
        large: read("large.bin")?,
    };
    let first = listen(([127, 0, 0, 1], 0).into())?;
    let address = first.local_addr()?;
    println!("bare_file ready on http://{address} (listening on {address})");
    if arguments.get(2).is_none() {
        let runtime = tokio::runtime::Runtime::new()?;
        return Ok(runtime.block_on(serve(first, &framework, files))?);
    }
    let others = std::thread::available_parallelism()?.get() - 1;
    let mut listeners = vec![first];
    for _ in 0..others {
        listeners.push(listen(address)?);
    }
    let threads: Vec<_> = listeners
        .into_iter()
        .map(|listener| {
            let (framework, files) = (framework.clone(), files.clone());
            std::thread::spawn(move || -> std::io::Result<()> {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()?;
                runtime.block_on(serve(listener, &framework, files))
            })
        })
        .collect();
    for thread in threads {
        thread.join().map_err(|_| "a thread panicked")??;
    }
    Ok(())
}
