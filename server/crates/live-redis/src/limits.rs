//! Rate limits that all nodes share.

use std::num::NonZeroU32;
use std::time::Duration;

use redis::{Script, ScriptInvocation};

use crate::LiveRedis;
use crate::link::Unavailable;
use crate::place::Connection;

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
        let mut take = invocation(&self.scripts.take, name, key, rate);
        take.arg(many.get());
        self.wait_of(key, take).await
    }

    /// Counts `open` events of `key` that have happened already against the limit `name`, and then
    /// `many` more: all of these, or none. Returns how long to wait if they are refused; without
    /// any, how long the next one must wait.
    ///
    /// # Errors
    /// [`Unavailable`]: they may have been counted all the same.
    pub async fn spend(
        &self,
        name: &str,
        key: &str,
        rate: SharedRate,
        open: u32,
        many: u32,
    ) -> Result<Option<Duration>, Unavailable> {
        let mut spend = invocation(&self.scripts.spend, name, key, rate);
        spend.arg(open).arg(many);
        self.wait_of(key, spend).await
    }

    async fn wait_of(
        &self,
        tag: &str,
        script: ScriptInvocation<'_>,
    ) -> Result<Option<Duration>, Unavailable> {
        let call =
            |mut connection: Connection| async move { script.invoke_async(&mut connection).await };
        let wait: u64 = self.link.call(tag, call).await?;
        Ok((wait > 0).then(|| Duration::from_micros(wait)))
    }
}

/// Prepares a script that counts against the limit `name`.
fn invocation<'script>(
    script: &'script Script,
    name: &str,
    key: &str,
    rate: SharedRate,
) -> ScriptInvocation<'script> {
    let interval = rate.period.as_micros() / u128::from(rate.count.get());
    let interval = u64::try_from(interval).unwrap_or(u64::MAX).max(1);
    let mut invocation = script.prepare_invoke();
    invocation.key(format!("platform:limit:{name}:{{{key}}}"));
    invocation.arg(interval).arg(rate.burst.get());
    invocation
}
