//! Rows on their way from one back end into another, in the same form for all of them.

use async_trait::async_trait;
use futures_util::stream::BoxStream;

use crate::StoreError;
use crate::tables::Part;

/// How many rows are read or added at a time.
pub const BATCH: usize = 1_000;

/// A value of a row. Its debug output does not contain it, since it may be a private key.
#[derive(Clone, PartialEq, Eq)]
pub enum Value {
    /// No value.
    Null,
    /// A number, or 0 or 1 for a truth value.
    Integer(i64),
    /// A text without U+0000.
    Text(String),
    /// Bytes; those of a UUID are in the order of its text.
    Bytes(Vec<u8>),
}

impl std::fmt::Debug for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Null => "Null",
            Self::Integer(_) => "Integer(hidden)",
            Self::Text(_) => "Text(hidden)",
            Self::Bytes(_) => "Bytes(hidden)",
        })
    }
}

/// What the encoded values begin with.
const NULL: u8 = 0;
const INTEGER: u8 = 1;
const TEXT: u8 = 2;
const BYTES: u8 = 3;

impl Value {
    /// Returns a text. PostgreSQL does not accept U+0000, so its picture replaces it, as in new
    /// records.
    #[must_use]
    pub fn text(text: String) -> Self {
        if text.contains('\0') {
            Self::Text(text.replace('\0', "\u{2400}"))
        } else {
            Self::Text(text)
        }
    }

    /// Returns the number of bytes of the text; 0 if it is none.
    #[must_use]
    pub const fn text_length(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            _ => 0,
        }
    }

    /// Appends the value to `bytes` in a form that no other value has.
    pub fn encode(&self, bytes: &mut Vec<u8>) {
        let mut long = |kind, content: &[u8]| {
            bytes.push(kind);
            bytes.extend((content.len() as u64).to_be_bytes());
            bytes.extend(content);
        };
        match self {
            Self::Null => bytes.push(NULL),
            Self::Integer(number) => {
                bytes.push(INTEGER);
                bytes.extend(number.to_be_bytes());
            }
            Self::Text(text) => long(TEXT, text.as_bytes()),
            Self::Bytes(content) => long(BYTES, content),
        }
    }

    /// Reads the values that [`Value::encode`] has written; `None` if something else has.
    #[must_use]
    pub fn decode_all(mut bytes: &[u8]) -> Option<Vec<Self>> {
        fn eight(bytes: &mut &[u8]) -> Option<[u8; 8]> {
            let (head, rest) = bytes.split_first_chunk::<8>()?;
            *bytes = rest;
            Some(*head)
        }
        let mut values = Vec::new();
        while let Some((kind, rest)) = bytes.split_first() {
            bytes = rest;
            values.push(match *kind {
                NULL => Self::Null,
                INTEGER => Self::Integer(i64::from_be_bytes(eight(&mut bytes)?)),
                TEXT | BYTES => {
                    let length = usize::try_from(u64::from_be_bytes(eight(&mut bytes)?)).ok()?;
                    let (content, rest) = bytes.split_at_checked(length)?;
                    bytes = rest;
                    if *kind == TEXT {
                        Self::Text(String::from_utf8(content.to_vec()).ok()?)
                    } else {
                        Self::Bytes(content.to_vec())
                    }
                }
                _ => return None,
            });
        }
        Some(values)
    }
}

/// The values of a row, in the order of the part's columns.
pub type Row = Vec<Value>;

/// Returns the key of a row.
#[must_use]
pub fn key_of(part: &Part, row: &Row) -> Vec<Value> {
    let values = part.key_places().filter_map(|place| row.get(place));
    values.cloned().collect()
}

/// Rows, in batches.
pub type Rows = BoxStream<'static, Result<Vec<Row>, StoreError>>;

/// A store whose rows can be read as they are.
#[async_trait]
pub trait RowSource: Send + Sync {
    /// Returns a text that changes if the store does. Two stores with the same text may differ.
    async fn fingerprint(&self) -> Result<String, StoreError>;

    /// Returns the number of rows of a part.
    async fn count(&self, part: &'static Part) -> Result<u64, StoreError>;

    /// Returns the rows of a part whose key comes after `after`, or all of them, in the order of
    /// their keys. Each id of a log record is greater than the one before it.
    async fn read(
        &self,
        part: &'static Part,
        after: Option<Vec<Value>>,
    ) -> Result<Rows, StoreError>;
}

/// How far rows of a part were moved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// The key of the last one.
    pub last: Option<Vec<Value>>,
    /// How many there are.
    pub rows: u64,
}

impl Moved {
    /// Returns how far rows were moved after these as well.
    #[must_use]
    pub fn after(&self, part: &'static Part, rows: &[Row]) -> Self {
        Self {
            last: rows.last().map(|row| key_of(part, row)),
            rows: self.rows + rows.len() as u64,
        }
    }
}

/// What a move finds in its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begun {
    /// Nothing, or a part of the rows.
    Open,
    /// All rows, and they were compared with the source. Only [`RowTarget::end`] is left.
    Compared,
}

/// Why rows cannot be moved into a store.
#[derive(Debug, thiserror::Error)]
pub enum BeginError {
    /// Other data is there.
    #[error(
        "the target already has a platform's data ({table} has rows): use an empty database; if \
         a move into it has ended before, it is complete, and servers can use it"
    )]
    NotEmpty {
        /// A table that has rows.
        table: &'static str,
    },
    /// The move of another source, or of another moment of this one, has begun there.
    #[error(
        "the source has changed since the move began, for example because a server ran on it; \
         use another empty database, and start again"
    )]
    OtherSource,
    /// The store failed.
    #[error("the target could not be prepared")]
    Store(#[from] StoreError),
}

/// A store that rows are moved into. While that goes on, no server opens it.
#[async_trait]
pub trait RowTarget: RowSource {
    /// Begins to move the rows of the source with this fingerprint, or goes on with it.
    async fn begin(&self, source: &str) -> Result<Begun, BeginError>;

    /// Returns how far rows of a part were moved.
    async fn moved(&self, part: &'static Part) -> Result<Moved, StoreError>;

    /// Adds the next rows of a part, and remembers that, as one change.
    async fn add(
        &self,
        part: &'static Part,
        before: &Moved,
        rows: Vec<Row>,
    ) -> Result<Moved, StoreError>;

    /// Computes what follows from all rows, such as the next number of each table. It can run again.
    async fn complete(&self) -> Result<(), StoreError>;

    /// Ends the move, so that servers can open the store.
    async fn end(&self) -> Result<(), StoreError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoded_values_are_read_back_and_no_others() {
        let values = vec![
            Value::Null,
            Value::Integer(i64::MIN),
            Value::Text("ä".to_owned()),
            Value::Bytes(vec![0, 1]),
            Value::Text(String::new()),
        ];
        let mut bytes = Vec::new();
        for value in &values {
            value.encode(&mut bytes);
        }
        assert_eq!(Value::decode_all(&bytes), Some(values));
        assert_eq!(Value::decode_all(&bytes[..bytes.len() - 1]), None);
        assert_eq!(Value::decode_all(&[9]), None);
    }

    #[test]
    fn a_value_is_not_shown_and_has_no_zero_character() {
        assert_eq!(
            format!("{:?}", Value::Text("hunter2".into())),
            "Text(hidden)"
        );
        assert_eq!(Value::text("a\0b".into()), Value::Text("a␀b".into()));
    }
}
