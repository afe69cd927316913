//! Tests of requests to the bucket, without a bucket that is real.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use futures_util::future::join_all;
use tokio::sync::watch;

use super::*;
use crate::config::Secret;

fn answered(text: &str) -> object_store::Error {
    object_store::Error::Generic {
        store: "S3",
        source: text.to_owned().into(),
    }
}

#[test]
fn what_the_bucket_repeats_of_a_request_is_not_shown() {
    let error = answered(
        "Error performing PUT http://s3/x - Server returned non-2xx status code: 403 \
         Forbidden: <?xml version=\"1.0\"?><Error><Code>SignatureDoesNotMatch</Code>\
         <Message>Check your key.</Message><CanonicalRequest>x-amz-security-token:hunter2\
         </CanonicalRequest></Error>",
    );
    assert_eq!(
        describe(&error),
        "status 403, SignatureDoesNotMatch: Check your key."
    );
    assert_eq!(status(&error), 403);
    let page = answered("Server returned non-2xx status code: 502 Bad Gateway: <html>hunter2");
    assert_eq!(describe(&page), "status 502");
    let refused = answered("HTTP error: connection refused");
    assert!(describe(&refused).contains("connection refused"));
    assert_eq!(status(&refused), 0);
}

/// A bucket that accepts everything, once it may, and keeps nothing.
#[derive(Debug)]
struct Sink {
    /// How many bytes of objects and parts are on their way to it now, and were at most.
    coming: AtomicU64,
    most: AtomicU64,
    stored: AtomicU64,
    open: watch::Sender<bool>,
}

async fn accept(State(sink): State<Arc<Sink>>, request: Request) -> Response {
    let query = request.uri().query().unwrap_or_default().to_owned();
    if request.method() == Method::POST {
        // The beginning or the end of an upload in parts.
        let answer = if query.contains("uploadId") {
            "<CompleteMultipartUploadResult><ETag>e</ETag></CompleteMultipartUploadResult>"
        } else {
            "<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>"
        };
        return answer.into_response();
    }
    let length = &request.headers()[header::CONTENT_LENGTH];
    let length: u64 = length.to_str().unwrap().parse().unwrap();
    let coming = sink.coming.fetch_add(length, Ordering::SeqCst) + length;
    sink.most.fetch_max(coming, Ordering::SeqCst);
    sink.open.subscribe().wait_for(|open| *open).await.unwrap();
    let body = axum::body::to_bytes(request.into_body(), usize::MAX).await;
    sink.stored
        .fetch_add(body.unwrap().len() as u64, Ordering::SeqCst);
    // The client may send the next one as soon as it has the answer.
    sink.coming.fetch_sub(length, Ordering::SeqCst);
    [(header::ETAG, "e")].into_response()
}

/// Starts a bucket, and returns its client.
async fn start(router: axum::Router) -> Bucket {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(axum::serve(listener, router).into_future());
    let variables = [
        ("AWS_ENDPOINT_URL", format!("http://{address}")),
        ("AWS_ACCESS_KEY_ID", "platform".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "hunter2".to_owned()),
    ];
    let variables = variables.map(|(name, value)| (name.to_owned(), Secret::new(value)));
    let settings = S3Settings {
        bucket: "games".to_owned(),
        prefix: "a".to_owned(),
        variables: variables.into(),
    };
    Bucket::new(&settings).unwrap()
}

#[tokio::test]
async fn files_on_their_way_to_the_bucket_take_no_more_than_16_mib_however_many_they_are() {
    const MIB: u64 = 1024 * 1024;
    let sink = Arc::new(Sink {
        coming: AtomicU64::new(0),
        most: AtomicU64::new(0),
        stored: AtomicU64::new(0),
        open: watch::Sender::new(false),
    });
    let router = axum::Router::new().fallback(accept);
    let bucket = start(router.with_state(Arc::clone(&sink))).await;
    let folder = tempfile::tempdir().unwrap();
    let sizes = [20, 20, 8, 8, 3, 20, 8, 1].map(|size| size * MIB);
    let files: Vec<_> = (0..)
        .zip(sizes)
        .map(|(number, size)| {
            let path = folder.path().join(number.to_string());
            std::fs::File::create(&path).unwrap().set_len(size).unwrap();
            (path, size)
        })
        .collect();
    let all = files.iter().map(|(from, size)| {
        let to = Path::from(from.file_name().unwrap().to_str().unwrap());
        let bucket = &bucket;
        async move { bucket.put_file(&to, from, *size).await.unwrap() }
    });
    // The bucket takes its time, so that all that may come comes.
    let full = async {
        while sink.coming.load(Ordering::SeqCst) < 16 * MIB {
            tokio::task::yield_now().await;
        }
        sink.open.send_replace(true);
    };
    let stored = async { tokio::join!(join_all(all), full) };
    let limit = Duration::from_secs(60);
    tokio::time::timeout(limit, stored).await.unwrap();
    assert_eq!(sink.most.load(Ordering::SeqCst), 16 * MIB);
    assert_eq!(
        sink.stored.load(Ordering::SeqCst),
        sizes.iter().sum::<u64>()
    );
}

/// Answers that there is no such object, or that the bucket is out of order.
async fn nothing_there(State(is_up): State<Arc<AtomicBool>>) -> StatusCode {
    if is_up.load(Ordering::SeqCst) {
        StatusCode::NOT_FOUND
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    }
}

#[tokio::test]
async fn after_an_outage_the_files_of_one_deploy_are_asked_for_as_before() {
    let is_up = Arc::new(AtomicBool::new(false));
    let router = axum::Router::new().fallback(nothing_there);
    let bucket = start(router.with_state(Arc::clone(&is_up))).await;
    let (one, other) = (Path::from("1"), Path::from("2"));
    bucket.length(&one).await.unwrap_err();
    assert!(bucket.is_out_of_reach());
    is_up.store(true, Ordering::SeqCst);
    // As soon as one of the two fails, the other one is dropped, although it may be the one that
    // waits for the answer on which all depend.
    let both = async {
        while tokio::try_join!(bucket.length(&one), bucket.length(&other)).is_err() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(SMALL / 2, both).await.unwrap();
    assert!(!bucket.is_out_of_reach());
}
