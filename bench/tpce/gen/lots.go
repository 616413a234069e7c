package gen

import "slices"

// Lot is the remainder of one trade in an account. Qty is negative for shares sold short.
type Lot struct {
	TradeID int64
	Qty     int64
	Price   int64 // cents per share
	At      int64 // microseconds of trading time
}

// LotChange is a row of holding_history: a trade changed the lot of trade LotID.
type LotChange struct {
	LotID         int64
	Before, After int64
}

// Outcome contains the changes that a completed trade has made. Values are cents.
type Outcome struct {
	Changes             []LotChange
	BuyValue, SellValue int64 // of the shares of closed positions
}

// Apply completes a trade on the lots of its account and security, which are in the order of time, and
// returns the remaining lots. The trade's Qty is positive for a buy. Lots of the opposite sign are consumed,
// the oldest first or (lifo) the newest; the rest of the trade becomes a new lot. Changes are appended to
// out.Changes.
func Apply(lots []Lot, trade Lot, lifo bool, out *Outcome) []Lot {
	need := trade.Qty
	for len(lots) > 0 && need != 0 && (lots[0].Qty < 0) != (need < 0) {
		i := 0
		if lifo {
			i = len(lots) - 1
		}
		lot := &lots[i]
		used := min(abs(lot.Qty), abs(need))
		after := lot.Qty + sign(need)*used
		out.Changes = append(out.Changes, LotChange{LotID: lot.TradeID, Before: lot.Qty, After: after})
		if need < 0 {
			out.BuyValue += used * lot.Price
			out.SellValue += used * trade.Price
		} else {
			out.SellValue += used * lot.Price
			out.BuyValue += used * trade.Price
		}
		need -= sign(need) * used
		lot.Qty = after
		if after == 0 {
			lots = slices.Delete(lots, i, i+1)
		}
	}
	if need != 0 {
		out.Changes = append(out.Changes, LotChange{LotID: trade.TradeID, Before: 0, After: need})
		trade.Qty = need
		lots = append(lots, trade)
	}
	return lots
}

func abs(n int64) int64 { return max(n, -n) }

func sign(n int64) int64 {
	if n < 0 {
		return -1
	}
	return 1
}
