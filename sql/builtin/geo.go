package builtin

import (
	"math"

	"github.com/percodb/percodb/sql/types"
)

// The comparisons of the geometric operators take numbers as equal that differ by no more than types.GeoEpsilon.

func geoZero(a float64) bool  { return math.Abs(a) <= types.GeoEpsilon }
func geoEq(a, b float64) bool { return a == b || math.Abs(a-b) <= types.GeoEpsilon }
func geoLt(a, b float64) bool { return b-a > types.GeoEpsilon }
func geoLe(a, b float64) bool { return a-b <= types.GeoEpsilon }
func geoGt(a, b float64) bool { return a-b > types.GeoEpsilon }
func geoGe(a, b float64) bool { return b-a <= types.GeoEpsilon }

type point = types.Point

// line is Ax + By + C = 0.
type line struct{ a, b, c float64 }

type lseg [2]point

// box has its greater coordinates first.
type box struct{ high, low point }

type circle struct {
	center point
	radius float64
}

func pointOf(d types.Datum) point { return d.Points()[0] }

func lsegOf(d types.Datum) lseg { return lseg(d.Points()) }

func boxOf(d types.Datum) box {
	p := d.Points()
	return box{p[0], p[1]}
}

func lineOf(d types.Datum) line {
	v := d.Geometry()
	return line{v[0], v[1], v[2]}
}

func circleOf(d types.Datum) circle {
	v := d.Geometry()
	return circle{point{X: v[0], Y: v[1]}, v[2]}
}

func (s lseg) datum() types.Datum   { return types.NewPoints(s[0], s[1]) }
func (b box) datum() types.Datum    { return types.NewBox(b.high, b.low) }
func (c circle) datum() types.Datum { return types.NewGeometry(c.center.X, c.center.Y, c.radius) }

func distance(p, q point) float64 { return math.Hypot(p.X-q.X, p.Y-q.Y) }

func lineThrough(p point, slope float64) line {
	a, b, c := types.LineThrough(p, slope)
	return line{a, b, c}
}

// inverseSlope is the slope of what is perpendicular to the line through two points.
func inverseSlope(p, q point) float64 {
	switch {
	case geoEq(p.X, q.X):
		return 0
	case geoEq(p.Y, q.Y):
		return math.Inf(1)
	}
	return (p.X - q.X) / (q.Y - p.Y)
}

func (l line) inverseSlope() float64 {
	switch {
	case geoZero(l.a):
		return math.Inf(1)
	case geoZero(l.b):
		return 0
	}
	return l.b / l.a
}

// meet returns the point in which two lines meet.
func (l line) meet(m line) (p point, ok bool) {
	if geoZero(l.b) {
		if geoZero(m.b) {
			return p, false
		}
		l, m = m, l
	}
	if geoEq(m.a, l.a*(m.b/l.b)) {
		return p, false
	}
	p.X = (l.b*m.c - m.b*l.c) / (l.a*m.b - m.a*l.b)
	p.Y = -(l.a*p.X + l.c) / l.b
	return point{X: p.X + 0, Y: p.Y + 0}, true // no negative zeros
}

func (l line) has(p point) bool { return geoZero(l.a*p.X + l.b*p.Y + l.c) }

// toPoint returns the distance and the closest point.
func (l line) toPoint(p point) (float64, point) {
	q, ok := lineThrough(p, l.inverseSlope()).meet(l)
	if !ok {
		return math.NaN(), p
	}
	return distance(q, p), q
}

func (l line) perpendicular(m line) bool {
	switch {
	case geoZero(l.a):
		return geoZero(m.b)
	case geoZero(m.a):
		return geoZero(l.b)
	case geoZero(l.b):
		return geoZero(m.a)
	case geoZero(m.b):
		return geoZero(l.a)
	}
	return geoEq(l.a*m.a/(l.b*m.b), -1)
}

// ratio returns what l's numbers are of m's.
func (l line) ratio(m line) float64 {
	switch {
	case !geoZero(m.a):
		return l.a / m.a
	case !geoZero(m.b):
		return l.b / m.b
	case !geoZero(m.c):
		return l.c / m.c
	}
	return 1
}

func (l line) equal(m line) bool {
	for _, v := range []float64{l.a, l.b, l.c, m.a, m.b, m.c} {
		if v != v {
			return types.CompareFloat(l.a, m.a) == 0 && types.CompareFloat(l.b, m.b) == 0 && types.CompareFloat(l.c, m.c) == 0
		}
	}
	r := l.ratio(m)
	return geoEq(l.a, r*m.a) && geoEq(l.b, r*m.b) && geoEq(l.c, r*m.c)
}

func (l line) distance(m line) float64 {
	if _, ok := l.meet(m); ok {
		return 0
	}
	r := 1.0
	switch {
	case !geoZero(l.a) && l.a == l.a && !geoZero(m.a) && m.a == m.a:
		r = l.a / m.a
	case !geoZero(l.b) && l.b == l.b && !geoZero(m.b) && m.b == m.b:
		r = l.b / m.b
	}
	return math.Abs(l.c-r*m.c) / math.Hypot(l.a, l.b)
}

