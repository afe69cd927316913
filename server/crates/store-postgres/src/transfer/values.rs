//! Converts values between PostgreSQL's types and the common form.

use std::error::Error as StdError;

use bytes::BytesMut;
use platform_store::tables::{Kind, Part};
use platform_store::transfer::{Row, Value};
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};
use uuid::Uuid;

use crate::error::Error;
use crate::rows::get;

/// Reads a row that has the part's columns.
pub(super) fn read_row(row: &tokio_postgres::Row, part: &Part) -> Result<Row, Error> {
    let columns = part.columns.iter().enumerate();
    let values = columns.map(|(index, (_, kind))| {
        let found = match kind {
            Kind::Integer => get::<Option<i64>>(row, index)?.map(Value::Integer),
            Kind::Small => {
                let number = get::<Option<i16>>(row, index)?;
                number.map(|number| Value::Integer(number.into()))
            }
            Kind::Boolean => {
                let truth = get::<Option<bool>>(row, index)?;
                truth.map(|truth| Value::Integer(truth.into()))
            }
            Kind::Text => get::<Option<String>>(row, index)?.map(Value::Text),
            Kind::Bytes => get::<Option<Vec<u8>>>(row, index)?.map(Value::Bytes),
            Kind::Uuid => get::<Option<Uuid>>(row, index)?.map(bytes),
            Kind::Deployment => get::<Option<Uuid>>(row, index)?
                .filter(|id| !id.is_nil())
                .map(bytes),
        };
        Ok(found.unwrap_or(Value::Null))
    });
    values.collect()
}

fn bytes(id: Uuid) -> Value {
    Value::Bytes(id.as_bytes().to_vec())
}

/// A value of a column of this type.
pub(super) struct Cell<'value>(pub(super) &'value Value, pub(super) Kind);

impl std::fmt::Debug for Cell<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Cell").field(self.0).field(&self.1).finish()
    }
}

impl ToSql for Cell<'_> {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn StdError + Sync + Send>> {
        match (self.0, self.1) {
            (Value::Null, Kind::Deployment) => Uuid::nil().to_sql(ty, out),
            (Value::Null, _) => Ok(IsNull::Yes),
            (Value::Integer(number), Kind::Boolean) => (*number != 0).to_sql(ty, out),
            (Value::Integer(number), Kind::Small) => i16::try_from(*number)?.to_sql(ty, out),
            (Value::Integer(number), _) => number.to_sql(ty, out),
            (Value::Text(text), _) => text.to_sql(ty, out),
            (Value::Bytes(bytes), Kind::Uuid | Kind::Deployment) => {
                Uuid::from_slice(bytes)?.to_sql(ty, out)
            }
            (Value::Bytes(bytes), _) => bytes.to_sql(ty, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        // Each value checks it.
        true
    }

    to_sql_checked!();
}

/// Returns PostgreSQL's type of a column.
pub(super) const fn type_of(kind: Kind) -> Type {
    match kind {
        Kind::Integer => Type::INT8,
        Kind::Small => Type::INT2,
        Kind::Boolean => Type::BOOL,
        Kind::Text => Type::TEXT,
        Kind::Bytes => Type::BYTEA,
        Kind::Uuid | Kind::Deployment => Type::UUID,
    }
}
