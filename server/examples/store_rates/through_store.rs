//! The store, with many callers.

use std::sync::Arc;

use platform_server::clock::{Clock, SystemClock};
use platform_server::domain::session::SessionHash;
use platform_server::store::{NewGuest, SchemaPolicy, Store, connect};

use super::rows::{self, ADDRESS, Turn};
use super::{CALLERS, Outcome, RECORDS};

/// A store under measurement.
pub(super) struct ThroughStore(Arc<dyn Store>);

impl ThroughStore {
    pub(super) async fn open(url: &str) -> Outcome<Self> {
        Ok(Self(connect(url, SchemaPolicy::Upgrade).await?))
    }

    pub(super) async fn close(&self) -> Outcome<()> {
        Ok(self.0.close().await?)
    }

    pub(super) async fn add_guests(&self) -> Outcome<(usize, Vec<SessionHash>)> {
        let turn = Turn::begin();
        let callers = (0..CALLERS).map(|_| {
            let store = Arc::clone(&self.0);
            tokio::spawn(async move {
                let mut sessions = Vec::new();
                while turn.goes_on() {
                    let rows::Guest {
                        id,
                        username,
                        session,
                        now,
                    } = rows::guest();
                    let guest = NewGuest {
                        cap: None,
                        awaiting: None,
                        id,
                        usernames: vec![username],
                        session,
                        address: ADDRESS.into(),
                        now,
                    };
                    store.add_guest(guest).await?;
                    sessions.push(session);
                }
                Outcome::Ok(sessions)
            })
        });
        let callers: Vec<_> = callers.collect();
        let mut sessions = Vec::new();
        for caller in callers {
            sessions.extend(caller.await??);
        }
        Ok((sessions.len(), sessions))
    }

    pub(super) async fn look_up(&self, sessions: &[SessionHash]) -> Outcome<usize> {
        let sessions: Arc<[SessionHash]> = sessions.into();
        let turn = Turn::begin();
        let callers = (0..CALLERS).map(|caller| {
            let (store, sessions) = (Arc::clone(&self.0), Arc::clone(&sessions));
            tokio::spawn(async move {
                let mut count = 0;
                for session in sessions.iter().cycle().skip(caller * 101).step_by(7) {
                    if !turn.goes_on() {
                        break;
                    }
                    let found = store.lookup_session(session).await?;
                    found.ok_or("a session is missing")?;
                    count += 1;
                }
                Outcome::Ok(count)
            })
        });
        sum(callers).await
    }

    pub(super) async fn add_records(&self) -> Outcome<usize> {
        let turn = Turn::begin();
        let callers = (0..CALLERS).map(|_| {
            let store = Arc::clone(&self.0);
            tokio::spawn(async move {
                let mut count = 0;
                while turn.goes_on() {
                    let records = rows::records("store", RECORDS, SystemClock.now());
                    store.add_log_records(records).await?;
                    count += RECORDS;
                }
                Outcome::Ok(count)
            })
        });
        sum(callers).await
    }
}

/// Waits for all callers. Returns the sum of what they did.
async fn sum(
    callers: impl Iterator<Item = tokio::task::JoinHandle<Outcome<usize>>>,
) -> Outcome<usize> {
    let callers: Vec<_> = callers.collect();
    let mut all = 0;
    for caller in callers {
        all += caller.await??;
    }
    Ok(all)
}
