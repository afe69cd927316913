-- Whether the runtime puts a trace into the requests of an environment's pages.
ALTER TABLE environment_settings ADD COLUMN traced INTEGER NOT NULL DEFAULT 0 CHECK (traced IN (0, 1));
