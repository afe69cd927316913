-- Identities, sign-ins on their way, merges, guests held by an address, and
-- the log of security events.

ALTER TABLE players ADD COLUMN merged_at INTEGER;
-- Last use; kept up to date for guests alone, and not to the minute.
ALTER TABLE players ADD COLUMN seen_at INTEGER;
UPDATE players SET seen_at = created_at;
-- Names are compared by what they look like, and that rule has changed.
UPDATE OR IGNORE players SET username_key = unique_key(username);

-- An address is kept only while it holds the guest.
CREATE INDEX guests_of_address ON players (address, seen_at) WHERE address IS NOT NULL;
CREATE INDEX merged_players ON players (merged_into) WHERE merged_into IS NOT NULL;
CREATE INDEX suspended_players ON players (suspended_at) WHERE suspended_at IS NOT NULL;

CREATE TABLE identities (
    -- SHA-256 of issuer and subject: the platform keeps neither.
    key       BLOB    NOT NULL PRIMARY KEY CHECK (length(key) = 32),
    provider  TEXT    NOT NULL CHECK (provider <> ''),
    player    BLOB    NOT NULL REFERENCES players (id),
    linked_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX identities_of_player ON identities (player);

-- Sign-ins that a browser has begun, until it comes back from the provider.
CREATE TABLE pending_sign_ins (
    -- SHA-256 of the parameter `state`.
    state         BLOB    NOT NULL PRIMARY KEY CHECK (length(state) = 32),
    browser       BLOB    NOT NULL CHECK (length(browser) = 32),
    provider      TEXT    NOT NULL,
    nonce         TEXT    NOT NULL,
    pkce_verifier TEXT    NOT NULL,
    guest         BLOB    REFERENCES players (id),
    redirect      TEXT    NOT NULL,
    started_at    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX pending_sign_ins_by_age ON pending_sign_ins (started_at);

-- For sweeping sessions by age.
CREATE INDEX sessions_by_age ON sessions (renewed_at);

CREATE TABLE audit_events (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    at      INTEGER NOT NULL,
    kind    TEXT    NOT NULL,
    -- Whom it happened to, and the other player that had a part in it.
    player  BLOB,
    other   BLOB,
    -- The provider's id, or the key's.
    subject TEXT
) STRICT;

CREATE INDEX audit_events_of_player ON audit_events (player, id);
CREATE INDEX audit_events_of_other ON audit_events (other, id) WHERE other IS NOT NULL;
