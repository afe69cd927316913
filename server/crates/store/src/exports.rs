//! What a player may read of what is stored about them: the sections of the exported file, their
//! fields, and where each comes from. `docs/privacy.md` documents the file.

use platform_domain::date::rfc3339;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::tables::Place;

/// The maximum number of rows of a section, the newest first.
pub const ROWS: usize = 10_000;

/// How a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A text.
    Text,
    /// A number.
    Number,
    /// A time, as RFC 3339 writes it.
    Time,
    /// True or false.
    Truth,
    /// An id.
    Id,
}

/// A value as the store has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    /// A text.
    Text(String),
    /// A number or a time.
    Number(i64),
    /// True or false.
    Truth(bool),
    /// An id.
    Id(Uuid),
}

/// A field: its name in the file, the SQL of its value, and its form. The SQL is the same in every
/// back end; `$1` is the player.
pub type Field = (&'static str, &'static str, Form);

/// A section of the file.
#[derive(Debug)]
pub struct Section {
    /// The name.
    pub name: &'static str,
    /// The database of its rows.
    pub place: Place,
    /// Where the rows come from, in SQL.
    pub from: &'static str,
    /// Which rows, in SQL.
    pub only: &'static str,
    /// Their order, in SQL.
    pub order: &'static str,
    /// The fields.
    pub fields: &'static [Field],
}

/// A section with its rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportedSection {
    /// The name.
    pub name: &'static str,
    /// The rows, as JSON objects.
    pub rows: Vec<Value>,
    /// Whether there are more.
    pub is_cut: bool,
}

/// The slug of the project with the id in `project`.
macro_rules! game {
    ($project:literal) => {
        concat!(
            "(SELECT g.slug FROM projects g WHERE g.id = ",
            $project,
            ")"
        )
    };
}

/// The address or request in `column`, if the player is the one who acted.
macro_rules! own {
    ($column:literal) => {
        concat!(
            "CASE WHEN admin = $1 OR member = $1
                 OR (player = $1 AND actor IS NULL AND member IS NULL) THEN ",
            $column,
            " END"
        )
    };
}

