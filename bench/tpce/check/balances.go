package check

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// judgeBalances compares every account's balance with the generator's balance plus the cash booked by trades of
// the run. It also compares the set of accounts with the generator's.
func judgeBalances(ctx context.Context, s *subject, r *Result) error {
	want := map[int64]int64{}
	for lu := range s.loaded.Settings.Scale.LoadUnits() {
		for _, id := range s.gen.Accounts(lu) {
			want[id] = s.gen.InitialBalance(id)
		}
	}
	columns := []string{"ca_id", "ca_bal", "expected"}
	var failed error
	read := func(f func(account, cents int64)) func(_, row []string) {
		return func(_, row []string) {
			account, err := strconv.ParseInt(row[0], 10, 64)
			if err == nil {
				var cents int64
				if cents, err = parseCents(row[1]); err == nil {
					f(account, cents)
					return
				}
			}
			failed = fmt.Errorf("row %q: %w", row, err)
		}
	}
	err := s.each(ctx, `SELECT t.t_ca_id, SUM(ct.ct_amt) FROM trade t JOIN cash_transaction ct ON ct.ct_t_id = t.t_id
WHERE t.t_id > $1 GROUP BY t.t_ca_id`, []any{s.loaded.MaxTradeID}, read(func(account, cents int64) {
		if _, ok := want[account]; !ok {
			r.violate(columns, []string{fmt.Sprint(account), "trades of the run", "no such account"})
			return
		}
		want[account] += cents
	}))
	if err != nil || failed != nil {
		return firstError(err, failed)
	}
	err = s.each(ctx, "SELECT ca_id, ca_bal FROM customer_account ORDER BY ca_id", nil, read(func(account, cents int64) {
		expected, ok := want[account]
		switch {
		case !ok:
			r.violate(columns, []string{fmt.Sprint(account), formatCents(cents), "no such account"})
		case expected != cents:
			r.violate(columns, []string{fmt.Sprint(account), formatCents(cents), formatCents(expected)})
		}
		delete(want, account)
	}))
	for account, expected := range want {
		r.violate(columns, []string{fmt.Sprint(account), "no row", formatCents(expected)})
	}
	return firstError(err, failed)
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// parseCents parses a number with two decimals.
func parseCents(text string) (int64, error) {
	whole, rest, _ := strings.Cut(text, ".")
	if len(rest) != 2 {
		return 0, fmt.Errorf("%q has not two decimals", text)
	}
	return strconv.ParseInt(whole+rest, 10, 64)
}

// formatCents formats a number with two decimals.
func formatCents(cents int64) string {
	sign := ""
	if cents < 0 {
		sign, cents = "-", -cents
	}
	return fmt.Sprintf("%s%d.%02d", sign, cents/100, cents%100)
}
