-- Who may do what with a project besides its owner.
CREATE TABLE members (
    project BIGINT NOT NULL REFERENCES projects (id),
    -- An account, which is not the project's owner.
    player  UUID   NOT NULL REFERENCES players (id),
    role    TEXT   COLLATE "C" NOT NULL CHECK (role IN ('viewer', 'developer')),
    since   BIGINT NOT NULL,
    CONSTRAINT members_key PRIMARY KEY (project, player)
);

CREATE INDEX members_of_player ON members (player);

-- Secrets with which accounts become members. Those that were used or withdrawn are removed.
CREATE TABLE invitations (
    id         UUID   NOT NULL CONSTRAINT invitations_id PRIMARY KEY,
    project    BIGINT NOT NULL REFERENCES projects (id),
    role       TEXT   COLLATE "C" NOT NULL CHECK (role IN ('viewer', 'developer')),
    -- SHA-256 of its secret.
    hash       BYTEA  NOT NULL CONSTRAINT invitations_hash UNIQUE CHECK (octet_length(hash) = 32),
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);

CREATE INDEX invitations_of_project ON invitations (project);

-- The member of the project who did it, in place of its owner.
ALTER TABLE audit_events ADD COLUMN member UUID CHECK (member IS NULL OR actor IS NULL);

CREATE INDEX audit_events_of_member ON audit_events (member, id) WHERE member IS NOT NULL;
