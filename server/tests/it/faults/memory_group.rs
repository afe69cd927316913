//! A control group with limited memory (cgroups(7)), of either version. The kernel kills what needs more.

use std::fs::{self, OpenOptions};
use std::io::ErrorKind;
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
    /// The most memory that there ever was.
    peak: &'static str,
}

const VERSIONS: [Version; 2] = [
    Version {
        root: "/sys/fs/cgroup",
        own: "::",
        limit: "memory.max",
        swap: "memory.swap.max",
        anonymous: "anon ",
        kills: "memory.events",
        peak: "memory.peak",
    },
    Version {
        root: "/sys/fs/cgroup/memory",
        own: ":memory:",
        limit: "memory.limit_in_bytes",
        swap: "memory.memsw.limit_in_bytes",
        anonymous: "rss ",
        kills: "memory.oom_control",
        peak: "memory.max_usage_in_bytes",
    },
];

impl Version {
    /// Returns the groups in which a group may be made: whoever may not write to the root may perhaps beside this
    /// process's own group. `own` is `/proc/self/cgroup`.
    fn parents(&self, own: &str) -> Vec<PathBuf> {
        let root = Path::new(self.root);
        let beside = own.lines().find_map(|line| {
            let (_, path) = line.split_once(self.own)?;
            Path::new(path.trim_start_matches('/')).parent()
        });
        let beside = beside.map(|path| root.join(path));
        let mut parents = vec![root.to_owned()];
        parents.extend(beside.filter(|beside| beside != root));
        parents
    }
}

/// A group, which is removed at the end. Its processes must have ended by then.
pub(super) struct MemoryGroup {
    folder: PathBuf,
    version: &'static Version,
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.folder);
    }
}

/// Why there is no group.
#[derive(Debug)]
enum Hindrance {
    /// This user may not make one there, or the kernel counts no memory there.
    Forbidden(String),
    /// It should be possible, and is not.
    Broken(String),
}

impl MemoryGroup {
    /// Makes one. The error says why this user may not, or that the kernel has none for memory.
    ///
    /// # Panics
    /// This user may make groups, and they are not as they should be.
    pub(super) fn make() -> Result<Self, String> {
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let mut hindrances = Vec::new();
        for version in &VERSIONS {
            for parent in version.parents(&own) {
                match Self::make_in(&parent, version) {
                    Ok(group) => return Ok(group),
                    Err(hindrance) => hindrances.push(hindrance),
                }
            }
        }
        let (mut forbidden, mut broken) = (Vec::new(), Vec::new());
        for hindrance in hindrances {
            match hindrance {
                Hindrance::Forbidden(why) => forbidden.push(why),
                Hindrance::Broken(why) => broken.push(why),
            }
        }
        assert!(
            broken.is_empty(),
            "this user may make control groups, but none limits memory: {}",
            broken.join("; ")
        );
        Err(forbidden.join("; "))
    }

    fn make_in(parent: &Path, version: &'static Version) -> Result<Self, Hindrance> {
        let said = |what: &str| format!("{}: {what}", parent.display());
        if !parent.join("cgroup.procs").exists() {
            return Err(Hindrance::Forbidden(said("there are no control groups")));
        }
        // In version 2 a group has what its parent hands on.
        if let Ok(handed_on) = fs::read_to_string(parent.join("cgroup.subtree_control"))
            && !handed_on
                .split_ascii_whitespace()
                .any(|one| one == "memory")
        {
            return Err(Hindrance::Forbidden(said("groups have no memory limit")));
        }
        let hindrance = |what: &str, error: std::io::Error| {
            let said = said(&format!("{what}: {error}"));
            match error.kind() {
                ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                    Hindrance::Forbidden(said)
                }
                _ => Hindrance::Broken(said),
            }
        };
        let folder = parent.join(format!("platform-test-{}", std::process::id()));
        fs::create_dir(&folder).map_err(|error| hindrance("no group can be made", error))?;
        let group = Self { folder, version };
        for name in [version.limit, "cgroup.procs"] {
            let opened = OpenOptions::new().write(true).open(group.path(name));
            opened.map_err(|error| hindrance(name, error))?;
        }
        Ok(group)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Returns the file to which a process writes its id to be in the group.
    pub(super) fn members(&self) -> PathBuf {
        self.path("cgroup.procs")
    }

    fn number(&self, file: &str, name: &str) -> u64 {
        let text = fs::read_to_string(self.path(file)).unwrap();
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
        fs::write(self.path(self.version.limit), &limit).unwrap();
        // Not where the kernel does not count swap.
        let swap = if self.version.limit == "memory.max" {
            "0"
        } else {
            &limit
        };
        let _ = fs::write(self.path(self.version.swap), swap);
        let set = self.bytes(self.version.limit);
        // The kernel counts pages.
        assert!(
            set <= used + bytes && used + bytes - set < 1 << 16,
            "the limit is {set} bytes, and not {limit}"
        );
    }

    fn bytes(&self, file: &str) -> u64 {
        let text = fs::read_to_string(self.path(file)).unwrap();
        text.trim()
            .parse()
            .unwrap_or_else(|_| panic!("{file}: {text}"))
    }

    /// Asserts that a process is in the group.
    pub(super) fn assert_has(&self, process: u32) {
        let members = fs::read_to_string(self.members()).unwrap();
        let is_member = members.lines().any(|line| line == process.to_string());
        assert!(is_member, "{process} is not among {members:?}");
    }

    /// Asserts that the kernel has killed a process because of the limit.
    pub(super) fn assert_killed(&self) {
        let peak = self.path(self.version.peak);
        let peak = fs::read_to_string(peak).unwrap_or_else(|_| "unknown".to_owned());
        let limit = self.bytes(self.version.limit);
        assert!(
            self.kills() > 0,
            "the kernel has killed nobody: the group had at most {} bytes, of {limit}",
            peak.trim()
        );
    }

    /// Returns how many processes the kernel has killed.
    fn kills(&self) -> u64 {
        self.number(self.version.kills, "oom_kill ")
    }
}
