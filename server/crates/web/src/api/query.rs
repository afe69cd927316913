//! The query of a call, deserialised into the struct that describes it.
//!
//! The error sentence is derived from the struct: its fields are the existing parameters, and the
//! type of a field describes its values.

use std::borrow::Cow;
use std::collections::{BTreeMap, btree_map};
use std::str::FromStr;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, Expected, IntoDeserializer, MapAccess,
    Unexpected, Visitor,
};
use serde::{Deserialize, forward_to_deserialize_any};
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, SchemaFormat, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::invalid;
use crate::api_error::ApiError;

/// A call's query. `T` rejects unknown parameters with `#[serde(deny_unknown_fields)]`.
#[derive(Clone, Copy, Debug)]
pub struct ApiQuery<T>(pub T);

impl<S: Sync, T: DeserializeOwned> FromRequestParts<S> for ApiQuery<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let query = read(parts.uri.query().unwrap_or_default());
        query.map(Self).map_err(|error| invalid(error.to_string()))
    }
}

/// Parses a query. A repeated parameter has its last value, but all of them must be valid.
///
/// # Errors
/// The first thing that is wrong with the query.
pub fn read<T: DeserializeOwned>(query: &str) -> Result<T, QueryError> {
    let given = || url::form_urlencoded::parse(query.as_bytes());
    for parameter in given() {
        deserialize::<T>(&BTreeMap::from([parameter]))?;
    }
    deserialize(&given().collect())
}

fn deserialize<T: DeserializeOwned>(
    given: &BTreeMap<Cow<'_, str>, Cow<'_, str>>,
) -> Result<T, QueryError> {
    let parameters = Parameters {
        left: given.iter(),
        next: None,
    };
    T::deserialize(MapAccessDeserializer::new(parameters))
}

/// Parses a value with `parse`. If that returns `None`, the error sentence says that the parameter
/// must be `expected`.
///
/// # Errors
/// The value cannot be parsed.
pub fn value<'de, D: Deserializer<'de>, T>(
    from: D,
    parse: impl FnOnce(&str) -> Option<T>,
    expected: &str,
) -> Result<Option<T>, D::Error> {
    let text = String::deserialize(from)?;
    match parse(&text) {
        Some(value) => Ok(Some(value)),
        None => Err(de::Error::invalid_value(Unexpected::Str(&text), &expected)),
    }
}

/// Parses a number of plain digits. Rust's parser would accept a plus sign.
pub fn digits<T: FromStr>(text: &str) -> Option<T> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}

/// An integer from `MIN` to `MAX`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Within<const MIN: i32, const MAX: i32>(i32);

impl<const MIN: i32, const MAX: i32> Within<MIN, MAX> {
    /// Returns the number.
    #[must_use]
    pub const fn get(self) -> i32 {
        self.0
    }

    /// Returns the number as a count; a negative number is 0.
    #[must_use]
    pub fn count(self) -> usize {
        usize::try_from(self.0).unwrap_or(0)
    }
}

impl<'de, const MIN: i32, const MAX: i32> Deserialize<'de> for Within<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let number = if MIN < 0 {
            text.parse().ok()
        } else {
            digits(&text)
        };
        match number.filter(|number| (MIN..=MAX).contains(number)) {
            Some(number) => Ok(Self(number)),
            None => {
                let expected = format!("from {MIN} to {MAX}");
                Err(de::Error::invalid_value(
                    Unexpected::Str(&text),
                    &&*expected,
                ))
            }
        }
    }
}

impl<const MIN: i32, const MAX: i32> PartialSchema for Within<MIN, MAX> {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::Integer)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int32)))
            .minimum(Some(MIN))
            .maximum(Some(MAX))
            .into()
    }
}

impl<const MIN: i32, const MAX: i32> ToSchema for Within<MIN, MAX> {
    fn name() -> Cow<'static, str> {
        Cow::Owned(format!("From{MIN}To{MAX}"))
    }
}

/// An error in a query.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// A sentence that can be shown to the caller.
    #[error("{0}")]
    Sentence(String),
    /// A description of valid values; the name of the parameter is added.
    #[error("A value in the query must be {0}.")]
    Expected(String),
}

impl de::Error for QueryError {
    fn custom<T: std::fmt::Display>(message: T) -> Self {
        Self::Sentence(message.to_string())
    }

    fn invalid_type(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::Expected(expected.to_string())
    }

    fn invalid_value(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::Expected(expected.to_string())
    }

    fn unknown_variant(_: &str, expected: &'static [&'static str]) -> Self {
        Self::Expected(listed(expected, "or"))
    }

    fn unknown_field(_: &str, expected: &'static [&'static str]) -> Self {
        Self::Sentence(format!(
            "Allowed parameters of the query: {}.",
            listed(expected, "and")
        ))
    }
}

/// `a, b and c`
fn listed(names: &[&str], before_last: &str) -> String {
    match names {
        [first @ .., last] if !first.is_empty() => {
            format!("{} {before_last} {last}", first.join(", "))
        }
        names => names.concat(),
    }
}

