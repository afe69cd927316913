-- What players keep of games: which ones are their favourites, and when they last played which. A
-- player's row may be gone before this is.
CREATE TABLE player_games (
    player       BLOB    NOT NULL CHECK (length(player) = 16),
    project      INTEGER NOT NULL REFERENCES projects (id),
    -- Since when it is a favourite; NULL if it is none.
    favourite_at INTEGER,
    -- The last hour in which it was played; NULL if that is long ago.
    played_at    INTEGER,
    PRIMARY KEY (player, project)
) STRICT, WITHOUT ROWID;

CREATE INDEX player_games_by_play ON player_games (played_at);
CREATE INDEX player_games_of_project ON player_games (project);
