-- Who may do what with a project besides its owner.
CREATE TABLE members (
    project INTEGER NOT NULL REFERENCES projects (id),
    -- An account, which is not the project's owner.
    player  BLOB    NOT NULL REFERENCES players (id),
    role    TEXT    NOT NULL CHECK (role IN ('viewer', 'developer')),
    since   INTEGER NOT NULL,
    PRIMARY KEY (project, player)
) STRICT, WITHOUT ROWID;

CREATE INDEX members_of_player ON members (player);

-- Secrets with which accounts become members. Those that were used or withdrawn are removed.
CREATE TABLE invitations (
    id         BLOB    NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    project    INTEGER NOT NULL REFERENCES projects (id),
    role       TEXT    NOT NULL CHECK (role IN ('viewer', 'developer')),
    -- SHA-256 of its secret.
    hash       BLOB    NOT NULL UNIQUE CHECK (length(hash) = 32),
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX invitations_of_project ON invitations (project);

-- The member of the project who did it, in place of its owner.
ALTER TABLE audit_events ADD COLUMN member BLOB CHECK (member IS NULL OR actor IS NULL);

CREATE INDEX audit_events_of_member ON audit_events (member) WHERE member IS NOT NULL;
