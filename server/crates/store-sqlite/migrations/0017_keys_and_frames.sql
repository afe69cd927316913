-- How long a key is believed after it stopped, and who may show a game in a frame.

-- The longest life of a token that the key may have signed, in milliseconds. Of
-- the keys of before nobody wrote it down, so it is the longest that there is.
ALTER TABLE signing_keys ADD COLUMN token_millis INTEGER NOT NULL DEFAULT 86400000;

-- JSON: "any", "platform" or a list of origins; null where nothing is set.
ALTER TABLE environment_settings ADD COLUMN frame_ancestors TEXT
    CHECK (frame_ancestors IS NULL OR json_valid(frame_ancestors));
