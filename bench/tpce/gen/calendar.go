package gen

import "time"

// Trading time counts microseconds of trading days only; the market is open eight hours a day, five
// days a week.
const (
	second     = int64(1_000_000)
	tradingDay = tradingDaySecs * second
)

// baseTime is when the first trading day begins, a Monday.
func baseTime() time.Time { return time.Date(2005, 1, 3, 9, 0, 0, 0, time.UTC) }

// wallTime turns trading time into a date and time of day.
func wallTime(t int64) time.Time {
	day := t / tradingDay
	return baseTime().AddDate(0, 0, int(day/5*7+day%5)).Add(time.Duration(t%tradingDay) * time.Microsecond)
}

// marketDate returns the i-th business day of daily_market, which begins on Monday, 2000-01-03.
func marketDate(i int64) time.Time {
	return time.Date(2000, 1, 3+int(i/5*7+i%5), 0, 0, 0, 0, time.UTC)
}
