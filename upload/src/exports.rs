//! What the page calls. A refusal is thrown as a string: a sentence for the developer.

use platform_checks::folder::size;
use rawzip::Crc32;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::chosen::Chosen;
use crate::{entry, zip};

/// The folder of a game that was dropped.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Folder(Chosen);

#[wasm_bindgen]
impl Folder {
    /// Chooses among files that are given by their paths and sizes.
    ///
    /// # Errors
    /// Why they cannot be deployed.
    #[wasm_bindgen(constructor)]
    pub fn new(name: String, paths: Vec<String>, sizes: &[f64]) -> Result<Folder, String> {
        let sizes = sizes.iter().map(|size| *size as u64);
        let chosen = Chosen::of(name, paths.into_iter().zip(sizes).collect());
        chosen.map(Self).map_err(|problem| problem.to_string())
    }

    /// What the developer calls it.
    #[wasm_bindgen(getter)]
    #[must_use]
    pub fn name(&self) -> String {
        self.0.name.clone()
    }

    /// How many files are deployed.
    #[wasm_bindgen(getter)]
    #[must_use]
    pub fn length(&self) -> usize {
        self.0.files.len()
    }

    /// How large they are together.
    #[wasm_bindgen(getter)]
    #[must_use]
    pub fn bytes(&self) -> f64 {
        self.0.bytes() as f64
    }

    /// The same in words.
    #[wasm_bindgen(getter)]
    #[must_use]
    pub fn size(&self) -> String {
        size(self.0.bytes())
    }

    /// The place of the start page in the list that was given.
    #[wasm_bindgen(getter)]
    #[must_use]
    pub fn page(&self) -> Option<usize> {
        self.0.page().map(|file| file.at)
    }

    /// The place of a deployed file in the list that was given.
    #[must_use]
    pub fn place(&self, index: usize) -> Option<usize> {
        self.0.files.get(index).map(|file| file.at)
    }

    /// What comes before the content of a deployed file in the archive.
    ///
    /// # Errors
    /// Its path cannot be written.
    pub fn header(&self, index: usize) -> Result<Vec<u8>, String> {
        let Some(file) = self.0.files.get(index) else {
            return Ok(Vec::new());
        };
        entry::header(&file.path, file.size)
            .map_err(|error| format!("{} cannot be deployed: {error}.", file.path))
    }

    /// What comes after its content.
    #[must_use]
    pub fn padding(&self, index: usize) -> Vec<u8> {
        let size = self.0.files.get(index).map_or(0, |file| file.size);
        vec![0; entry::padding(size) as usize]
    }

    /// What the developer should know before, if this is the text of the start page.
    #[must_use]
    pub fn advice(&self, index_html: &str) -> Vec<Advice> {
        let advice = self.0.advice(index_html).into_iter();
        advice
            .map(|one| Advice {
                code: one.code.to_owned(),
                message: one.message,
            })
            .collect()
    }
}

/// A sentence that the developer should read.
#[wasm_bindgen(getter_with_clone)]
#[derive(Debug)]
pub struct Advice {
    /// Which one it is, as the API returns it.
    pub code: String,
    /// What to do.
    pub message: String,
}

/// A file of a zip.
#[wasm_bindgen(getter_with_clone)]
#[derive(Debug)]
pub struct ZipFile {
    /// Its path.
    pub path: String,
    /// Its size, unpacked.
    pub size: f64,
    /// Its size in the zip.
    pub packed: f64,
    /// Where its local header begins.
    pub at: f64,
    /// Whether it is stored as it is.
    pub stored: bool,
    /// The checksum of its content.
    pub crc32: u32,
}

/// How many bytes of a zip's end [`zip_files`] reads.
#[wasm_bindgen]
#[must_use]
pub fn zip_tail() -> f64 {
    zip::TAIL as f64
}

/// Returns the files of a zip of `whole` bytes, from its end.
///
/// # Errors
/// What is wrong with it.
#[wasm_bindgen]
pub fn zip_files(name: &str, tail: &[u8], whole: f64) -> Result<Vec<ZipFile>, String> {
    let files = zip::files(name, tail, whole as u64)?.into_iter();
    Ok(files
        .map(|file| ZipFile {
            path: file.path,
            size: file.size as f64,
            packed: file.packed as f64,
            at: file.at as f64,
            stored: file.is_stored,
            crc32: file.crc32,
        })
        .collect())
}

/// Returns the length of a local header, from its first 30 bytes; nothing if it is none.
#[wasm_bindgen]
#[must_use]
pub fn local_header_length(header: &[u8]) -> Option<u32> {
    zip::local_header_length(header)
}

/// The checksum of what a file of a zip is unpacked to.
#[wasm_bindgen]
#[derive(Debug, Default)]
pub struct Checksum(Sum);

#[derive(Default)]
struct Sum(Crc32);

impl std::fmt::Debug for Sum {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{:08x}", self.0.checksum())
    }
}

#[wasm_bindgen]
impl Checksum {
    /// That of nothing.
    #[wasm_bindgen(constructor)]
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.0.update(bytes);
    }

    /// Returns it.
    #[must_use]
    pub fn value(&self) -> u32 {
        self.0.0.checksum()
    }
}
