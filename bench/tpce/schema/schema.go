// Package schema defines the TPC-E-like database: 33 tables, 15 secondary indexes, 49 foreign keys.
//
// Column names and types are those of TPC-E according to public ports (github.com/osdldbt/dbt5); the definitions
// were written for this package. Three primary keys have a column order of our own, which suits ordered
// stores: daily_market, news_xref and customer_taxrate.
//
// Invariants:
//
//  1. A Table's number is its position in the order of creation: parents come first. Tables are dropped in the
//     reverse order.
//  2. Table.Columns returns the columns in the order in which package gen writes a row's fields.
//
// There is no index on trade(t_st_id), though ports have one: only the clean-up before a run would use
// it, and it would cost every trade two index writes.
//
// The driver has two tables of its own: tpce_meta describes what was loaded, tpce_load is the progress of a load. A
// run may add a third table and a sequence, see CreateForRun.
package schema

import (
	"fmt"
	"strings"
)

// MetaTable describes what was loaded, as keys and values; LoadTable contains the batches that an unfinished load
// has committed.
const (
	MetaTable = "tpce_meta"
	LoadTable = "tpce_load"
)

// BrokerDeltaTable contains commissions that have not been added to their brokers, and TradeIDSequence
// generates ids of trades, if the run's settings use them.
const (
	BrokerDeltaTable = "broker_delta"
	TradeIDSequence  = "tpce_trade_id_seq"
)

// String returns the table's SQL name.
func (t Table) String() string { return t.definition().name }

// Create returns the statement that creates the table with its primary key.
func (t Table) Create() string {
	d := t.definition()
	return "CREATE TABLE " + d.name + " (" + d.columns + ")"
}

// Columns returns the names of the columns, in order.
func (t Table) Columns() []string {
	var names []string
	for _, part := range splitTop(t.definition().columns) {
		if name, _, _ := strings.Cut(part, " "); name != "PRIMARY" {
			names = append(names, name)
		}
	}
	return names
}

// Key returns the columns of the primary key, in order.
func (t Table) Key() []string {
	_, key, _ := strings.Cut(t.definition().columns, "PRIMARY KEY (") // every definition has a primary key
	return strings.Split(strings.TrimSuffix(key, ")"), ", ")
}

// splitTop splits a list at the commas outside of parentheses, and trims the parts.
func splitTop(list string) []string {
	var parts []string
	depth, from := 0, 0
	for i, c := range list {
		switch {
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == ',' && depth == 0:
			parts = append(parts, strings.TrimSpace(list[from:i]))
			from = i + 1
		}
	}
	return append(parts, strings.TrimSpace(list[from:]))
}

// CreateOwn returns the statements that create the driver's own tables.
func CreateOwn() []string {
	return []string{
		"CREATE TABLE " + MetaTable + " (k varchar(40) NOT NULL, v varchar(400) NOT NULL, PRIMARY KEY (k))",
		"CREATE TABLE " + LoadTable + " (batch varchar(40) NOT NULL, PRIMARY KEY (batch))",
	}
}

// CreateForRun returns the statements that create, unless it exists, what some settings of a run need and the load
// does not create. Trade ids begin with firstID.
func CreateForRun(firstID int64) []string {
	return []string{
		"CREATE TABLE IF NOT EXISTS " + BrokerDeltaTable + " (bd_b_id bigint NOT NULL, bd_t_id bigint NOT NULL, " +
			"bd_comm numeric(10,2) NOT NULL, PRIMARY KEY (bd_b_id, bd_t_id))",
		fmt.Sprintf("CREATE SEQUENCE IF NOT EXISTS %s START WITH %d", TradeIDSequence, firstID),
	}
}

// Drop returns the statements that drop everything that exists; MetaTable is last.
func Drop() []string {
	var drops []string
	for t := Count - 1; t >= 0; t-- {
		drops = append(drops, "DROP TABLE IF EXISTS "+t.String())
	}
	return append(drops, "DROP TABLE IF EXISTS "+BrokerDeltaTable, "DROP SEQUENCE IF EXISTS "+TradeIDSequence,
		"DROP TABLE IF EXISTS "+LoadTable, "DROP TABLE IF EXISTS "+MetaTable)
}

// Index is a secondary index.
type Index struct {
	Name    string
	Table   Table
	Columns string
	Unique  bool
}

// Create returns the statement that creates the index unless it exists.
func (x Index) Create() string {
	unique := ""
	if x.Unique {
		unique = "UNIQUE "
	}
	return fmt.Sprintf("CREATE %sINDEX IF NOT EXISTS %s ON %s (%s)", unique, x.Name, x.Table, x.Columns)
}

