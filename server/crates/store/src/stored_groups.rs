//! How every back end stores groups of errors.

use platform_domain::clock::Millis;
use platform_domain::counting::Distinct;
use platform_domain::error_group::{ErrorGroup, ErrorGroupId, ErrorState, GroupDetail};
use uuid::Uuid;

use super::StoreError;

/// The columns of a group, in the order of [`StoredGroup`].
pub const GROUP_COLUMNS: &str =
    "fingerprint, state, first_at, last_at, count, of_stranger, begun_by, players, detail";

/// A row of a group.
#[derive(Clone, Debug)]
pub struct StoredGroup {
    /// The fingerprint.
    pub fingerprint: Vec<u8>,
    /// The state.
    pub state: String,
    /// When the first error was received.
    pub first_at: Millis,
    /// When the last error was received.
    pub last_at: Millis,
    /// How many errors.
    pub count: i64,
    /// Whether its first error came without a player's token.
    pub of_stranger: bool,
    /// The player of its first error.
    pub begun_by: Option<Uuid>,
    /// The sketch of its players.
    pub players: Vec<u8>,
    /// Everything else, as JSON.
    pub detail: String,
}

impl StoredGroup {
    /// Returns the group of the row.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`]
    pub fn read(self) -> Result<ErrorGroup, StoreError> {
        let row = base16ct::lower::encode_string(&self.fingerprint);
        let corrupt = |column| StoreError::Corrupt {
            table: "log_error_groups",
            column,
            row: row.clone(),
        };
        let id = self.fingerprint.try_into();
        let detail = serde_json::from_str(&self.detail);
        Ok(ErrorGroup {
            id: ErrorGroupId(id.map_err(|_| corrupt("fingerprint"))?),
            state: ErrorState::parse(&self.state).ok_or_else(|| corrupt("state"))?,
            first_at: self.first_at,
            last_at: self.last_at,
            count: self.count.unsigned_abs(),
            of_stranger: self.of_stranger,
            begun_by: self.begun_by,
            players: Distinct::from_bytes(&self.players).ok_or_else(|| corrupt("players"))?,
            detail: detail.map_err(|_| corrupt("detail"))?,
        })
    }
}

/// Returns the stored form of a group's detail.
#[must_use]
pub fn write_group_detail(detail: &GroupDetail) -> String {
    serde_json::json!(detail).to_string()
}

/// Returns a number as databases store it.
#[must_use]
pub fn write_number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
