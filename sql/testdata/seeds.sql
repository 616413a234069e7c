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