/// The parameters of a query by name.
struct Parameters<'a> {
    left: btree_map::Iter<'a, Cow<'a, str>, Cow<'a, str>>,
    /// The parameter whose name was read.
    next: Option<(&'a str, Value<'a>)>,
}

impl<'de> MapAccess<'de> for Parameters<'_> {
    type Error = QueryError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, QueryError> {
        let next = self.left.next();
        self.next = next.map(|(name, value)| (&**name, Value(value)));
        let name = self.next.map(|(name, _)| name.into_deserializer());
        name.map(|name| seed.deserialize::<StrDeserializer<'_, QueryError>>(name))
            .transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(
        &mut self,
        seed: V,
    ) -> Result<V::Value, QueryError> {
        let (name, value) = self.next.take().unwrap_or_default();
        seed.deserialize(value).map_err(|error| match error {
            QueryError::Expected(expected) => {
                QueryError::Sentence(format!("`{name}` must be {expected}."))
            }
            sentence @ QueryError::Sentence(_) => sentence,
        })
    }
}

/// A parameter's value.
#[derive(Clone, Copy, Debug, Default)]
struct Value<'a>(&'a str);

impl<'de> Deserializer<'de> for Value<'_> {
    type Error = QueryError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, QueryError> {
        visitor.visit_str(self.0)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, QueryError> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, QueryError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, QueryError> {
        visitor.visit_enum(self.0.into_deserializer())
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        unit unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, PartialEq, Eq, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    struct Wanted {
        theme: Option<Theme>,
        limit: Option<Within<1, 20>>,
        offset: Option<Within<-5, 5>>,
        #[serde(deserialize_with = "even")]
        even: Option<u8>,
        text: String,
    }

    #[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Theme {
        Light,
        Dark,
    }

    fn even<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u8>, D::Error> {
        value(
            from,
            |text| digits(text).filter(|number: &u8| number.is_multiple_of(2)),
            "an even number",
        )
    }

    #[test]
    fn a_query_is_read_into_its_type() {
        assert_eq!(read::<Wanted>(""), Ok(Wanted::default()));
        let wanted = read::<Wanted>("theme=dark&limit=020&offset=%2B5&even=4&text=a+b%26").unwrap();
        assert_eq!(
            (wanted.theme, wanted.limit.map(Within::count)),
            (Some(Theme::Dark), Some(20))
        );
        assert_eq!(wanted.offset.map(Within::get), Some(5));
        assert_eq!((wanted.even, &*wanted.text), (Some(4), "a b&"));
    }

    #[test]
    fn the_last_of_several_values_counts() {
        let wanted = read::<Wanted>("limit=2&text=a&limit=3").unwrap();
        assert_eq!(wanted.limit.map(Within::get), Some(3));
        let error = read::<Wanted>("limit=x&text=a&limit=3").unwrap_err();
        assert_eq!(error.to_string(), "`limit` must be from 1 to 20.");
    }

    #[test]
    fn of_several_faults_the_first_is_said() {
        for (query, sentence) in [
            ("offset=6&even=3", "`offset` must be from -5 to 5."),
            ("even=3&offset=6", "`even` must be an even number."),
            (
                "x=1&even=3",
                "Allowed parameters of the query: theme, limit, offset, even and text.",
            ),
        ] {
            let error = read::<Wanted>(query).unwrap_err();
            assert_eq!(error.to_string(), sentence, "{query}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_query_is_said() {
        for (query, sentence) in [
            (
                "x=1",
                "Allowed parameters of the query: theme, limit, offset, even and text.",
            ),
            ("theme=blue", "`theme` must be light or dark."),
            ("even=3", "`even` must be an even number."),
            ("offset=6", "`offset` must be from -5 to 5."),
            ("offset=5.0", "`offset` must be from -5 to 5."),
        ] {
            let error = read::<Wanted>(query).unwrap_err();
            assert_eq!(error.to_string(), sentence, "{query}");
        }
    }

    #[test]
    fn numbers_are_plain_digits_within_their_limits() {
        assert_eq!(digits("007"), Some(7));
        for wrong in ["", "+5", "-5", " 5", "5.0", "99999999999999999999"] {
            assert_eq!(digits::<i64>(wrong), None, "{wrong}");
        }
        for (text, number) in [("1", 1), ("20", 20)] {
            let wanted = read::<Wanted>(&format!("limit={text}")).unwrap();
            assert_eq!(wanted.limit.map(Within::count), Some(number));
        }
        for wrong in ["0", "21", "%2B5", "", "99999999999999999999"] {
            let error = read::<Wanted>(&format!("limit={wrong}")).unwrap_err();
            assert_eq!(
                error.to_string(),
                "`limit` must be from 1 to 20.",
                "{wrong}"
            );
        }
    }

    #[test]
    fn names_are_listed_as_a_sentence_has_them() {
        assert_eq!(listed(&["a"], "and"), "a");
        assert_eq!(listed(&["a", "b"], "and"), "a and b");
        assert_eq!(listed(&["a", "b", "c"], "or"), "a, b or c");
    }
}
