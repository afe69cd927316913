//! The tables whose rows are moved from one back end into another, with their columns. A test of
//! each back end compares this list with its schema, so that no column can be forgotten.

use self::Kind::{Boolean, Bytes, Deployment, Integer, Small, Text, Uuid};

/// The type of a column. A back end may keep a value in another form, but reads and writes it as
/// one [`Value`](crate::transfer::Value).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An integer of 64 bits.
    Integer,
    /// An integer of 16 bits.
    Small,
    /// 0 or 1.
    Boolean,
    /// A text.
    Text,
    /// Bytes.
    Bytes,
    /// A UUID, as its 16 bytes.
    Uuid,
    /// The UUID of a deployment in a key, which cannot be null; null if there was no deployment.
    Deployment,
}

/// A column: its name, and the type of its values.
pub type Column = (&'static str, Kind);

/// The database in which a table is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The database of everything but frontend logs.
    Main,
    /// The database of frontend logs.
    Logs,
}

/// A table, or the part of its rows that can be added at one time.
#[derive(Debug)]
pub struct Part {
    /// The name for people, which no other part has.
    pub name: &'static str,
    /// The table.
    pub table: &'static str,
    /// The database of the table.
    pub place: Place,
    /// Which of its rows; a condition that every back end understands.
    pub only: Option<&'static str>,
    /// The columns that are moved.
    pub columns: &'static [Column],
    /// The columns that identify a row, which also say in which order rows are read.
    pub key: &'static [&'static str],
    /// The column whose numbers the database assigns.
    pub numbered: Option<&'static str>,
}

impl Part {
    /// Returns the places of the key's columns in a row.
    pub fn key_places(&self) -> impl Iterator<Item = usize> {
        let place = |name: &&str| self.columns.iter().position(|column| column.0 == *name);
        self.key.iter().filter_map(place)
    }

    const fn main(
        table: &'static str,
        key: &'static [&'static str],
        columns: &'static [Column],
    ) -> Self {
        Self {
            name: table,
            table,
            place: Place::Main,
            only: None,
            columns,
            key,
            numbered: None,
        }
    }

    const fn logs(
        table: &'static str,
        key: &'static [&'static str],
        columns: &'static [Column],
    ) -> Self {
        let mut part = Self::main(table, key, columns);
        part.place = Place::Logs;
        part
    }

    const fn numbered(mut self, column: &'static str) -> Self {
        self.numbered = Some(column);
        self
    }

    const fn only(mut self, name: &'static str, condition: &'static str) -> Self {
        self.name = name;
        self.only = Some(condition);
        self
    }
}

/// The columns of players.
const PLAYERS: &[Column] = &[
    ("id", Uuid),
    ("username", Text),
    ("username_key", Text),
    ("linked", Boolean),
    ("merged_into", Uuid),
    ("merged_at", Integer),
    ("suspended_at", Integer),
    ("suspension_reason", Text),
    ("address", Text),
    ("created_at", Integer),
    ("seen_at", Integer),
    ("awaiting", Text),
    ("deletion_asked_at", Integer),
    ("deletion_at", Integer),
];

