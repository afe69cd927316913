//! The archive of a deployment: a folder's files in a fixed order, as a tar.gz that is the same on
//! every machine and at any time.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use flate2::{Compression, GzBuilder};
use platform_checks::check_path;
pub(crate) use platform_checks::folder::INDEX;
use platform_checks::folder::{FolderProblem, is_deployed_name, keep_limits};
use platform_checks::sources::BUILT;
use tar::{Builder, EntryType, Header};
use walkdir::{DirEntry, WalkDir};

use crate::failure::Failure;

/// A file to be deployed.
#[derive(Debug)]
struct Item {
    /// Its path in the deployment, with `/` between folders.
    name: String,
    path: PathBuf,
    bytes: u64,
}

/// The files of a folder that are deployed.
#[derive(Debug)]
pub(crate) struct Folder {
    root: PathBuf,
    items: Vec<Item>,
}

impl Folder {
    /// Lists the files of a built game. Checks for the start page first, because there may be many
    /// folders.
    ///
    /// # Errors
    /// No such folder, no page, or a file that cannot be deployed.
    pub(crate) fn of_game(root: &Path) -> Result<Self, Failure> {
        let real_root = real(root)?;
        if !real_root.join(INDEX).is_file() {
            let built = root.join(BUILT);
            let has_one = real_root.join(BUILT).join(INDEX).is_file();
            return Err(refused(&FolderProblem::NoIndex {
                folder: root.display().to_string(),
                built: has_one.then(|| built.display().to_string()),
            }));
        }
        Self::list(&real_root)
    }

    /// Lists a folder's files. Hidden files are left out, except `.well-known`; so are
    /// `platform.toml` and npm's folder if the folder is the game's own.
    ///
    /// # Errors
    /// No such folder, or a file that cannot be deployed.
    fn list(root: &Path) -> Result<Self, Failure> {
        let real_root = real(root)?;
        let mut items = Vec::new();
        let walk = WalkDir::new(&real_root).follow_links(true).min_depth(1);
        for entry in walk.into_iter().filter_entry(is_deployed) {
            let entry = entry.map_err(|error| unlisted(&error))?;
            if entry.file_type().is_dir() {
                continue;
            }
            items.push(Item::of(&real_root, &entry)?);
        }
        // By bytes, so that the order does not depend on the system.
        items.sort_by(|one, other| one.name.cmp(&other.name));
        let folder = Self {
            root: real_root,
            items,
        };
        keep_limits(folder.names(), folder.bytes()).map_err(|problem| refused(&problem))?;
        Ok(folder)
    }

    /// The absolute path of the folder, with every link resolved.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// How many files there are.
    pub(crate) fn files(&self) -> u64 {
        self.items.len() as u64
    }

    /// Their paths in the deployment.
    pub(crate) fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.items.iter().map(|item| item.name.as_str())
    }

    /// Their paths in the deployment, where they are, and their sizes.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&str, &Path, u64)> {
        let items = self.items.iter();
        items.map(|item| (item.name.as_str(), item.path.as_path(), item.bytes))
    }

    /// How large they are together.
    pub(crate) fn bytes(&self) -> u64 {
        self.items.iter().map(|item| item.bytes).sum()
    }

    /// Writes the archive, and calls `told` for every piece of a file that is in it.
    ///
    /// # Errors
    /// A file cannot be read or changes meanwhile, or the sink accepts no more.
    pub(crate) fn write(&self, sink: impl Write, told: impl Fn(u64)) -> io::Result<()> {
        // No time and no name in the gzip header (RFC 1952 §2.3).
        let gzip = GzBuilder::new().write(sink, Compression::default());
        let mut archive = Builder::new(gzip);
        for item in &self.items {
            item.write(&mut archive, &told)
                .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", item.name)))?;
        }
        archive.into_inner()?.finish()?.flush()
    }
}

/// Why a folder is not deployed.
fn refused(problem: &FolderProblem) -> Failure {
    Failure::invalid_folder(problem.to_string())
}

/// Resolves the links in the path of a folder.
fn real(root: &Path) -> Result<PathBuf, Failure> {
    let real = root.canonicalize().map_err(|error| {
        Failure::invalid_folder(format!(
            "The folder {} cannot be read: {error}. Build the game first, or choose the folder with \
             the built game.",
            root.display()
        ))
    })?;
    if !real.is_dir() {
        return Err(Failure::invalid_folder(format!(
            "{} is not a folder: choose the folder with the built game.",
            root.display()
        )));
    }
    Ok(real)
}

