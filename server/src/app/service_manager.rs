//! What the server tells the service manager that started it, such as systemd: that it is ready, that
//! it still works, that it stops (`sd_notify(3)`).

use std::io;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use tokio::time::MissedTickBehavior;

/// How often the server shows that it works in the time that the service manager waits.
const SIGNS: u32 = 3;

/// The service manager, if there is one that wants to know.
#[derive(Clone, Debug, Default)]
pub struct ServiceManager {
    socket: Option<String>,
    watchdog: Option<Duration>,
}

impl ServiceManager {
    /// Returns the one that started this process.
    #[must_use]
    pub fn from_process() -> Self {
        #[expect(
            clippy::disallowed_methods,
            reason = "these variables are no settings: the service manager sets them for one process"
        )]
        let variable = |name: &str| std::env::var(name).ok();
        Self::new(variable, std::process::id())
    }

    fn new(variable: impl Fn(&str) -> Option<String>, process: u32) -> Self {
        let number = |name: &str| variable(name).and_then(|text| text.parse::<u64>().ok());
        let is_ours = number("WATCHDOG_PID").is_none_or(|id| id == u64::from(process));
        let watchdog = number("WATCHDOG_USEC").filter(|micros| is_ours && *micros > 0);
        Self {
            socket: variable("NOTIFY_SOCKET").filter(|path| !path.is_empty()),
            watchdog: watchdog.map(Duration::from_micros),
        }
    }

    /// Says that the server serves.
    pub fn ready(&self, origin: &str) {
        self.tell(&format!("READY=1\nSTATUS=Serving {origin}"));
    }

    /// Says that the server stops.
    pub fn stopping(&self) {
        self.tell("STOPPING=1\nSTATUS=Stopping");
    }

    /// Says again and again that the server works, if the service manager waits for it. It never
    /// returns.
    pub async fn show_signs_of_life(&self) {
        let Some(watchdog) = self.watchdog else {
            return std::future::pending().await;
        };
        let mut ticks = tokio::time::interval(watchdog / SIGNS);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.tell("WATCHDOG=1");
        }
    }

    fn tell(&self, state: &str) {
        let Some(path) = &self.socket else {
            return;
        };
        if let Err(error) = send(path, state) {
            tracing::warn!(%error, state, "the service manager could not be told");
        }
    }
}

fn send(path: &str, state: &str) -> io::Result<()> {
    let socket = UnixDatagram::unbound()?;
    socket
        .send_to_addr(state.as_bytes(), &address(path)?)
        .map(drop)
}

/// Returns the address of the socket: a path, or on Linux a name that begins with `@`.
fn address(path: &str) -> io::Result<SocketAddr> {
    #[cfg(target_os = "linux")]
    if let Some(name) = path.strip_prefix('@') {
        use std::os::linux::net::SocketAddrExt as _;
        return SocketAddr::from_abstract_name(name);
    }
    SocketAddr::from_pathname(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manager(variables: &[(&str, &str)]) -> ServiceManager {
        let find = |name: &str| {
            let found = variables.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        ServiceManager::new(find, 42)
    }

    #[test]
    fn a_watchdog_of_another_process_is_not_ours() {
        let usec = ("WATCHDOG_USEC", "3000000");
        assert_eq!(manager(&[usec]).watchdog, Some(Duration::from_secs(3)));
        assert_eq!(
            manager(&[usec, ("WATCHDOG_PID", "42")])
                .watchdog
                .map(|_| ()),
            Some(())
        );
        assert_eq!(manager(&[usec, ("WATCHDOG_PID", "7")]).watchdog, None);
        for text in ["0", "", "soon"] {
            assert_eq!(manager(&[("WATCHDOG_USEC", text)]).watchdog, None, "{text}");
        }
    }

    #[test]
    fn a_service_manager_is_told_by_path_and_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let name = format!("@platform-test-{}", std::process::id());
        for at in [path.to_str().unwrap(), &name] {
            let socket = UnixDatagram::bind_addr(&address(at).unwrap()).unwrap();
            let manager = manager(&[("NOTIFY_SOCKET", at)]);
            manager.ready("http://a");
            manager.stopping();
            for expected in [
                "READY=1\nSTATUS=Serving http://a",
                "STOPPING=1\nSTATUS=Stopping",
            ] {
                let mut said = [0; 200];
                let length = socket.recv(&mut said).unwrap();
                assert_eq!(std::str::from_utf8(&said[..length]).unwrap(), expected);
            }
        }
        // Nobody waits, and nobody is there any more.
        manager(&[]).stopping();
        manager(&[("NOTIFY_SOCKET", &name)]).stopping();
    }
}
