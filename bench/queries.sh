# The queries and changes of query.sh, which profile.sh runs as well. Source it with rows set.

# schema: orders has no index but its key's; customers are a tenth of them.
schema() {
  cat <<SQL
create table orders (id bigint primary key, customer int not null, price int not null, quantity int, status text not null,
  note text, placed timestamptz not null);
create table customers (id int primary key, code text not null, region int not null);
insert into orders select i, (i * 7919::bigint) % ($rows / 10) + 1, (i * 104729::bigint) % 10007, case when i % 50 = 0 then null else i % 100 end,
  (array['new', 'paid', 'sent', 'done'])[i % 4 + 1], 'code' || (i * 31::bigint) % ($rows / 10) + 1, '2024-01-01 00:00+00'::timestamptz + i * interval '1 minute'
  from generate_series(1, $rows) i;
insert into customers select i, 'code' || i, i % 100 from generate_series(1, $rows / 10) i;
SQL
}

queries=() changes=()
declare -A text undo
query() { queries+=("$1"); text[$1]=$2; }
change() { changes+=("$1"); text[$1]=$2 undo[$1]=$3; }

query "count" "select count(*) from orders"
query "sum of a column" "select sum(price) from orders"
query "sums of columns" "select sum(price), avg(quantity), min(placed), max(customer) from orders"
query "filter, number" "select count(*) from orders where price between 100 and 199"
query "filter, text" "select count(*) from orders where status = 'paid' and note like '%99%'"
query "few groups" "select status, count(*), sum(price) from orders group by status order by status"
query "many groups" "select sum(n), max(p) from (select customer, count(*) n, sum(price) p from orders group by customer) g"
query "distinct" "select count(distinct customer) from orders"
query "join on text" "select count(*), sum(o.price) from orders o join customers c on o.note = c.code"
query "join on integer" "select c.region, sum(o.price) from orders o join customers c on o.customer = c.id group by c.region order by 1"
query "top 10" "select id, price from orders order by price desc, id limit 10"
query "sort" "select id from orders order by note, id offset $((rows - 1))"
query "exists" "select count(*) from customers c where exists (select from orders o where o.customer = c.id and o.price > 9000)"
query "not exists" "select count(*) from customers c where not exists (select from orders o where o.customer = c.id and o.price > 5000)"
query "in subquery" "select count(*) from orders where customer in (select id from customers where region = 7)"
query "window" "select sum(r) from (select rank() over (partition by customer order by price) r from orders) w"
change "create index" "create index orders_price on orders (price)" "drop index orders_price"
change "update 10 %" "update orders set price = price + 1 where id % 10 = 3" ""
change "delete 10 %" "delete from orders where id % 10 = 3" ""
query "count after delete" "select count(*) from orders"
