//! Rate limits that all nodes share.

use std::num::NonZeroU32;
use std::time::Duration;

use redis::aio::MultiplexedConnection;

use crate::LiveRedis;
use crate::link::Unavailable;

/// How many events are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedRate {
    /// The number of events per period.
    pub count: NonZeroU32,
    /// The period.
    pub period: Duration,
    /// The number of events that may happen at once after a quiet time.
    pub burst: NonZeroU32,
}

impl LiveRedis {
    /// Counts `many` events of `key` against the limit `name`: all of them, or none. A number larger
    /// than the burst counts as the burst. Returns how long to wait if the limit is reached.
    ///
    /// # Errors
    /// [`Unavailable`]: they may have been counted all the same.
    pub async fn take(
        &self,
        name: &str,
        key: &str,
        rate: SharedRate,
        many: NonZeroU32,
    ) -> Result<Option<Duration>, Unavailable> {
        let interval = rate.period.as_micros() / u128::from(rate.count.get());
        let interval = u64::try_from(interval).unwrap_or(u64::MAX).max(1);
        let mut take = self.scripts.take.prepare_invoke();
        take.key(format!("platform:limit:{name}:{{{key}}}"));
        take.arg(interval).arg(rate.burst.get()).arg(many.get());
        let call = |mut connection: MultiplexedConnection| async move {
            take.invoke_async(&mut connection).await
        };
        let wait: u64 = self.link.call(call).await?;
        Ok((wait > 0).then(|| Duration::from_micros(wait)))
    }
}
