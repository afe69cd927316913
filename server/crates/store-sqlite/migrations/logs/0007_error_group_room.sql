-- Which groups of errors make room for new ones.

-- How many players met the group, about. Of groups of before it is not known until their next error,
-- so they stay.
ALTER TABLE log_error_groups ADD COLUMN reach INTEGER NOT NULL DEFAULT 1000 CHECK (reach >= 0);
-- The player of its first error.
ALTER TABLE log_error_groups ADD COLUMN begun_by BLOB CHECK (length(begun_by) = 16);
