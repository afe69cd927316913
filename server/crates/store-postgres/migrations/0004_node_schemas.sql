-- The newest schema that the program of a node knows. A program whose schema older programs cannot
-- use does not upgrade the database while one of them runs.
ALTER TABLE nodes ADD COLUMN schema INTEGER NOT NULL DEFAULT 3;
