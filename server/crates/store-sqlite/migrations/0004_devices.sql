-- Signing in a device without a browser (RFC 8628), and what it keeps.

-- Sign-ins that a device has begun, until their codes end.
CREATE TABLE device_authorizations (
    -- SHA-256 of the device code.
    device_code BLOB    NOT NULL PRIMARY KEY CHECK (length(device_code) = 32),
    -- Eight letters, without the hyphen.
    user_code   TEXT    NOT NULL UNIQUE CHECK (length(user_code) = 8),
    client      TEXT    NOT NULL CHECK (client <> ''),
    -- The address (IPv4, or IPv6 /64) that it began from.
    network     TEXT    NOT NULL,
    started_at  INTEGER NOT NULL,
    -- When the device asked last, and how many seconds it has to leave between.
    polled_at   INTEGER,
    interval    INTEGER NOT NULL,
    -- Who decided, and what; nobody yet if null.
    player      BLOB    REFERENCES players (id),
    approved    INTEGER CHECK (approved IN (0, 1)),
    CHECK ((player IS NULL) = (approved IS NULL))
) STRICT, WITHOUT ROWID;

CREATE INDEX device_authorizations_by_age ON device_authorizations (started_at);
CREATE INDEX device_authorizations_of_player ON device_authorizations (player)
    WHERE player IS NOT NULL;

-- Devices that are signed in. One that is not any more has no row.
CREATE TABLE devices (
    id           BLOB    NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    player       BLOB    NOT NULL REFERENCES players (id),
    client       TEXT    NOT NULL,
    network      TEXT    NOT NULL,
    signed_in_at INTEGER NOT NULL,
    -- When it last got a token.
    used_at      INTEGER NOT NULL,
    -- SHA-256 of the refresh token that works, and of the one before it with
    -- the time of its first use.
    current      BLOB    NOT NULL CHECK (length(current) = 32),
    previous     BLOB    CHECK (length(previous) = 32),
    rotated_at   INTEGER,
    CHECK ((previous IS NULL) = (rotated_at IS NULL))
) STRICT, WITHOUT ROWID;

CREATE INDEX devices_of_player ON devices (player);
CREATE INDEX devices_by_use ON devices (used_at);

-- Every refresh token that a device was given, so that one that comes again is
-- known for what it is.
CREATE TABLE refresh_tokens (
    -- SHA-256 of the token.
    hash      BLOB    NOT NULL PRIMARY KEY CHECK (length(hash) = 32),
    device    BLOB    NOT NULL REFERENCES devices (id) ON DELETE CASCADE,
    issued_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX refresh_tokens_of_device ON refresh_tokens (device);
CREATE INDEX refresh_tokens_by_age ON refresh_tokens (issued_at);
