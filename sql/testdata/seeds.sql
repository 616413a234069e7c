select 1
select
select *
select * from t
select t.*, s.u.a, a b, a as "B", a as select from t x
select all a from t
select a or from t
select a and, b in, c like from t
select distinct a, b from t
select distinct on (a, b + 1) a, b from t order by a, b + 1
select a + b * c - d / e % f ^ g ^ h from t
select a = b, a <> b, a != b, a < b and b > c or not c <= d and d >= e
select - a ^ 2, + b, - - c, not not d
select a || b || 'x' || 1, a -> 'b' ->> 'c' #> '{a}', a @> b, a <@ b, a && b, a ~ b, a !~* b
select @ a, |/ b, a operator(pg_catalog.+) b, operator(pg_catalog.-) c
select a is null, b is not null, c isnull, d notnull, e is true, f is not false, g is unknown, h is distinct from i, j is not distinct from k
select a between 1 and 2, b not between symmetric 3 and 4 and c, d between - 1 and + 2 or e
select a in (1, 2, 3), b not in (4), (a, b) in ((1, 2), (3, 4)), c in (select d from e), (a, b) not in (select 1, 2)
select a like 'x%', b not like 'y' escape '!', c ilike d, e not ilike f, g similar to 'h', i not similar to 'j' escape 'k'
select a = any (array[1, 2]), b <> all ('{1,2}'::int[]), c = some (select 1), d like any (array['x']), e not ilike all ($1)
select exists (select 1), not exists (select 1 where false)
select (select 1), (select max(a) from t) + 1, array(select a from t), ((select 2)), (select 1 union select 2)
select case when a then b end, case a when 1 then 'x' when 2 then 'y' else null end
select cast(a as int), a::text::varchar(10), '1'::numeric(10, 2), (-5)::int, b::timestamp with time zone, c::time(3) without time zone, d::double precision, e::int[], f::int[][], g::int array, h::bit varying(5), i::character varying, j::"char", k::interval day to second(3), l::pg_catalog.int4, m::float(24), n::float(25), o::char, p::bit
select date '2020-01-01', timestamp '2020-01-01 00:00:00', interval '1' day, interval '1 day 2 hours', interval(3) '1.5', numeric '1.5', int4 '7', time with time zone '01:02:03+04', pg_catalog.text 'x', bit '101', double precision '1.5', national character varying(3) 'abc'
select a[1], a[1][2], a[1:2], a[:2], a[1:], a[:], (f(x)).y, (t.c).d.e, (t.c).*, $1[1], (array[1,2])[1], (select array[1])[1], t.a[1].b
select array[1, 2], array[[1, 2], [3, 4]], array[]::int[], row(1, 2), row(), (1, 2), row(a.*)
select a at time zone 'utc', a + b at time zone c, a collate "C", a collate pg_catalog."default" < b
select f(), f(a), f(a, b), f(*), f(all a), f(distinct a), f(a order by b desc, c), f(variadic a), f(a, variadic b), f(a => 1, b := 2), s.f(a), count(*) filter (where a > 1), percentile_cont(0.5) within group (order by a)
select rank() over (), sum(a) over w, avg(a) over (partition by b order by c rows between unbounded preceding and current row), f() over (w rows 1 preceding), f() over (order by a range between 1 preceding and unbounded following exclude ties) from t window w as (partition by a), x as (order by b)
select extract(year from a), extract('month' from b), extract(epoch from c), position('a' in b), substring(a from 2), substring(a from 2 for 3), substring(a for 3), substring(a, 2), substring(a for 3 from 2), trim(a), trim(both from a), trim(leading 'x' from a), trim(trailing from a), trim('x' from a), overlay(a placing b from 1 for 2), overlay(a placing b from 1), nullif(a, b), coalesce(a), greatest(a, b), least(a, b, c), collation for (a), normalize(a), normalize(a, nfc)
select current_date, current_time, current_timestamp, current_timestamp(3), localtime, localtimestamp(0), current_user, session_user, user, current_role, current_catalog, current_schema, current_schema()
select 'it''s', E'a\nb\x41\101\u0041', U&'d\0061t\+000061', U&'d!0061' uescape '!', $$a'b$$, $x$a$$b$x$, B'0101', X'1F', N'x', ''
select 1, 1.5, .5, 1., 1e3, 1.5e-3, 2147483647, 2147483648, -2147483648, - 2147483648, 9223372036854775807, 9223372036854775808, -9223372036854775808, 99999999999999999999, 00012
select true, false, null, default_value, "Quoted ""Name""", U&"d\0061t", "select"
select (a, b) overlaps (c, d), (date '2001-02-16', interval '100 days') overlaps (date '2001-10-30', date '2002-10-30')
select a from t, u, s.v as x (b, c), only w, y *
select * from a join b on a.x = b.x left join c using (y, z) right outer join d on true full join e on false cross join f natural join g natural left join h inner join i on 1 = 1
select * from a left join b left join c on b.x = c.x on a.x = b.x
select * from (a join b on true) join (c cross join d) on true, (e natural join f) as j
select * from ((a join b on true))
select * from (select 1) x, (values (1, 2), (3, 4)) as y (a, b), lateral (select x.a) z, (select 1 union all select 2) w
select * from generate_series(1, 10), f(a) with ordinality as g (b, c), lateral h(g.b) i, json_to_record('{}') as (a int, b text), json_to_recordset('[]') r (a int, b text), unnest(array(select 1)) u
select * from current_date, coalesce(1, 2) c
select a from t where b > 1 group by a, b + 1, (c, d) having count(*) > 1 order by a desc nulls last, 2 asc nulls first, c using > limit 10 offset 5
select a from t limit all offset 3 rows
select a from t offset 3 limit 1 + 1
select a from t fetch first row only
select a from t offset 2 rows fetch next 5 rows only
select a from t fetch first (1 + 2) rows only
select a from t limit null
select a from t for update of t nowait
select a from t, u for no key update of t for share of u skip locked limit 1
select a from t for key share
select 1 union select 2 union all select 3 intersect select 4 except select 5 except all select 6 intersect all select 7 order by 1 limit 1
(select 1) union (select 2 order by 1 limit 1) order by 1
((select 1))
(select 1 limit 2) offset 3
((select 1) union select 2) intersect select 3
(select a from t order by a) limit 1 for update
values (1, 'a'), (2, 'b') order by 1
values (1) union values (2)
table t
table s.t order by a limit 1
with a as (select 1), b (x, y) as materialized (select 1, 2), c as not materialized (table t) select * from a, b, c
with recursive r (n) as (values (1) union all select n + 1 from r where n < 5) select n from r
with x as (select 1) (select * from x) limit 1
with a as (insert into t values (1) returning *), b as (update t set a = 1 returning a), c as (delete from t returning a) select * from a, b, c
select (with a as (select 1) select * from a), * from (with b as (select 2) select * from b) x
insert into t values (1, 2), (3, default)
insert into t default values
insert into s.t as x (a, b) values (1, (select max(b) from u)) returning x.a, b + 1 as c, *
insert into t (a) select a from u where b order by c limit 1
insert into t (select 1 union select 2)
insert into t values (1) union all values (2)
insert into t values (1) on conflict do nothing
insert into t values (1) on conflict (a, lower(b), (c + 1)) where d do update set a = excluded.a, (b, c) = (select 1, 2), d = default where t.a > 1 returning a
insert into t values (1) on conflict on constraint k do update set a = 1
insert into t (a) overriding system value values (1)
with x as (select 1) insert into t select * from x
insert into t with x as (select 1) select * from x
update t set a = 1
update only t as x set a = a + 1, b = default, (c, d) = (1, default), (e, f) = row(1, 2), (g) = (select 1) from u join v on true, w where x.a = u.a returning *
with x as (select 1 as a) update t set b = x.a from x where t.a = x.a
delete from t
delete from only t as x using u, v left join w on true where x.a = u.a and exists (select 1) returning x.*
with x as (select 1) delete from t where a in (select * from x)
create table t (a int primary key, b varchar(10) not null unique default 'x', c numeric(10, 2) check (c > 0) references u (d) match full on delete cascade on update set null, d timestamptz default now() not null, e text collate "C" null, f int generated always as identity, g int generated by default as identity (start with 10 increment by 2), h int generated always as (a + 1) stored, i bigserial, j int constraint k not null constraint l check (j > 1) deferrable initially deferred)
create temp table if not exists s.t (a int, b int, primary key (a, b), constraint u unique (b) with (fillfactor = 70), check (a > b), foreign key (a) references x (b) deferrable, constraint f foreign key (a, b) references y) with (fillfactor = 100, autovacuum_enabled = false) tablespace pg_default
create unlogged table t ()
create table t as select 1 as a with no data
create table t (a, b) as values (1, 2)
create table if not exists t with (fillfactor = 10) as table u
create index on t (a)
create unique index concurrently if not exists i on only s.t using btree (a desc nulls last, lower(b) collate "C" text_pattern_ops asc nulls first, (c + 1)) include (d, e) with (fillfactor = 70) where f is null
create view v as select 1
create or replace view s.v (a, b) with (security_barrier = true) as select 1, 2 union select 3, 4
create sequence s
create sequence if not exists s.t as bigint increment by -1 minvalue -5 maxvalue 10 start with 3 cache 20 no cycle owned by t.a
create sequence s no minvalue no maxvalue cycle owned by none
create schema s
create schema if not exists s authorization joe
create schema authorization joe
drop table t
drop table if exists a, s.b cascade
drop index concurrently if exists i
drop view v restrict
drop sequence s
drop schema if exists a, b cascade
alter table t add column a int not null default 1, add if not exists b text, add constraint k primary key (a), add unique using index i, add check (a > 0) not valid, drop column if exists c cascade, drop d, drop constraint if exists e restrict
alter table if exists only s.t alter column a set default 1 + 1, alter a drop default, alter a set not null, alter a drop not null, alter a type text using a::text, alter a set data type int, alter a set statistics 10, alter a set storage external, alter a set (n_distinct = 1)
alter table t rename to u
alter table t rename column a to b
alter table t rename a to b
alter table t rename constraint a to b
alter table t owner to joe, set (fillfactor = 70), reset (fillfactor), set logged, cluster on i, replica identity full, replica identity using index j
alter table t set schema x
alter table t enable row level security
alter table t validate constraint z
alter index i rename to j
alter view v rename to w
alter sequence s restart
alter sequence if exists s restart with 5 increment 2 owned by t.a
alter sequence s owner to joe
truncate t
truncate table only a, s.b * restart identity cascade
comment on table t is 'x'
comment on column s.t.a is null
comment on constraint k on t is E'a\'b'
begin
begin work isolation level serializable, read only, deferrable
begin transaction read write not deferrable isolation level repeatable read
start transaction isolation level read committed
commit
commit work and chain
end transaction and no chain
rollback
abort and chain
rollback to a
rollback work to savepoint a
savepoint a
release a
release savepoint a
set a = 1
set a to 'x', y, 1.5, -2, on, true
set session a.b = default
set local a to default
set time zone 'utc'
set time zone local
set local time zone default
set session characteristics as transaction isolation level read uncommitted
set transaction read only
set names 'utf8'
set role none
set session authorization default
set schema 'x'
set search_path = a, "B", 'c'
set constraints all deferred
set constraints a, s.b immediate
reset a
reset all
reset time zone
reset session authorization
show a
show all
show time zone
show transaction isolation level
show session authorization
prepare p as select $1
prepare p (int, text[]) as insert into t values ($1, $2) returning a
execute p
execute p (1, 'a', array[1])
deallocate p
deallocate prepare all
explain select 1
explain analyze verbose update t set a = 1
explain (analyze, verbose false, costs off, format json, buffers 1) with a as (delete from t returning *) select * from a
explain (select 1)
explain create table t as select 1
explain execute p (1)
explain declare c cursor for select 1
copy t from stdin
copy s.t (a, b) to stdout with (format csv, header, delimiter ';', null '', force_quote (a, b))
copy (select 1) to stdout csv header quote '"' force quote *
copy t from stdin with (freeze on)
copy binary t to stdout
copy t from stdin with delimiter as ',' null as 'x' csv
copy t from stdin where a > 1
declare c cursor for select 1
declare c binary insensitive no scroll cursor with hold for select a from t
fetch c
fetch next from c
fetch all in c
fetch 5 c
fetch -5 from c
fetch forward 3 from c
fetch backward all c
fetch absolute -1 c
move relative 2 from c
move forward all in c
close c
close all
analyze
analyze verbose t (a, b), s.u
analyze (verbose, skip_locked) t
vacuum
vacuum full freeze verbose analyze t
vacuum (full, analyze false, parallel 2) t, u
discard all
discard temp
lock t
lock table only t, s.u in share row exclusive mode nowait
insert into t select returning a
insert into t select on conflict do nothing
create table t as select with no data
create or replace function s.f(a int, inout b text default 'x', variadic c int[]) returns setof t language plpgsql stable strict security definer cost 10 rows 5 parallel safe set a = 1 set b from current as $$ begin end $$
create function f(int, x double precision = 1) returns table (a int, b text) as 'obj', 'link' language c leakproof support s.p
create procedure p(in out a int) begin atomic select 1; insert into t values (case when true then 1 end); end
create function f() returns int return 1 + 2
alter function f(int) immutable reset all set x to default
alter procedure p rename to q
alter routine f(int) no depends on extension e
create aggregate a(int, text order by int) (sfunc = f, stype = internal, parallel = safe)
create aggregate a(*) (sfunc = f, stype = int8, initcond = '0')
create or replace aggregate a (basetype = int, sfunc = f, stype = text)
create operator s.=== (leftarg = box, procedure = f, commutator = operator(s.===), merges)
create operator class s.c default for type int using btree family x as operator 1 <, operator 2 <= (int, int) for order by s.f, function 1 (int, int) f(int, int), storage int
alter operator family f using btree add operator 1 < (int4, int8), function 1 (int4, int8) f(int4, int8)
alter operator family f using btree drop operator 1 (int4, int8)
alter operator + (none, int) owner to current_user
create type t as (a int, b text collate "C")
create type t as enum ('a', 'b')
create type t as range (subtype = float8, subtype_diff = f)
create type t (input = f, output = g, internallength = variable, alignment = int4, default = 'x')
create type t
alter type t add attribute a int cascade, drop attribute if exists b, alter attribute c set data type text
alter type t add value if not exists 'x' before 'y'
alter type t rename value 'x' to 'y'
create domain d as int not null default 1 constraint k check (value > 0)
alter domain d drop constraint if exists k cascade
alter domain d add constraint k check (value > 0) not valid
create trigger a before insert or update of a, b or delete on s.t referencing new table as n old table o for each row when (new.a > 1) execute procedure s.f(1, 'x', y)
create constraint trigger a after insert on t from u deferrable initially deferred for each row execute function f()
create event trigger e on ddl_command_start when tag in ('a', 'b') and x in ('c') execute function f()
alter event trigger e enable always
create or replace rule r as on insert to t where new.a > 1 do instead (insert into u values (1); notify c)
create rule r as on select to t do instead select 1
create rule r as on update to t do also nothing
create policy p on t as restrictive for select to public, current_user using (a > 1) with check (b)
alter policy p on t to joe using (true)
create role r with superuser login password 'x' connection limit 5 valid until 'infinity' in role a, b admin c
alter user joe password null
alter role all in database d set a = 1
alter group g add user a, b
grant select (a, b), update on t, s.u to public, group joe with grant option granted by current_user
grant all privileges on all tables in schema a, b to joe
grant execute on function f(int), s.g to joe
revoke grant option for usage on schema s from joe cascade
grant a, b to c with admin option
revoke admin option for a from c
alter default privileges for role joe in schema s grant select on tables to public
drop owned by joe, current_user cascade
reassign owned by joe to jim
drop function if exists f(int), s.g cascade
drop aggregate a(*), b(int order by text)
drop operator + (int, none), s.* (int, int)
drop trigger if exists a on s.t cascade
drop cast if exists (int as text)
drop transform for hstore language plpython
drop operator class c using btree
drop user mapping if exists for public server s
drop database if exists d with (force)
drop type a, s.b
comment on function f(int) is 'x'
comment on operator + (int, int) is null
comment on large object 123 is 'x'
security label for p on table t is 'x'
create extension if not exists e with schema s version '1' cascade
alter extension e update to '2'
alter extension e add function f(int)
create foreign data wrapper w handler f no validator options (a 'b')
create server s type 'x' version 'y' foreign data wrapper w options (a 'b')
create user mapping for user server s options (a 'b')
create foreign table t (a int not null) server s options (a 'b')
import foreign schema a limit to (b, c) from server s into d
create publication p for table only a (b, c) where (b > 1), d, tables in schema s, current_schema with (publish = 'insert')
alter publication p set (publish = 'insert')
create subscription s connection 'x' publication a, b with (enabled = false)
alter subscription s add publication a with (refresh = off)
create cast (int as text) with function f(int) as assignment
create or replace transform for hstore language plpython (from sql with function f(internal), to sql with function g(internal))
create default conversion s.c for 'a' to 'b' from f
create or replace trusted procedural language l handler h inline i validator v
create access method m type index handler h
create statistics if not exists s (ndistinct, mcv) on a, (b + 1), lower(c) from t
alter statistics s set statistics 100
create text search dictionary d (template = simple, stopwords = 'x')
alter text search dictionary d (stopwords = english)
alter text search configuration c alter mapping for a, b with s.d, e
create collation if not exists c (locale = 'C', deterministic = false)
create collation c from "C"
alter collation c refresh version
listen c
unlisten *
notify c, 'x'
checkpoint
load 'x'
cluster t using i
reindex (verbose, tablespace x) table concurrently s.t
create materialized view if not exists v (a) using heap with (a = 1) tablespace x as select 1 with no data
refresh materialized view concurrently v with no data
create database d with owner = joe encoding 'utf8' template default connection limit -1 is_template true
alter database d set a = 1
create tablespace x owner joe location '/x' with (a = 1)
alter tablespace x reset (a)
prepare transaction 'x'
commit prepared 'x'
rollback prepared 'x'
do language plpgsql $$ begin end $$
call s.p(1, b => 2)
set transaction snapshot 'x'
set a from current
set time zone interval '1' hour to minute
create temp recursive view v (a) as select 1
create view v with (security_barrier) as select 1 with local check option
alter table only t enable always trigger x, disable trigger all, disable rule r, force row level security
alter table t inherit u, no inherit s.v
alter table t attach partition u for values in (1, 2)
alter table t detach partition u concurrently
alter index i attach partition j
alter index i alter column 1 set statistics 100
alter table t alter constraint k deferrable initially deferred, set tablespace x, not of, set without oids
alter table t alter a add generated by default as identity (sequence name s start 1), alter b set generated always set start 1 restart with 5, alter c drop identity if exists, alter d drop expression
alter table t add exclude using gist (a with =), alter a type text collate "C" using b
alter foreign table t options (add a 'b', drop c), alter a options (set x 'y')
alter materialized view v no depends on extension e
create schema authorization current_user create table t (a int) create view v as select 1 grant select on t to joe
copy t from program 'x' with (format binary)
copy (delete from t returning a) to '/x' csv
declare c asensitive cursor without hold for select 1
select substring('foo' similar 'f' escape '#'), substring(a || 'b' similar 'x' escape '#'), substring('foo' similar to 'x')
select * from coalesce(1, 2) as c, collation for ('x'::text) col, lateral collation for (y)