/// What is moved, each table after those that it refers to.
pub const PARTS: &[Part] = &[
    Part::main("players", &["id"], PLAYERS).only("players", "merged_into IS NULL"),
    // A merged guest refers to the account, which has never been merged itself.
    Part::main("players", &["id"], PLAYERS).only("merged guests", "merged_into IS NOT NULL"),
    Part::main(
        "sessions",
        &["hash"],
        &[
            ("hash", Bytes),
            ("player", Uuid),
            ("created_at", Integer),
            ("renewed_at", Integer),
            ("ended_at", Integer),
            ("authenticated_at", Integer),
            ("browser", Text),
        ],
    ),
    Part::main(
        "game_sessions",
        &["hash"],
        &[
            ("hash", Bytes),
            ("player", Uuid),
            ("parent", Bytes),
            ("game", Text),
            ("created_at", Integer),
            ("used_at", Integer),
            ("blank", Boolean),
        ],
    ),
    Part::main(
        "hand_offs",
        &["code"],
        &[
            ("code", Bytes),
            ("purpose", Small),
            ("player", Uuid),
            ("parent", Bytes),
            ("game", Text),
            ("origin", Text),
            ("state", Bytes),
            ("made_at", Integer),
        ],
    ),
    Part::main(
        "left_guests",
        &["browser", "player"],
        &[("browser", Bytes), ("player", Uuid), ("left_at", Integer)],
    ),
    Part::main(
        "identities",
        &["key"],
        &[
            ("key", Bytes),
            ("provider", Text),
            ("player", Uuid),
            ("linked_at", Integer),
        ],
    ),
    Part::main(
        "pending_sign_ins",
        &["state"],
        &[
            ("state", Bytes),
            ("browser", Bytes),
            ("provider", Text),
            ("nonce", Text),
            ("pkce_verifier", Text),
            ("guest", Uuid),
            ("redirect", Text),
            ("started_at", Integer),
            ("again", Boolean),
        ],
    ),
    Part::main(
        "admins",
        &["player"],
        &[("player", Uuid), ("granted_at", Integer)],
    ),
    Part::main(
        "audit_events",
        &["id"],
        &[
            ("id", Integer),
            ("at", Integer),
            ("kind", Text),
            ("player", Uuid),
            ("other", Uuid),
            ("subject", Text),
            ("actor", Text),
            ("admin", Uuid),
            ("detail", Text),
            ("network", Text),
            ("request", Text),
            ("member", Uuid),
        ],
    )
    .numbered("id"),
    Part::main(
        "device_authorizations",
        &["device_code"],
        &[
            ("device_code", Bytes),
            ("user_code", Text),
            ("client", Text),
            ("network", Text),
            ("started_at", Integer),
            ("polled_at", Integer),
            ("interval_seconds", Integer),
            ("player", Uuid),
            ("approved", Boolean),
        ],
    ),
    Part::main(
        "devices",
        &["id"],
        &[
            ("id", Uuid),
            ("player", Uuid),
            ("client", Text),
            ("network", Text),
            ("signed_in_at", Integer),
            ("used_at", Integer),
            ("current", Bytes),
            ("previous", Bytes),
            ("rotated_at", Integer),
        ],
    ),
    Part::main(
        "refresh_tokens",
        &["hash"],
        &[("hash", Bytes), ("device", Uuid), ("issued_at", Integer)],
    ),
    Part::main(
        "signing_keys",
        &["position"],
        &[
            ("position", Integer),
            ("kid", Text),
            ("private", Bytes),
            ("sealed", Boolean),
            ("created_at", Integer),
            ("signs_from", Integer),
            ("token_millis", Integer),
        ],
    )
    .numbered("position"),
    Part::main(
        "certificates",
        &["name"],
        &[
            ("name", Text),
            ("directory", Text),
            ("chain", Text),
            ("private", Bytes),
            ("sealed", Boolean),
            ("valid_from", Integer),
            ("valid_until", Integer),
            ("obtained_at", Integer),
        ],
    ),
    Part::main(
        "acme_accounts",
        &["directory"],
        &[
            ("directory", Text),
            ("credentials", Bytes),
            ("sealed", Boolean),
            ("created_at", Integer),
        ],
    ),
    Part::main(
        "projects",
        &["id"],
        &[
            ("id", Integer),
            ("slug", Text),
            ("owner", Uuid),
            ("created_at", Integer),
            ("disabled_at", Integer),
            ("disabled_by", Text),
            ("disabled_reason", Text),
            ("deleted_at", Integer),
            ("deleted_by", Text),
            ("removed_at", Integer),
            ("forget_from", Integer),
            ("kept_bytes", Integer),
        ],
    )
    .numbered("id"),
    Part::main(
        "deploy_tokens",
        &["id"],
        &[
            ("id", Uuid),
            ("project", Integer),
            ("name", Text),
            ("scopes", Text),
            ("hash", Bytes),
            ("created_by", Uuid),
            ("created_at", Integer),
            ("expires_at", Integer),
            ("used_at", Integer),
            ("revoked_at", Integer),
        ],
    ),
    Part::main(
        "webhooks",
        &["project"],
        &[
            ("project", Integer),
            ("url", Text),
            ("secret", Text),
            ("created_at", Integer),
            ("off_at", Integer),
            ("last_at", Integer),
            ("last_status", Small),
            ("last_error", Text),
            ("set_by", Uuid),
            ("wants_errors", Boolean),
            ("wants_players", Boolean),
        ],
    ),
    Part::main(
        "player_events",
        &["id"],
        &[
            ("id", Integer),
            ("project", Integer),
            ("data", Text),
            ("made_at", Integer),
            ("tries", Small),
            ("next_at", Integer),
            ("delivered_at", Integer),
            ("last_at", Integer),
            ("last_status", Small),
            ("last_error", Text),
        ],
    )
    .numbered("id"),
    Part::main(
        "members",
        &["project", "player"],
        &[
            ("project", Integer),
            ("player", Uuid),
            ("role", Text),
            ("since", Integer),
        ],
    ),
    Part::main(
        "handovers",
        &["project"],
        &[
            ("project", Integer),
            ("owner", Uuid),
            ("heir", Uuid),
            ("offered_at", Integer),
            ("expires_at", Integer),
        ],
    ),
    Part::main(
        "invitations",
        &["id"],
        &[
            ("id", Uuid),
            ("project", Integer),
            ("role", Text),
            ("hash", Bytes),
            ("created_at", Integer),
            ("expires_at", Integer),
        ],
    ),
    Part::main(
        "deployments",
        &["id"],
        &[
            ("id", Uuid),
            ("project", Integer),
            ("environment", Text),
            ("created_at", Integer),
            ("position", Integer),
            ("files", Integer),
            ("bytes", Integer),
            ("deployed_by", Uuid),
            ("client", Text),
            ("network", Text),
            ("message", Text),
            ("revision", Text),
            ("inspection", Text),
            ("deploy_token", Text),
            ("preview", Text),
        ],
    ),
    Part::main(
        DEPLOYMENT_FILES,
        &["deployment", "path"],
        &[
            ("deployment", Uuid),
            ("path", Text),
            ("sha256", Bytes),
            ("size", Integer),
        ],
    ),
    Part::main(
        "current_deployments",
        &["project", "environment"],
        &[
            ("project", Integer),
            ("environment", Text),
            ("deployment", Uuid),
        ],
    ),
    Part::main(
        "previews",
        &["project", "name"],
        &[
            ("project", Integer),
            ("name", Text),
            ("deployment", Uuid),
            ("created_at", Integer),
            ("used_at", Integer),
        ],
    ),
    Part::main(
        "domains",
        &["project", "name"],
        &[
            ("project", Integer),
            ("environment", Text),
            ("name", Text),
            ("token", Text),
            ("state", Text),
            ("canonical", Boolean),
            ("detail", Text),
            ("created_at", Integer),
            ("since", Integer),
            ("proven_at", Integer),
            ("looked_at", Integer),
            ("look_at", Integer),
        ],
    ),
    Part::main(
        "listings",
        &["project"],
        &[
            ("project", Integer),
            ("listed_at", Integer),
            ("title", Text),
            ("description", Text),
            ("author", Text),
            ("tags", Text),
            ("cover", Text),
        ],
    ),
    Part::main(
        "player_games",
        &["player", "project"],
        &[
            ("player", Uuid),
            ("project", Integer),
            ("favourite_at", Integer),
            ("played_at", Integer),
        ],
    ),
    Part::main(
        "shared_secrets",
        &["name"],
        &[("name", Text), ("secret", Bytes)],
    ),
    Part::main(
        "stored_files",
        &["sha256"],
        &[
            ("sha256", Bytes),
            ("touched_at", Integer),
            ("claimed_at", Integer),
        ],
    ),
    Part::main(
        "environment_settings",
        &["project", "environment"],
        &[
            ("project", Integer),
            ("environment", Text),
            ("backend_url", Text),
            ("backend_paths", Text),
            ("isolated", Boolean),
            ("frame_ancestors", Text),
            ("backend_set_by", Uuid),
            ("traced", Boolean),
        ],
    ),
    Part::main(
        "test_players",
        &["project", "is_guest", "number"],
        &[
            ("project", Integer),
            ("is_guest", Boolean),
            ("number", Small),
            ("id", Uuid),
        ],
    ),
    Part::main(
        "player_counts",
        &["project", "environment", "span", "start"],
        &[
            ("project", Integer),
            ("environment", Text),
            ("span", Integer),
            ("start", Integer),
            ("peak", Integer),
            ("player_millis", Integer),
        ],
    ),
    Part::main(
        "distinct_players",
        &["project", "environment", "period"],
        &[
            ("project", Integer),
            ("environment", Text),
            ("period", Text),
            ("players", Integer),
            ("sketch", Bytes),
        ],
    ),
    Part::main(
        "play_times",
        &["hour", "project", "environment", "player"],
        &[
            ("hour", Integer),
            ("project", Integer),
            ("environment", Text),
            ("player", Uuid),
            ("millis", Integer),
        ],
    ),
    Part::logs(
        "log_environments",
        &["id"],
        &[
            ("id", Integer),
            ("project", Text),
            ("environment", Text),
            ("grouped_id", Integer),
            ("ungrouped", Boolean),
            ("alert_hour", Integer),
            ("alerts", Integer),
            ("alerts_left_out", Integer),
        ],
    )
    .numbered("id"),
    Part::logs(
        LOG_RECORDS,
        // A store may give the same id to records of two environments.
        &["id", "environment"],
        &[
            ("id", Integer),
            ("environment", Integer),
            ("level", Small),
            ("source", Text),
            ("deployment", Uuid),
            ("player", Uuid),
            ("page", Bytes),
            ("time", Integer),
            ("message", Text),
            ("stack", Text),
            ("url", Text),
            ("line", Integer),
            ("column", Integer),
            ("metadata", Text),
            ("count", Integer),
        ],
    ),
    Part::logs(
        "log_error_counts",
        &["environment", "hour", "deployment"],
        &[
            ("environment", Integer),
            ("hour", Integer),
            ("deployment", Deployment),
            ("errors", Integer),
            ("warnings", Integer),
            ("last_at", Integer),
        ],
    ),
    Part::logs(
        "log_error_groups",
        &["environment", "fingerprint"],
        &[
            ("environment", Integer),
            ("fingerprint", Bytes),
            ("state", Text),
            ("first_at", Integer),
            ("last_at", Integer),
            ("count", Integer),
            ("of_stranger", Boolean),
            ("players", Bytes),
            ("search", Text),
            ("detail", Text),
            ("reach", Integer),
            ("begun_by", Uuid),
        ],
    ),
    Part::logs(
        "log_error_hours",
        &["environment", "fingerprint", "hour"],
        &[
            ("environment", Integer),
            ("fingerprint", Bytes),
            ("hour", Integer),
            ("count", Integer),
        ],
    ),
    Part::logs(
        "log_error_alerts",
        &["id"],
        &[
            ("id", Integer),
            ("environment", Integer),
            ("fingerprint", Bytes),
            ("reason", Text),
            ("made_at", Integer),
            ("tries", Small),
            ("next_at", Integer),
            ("detail", Text),
        ],
    )
    .numbered("id"),
];

