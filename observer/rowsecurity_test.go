package observer_test

import "testing"

// Goal: an observer handles only the changes of rows that its owner's policies let it see, one by one and in batches, and percodb.changes
// returns those that the reader may see; keys of hidden rows are in no view. Method: an owner with policies, and one without.
func TestObserversObeyPolicies(t *testing.T) {
	s := newServer(t)
	s.exec("create table orders (id int primary key, tenant int, amount int)")
	s.exec("create table seen (id int primary key, by text)")
	s.exec("create table tenants (who name primary key, tenant int)")
	s.exec("create role watcher login")
	s.exec("insert into tenants values ('watcher', 1)")
	s.exec("grant select, trigger on orders to watcher")
	s.exec("grant select on tenants to watcher")
	s.exec("grant insert on seen to watcher")
	s.exec("create policy own on orders using (tenant = (select t.tenant from tenants t where t.who = current_user))")
	s.exec("alter table orders enable row level security")
	for _, create := range []string{
		`create observer one on orders as $$ insert into seen values (key.id, 'one') on conflict do nothing $$`,
		`create observer many on orders with (batch = 10) as $$ insert into seen select id + 100, 'many' from changed on conflict do nothing $$`,
		`create observer fails on orders when (1 / (new.amount - 7) >= 0 or true) with (max_attempts = 1) as $$ insert into seen values (key.id + 200, 'fails') on conflict do nothing $$`,
		`create observer client on orders`,
	} {
		if got := s.as("watcher", create); got != "" {
			t.Fatalf("%s: %s", create, got)
		}
	}
	s.exec("insert into orders values (1, 1, 1), (2, 2, 7), (3, null, 7)")
	for _, o := range []string{"one", "many", "fails"} {
		s.exec("wait for observer " + o)
	}
	s.want("1,101,201", "select string_agg(id::text, ',' order by id) from seen")
	s.want("0", "select count(*) from percodb.observer_errors")
	if got := s.as("watcher", "create table copied as select id from percodb.changes('client')"); got == "" {
		t.Error("CREATE TABLE AS of percodb.changes")
	}
	s.exec("grant insert on seen to watcher")
	if got := s.as("watcher", "insert into seen select id + 300, 'client' from percodb.changes('client')"); got != "" {
		t.Errorf("percodb.changes: %s", got)
	}
	s.want("1,101,201,301", "select string_agg(id::text, ',' order by id) from seen")

	// Without policies for the owner all changes are handled.
	s.exec("alter role watcher bypassrls")
	s.exec("update orders set amount = amount + 1")
	for _, o := range []string{"one", "many"} {
		s.exec("wait for observer " + o)
	}
	s.want("1,2,3,101,102,103", "select string_agg(id::text, ',' order by id) from seen where id < 200")

	// What fails for a row that the reader must not see is shown without its key.
	s.exec("alter role watcher nobypassrls")
	s.exec("create observer broken on orders with (max_attempts = 1) as $$ insert into seen values (1000 / (new.amount - 8), 'x') $$")
	s.exec("alter observer broken owner to watcher")
	s.exec("alter role watcher bypassrls")
	s.exec("update orders set tenant = 3 where id = 2")
	s.exec("wait for observer broken")
	s.want("(id)=(2)|division by zero", "select key || '|' || error from percodb.observer_errors")
	s.exec("alter role watcher nobypassrls")
	if got := s.as("watcher", "insert into seen select 500 + count(*), 'x' from percodb.observer_errors where key is null and key_bytes is null and error is null and sqlstate = '22012'"); got != "" {
		t.Errorf("percodb.observer_errors: %s", got)
	}
	s.want("501", "select id from seen where id >= 500")
	if got := s.as("watcher", "alter observer broken retry where 1 / (key.id - 2) > 0"); got != "0A000" {
		t.Errorf("RETRY WHERE: %q", got)
	}
	if got := s.as("watcher", "notify observer one where 1 / (amount - 8) >= 0"); got != "" {
		t.Errorf("NOTIFY OBSERVER: %q", got)
	}
}