/// Why a folder cannot be listed. The message names a broken link, because the system's error only
/// says that a file does not exist.
fn unlisted(error: &walkdir::Error) -> Failure {
    let link = error.path().and_then(|path| {
        let target = std::fs::read_link(path).ok()?;
        Some((path.display(), target))
    });
    let Some((path, target)) = link else {
        return Failure::invalid_folder(format!("The folder cannot be read: {error}."));
    };
    let target = target.display();
    Failure::invalid_folder(if error.loop_ancestor().is_some() {
        format!(
            "{path} is a link to {target}, a folder that contains the link itself: remove the link."
        )
    } else {
        format!(
            "{path} is a link to {target}, which cannot be read: remove the link, or create its \
             target."
        )
    })
}

impl Item {
    fn of(root: &Path, entry: &DirEntry) -> Result<Self, Failure> {
        let cannot = |why: &str| {
            let path = entry.path().display().to_string();
            let why = why.to_owned();
            refused(&FolderProblem::File { path, why })
        };
        let path = entry.path();
        let name = path.strip_prefix(root).ok().and_then(slashed);
        let name = name.ok_or_else(|| cannot("its name is not valid Unicode"))?;
        check_path(&name).map_err(|problem| cannot(&problem.to_string()))?;
        let metadata = entry
            .metadata()
            .map_err(|error| cannot(&error.to_string()))?;
        if !metadata.is_file() {
            return Err(cannot("it is neither a file nor a folder"));
        }
        // A link inside the folder is followed. A link to the outside would publish files that are
        // not part of the build.
        let real = path.canonicalize();
        let real = real.map_err(|error| cannot(&error.to_string()))?;
        if !real.starts_with(root) {
            return Err(cannot("it is a link that leads out of the folder"));
        }
        Ok(Self {
            name,
            path: path.to_owned(),
            bytes: metadata.len(),
        })
    }

    fn write<W: Write>(&self, archive: &mut Builder<W>, told: &impl Fn(u64)) -> io::Result<()> {
        let mut header = Header::new_gnu();
        header.set_entry_type(EntryType::Regular);
        header.set_size(self.bytes);
        header.set_mode(0o644);
        header.set_mtime(0);
        header.set_uid(0);
        header.set_gid(0);
        let mut reader = Told {
            file: File::open(&self.path)?,
            left: self.bytes,
            told,
        };
        archive.append_data(&mut header, &self.name, &mut reader)
    }
}

/// Reads as many bytes of a file as its header says, and reports how many.
struct Told<'a, T> {
    file: File,
    left: u64,
    told: &'a T,
}

impl<T: Fn(u64)> Read for Told<'_, T> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        let count = read as u64;
        // If the length in a header is wrong, the rest of the archive cannot be read.
        let changed = count > self.left || (read == 0 && self.left > 0 && !buffer.is_empty());
        if changed {
            return Err(io::Error::other("the file changed while it was being read"));
        }
        self.left -= count;
        (self.told)(count);
        Ok(read)
    }
}

/// Whether an entry is deployed, or is a folder to look into.
pub(crate) fn is_deployed(entry: &DirEntry) -> bool {
    is_deployed_name(&entry.file_name().to_string_lossy(), entry.depth() == 1)
}

