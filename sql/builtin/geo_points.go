package builtin

import (
	"math"

	"github.com/percodb/percodb/sql/types"
)

// segments calls f with each segment of a path, or of a polygon if closed is set, until it returns false.
func segments(points []point, closed bool, f func(lseg) bool) {
	for i := range points {
		switch {
		case i > 0:
			if !f(lseg{points[i-1], points[i]}) {
				return
			}
		case closed:
			if !f(lseg{points[len(points)-1], points[0]}) {
				return
			}
		}
	}
}

func pathLength(points []point, closed bool) (sum float64) {
	segments(points, closed, func(s lseg) bool {
		sum += s.length()
		return true
	})
	return sum
}

// shoelace is the area within points.
func shoelace(points []point) (area float64) {
	for i, p := range points {
		q := points[(i+1)%len(points)]
		area += p.X*q.Y - p.Y*q.X
	}
	return math.Abs(area) / 2
}

// distanceToPoints returns the least distance of a point from the segments: 0 if there are none, as of an open path of one point.
func distanceToPoints(points []point, closed bool, p point) float64 {
	var best leastDistance
	segments(points, closed, func(s lseg) bool {
		d, _ := s.toPoint(p)
		best.add(d)
		return true
	})
	return best.value
}

// distanceOfPoints returns the least distance of two lists of segments. A step is about a comparison of two segments.
func distanceOfPoints(env *Env, a []point, aClosed bool, b []point, bClosed bool) (best float64, err error) {
	var least leastDistance
	segments(a, aClosed, func(s lseg) bool {
		err = env.Step(len(b) * comparisonSteps)
		segments(b, bClosed, func(t lseg) bool {
			least.add(s.distance(t))
			return true
		})
		return err == nil
	})
	return least.value, err
}

func pointsMeet(env *Env, a []point, aClosed bool, b []point, bClosed bool) (meet bool, err error) {
	if !boundingBox(a).overlaps(boundingBox(b)) {
		return false, nil
	}
	segments(a, aClosed, func(s lseg) bool {
		err = env.Step(len(b) * comparisonSteps)
		segments(b, bClosed, func(t lseg) bool {
			_, meet = s.meet(t)
			return !meet
		})
		return err == nil && !meet
	})
	return meet, err
}

// onPath reports whether a point is on an open path, or within a closed one.
func onPath(points []point, closed bool, p point) bool {
	if closed {
		return inside(points, p) != 0
	}
	on := false
	segments(points, false, func(s lseg) bool {
		on = s.has(p)
		return !on
	})
	return on
}

// onEdge is inside's result for a point on an edge.
const onEdge = 2

// inside returns 0 for a point outside of a polygon, 1 for one within.
func inside(points []point, p point) int {
	const edge = math.MaxInt
	first := point{X: points[0].X - p.X, Y: points[0].Y - p.Y}
	prev, total := first, 0
	for i := 1; i <= len(points); i++ {
		q := first
		if i < len(points) {
			q = point{X: points[i].X - p.X, Y: points[i].Y - p.Y}
		}
		c := crossing(q, prev, edge)
		if c == edge {
			return onEdge
		}
		total += c
		prev = q
	}
	if total != 0 {
		return 1
	}
	return 0
}

// crossing returns how a segment crosses the positive X axis: edge if the origin is on it, 2 or -2 for a crossing, 1 or -1 for an end.
func crossing(p, prev point, edge int) int {
	if geoZero(p.Y) {
		switch {
		case geoZero(p.X):
			return edge
		case geoGt(p.X, 0):
			if geoZero(prev.Y) {
				return choose3(geoGt(prev.X, 0), 0, edge)
			}
			return choose3(geoLt(prev.Y, 0), 1, -1)
		}
		if geoZero(prev.Y) {
			return choose3(geoLt(prev.X, 0), 0, edge)
		}
		return 0
	}
	sign := choose3(geoGt(p.Y, 0), 1, -1)
	switch {
	case geoZero(prev.Y):
		return choose3(geoLt(prev.X, 0), 0, sign)
	case sign < 0 && geoLt(prev.Y, 0) || sign > 0 && geoGt(prev.Y, 0):
		return 0
	case geoGe(p.X, 0) && geoGt(prev.X, 0):
		return 2 * sign
	case geoLt(p.X, 0) && geoLe(prev.X, 0):
		return 0
	}
	z := (p.X-prev.X)*p.Y - (p.Y-prev.Y)*p.X
	switch {
	case geoZero(z):
		return edge
	case sign < 0 && geoLt(z, 0) || sign > 0 && geoGt(z, 0):
		return 0
	}
	return 2 * sign
}

