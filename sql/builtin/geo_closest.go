package builtin

import (
	"math"

	"github.com/percodb/percodb/sql/types"
)

// closestOps declares the operators ##: the point of the second object that is closest to the first, NULL where the distance is NaN.
func closestOps() []decl {
	closest := func(sig string, find func(a, b types.Datum) (point, bool)) decl {
		return decl{sig: sig, fn: fn2(func(a, b types.Datum) (types.Datum, error) {
			p, ok := find(a, b)
			if !ok {
				return types.Null, nil
			}
			return types.NewPoints(p), nil
		})}
	}
	return []decl{
		closest("##(point,lseg) point", func(a, b types.Datum) (point, bool) { return found(lsegOf(b).toPoint(pointOf(a))) }),
		closest("##(point,line) point", func(a, b types.Datum) (point, bool) { return found(lineOf(b).toPoint(pointOf(a))) }),
		closest("##(lseg,lseg) point", func(a, b types.Datum) (point, bool) {
			s, t := lsegOf(a), lsegOf(b)
			if types.Slope(s[0], s[1]) == types.Slope(t[0], t[1]) {
				return point{}, false
			}
			return found(t.closestTo(s))
		}),
		closest("##(line,lseg) point", func(a, b types.Datum) (point, bool) {
			l, s := lineOf(a), lsegOf(b)
			if types.Slope(s[0], s[1]) == l.slope() {
				return point{}, false
			}
			return found(s.toLine(l))
		}),
		closest("##(point,box) point", func(a, b types.Datum) (point, bool) {
			p, area := pointOf(a), boxOf(b)
			if area.has(p) {
				return p, true
			}
			return found(area.closest(func(side lseg) (float64, point) { return side.toPoint(p) }))
		}),
		closest("##(lseg,box) point", func(a, b types.Datum) (point, bool) {
			s, area := lsegOf(a), boxOf(b)
			if area.meets(s) {
				return found(s.toPoint(area.center()))
			}
			return found(area.closest(func(side lseg) (float64, point) { return side.closestTo(s) }))
		}),
	}
}

// found drops the distance of a point, which is NaN if there is none.
func found(distance float64, p point) (point, bool) { return p, !math.IsNaN(distance) }

// slope is that of the line, infinite for a vertical one.
func (l line) slope() float64 {
	switch {
	case geoZero(l.a):
		return 0
	case geoZero(l.b):
		return math.Inf(1)
	}
	return l.a / -l.b
}

// closestTo returns the point of s that is closest to t, and its distance.
func (s lseg) closestTo(t lseg) (float64, point) {
	if p, ok := s.meet(t); ok {
		return 0, p
	}
	best, at := s.toPoint(t[0])
	if d, p := s.toPoint(t[1]); d < best {
		best, at = d, p
	}
	for _, end := range s {
		if d, _ := t.toPoint(end); d < best {
			best, at = d, end
		}
	}
	return best, at
}

// closest returns the closest of the points that f finds on the sides of a box.
func (b box) closest(f func(side lseg) (float64, point)) (float64, point) {
	best, at := math.Inf(1), point{}
	for i, side := range b.sides() {
		if d, p := f(side); i == 0 || d < best {
			best, at = d, p
		}
	}
	return best, at
}
