-- Whether the runtime puts a trace into the requests of an environment's pages.
ALTER TABLE environment_settings ADD COLUMN traced BOOLEAN NOT NULL DEFAULT false;
