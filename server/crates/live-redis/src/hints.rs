//! Hints that something has changed in the store, so that nodes look at once and not only with
//! their next look. A hint may be lost.

use std::sync::Arc;

use futures_util::StreamExt as _;
use redis::RedisResult;
use tokio::sync::Notify;
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::LiveRedis;
use crate::link::{CONNECT, PROBE, Subscribers, Unavailable};
use crate::place::Connection;

/// The channel of hints. Messages say nothing but that there is one.
const CHANNEL: &str = "platform:changes";

impl LiveRedis {
    /// Tells all nodes, and this one, that something has changed.
    ///
    /// # Errors
    /// [`Unavailable`]
    pub async fn tell_of_change(&self) -> Result<(), Unavailable> {
        let mut publish = redis::cmd("PUBLISH");
        publish.arg(CHANNEL).arg("");
        let call = |mut connection: Connection| async move {
            publish.query_async::<()>(&mut connection).await
        };
        self.link.call(CHANNEL, call).await
    }

    /// Returns when a node has told of a change since the last time.
    pub async fn told_of_change(&self) {
        self.told.notified().await;
    }
}

/// Receives hints whenever Redis can be reached.
pub(crate) async fn listen_for_ever(subscribers: Subscribers, told: Arc<Notify>) {
    let mut ticks = interval(PROBE);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for attempt in (0..usize::MAX).cycle() {
        ticks.tick().await;
        // Without Redis there are none: the link says so in the log.
        let _ = listen(&subscribers, attempt, &told).await;
    }
}

/// Receives hints until the connection is lost.
async fn listen(subscribers: &Subscribers, attempt: usize, told: &Notify) -> RedisResult<()> {
    let subscribe = async {
        let mut connection = subscribers.open(attempt).await?;
        connection.subscribe(CHANNEL).await?;
        Ok::<_, redis::RedisError>(connection)
    };
    let Ok(subscribed) = timeout(CONNECT, subscribe).await else {
        return Ok(());
    };
    let mut connection = subscribed?;
    // Hints may have been lost before.
    told.notify_one();
    let mut hints = connection.on_message();
    while hints.next().await.is_some() {
        told.notify_one();
    }
    Ok(())
}