/// A relative path with `/` between folders.
fn slashed(path: &Path) -> Option<String> {
    let parts: Option<Vec<&str>> = path.iter().map(|part| part.to_str()).collect();
    Some(parts?.join("/"))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::fs;

    use flate2::read::GzDecoder;

    use super::*;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    fn names(root: &Path) -> Vec<String> {
        let folder = Folder::list(root).unwrap();
        folder.items.into_iter().map(|item| item.name).collect()
    }

    fn sentence(root: &Path) -> String {
        match Folder::list(root) {
            Err(Failure::Told(told)) => told.sentence,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_archive_is_the_same_wherever_and_whenever_it_is_made() {
        let long = format!("assets/{}/a.js", "long".repeat(40));
        let files = [("index.html", "<p>"), ("b/a.js", "1"), (long.as_str(), "2")];
        let make = |files: &[(&str, &str)]| {
            let folder = folder(files);
            let old = File::open(folder.path().join("index.html")).unwrap();
            old.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(1))
                .unwrap();
            let told = Cell::new(0);
            let mut archive = Vec::new();
            let listed = Folder::list(folder.path()).unwrap();
            listed
                .write(&mut archive, |count| told.set(told.get() + count))
                .unwrap();
            assert_eq!(told.get(), listed.bytes());
            archive
        };
        let mut reversed = files;
        reversed.reverse();
        let archive = make(&files);
        assert_eq!(archive, make(&reversed));
        let mut read = tar::Archive::new(GzDecoder::new(archive.as_slice()));
        let unpacked: Vec<String> = read
            .entries()
            .unwrap()
            .map(|entry| entry.unwrap().path().unwrap().to_str().unwrap().to_owned())
            .collect();
        assert_eq!(unpacked, [long.as_str(), "b/a.js", "index.html"]);
    }

    #[test]
    fn what_is_hidden_or_the_games_own_stays() {
        let folder = folder(&[
            ("index.html", ""),
            (".env", "SECRET=1"),
            (".git/config", ""),
            ("a/.DS_Store", ""),
            (".well-known/assetlinks.json", ""),
            ("platform.toml", ""),
            ("node_modules/a/index.js", ""),
            ("vendor/node_modules/b.js", ""),
        ]);
        assert_eq!(
            names(folder.path()),
            [
                ".well-known/assetlinks.json",
                "index.html",
                "vendor/node_modules/b.js"
            ]
        );
    }

    #[test]
    fn the_platforms_own_paths_are_refused_by_name() {
        let folder = folder(&[("__platform/runtime.js", "")]);
        assert!(sentence(folder.path()).contains("__platform"));
    }

    #[test]
    fn a_folder_that_is_not_there_says_what_to_do() {
        let folder = folder(&[("a", "")]);
        assert!(sentence(&folder.path().join("dist")).contains("Build the game first"));
        assert!(sentence(&folder.path().join("a")).contains("is not a folder"));
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_inside_the_folder_and_not_out_of_it() {
        use std::os::unix::fs::symlink;
        let inside = folder(&[("a.js", "1")]);
        symlink("a.js", inside.path().join("b.js")).unwrap();
        assert_eq!(names(inside.path()), ["a.js", "b.js"]);
        let outside = folder(&[("secret", "")]);
        symlink(outside.path().join("secret"), inside.path().join("c.js")).unwrap();
        assert!(sentence(inside.path()).contains("leads out of the folder"));
    }

    #[cfg(unix)]
    #[test]
    fn a_link_that_leads_nowhere_or_in_a_circle_is_named() {
        use std::os::unix::fs::symlink;
        let dangling = folder(&[("index.html", "")]);
        symlink("gone.png", dangling.path().join("a.png")).unwrap();
        let said = sentence(dangling.path());
        assert!(
            said.contains("a.png is a link to gone.png, which"),
            "{said}"
        );
        assert!(said.contains("remove the link"), "{said}");
        let circle = folder(&[("a/b.js", "")]);
        symlink("..", circle.path().join("a/up")).unwrap();
        let said = sentence(circle.path());
        assert!(said.contains("a/up is a link to .., a folder"), "{said}");
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_without_a_page_is_refused_before_its_folders_are_looked_into() {
        use std::os::unix::fs::symlink;
        // Looking into it would end at the link.
        let folder = folder(&[("a/b.js", "")]);
        symlink("gone", folder.path().join("a/link")).unwrap();
        match Folder::of_game(folder.path()) {
            Err(Failure::Told(told)) => assert!(told.sentence.contains("has no index.html")),
            other => panic!("{other:?}"),
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_name_that_is_no_unicode_is_refused() {
        use std::os::unix::ffi::OsStrExt as _;
        let folder = folder(&[]);
        let name = std::ffi::OsStr::from_bytes(b"\xff.js");
        fs::write(folder.path().join(name), "").unwrap();
        assert!(sentence(folder.path()).contains("not valid Unicode"));
    }

    #[test]
    fn a_file_that_changes_meanwhile_ends_it() {
        let folder = folder(&[("a.js", "12345")]);
        for text in ["1234567", "123"] {
            fs::write(folder.path().join("a.js"), "12345").unwrap();
            let listed = Folder::list(folder.path()).unwrap();
            fs::write(folder.path().join("a.js"), text).unwrap();
            let error = listed.write(io::sink(), |_| {}).unwrap_err();
            assert!(
                error.to_string().contains("a.js: the file changed"),
                "{error}"
            );
        }
    }
}
