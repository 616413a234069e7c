-- An index of a table that is in use: it is built while the table is written, which no transaction may surround.

-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX CONCURRENTLY tickets_details ON tickets USING gin (details jsonb_path_ops);

-- +goose Down
DROP INDEX CONCURRENTLY tickets_details;