// Indexes returns the secondary indexes, which are created after the load.
func Indexes() []Index {
	return []Index{
		{"i_c_tax_id", Customer, "c_tax_id", true},
		{"i_ca_c_id", CustomerAccount, "ca_c_id", false},
		{"i_wl_c_id", WatchList, "wl_c_id", false},
		{"i_b_name", Broker, "b_name", true},
		{"i_co_name", Company, "co_name", false},
		{"i_co_in_id", Company, "co_in_id", false},
		{"i_s_co", Security, "s_co_id, s_issue", true},
		{"i_in_name", Industry, "in_name", false},
		{"i_in_sc", Industry, "in_sc_id", false},
		{"i_sc_name", Sector, "sc_name", false},
		{"i_h_ca_symb", Holding, "h_ca_id, h_s_symb, h_dts", false},
		{"i_hh_t_id", HoldingHistory, "hh_t_id", false},
		{"i_t_ca_dts", Trade, "t_ca_id, t_dts", false},
		{"i_t_symb_dts", Trade, "t_s_symb, t_dts", false},
		{"i_tr_symb", TradeRequest, "tr_s_symb, tr_tt_id, tr_bid_price", false},
	}
}

// CheckerIndexes returns indexes that no transaction uses: they serve lookups of a broker's trades.
func CheckerIndexes() []Index {
	return []Index{{"i_ca_b_id", CustomerAccount, "ca_b_id", false}}
}

// ForeignKey is a reference of a table's columns, joined by ", ", to the primary key of a parent.
type ForeignKey struct {
	Table   Table
	Columns string
	Parent  Table
}

// Name returns the constraint's name.
func (f ForeignKey) Name() string {
	return "fk_" + f.Table.String() + "_" + strings.ReplaceAll(f.Columns, ", ", "_")
}

// Create returns the statement that adds the constraint.
func (f ForeignKey) Create() string {
	return fmt.Sprintf("ALTER TABLE %s ADD CONSTRAINT %s FOREIGN KEY (%s) REFERENCES %s (%s)",
		f.Table, f.Name(), f.Columns, f.Parent, strings.Join(f.Parent.Key(), ", "))
}

// ForeignKeys returns the foreign keys. The reference of holding to holding_summary requires an order: the summary
// row is inserted before its first lot, and deleted after its last.
func ForeignKeys() []ForeignKey {
	return []ForeignKey{
		{AccountPermission, "ap_ca_id", CustomerAccount},
		{Customer, "c_st_id", StatusType},
		{Customer, "c_ad_id", Address},
		{CustomerAccount, "ca_b_id", Broker},
		{CustomerAccount, "ca_c_id", Customer},
		{CustomerTaxrate, "cx_tx_id", Taxrate},
		{CustomerTaxrate, "cx_c_id", Customer},
		{Holding, "h_t_id", Trade},
		{Holding, "h_ca_id, h_s_symb", HoldingSummary},
		{HoldingHistory, "hh_h_t_id", Trade},
		{HoldingHistory, "hh_t_id", Trade},
		{HoldingSummary, "hs_ca_id", CustomerAccount},
		{HoldingSummary, "hs_s_symb", Security},
		{WatchItem, "wi_wl_id", WatchList},
		{WatchItem, "wi_s_symb", Security},
		{WatchList, "wl_c_id", Customer},
		{Broker, "b_st_id", StatusType},
		{CashTransaction, "ct_t_id", Trade},
		{Charge, "ch_tt_id", TradeType},
		{CommissionRate, "cr_tt_id", TradeType},
		{CommissionRate, "cr_ex_id", Exchange},
		{Settlement, "se_t_id", Trade},
		{Trade, "t_st_id", StatusType},
		{Trade, "t_tt_id", TradeType},
		{Trade, "t_s_symb", Security},
		{Trade, "t_ca_id", CustomerAccount},
		{TradeHistory, "th_t_id", Trade},
		{TradeHistory, "th_st_id", StatusType},
		{TradeRequest, "tr_t_id", Trade},
		{TradeRequest, "tr_tt_id", TradeType},
		{TradeRequest, "tr_s_symb", Security},
		{TradeRequest, "tr_b_id", Broker},
		{Company, "co_st_id", StatusType},
		{Company, "co_in_id", Industry},
		{Company, "co_ad_id", Address},
		{CompanyCompetitor, "cp_co_id", Company},
		{CompanyCompetitor, "cp_comp_co_id", Company},
		{CompanyCompetitor, "cp_in_id", Industry},
		{DailyMarket, "dm_s_symb", Security},
		{Exchange, "ex_ad_id", Address},
		{Financial, "fi_co_id", Company},
		{Industry, "in_sc_id", Sector},
		{LastTrade, "lt_s_symb", Security},
		{NewsXref, "nx_ni_id", NewsItem},
		{NewsXref, "nx_co_id", Company},
		{Security, "s_st_id", StatusType},
		{Security, "s_ex_id", Exchange},
		{Security, "s_co_id", Company},
		{Address, "ad_zc_code", ZipCode},
	}
}
