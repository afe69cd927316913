-- Sessions of games whose addresses share no site with the auth service.
CREATE TABLE game_sessions (
    hash       BLOB    NOT NULL PRIMARY KEY CHECK (length(hash) = 32),
    -- The parent's player; of a blank parent, the guest that its first token makes.
    player     BLOB    NOT NULL CHECK (length(player) = 16),
    -- The session at the auth service. A blank one is no row of `sessions` yet.
    parent     BLOB    NOT NULL CHECK (length(parent) = 32),
    -- The audience of the game's tokens.
    game       TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    used_at    INTEGER NOT NULL,
    blank      INTEGER NOT NULL CHECK (blank IN (0, 1))
) STRICT, WITHOUT ROWID;

CREATE INDEX game_sessions_of_parent ON game_sessions (parent);
CREATE INDEX game_sessions_of_player ON game_sessions (player);
CREATE INDEX game_sessions_by_use ON game_sessions (used_at);
CREATE INDEX game_sessions_blank ON game_sessions (used_at) WHERE blank = 1;

-- Codes that a browser carries between the auth service and such a game.
CREATE TABLE hand_offs (
    code    BLOB    NOT NULL PRIMARY KEY CHECK (length(code) = 32),
    -- 0 gives the game a session; 1 ends the parent of the game's session.
    purpose INTEGER NOT NULL CHECK (purpose IN (0, 1)),
    player  BLOB    NOT NULL CHECK (length(player) = 16),
    parent  BLOB    NOT NULL CHECK (length(parent) = 32),
    game    TEXT    NOT NULL,
    origin  TEXT    NOT NULL,
    -- SHA-256 of the secret in the browser that redeems the code.
    state   BLOB    NOT NULL CHECK (length(state) = 32),
    made_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX hand_offs_of_parent ON hand_offs (parent);
CREATE INDEX hand_offs_of_player ON hand_offs (player);
CREATE INDEX hand_offs_by_age ON hand_offs (made_at);
