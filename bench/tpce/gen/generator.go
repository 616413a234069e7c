package gen

import "fmt"

// Generator generates the rows of a Scale. It is immutable, and so safe for concurrent use.
type Generator struct {
	scale      Scale
	securities int64
	issues     []issue // of one load unit; all load units have the same
	idsPerLU   int64   // trade ids, skipped ones included
}

// New returns the generator of a scale, or an error if the scale is invalid.
func New(scale Scale) (*Generator, error) {
	if err := scale.Validate(); err != nil {
		return nil, err
	}
	g := &Generator{scale: scale, securities: securitiesPerLU * scale.LoadUnits(), issues: issuesOfUnit()}
	g.idsPerLU = idsFor(scale.tradesPerLU())
	return g, nil
}

// Scale returns the generator's scale.
func (g *Generator) Scale() Scale { return g.scale }

// idsFor returns the number of ids that trades consume, including ids of orders that were rolled back.
func idsFor(trades int64) int64 {
	ids := trades
	for ids-skippedUpTo(ids) < trades {
		ids += trades - (ids - skippedUpTo(ids))
	}
	return ids
}

// skipped reports that the n-th id of a load unit has no trade.
func skipped(n int64) bool { return n%skipPeriod == skipPhase }

func skippedUpTo(n int64) int64 { return (n + skipPeriod - skipPhase) / skipPeriod }

// MaxTradeID returns the highest trade id of the load.
func (g *Generator) MaxTradeID() int64 { return g.idsPerLU * g.scale.LoadUnits() }

// IsSkipped reports that an id of the load, 1 to MaxTradeID, has no trade.
func (g *Generator) IsSkipped(tradeID int64) bool { return skipped((tradeID-1)%g.idsPerLU + 1) }

// Parts returns all of the data, in parts that can be generated concurrently.
func (g *Generator) Parts() []Part {
	parts := []Part{newPart("fixed", g.fixedTables)}
	for lu := range g.scale.LoadUnits() {
		parts = append(parts,
			newPart(fmt.Sprintf("history-%d", lu), func(b *batcher) { g.historyTables(lu, b) }),
			newPart(fmt.Sprintf("market-%d", lu), func(b *batcher) { g.marketTables(lu, b) }),
			newPart(fmt.Sprintf("customers-%d", lu), func(b *batcher) { g.customerTables(lu, b) }))
	}
	return parts
}