func (s lseg) line() line { return lineThrough(s[0], types.Slope(s[0], s[1])) }

func (s lseg) length() float64 { return distance(s[0], s[1]) }

func (s lseg) has(p point) bool { return geoEq(distance(p, s[0])+distance(p, s[1]), s.length()) }

func (s lseg) center() point { return point{X: (s[0].X + s[1].X) / 2, Y: (s[0].Y + s[1].Y) / 2} }

func (s lseg) meetLine(l line) (point, bool) {
	p, ok := s.line().meet(l)
	switch {
	case !ok || !s.has(p):
		return p, false
	case types.SamePoint(s[0], p):
		return s[0], true
	case types.SamePoint(s[1], p):
		return s[1], true
	}
	return p, true
}

func (s lseg) meet(t lseg) (point, bool) {
	p, ok := s.meetLine(t.line())
	return p, ok && t.has(p)
}

// toLine returns the distance and the closest point of the segment.
func (s lseg) toLine(l line) (float64, point) {
	if p, ok := s.meetLine(l); ok {
		return 0, p
	}
	a, _ := l.toPoint(s[0])
	b, _ := l.toPoint(s[1])
	if a < b {
		return a, s[0]
	}
	return b, s[1]
}

func (s lseg) toPoint(p point) (float64, point) {
	_, q := s.toLine(lineThrough(p, inverseSlope(s[0], s[1])))
	return distance(q, p), q
}

func (s lseg) distance(t lseg) float64 {
	if _, ok := s.meet(t); ok {
		return 0
	}
	var best leastDistance
	for i := range 2 {
		a, _ := s.toPoint(t[i])
		b, _ := t.toPoint(s[i])
		best.add(a)
		best.add(b)
	}
	return best.value
}

// leastDistance is the least of distances, 0 of none. NaN is above all others.
type leastDistance struct {
	some  bool
	value float64
}

func (l *leastDistance) add(d float64) {
	if !l.some || d < l.value || math.IsNaN(l.value) {
		l.some, l.value = true, d
	}
}

func (b box) width() float64  { return b.high.X - b.low.X }
func (b box) height() float64 { return b.high.Y - b.low.Y }
func (b box) area() float64   { return b.width() * b.height() }
func (b box) center() point {
	return point{X: (b.high.X + b.low.X) / 2, Y: (b.high.Y + b.low.Y) / 2}
}

func (b box) has(p point) bool {
	return b.high.X >= p.X && b.low.X <= p.X && b.high.Y >= p.Y && b.low.Y <= p.Y
}

func (b box) contains(c box) bool {
	return geoGe(b.high.X, c.high.X) && geoLe(b.low.X, c.low.X) && geoGe(b.high.Y, c.high.Y) && geoLe(b.low.Y, c.low.Y)
}

func (b box) overlaps(c box) bool {
	return geoLe(b.low.X, c.high.X) && geoLe(c.low.X, b.high.X) && geoLe(b.low.Y, c.high.Y) && geoLe(c.low.Y, b.high.Y)
}

// sides are the four sides.
func (b box) sides() [4]lseg {
	left, right := point{X: b.low.X, Y: b.high.Y}, point{X: b.high.X, Y: b.low.Y}
	return [4]lseg{{b.low, left}, {b.high, left}, {b.low, right}, {b.high, right}}
}

func (b box) toPoint(p point) float64 {
	if b.has(p) {
		return 0
	}
	best := math.Inf(1)
	for _, s := range b.sides() {
		d, _ := s.toPoint(p)
		best = min(best, d)
	}
	return best
}

func (b box) meets(s lseg) bool {
	if !b.overlaps(boundingBox(s[:])) {
		return false
	}
	if b.has(s[0]) || b.has(s[1]) {
		return true
	}
	for _, side := range b.sides() {
		if _, ok := side.meet(s); ok {
			return true
		}
	}
	return false
}

func (b box) toSegment(s lseg) float64 {
	if b.meets(s) {
		return 0
	}
	best := math.Inf(1)
	for _, side := range b.sides() {
		best = min(best, side.distance(s))
	}
	return best
}

// boundingBox returns the least box around points.
func boundingBox(points []point) box {
	b := box{points[0], points[0]}
	for _, p := range points[1:] {
		b.high = point{X: max(b.high.X, p.X), Y: max(b.high.Y, p.Y)}
		b.low = point{X: min(b.low.X, p.X), Y: min(b.low.Y, p.Y)}
	}
	return b
}

func (c circle) area() float64 { return c.radius * c.radius * math.Pi }

func (c circle) same(d circle) bool {
	return (c.radius != c.radius && d.radius != d.radius || geoEq(c.radius, d.radius)) && types.SamePoint(c.center, d.center)
}

// bounds is the box around a circle, by which positions are compared.
func (c circle) bounds() box {
	r := c.radius
	return box{point{X: c.center.X + r, Y: c.center.Y + r}, point{X: c.center.X - r, Y: c.center.Y - r}}
}