/// The sections, in the order of the file.
pub const SECTIONS: &[Section] = &[
    Section {
        name: "player",
        place: Place::Main,
        from: "players",
        only: "id = $1",
        order: "id",
        fields: &[
            ("id", "id", Form::Id),
            ("username", "username", Form::Text),
            ("is_account", "linked", Form::Truth),
            ("created_at", "created_at", Form::Time),
            ("seen_at", "seen_at", Form::Time),
            ("address", "address", Form::Text),
            ("suspended_at", "suspended_at", Form::Time),
            ("suspension_reason", "suspension_reason", Form::Text),
            ("deletion_asked_at", "deletion_asked_at", Form::Time),
            ("deletion_at", "deletion_at", Form::Time),
        ],
    },
    Section {
        name: "merged_guests",
        place: Place::Main,
        from: "players",
        only: "merged_into = $1",
        order: "merged_at DESC, id",
        fields: &[
            ("id", "id", Form::Id),
            ("username", "username", Form::Text),
            ("created_at", "created_at", Form::Time),
            ("merged_at", "merged_at", Form::Time),
        ],
    },
    Section {
        name: "identities",
        place: Place::Main,
        from: "identities",
        only: "player = $1",
        order: "linked_at DESC, key",
        fields: &[
            ("provider", "provider", Form::Text),
            ("linked_at", "linked_at", Form::Time),
        ],
    },
    Section {
        name: "sessions",
        place: Place::Main,
        from: "sessions",
        only: "player = $1",
        order: "renewed_at DESC, created_at DESC",
        fields: &[
            ("browser", "browser", Form::Text),
            ("created_at", "created_at", Form::Time),
            ("renewed_at", "renewed_at", Form::Time),
            ("authenticated_at", "authenticated_at", Form::Time),
            ("ended_at", "ended_at", Form::Time),
        ],
    },
    Section {
        name: "game_sessions",
        place: Place::Main,
        from: "game_sessions",
        only: "player = $1",
        order: "used_at DESC, hash",
        fields: &[
            ("game", "game", Form::Text),
            ("created_at", "created_at", Form::Time),
            ("used_at", "used_at", Form::Time),
        ],
    },
    Section {
        name: "left_guests",
        place: Place::Main,
        from: "left_guests",
        only: "player = $1",
        order: "left_at DESC",
        fields: &[("left_at", "left_at", Form::Time)],
    },
    Section {
        name: "devices",
        place: Place::Main,
        from: "devices",
        only: "player = $1",
        order: "used_at DESC, id",
        fields: &[
            ("client", "client", Form::Text),
            ("address", "network", Form::Text),
            ("signed_in_at", "signed_in_at", Form::Time),
            ("used_at", "used_at", Form::Time),
        ],
    },
    Section {
        name: "device_sign_ins",
        place: Place::Main,
        from: "device_authorizations",
        only: "player = $1",
        order: "started_at DESC, device_code",
        fields: &[
            ("client", "client", Form::Text),
            ("address", "network", Form::Text),
            ("started_at", "started_at", Form::Time),
            ("is_approved", "approved", Form::Truth),
        ],
    },
    Section {
        name: "administrator",
        place: Place::Main,
        from: "admins",
        only: "player = $1",
        order: "granted_at",
        fields: &[("granted_at", "granted_at", Form::Time)],
    },
    Section {
        name: "games",
        place: Place::Main,
        from: "player_games",
        only: "player = $1",
        order: "project",
        fields: &[
            ("game", game!("player_games.project"), Form::Text),
            ("favourite_at", "favourite_at", Form::Time),
            ("played_at", "nullif(played_at, 0)", Form::Time),
        ],
    },
    Section {
        name: "play_times",
        place: Place::Main,
        from: "play_times",
        only: "player = $1",
        order: "hour DESC, project, environment",
        fields: &[
            ("game", game!("play_times.project"), Form::Text),
            ("environment", "environment", Form::Text),
            ("hour", "hour", Form::Time),
            ("milliseconds", "millis", Form::Number),
        ],
    },
    Section {
        name: "own_projects",
        place: Place::Main,
        from: "projects",
        only: "owner = $1",
        order: "id DESC",
        fields: &[
            ("project", "slug", Form::Text),
            ("created_at", "created_at", Form::Time),
            ("deleted_at", "deleted_at", Form::Time),
        ],
    },
    Section {
        name: "memberships",
        place: Place::Main,
        from: "members",
        only: "player = $1",
        order: "since DESC, project",
        fields: &[
            ("project", game!("members.project"), Form::Text),
            ("role", "role", Form::Text),
            ("since", "since", Form::Time),
        ],
    },
    Section {
        name: "offered_projects",
        place: Place::Main,
        from: "handovers",
        only: "owner = $1 OR heir = $1",
        order: "offered_at DESC, project",
        fields: &[
            ("project", game!("handovers.project"), Form::Text),
            (
                "direction",
                "CASE WHEN owner = $1 THEN 'by-you' ELSE 'to-you' END",
                Form::Text,
            ),
            ("offered_at", "offered_at", Form::Time),
            ("expires_at", "expires_at", Form::Time),
        ],
    },
    Section {
        name: "deployments",
        place: Place::Main,
        from: "deployments",
        only: "deployed_by = $1",
        order: "created_at DESC, id",
        fields: &[
            ("project", game!("deployments.project"), Form::Text),
            ("environment", "environment", Form::Text),
            ("deployment", "id", Form::Id),
            ("created_at", "created_at", Form::Time),
            ("client", "client", Form::Text),
            ("address", "network", Form::Text),
            ("message", "message", Form::Text),
            ("revision", "revision", Form::Text),
        ],
    },
    Section {
        name: "deploy_tokens",
        place: Place::Main,
        from: "deploy_tokens",
        only: "created_by = $1",
        order: "created_at DESC, id",
        fields: &[
            ("project", game!("deploy_tokens.project"), Form::Text),
            ("name", "name", Form::Text),
            ("scopes", "scopes", Form::Text),
            ("created_at", "created_at", Form::Time),
            ("expires_at", "expires_at", Form::Time),
            ("used_at", "used_at", Form::Time),
            ("revoked_at", "revoked_at", Form::Time),
        ],
    },
    Section {
        name: "backends_set",
        place: Place::Main,
        from: "environment_settings",
        only: "backend_set_by = $1",
        order: "project, environment",
        fields: &[
            ("project", game!("environment_settings.project"), Form::Text),
            ("environment", "environment", Form::Text),
            ("address", "backend_url", Form::Text),
        ],
    },
    Section {
        name: "webhooks_set",
        place: Place::Main,
        from: "webhooks",
        only: "set_by = $1",
        order: "project",
        fields: &[
            ("project", game!("webhooks.project"), Form::Text),
            ("created_at", "created_at", Form::Time),
        ],
    },
    Section {
        name: "events",
        place: Place::Main,
        from: "audit_events",
        only: "id IN (SELECT id FROM audit_events WHERE player = $1
                      UNION SELECT id FROM audit_events WHERE other = $1
                      UNION SELECT id FROM audit_events WHERE admin = $1
                      UNION SELECT id FROM audit_events WHERE member = $1)",
        order: "id DESC",
        fields: &[
            ("at", "at", Form::Time),
            ("kind", "kind", Form::Text),
            ("subject", "subject", Form::Text),
            ("detail", "detail", Form::Text),
            (
                "by",
                "CASE WHEN admin = $1 OR member = $1 THEN 'you'
                      WHEN actor IS NOT NULL THEN actor
                      WHEN member IS NOT NULL THEN 'member'
                      WHEN player = $1 THEN 'you'
                      ELSE 'another player' END",
                Form::Text,
            ),
            ("address", own!("network"), Form::Text),
            ("request", own!("request"), Form::Text),
        ],
    },
    Section {
        name: "log_records",
        place: Place::Logs,
        from: "log_records",
        only: "environment IN (SELECT e.id FROM log_environments e) AND player = $1",
        order: "id DESC",
        fields: &[
            (
                "game",
                "(SELECT e.project FROM log_environments e WHERE e.id = log_records.environment)",
                Form::Text,
            ),
            (
                "environment",
                "(SELECT e.environment FROM log_environments e WHERE e.id = log_records.environment)",
                Form::Text,
            ),
            ("time", "time", Form::Time),
            (
                "level",
                "CASE level WHEN 0 THEN 'debug' WHEN 1 THEN 'info' WHEN 2 THEN 'warn'
                     ELSE 'error' END",
                Form::Text,
            ),
            ("source", "source", Form::Text),
            ("message", "message", Form::Text),
            ("stack", "stack", Form::Text),
            ("url", "url", Form::Text),
            ("metadata", "metadata", Form::Text),
            ("count", "count", Form::Number),
        ],
    },
];

