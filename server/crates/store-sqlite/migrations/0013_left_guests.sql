-- Guests that were signed out, and the browsers that can come back to them.

CREATE TABLE left_guests (
    -- SHA-256 of the secret that the browser holds.
    browser BLOB    NOT NULL CHECK (length(browser) = 32),
    player  BLOB    NOT NULL REFERENCES players (id),
    left_at INTEGER NOT NULL,
    PRIMARY KEY (browser, player)
) STRICT, WITHOUT ROWID;

CREATE INDEX left_guests_of_player ON left_guests (player);
CREATE INDEX left_guests_by_age ON left_guests (left_at);
