//! The rows of the store's tables, read while the server runs.

use std::collections::BTreeMap;
use std::path::Path;

use platform_cluster::Postgres;
use platform_test_postgres::TestDatabase;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};
use serde_json::Value;
use uuid::Uuid;

/// Tables of a shared store that nodes change by themselves: which of them live, who has a lease,
/// and what one of them computes again and again.
const OF_NODES: &[&str] = &["leases", "locks", "nodes", "ranking"];

/// Rows of the store by table, each as one line of text with the columns by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tables(BTreeMap<String, Vec<String>>);

impl Tables {
    /// Reads every table of the embedded store in `data` at one moment.
    ///
    /// # Panics
    /// Panics if it cannot be read.
    #[must_use]
    pub fn read(data: &Path) -> Self {
        let file = data.join("platform.db");
        let mut database = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY)
            .expect("the database opens");
        let moment = database.transaction().expect("a transaction begins");
        let mut names = moment
            .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name")
            .expect("the schema can be read");
        let names: Vec<String> = names
            .query_map([], |row| row.get(0))
            .expect("the schema can be read")
            .collect::<Result<_, _>>()
            .expect("names are text");
        let rows = |name: String| {
            let rows = rows(&moment, &name);
            (name, rows)
        };
        Self(names.into_iter().map(rows).collect())
    }

    /// Reads every table of a shared store at one moment, except for those that nodes change by
    /// themselves, and those of frontend logs, which the embedded store has elsewhere.
    ///
    /// # Panics
    /// Panics if they cannot be read.
    #[must_use]
    pub fn of_database(database: &TestDatabase) -> Self {
        let names = "SELECT json_agg(tablename) FROM pg_tables WHERE schemaname = 'public'
             AND tablename NOT LIKE 'refinery%' AND tablename NOT LIKE 'log%'";
        let names = database.ask(names).expect("the schema can be read");
        let names: Vec<String> = serde_json::from_str(&names).expect("a list of names");
        let tables = names.iter().filter(|name| !OF_NODES.contains(&&***name));
        let rows = tables.map(|name| {
            format!("'{name}', (SELECT coalesce(json_agg(to_json(t)), '[]') FROM \"{name}\" AS t)")
        });
        let rows: Vec<String> = rows.collect();
        let all = format!("SELECT json_build_object({})", rows.join(", "));
        let all = database.ask(&all).expect("the tables can be read");
        let all: BTreeMap<String, Vec<BTreeMap<String, Value>>> =
            serde_json::from_str(&all).expect("lists of objects");
        let lines = |(name, rows): (String, Vec<BTreeMap<String, Value>>)| {
            let mut lines: Vec<String> = rows.iter().map(line_of_json).collect();
            lines.sort();
            (name, lines)
        };
        Self(all.into_iter().map(lines).collect())
    }

    /// Reads the tables `names` of a store in PostgreSQL, one after the other. Rows have the form
    /// of those of the embedded store.
    ///
    /// # Panics
    /// Panics if one cannot be read.
    #[must_use]
    pub fn of_postgres(server: &Postgres, database: &str, names: &[&str]) -> Self {
        let rows = |name: &&str| {
            let statement = format!("SELECT to_jsonb(t) FROM \"{name}\" AS t");
            let answer = server.sql(database, &statement);
            let answer = answer.unwrap_or_else(|error| panic!("{name}: {error:#}"));
            let row = |line| serde_json::from_str(line).expect("a row is an object");
            let mut lines: Vec<String> = answer
                .lines()
                .map(|line| line_of_json(&row(line)))
                .collect();
            lines.sort();
            ((*name).to_owned(), lines)
        };
        Self(names.iter().map(rows).collect())
    }

    /// Removes the tables `names`.
    #[must_use]
    pub fn without(mut self, names: &[&str]) -> Self {
        for name in names {
            assert!(self.0.remove(*name).is_some(), "there is no table {name}");
        }
        self
    }

    /// Whether a row has each of these columns with its value, written as `column=value`. No value
    /// that is asked for contains a space.
    #[must_use]
    pub fn row_has(row: &str, columns: &[&str]) -> bool {
        let has = |column: &&str| row.split(' ').any(|of_row| of_row == *column);
        columns.iter().all(has)
    }

    /// Removes the rows of the table `name` for which `is` is true.
    ///
    /// # Panics
    /// Panics if there is no such table.
    #[must_use]
    pub fn without_rows(mut self, name: &str, is: impl Fn(&str) -> bool) -> Self {
        let rows = self.0.get_mut(name).expect("such a table");
        rows.retain(|row| !is(row));
        self
    }

    /// Returns the rows of the table `name`.
    ///
    /// # Panics
    /// Panics if there is no such table.
    #[must_use]
    pub fn rows(&self, name: &str) -> &[String] {
        self.0.get(name).expect("such a table")
    }

    /// Asserts that `later` is the same, and shows the differences.
    ///
    /// # Panics
    /// Panics if they differ.
    pub fn demand_same(&self, later: &Self, what: &str) {
        for (name, rows) in &self.0 {
            let gone: Vec<_> = rows
                .iter()
                .filter(|row| !later.rows(name).contains(row))
                .collect();
            let new: Vec<_> = later
                .rows(name)
                .iter()
                .filter(|row| !rows.contains(row))
                .collect();
            assert!(
                gone.is_empty() && new.is_empty(),
                "{what}: {name} changed.\ngone: {gone:#?}\nnew: {new:#?}"
            );
        }
    }
}

/// Returns a row of PostgreSQL in the form of a row of SQLite.
fn line_of_json(row: &BTreeMap<String, Value>) -> String {
    let value = |value: &Value| match value {
        Value::Bool(is) => u8::from(*is).to_string(),
        Value::String(text) => match text.strip_prefix("\\x") {
            Some(bytes) => bytes.to_owned(),
            None => Uuid::try_parse(text).map_or(text.clone(), |id| id.simple().to_string()),
        },
        other => other.to_string(),
    };
    let columns = row.iter().map(|(name, of)| format!("{name}={}", value(of)));
    columns.collect::<Vec<_>>().join(" ")
}

fn rows(database: &Connection, table: &str) -> Vec<String> {
    let mut statement = database
        .prepare(&format!("SELECT * FROM \"{table}\""))
        .expect("the table can be read");
    let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let mut rows = statement.query([]).expect("the table can be read");
    let mut lines = Vec::new();
    while let Some(row) = rows.next().expect("the row can be read") {
        let mut line = Vec::new();
        for (place, name) in names.iter().enumerate() {
            let value = match row.get_ref(place).expect("the value can be read") {
                ValueRef::Null => "null".to_owned(),
                ValueRef::Integer(number) => number.to_string(),
                ValueRef::Real(number) => number.to_string(),
                ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
                ValueRef::Blob(bytes) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
            };
            line.push(format!("{name}={value}"));
        }
        line.sort();
        lines.push(line.join(" "));
    }
    lines.sort();
    lines
}
