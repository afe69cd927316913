//! Every column that names a player, and what becomes of its rows when the player is deleted. A test
//! names the columns that are missing.

use super::tables::Place;

/// What becomes of a row that names a player.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is removed.
    Remove,
    /// It stays without the player: these columns become null.
    Clear(&'static [&'static str]),
    /// It stays, and names
    /// [`DELETED_PLAYER`](platform_domain::deletion::DELETED_PLAYER) in place of the player.
    Replace,
}

/// A column that names a player.
#[derive(Clone, Copy, Debug)]
pub struct Trace {
    /// The database of the table.
    pub place: Place,
    /// The table.
    pub table: &'static str,
    /// The column.
    pub column: &'static str,
    /// What becomes of its rows.
    pub fate: Fate,
}

const fn main(table: &'static str, column: &'static str, fate: Fate) -> Trace {
    Trace {
        place: Place::Main,
        table,
        column,
        fate,
    }
}

/// The columns, each table before those to which it refers.
pub const TRACES: &[Trace] = &[
    main("game_sessions", "player", Fate::Remove),
    main("hand_offs", "player", Fate::Remove),
    main("sessions", "player", Fate::Remove),
    main("left_guests", "player", Fate::Remove),
    main("identities", "player", Fate::Remove),
    main("pending_sign_ins", "guest", Fate::Remove),
    main("admins", "player", Fate::Remove),
    main("device_authorizations", "player", Fate::Remove),
    // Its refresh tokens go with it.
    main("devices", "player", Fate::Remove),
    main("members", "player", Fate::Remove),
    main("handovers", "owner", Fate::Remove),
    main("handovers", "heir", Fate::Remove),
    main("player_games", "player", Fate::Remove),
    main("play_times", "player", Fate::Remove),
    main(
        "deployments",
        "deployed_by",
        Fate::Clear(&["deployed_by", "network"]),
    ),
    main("deploy_tokens", "created_by", Fate::Replace),
    main(
        "environment_settings",
        "backend_set_by",
        Fate::Clear(&["backend_set_by"]),
    ),
    main("webhooks", "set_by", Fate::Clear(&["set_by"])),
    // Only a deleted project still has such an owner. It is removed when its own time has come.
    main("projects", "owner", Fate::Clear(&["owner"])),
    main("audit_events", "player", Fate::Replace),
    main("audit_events", "other", Fate::Replace),
    main("audit_events", "admin", Fate::Replace),
    main("audit_events", "member", Fate::Replace),
    main("players", "merged_into", Fate::Remove),
    main("players", "id", Fate::Remove),
    Trace {
        place: Place::Logs,
        table: "log_records",
        column: "player",
        fate: Fate::Remove,
    },
    Trace {
        place: Place::Logs,
        table: "log_error_groups",
        column: "begun_by",
        fate: Fate::Clear(&["begun_by"]),
    },
];

/// What events lose, as SQL, before their columns are replaced; `$1` is the player. The address and
/// the request of an act are those of who acted, and the reason of a suspension is about the player.
pub const FORGET_SOURCES: &[&str] = &[
    "UPDATE audit_events SET network = NULL, request = NULL WHERE player = $1 AND actor IS NULL",
    "UPDATE audit_events SET network = NULL, request = NULL WHERE other = $1 AND actor IS NULL",
    "UPDATE audit_events SET network = NULL, request = NULL WHERE member = $1",
    "UPDATE audit_events SET network = NULL, request = NULL WHERE admin = $1",
    "UPDATE audit_events SET subject = NULL WHERE player = $1 AND kind = 'suspended'",
];

impl Trace {
    /// Returns the statement that does it in the main database; `$1` is the player, and `$2` the id
    /// that replaces it, if there is one.
    #[must_use]
    pub fn sql(&self) -> String {
        let (table, column) = (self.table, self.column);
        match self.fate {
            Fate::Remove => format!("DELETE FROM {table} WHERE {column} = $1"),
            Fate::Clear(columns) => {
                let nulls: Vec<String> = columns
                    .iter()
                    .map(|column| format!("{column} = NULL"))
                    .collect();
                let nulls = nulls.join(", ");
                format!("UPDATE {table} SET {nulls} WHERE {column} = $1")
            }
            Fate::Replace => format!("UPDATE {table} SET {column} = $2 WHERE {column} = $1"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::{Kind, PARTS};

    /// Columns with the ids of something else.
    const OTHERS: &[(&str, &str)] = &[
        ("current_deployments", "deployment"),
        ("deploy_tokens", "id"),
        ("deployment_files", "deployment"),
        ("deployments", "id"),
        ("devices", "id"),
        ("invitations", "id"),
        ("log_records", "deployment"),
        ("previews", "deployment"),
        ("refresh_tokens", "device"),
        // A test player is a project's, and nobody's account.
        ("test_players", "id"),
    ];

    #[test]
    fn every_column_with_an_id_is_a_players_or_of_something_else() {
        for part in PARTS {
            for (column, kind) in part.columns {
                if *kind != Kind::Uuid {
                    continue;
                }
                let is_trace = TRACES
                    .iter()
                    .any(|trace| (trace.table, trace.column) == (part.table, column));
                let is_other = OTHERS.contains(&(part.table, column));
                assert!(is_trace != is_other, "{}.{column}", part.table);
            }
        }
    }

    #[test]
    fn a_trace_says_in_sql_what_becomes_of_its_rows() {
        let sql = |table: &str| {
            let trace = TRACES.iter().find(|trace| trace.table == table);
            trace.unwrap().sql()
        };
        assert_eq!(sql("sessions"), "DELETE FROM sessions WHERE player = $1");
        assert_eq!(
            sql("deployments"),
            "UPDATE deployments SET deployed_by = NULL, network = NULL WHERE deployed_by = $1"
        );
        assert_eq!(
            sql("deploy_tokens"),
            "UPDATE deploy_tokens SET created_by = $2 WHERE created_by = $1"
        );
    }
}