impl Section {
    /// Returns the query for its rows, one more than a section has at most.
    #[must_use]
    pub fn sql(&self) -> String {
        let fields: Vec<&str> = self.fields.iter().map(|(_, sql, _)| *sql).collect();
        format!(
            "SELECT {} FROM {} WHERE {} ORDER BY {} LIMIT {}",
            fields.join(", "),
            self.from,
            self.only,
            self.order,
            ROWS + 1
        )
    }

    /// Writes a row: the values of its fields in their order. What is not known is left out.
    #[must_use]
    pub fn row(&self, cells: Vec<Option<Cell>>) -> Value {
        let mut object = Map::new();
        for ((name, _, form), cell) in self.fields.iter().zip(cells) {
            if let Some(cell) = cell {
                object.insert((*name).to_owned(), value(*form, cell));
            }
        }
        Value::Object(object)
    }

    /// Returns the section with these rows.
    #[must_use]
    pub fn with(&self, mut rows: Vec<Value>) -> ExportedSection {
        let is_cut = rows.len() > ROWS;
        rows.truncate(ROWS);
        ExportedSection {
            name: self.name,
            rows,
            is_cut,
        }
    }
}

fn value(form: Form, cell: Cell) -> Value {
    match (form, cell) {
        (Form::Time, Cell::Number(time)) => Value::String(rfc3339(time)),
        (_, Cell::Number(number)) => Value::from(number),
        (_, Cell::Text(text)) => Value::String(text),
        (_, Cell::Truth(truth)) => Value::Bool(truth),
        (_, Cell::Id(id)) => Value::String(id.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traces::TRACES;

    /// What is left out of the file, because it lives for minutes, or says nothing about the player
    /// that other sections do not say.
    const LEFT_OUT: &[(&str, &str)] = &[
        ("pending_sign_ins", "guest"),
        ("hand_offs", "player"),
        // Which player met an error first is in that player's log records.
        ("log_error_groups", "begun_by"),
    ];

    #[test]
    fn the_document_names_every_section() {
        let document = include_str!("../../../../docs/privacy.md");
        for section in SECTIONS {
            let name = format!("`{}`", section.name);
            assert!(document.contains(&name), "{name}");
        }
    }

    #[test]
    fn every_table_that_names_a_player_is_exported() {
        for trace in TRACES {
            let is_exported = SECTIONS.iter().any(|section| {
                section.from == trace.table
                    && section.only.contains(&format!("{} = $1", trace.column))
            });
            let is_left_out = LEFT_OUT.contains(&(trace.table, trace.column));
            assert!(
                is_exported != is_left_out,
                "{}.{}",
                trace.table,
                trace.column
            );
        }
    }

    #[test]
    fn a_row_has_what_is_known() {
        let section = SECTIONS.first().unwrap();
        let cells = vec![
            Some(Cell::Id(Uuid::nil())),
            Some(Cell::Text("otter".into())),
            Some(Cell::Truth(false)),
            Some(Cell::Number(0)),
            None,
        ];
        let expected = serde_json::json!({
            "id": "00000000-0000-0000-0000-000000000000",
            "username": "otter",
            "is_account": false,
            "created_at": "1970-01-01T00:00:00Z",
        });
        assert_eq!(section.row(cells), expected);
    }
}
