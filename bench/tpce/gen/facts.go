package gen

// Facts of TPC-E taken from public ports: the cardinalities from the schema check of github.com/osdldbt/dbt5,
// the distribution of customers from github.com/Percona-Lab/tpce-mysql.
const (
	customersPerLU   = 1000
	companiesPerLU   = 500
	securitiesPerLU  = 685
	brokersPerLU     = 10
	competitors      = 3
	quarters         = 20
	newsPerCompany   = 2
	zipCodes         = 14741
	sectors          = 12
	industries       = 102
	taxRates         = 320
	commissionRates  = 240
	exchangeCount    = 4
	tradeTypeCount   = 5
	statusTypeCount  = 5
	countryRates     = 9 // the other tax rates are those of divisions
	tiers            = 3
	watchItemsMin    = 50
	watchItemsMax    = 150
	secondsPerTrade  = 500 // of trading time between two trades of a customer
	tradingDaySecs   = 8 * 3600
	skipPeriod       = 101 // one order in skipPeriod is rolled back, and consumes its id
	skipPhase        = 51
	specTradeDays    = 300
	specMarketDays   = 1305
	specNewsBytes    = 100_000
	minimumTradeDays = 5 // Trade-Lookup goes back up to 32 hours of trading and expects to find trades
)

// tierShare is a tier of customers: its size per thousand customers, its share of the trades, and the weight of its
// first member; each further member weighs 2 more.
type tierShare struct {
	size        int64
	percent     int64 // of the trades
	firstWeight int64
	// The numbers of accounts cycle through minAccounts to maxAccounts.
	minAccounts, maxAccounts int64
}

// tierShares returns the three tiers, the most loyal customers last.
func tierShares() [tiers]tierShare {
	return [tiers]tierShare{
		{size: 200, percent: 10, firstWeight: 301, minAccounts: 1, maxAccounts: 4},
		{size: 600, percent: 60, firstWeight: 1401, minAccounts: 2, maxAccounts: 8},
		{size: 200, percent: 30, firstWeight: 1301, minAccounts: 5, maxAccounts: 10},
	}
}
