create observer o on t
create or replace observer o on s.t (a, "B") when (new.a > 1 or key.id is null) from beginning with (concurrency = 8, weak, name = x, gap = '5 s') as $$ insert into u values (1); delete from v $$
create observer o on t from now as 'select ''x'''
alter observer s.o enable
alter observer o disable
alter observer o set (batch = 100, weak = false, a = -1)
alter observer o rename to p
alter observer o retry
alter observer o retry where key.id = 1
drop observer o
drop observer if exists o, s.p cascade
comment on observer s.o is 'x'
notify observer o
notify observer s.o where a = 1 and b in (select 1)
wait for observer o
