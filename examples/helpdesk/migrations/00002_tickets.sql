-- +goose Up
CREATE TYPE ticket_status AS ENUM ('open', 'waiting', 'closed');

CREATE TABLE tickets (
  id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  account_id bigint NOT NULL REFERENCES accounts ON DELETE CASCADE,
  subject    text NOT NULL,
  status     ticket_status NOT NULL DEFAULT 'open',
  details    jsonb NOT NULL DEFAULT '{}',
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX tickets_account ON tickets (account_id);
CREATE INDEX tickets_unfinished ON tickets (created_at) WHERE status <> 'closed';
CREATE TRIGGER tickets_updated_at BEFORE UPDATE ON tickets FOR EACH ROW EXECUTE FUNCTION set_updated_at();

-- +goose Down
DROP TABLE tickets;
DROP TYPE ticket_status;