func choose3(which bool, yes, no int) int {
	if which {
		return yes
	}
	return no
}

// samePoints reports whether two polygons have the same points in the same order, from any one on and in any direction.
func samePoints(a, b []point) bool {
	n := len(a)
	if n != len(b) {
		return false
	}
	for i := range b {
		if !types.SamePoint(a[0], b[i]) {
			continue
		}
		for _, step := range []int{1, n - 1} {
			k := 1
			for k < n && types.SamePoint(a[k], b[(i+k*step)%n]) {
				k++
			}
			if k == n {
				return true
			}
		}
	}
	return false
}

func polygonsOverlap(env *Env, a, b []point) (bool, error) {
	meet, err := pointsMeet(env, a, true, b, true)
	if err != nil || meet || !boundingBox(a).overlaps(boundingBox(b)) {
		return meet, err
	}
	return inside(a, b[0]) != 0 || inside(b, a[0]) != 0, nil
}

// polygonContains reports whether each segment of b is within a.
func polygonContains(env *Env, a, b []point) (within bool, err error) {
	if !boundingBox(a).contains(boundingBox(b)) {
		return false, nil
	}
	c := containment{env: env, points: a}
	within = true
	segments(b, true, func(s lseg) bool {
		within = c.segment(s[0], s[1], 0, 0)
		return within && c.err == nil
	})
	return within, c.err
}

// containment tests segments against a polygon.
type containment struct {
	env    *Env
	points []point
	err    error
}

// maxGeoDepth bounds the recursion: each level is a crossing of the segment with the polygon.
const maxGeoDepth = 10_000

// segment reports whether the segment is within the polygon, of which the edges before start need no test.
func (c *containment) segment(a, b point, start, depth int) bool {
	if c.err = c.env.Step(len(c.points) * comparisonSteps); c.err != nil || depth > maxGeoDepth {
		return false
	}
	t, res, crossed := lseg{a, b}, true, false
	prev := c.points[(start+len(c.points)-1)%len(c.points)]
	for i := start; i < len(c.points) && res; i++ {
		s := lseg{prev, c.points[i]}
		prev = c.points[i]
		switch {
		case s.has(a):
			if s.has(b) {
				return true
			}
			res = c.touched(a, b, s, i+1, depth)
		case s.has(b):
			res = c.touched(b, a, s, i+1, depth)
		default:
			if p, ok := t.meet(s); ok {
				crossed = true
				res = c.segment(a, p, i+1, depth+1) && c.segment(b, p, i+1, depth+1)
			}
		}
	}
	if res && !crossed {
		res = inside(c.points, t.center()) != 0
	}
	return res
}

// touched is segment for one of which the end a is on the edge s.
func (c *containment) touched(a, b point, s lseg, start, depth int) bool {
	t := lseg{a, b}
	switch {
	case types.SamePoint(a, s[0]):
		if t.has(s[1]) {
			return c.segment(b, s[1], start, depth+1)
		}
	case types.SamePoint(a, s[1]):
		if t.has(s[0]) {
			return c.segment(b, s[0], start, depth+1)
		}
	case t.has(s[0]):
		return c.segment(b, s[0], start, depth+1)
	case t.has(s[1]):
		return c.segment(b, s[1], start, depth+1)
	}
	return true
}

// circleOfPoints has the mean of the points as its center, and their mean distance as its radius.
func circleOfPoints(points []point) (c circle) {
	n := float64(len(points))
	for _, p := range points {
		c.center = point{X: c.center.X + p.X, Y: c.center.Y + p.Y}
	}
	c.center = point{X: c.center.X / n, Y: c.center.Y / n}
	for _, p := range points {
		c.radius += distance(p, c.center)
	}
	c.radius /= n
	return c
}
