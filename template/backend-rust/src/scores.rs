//! The best scores by `sub`, in one JSON file. A game with more players needs a database; the two
//! methods can stay the same.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use tokio::fs;
use tokio::sync::Mutex;

pub struct Scores {
    file: PathBuf,
    scores: Mutex<BTreeMap<String, u64>>,
}

impl Scores {
    /// Reads the file; a missing file counts as empty.
    pub async fn open(file: PathBuf) -> io::Result<Self> {
        let scores = match fs::read(&file).await {
            Ok(text) => serde_json::from_slice(&text)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeMap::new(),
            Err(error) => return Err(error),
        };
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder).await?;
        }
        let scores = Mutex::new(scores);
        Ok(Self { file, scores })
    }

    /// Returns the best score of this player; 0 before the first.
    pub async fn best(&self, sub: &str) -> u64 {
        self.scores.lock().await.get(sub).copied().unwrap_or(0)
    }

    /// Raises the best score, if the new one is higher, and returns it once it is on the disk.
    pub async fn raise(&self, sub: String, score: u64) -> io::Result<u64> {
        // Held while writing, so that an older state is never written last.
        let mut scores = self.scores.lock().await;
        let best = scores.entry(sub).or_default();
        if score <= *best {
            return Ok(*best);
        }
        *best = score;
        let new = self.file.with_extension("new");
        fs::write(&new, serde_json::to_vec(&*scores)?).await?;
        fs::rename(&new, &self.file).await?;
        Ok(score)
    }
}