/// The table of the files of deployments.
pub const DEPLOYMENT_FILES: &str = "deployment_files";
/// The table of frontend log records.
pub const LOG_RECORDS: &str = "log_records";

/// The tables that are not moved, in any back end: they belong to running servers, or are computed
/// again.
pub const NOT_MOVED: &[&str] = &[
    "certificate_order_times",
    "certificate_orders",
    "change_counter",
    "changes",
    "leases",
    "nodes",
    "ranking",
];

/// Checks that every column of a schema is either moved or `derived`, which means that the back end
/// computes it, and that every column that is moved exists. `schema` has the tables with their
/// columns, without the tables of the migrations. Returns a sentence for each error.
#[must_use]
pub fn compare_with_schema(
    place: Place,
    schema: &[(String, Vec<String>)],
    derived: &[(&str, &str)],
    not_moved: &[&str],
) -> Vec<String> {
    let mut errors = Vec::new();
    let is_left_out = |table: &str| NOT_MOVED.contains(&table) || not_moved.contains(&table);
    for (table, columns) in schema.iter().filter(|(table, _)| !is_left_out(table)) {
        let of_table = |part: &&Part| part.place == place && part.table == table;
        let parts: Vec<&Part> = PARTS.iter().filter(of_table).collect();
        if parts.is_empty() {
            errors.push(format!("the table {table} is not moved"));
        }
        for part in parts {
            let moves = |name: &str| part.columns.iter().any(|column| column.0 == name);
            for column in columns {
                if moves(column) == derived.contains(&(table, column)) {
                    errors.push(format!("{table}.{column} must be moved or derived"));
                }
            }
            for (name, _) in part.columns {
                if !columns.iter().any(|column| column == name) {
                    errors.push(format!("{table}.{name} is moved, but does not exist"));
                }
            }
        }
    }
    let missing = PARTS
        .iter()
        .filter(|part| part.place == place && !schema.iter().any(|(table, _)| table == part.table));
    errors.extend(missing.map(|part| format!("there is no table {}", part.table)));
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_names_of_their_own_and_keys_of_their_columns() {
        let mut names: Vec<&str> = PARTS.iter().map(|part| part.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), PARTS.len());
        for part in PARTS {
            assert_eq!(part.key_places().count(), part.key.len(), "{}", part.name);
        }
    }

    #[test]
    fn a_column_that_is_forgotten_is_named() {
        let schema = vec![(
            "admins".to_owned(),
            vec!["player".to_owned(), "new".to_owned()],
        )];
        let errors = compare_with_schema(Place::Main, &schema, &[], &[]);
        for error in [
            "admins.new must be moved or derived",
            "admins.granted_at is moved, but does not exist",
            "there is no table players",
        ] {
            assert!(errors.iter().any(|found| found == error), "{errors:?}");
        }
    }
}
