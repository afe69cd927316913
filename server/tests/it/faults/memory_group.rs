//! A control group with limited memory (cgroups(7)), of either version. The kernel kills what needs more.

use std::path::{Path, PathBuf};

/// The names of the files of a version.
struct Version {
    /// The folder of the hierarchy.
    root: &'static str,
    /// The line of `/proc/self/cgroup` of this hierarchy begins so, after its number.
    own: &'static str,
    limit: &'static str,
    /// The limit of memory and swap, or of swap alone.
    swap: &'static str,
    /// What of the memory cannot be read again from a file.
    anonymous: &'static str,
    /// Who was killed.
    kills: &'static str,
}

const VERSIONS: [Version; 2] = [
    Version {
        root: "/sys/fs/cgroup",
        own: "::",
        limit: "memory.max",
        swap: "memory.swap.max",
        anonymous: "anon ",
        kills: "memory.events",
    },
    Version {
        root: "/sys/fs/cgroup/memory",
        own: ":memory:",
        limit: "memory.limit_in_bytes",
        swap: "memory.memsw.limit_in_bytes",
        anonymous: "rss ",
        kills: "memory.oom_control",
    },
];

/// A group, which is removed at the end. Its processes must have ended by then.
pub(super) struct MemoryGroup {
    folder: PathBuf,
    version: &'static Version,
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.folder);
    }
}

impl MemoryGroup {
    /// Makes one. `None` where this user may not, or the kernel has none for memory.
    pub(super) fn make() -> Option<Self> {
        let own = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        VERSIONS.iter().find_map(|version| {
            let root = Path::new(version.root);
            // Whoever may not write to the root may perhaps beside this process's own group.
            let beside = own.lines().find_map(|line| {
                let (_, path) = line.split_once(version.own)?;
                Path::new(path.trim_start_matches('/')).parent()
            });
            let beside = beside.map(|path| root.join(path));
            let parents = [Some(root.to_owned()), beside];
            parents
                .into_iter()
                .flatten()
                .find_map(|parent| Self::make_in(&parent, version))
        })
    }

    fn make_in(parent: &Path, version: &'static Version) -> Option<Self> {
        let folder = parent.join(format!("platform-test-{}", std::process::id()));
        std::fs::create_dir(&folder).ok()?;
        let group = Self { folder, version };
        let writable = |name: &str| {
            std::fs::OpenOptions::new()
                .write(true)
                .open(group.path(name))
        };
        let is_complete = writable(version.limit).is_ok() && writable("cgroup.procs").is_ok();
        is_complete.then_some(group)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Returns the file to which a process writes its id to be in the group.
    pub(super) fn members(&self) -> PathBuf {
        self.path("cgroup.procs")
    }

    fn number(&self, file: &str, name: &str) -> u64 {
        let text = std::fs::read_to_string(self.path(file)).unwrap();
        let found = text.lines().find_map(|line| line.strip_prefix(name));
        found
            .unwrap_or_else(|| panic!("no {name} in {text}"))
            .trim()
            .parse()
            .unwrap()
    }

    /// Allows so many bytes more than cannot be given back now, and no swap.
    pub(super) fn allow_more(&self, bytes: u64) {
        let used = self.number("memory.stat", self.version.anonymous);
        let limit = (used + bytes).to_string();
        std::fs::write(self.path(self.version.limit), &limit).unwrap();
        // Not where the kernel does not count swap.
        let swap = if self.version.limit == "memory.max" {
            "0"
        } else {
            &limit
        };
        let _ = std::fs::write(self.path(self.version.swap), swap);
    }

    /// Returns how many processes the kernel has killed.
    pub(super) fn kills(&self) -> u64 {
        self.number(self.version.kills, "oom_kill ")
    }
}
