-- Events are partitioned by month, so that old months can be detached. A trigger records each change of a ticket's status.

-- +goose Up
CREATE TABLE events (
  ticket_id bigint NOT NULL REFERENCES tickets ON DELETE CASCADE,
  at        timestamptz NOT NULL DEFAULT now(),
  kind      text NOT NULL,
  data      jsonb NOT NULL DEFAULT '{}'
) PARTITION BY RANGE (at);
CREATE INDEX events_ticket ON events (ticket_id, at);
CREATE TABLE events_other PARTITION OF events DEFAULT;

-- +goose StatementBegin
CREATE FUNCTION create_events_month(month date) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  name text := 'events_' || to_char(month, 'YYYY_MM');
BEGIN
  IF to_regclass(name) IS NULL THEN
    EXECUTE format('CREATE TABLE %I PARTITION OF events FOR VALUES FROM (%L) TO (%L)',
      name, date_trunc('month', month), date_trunc('month', month) + interval '1 month');
  END IF;
  RETURN name;
END
$$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION record_status() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO events (ticket_id, kind, data) VALUES (NEW.id, 'status', jsonb_build_object('from', OLD.status, 'to', NEW.status));
  RETURN NULL;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER tickets_record_status AFTER UPDATE OF status ON tickets
  FOR EACH ROW WHEN (OLD.status IS DISTINCT FROM NEW.status) EXECUTE FUNCTION record_status();

-- +goose Down
DROP TRIGGER tickets_record_status ON tickets;
DROP FUNCTION record_status();
DROP FUNCTION create_events_month(date);
DROP TABLE events;
