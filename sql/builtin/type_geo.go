package builtin

import (
	"math"
	"strings"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// geoCalc computes with floats as PostgreSQL does: the first overflow, underflow or division by zero is the error.
type geoCalc struct{ err error }

func (c *geoCalc) do(f func(a, b float64) (float64, error), a, b float64) float64 {
	v, err := f(a, b)
	if c.err == nil {
		c.err = err
	}
	return v
}

func (c *geoCalc) add(a, b float64) float64 { return c.do(AddFloat8, a, b) }
func (c *geoCalc) sub(a, b float64) float64 { return c.do(SubFloat8, a, b) }
func (c *geoCalc) mul(a, b float64) float64 { return c.do(MulFloat8, a, b) }
func (c *geoCalc) div(a, b float64) float64 { return c.do(DivFloat8, a, b) }

// arith is p + q, p - q, and the product and quotient as complex numbers.
func (c *geoCalc) arith(op byte, p, q point) point {
	switch op {
	case '+':
		return point{X: c.add(p.X, q.X), Y: c.add(p.Y, q.Y)}
	case '-':
		return point{X: c.sub(p.X, q.X), Y: c.sub(p.Y, q.Y)}
	case '*':
		return point{X: c.sub(c.mul(p.X, q.X), c.mul(p.Y, q.Y)), Y: c.add(c.mul(p.X, q.Y), c.mul(p.Y, q.X))}
	}
	y := c.mul(q.Y, q.Y) // PostgreSQL computes the second operand first, and reports what fails there.
	n := c.add(c.mul(q.X, q.X), y)
	return point{X: c.div(c.add(c.mul(p.X, q.X), c.mul(p.Y, q.Y)), n), Y: c.div(c.sub(c.mul(p.Y, q.X), c.mul(p.X, q.Y)), n)}
}

func (c *geoCalc) all(op byte, points []point, q point) []point {
	out := make([]point, len(points))
	for i, p := range points {
		out[i] = c.arith(op, p, q)
	}
	return out
}

func geoArith(t string, op byte) Func {
	return fn2(func(a, b types.Datum) (types.Datum, error) {
		var c geoCalc
		var d types.Datum
		q := pointOf(b)
		switch t {
		case "point":
			d = types.NewPoints(c.arith(op, pointOf(a), q))
		case "box":
			p := c.all(op, a.Points(), q)
			d = types.NewBox(p[0], p[1])
		case "path":
			points, closed := a.Path()
			d = types.NewPath(closed, c.all(op, points, q))
		case "circle":
			x := circleOf(a)
			x.center = c.arith(op, x.center, q)
			if op == '*' {
				x.radius = c.mul(x.radius, math.Hypot(q.X, q.Y))
			} else if op == '/' {
				x.radius = c.div(x.radius, math.Hypot(q.X, q.Y))
			}
			d = x.datum()
		}
		return d, c.err
	})
}

// geoTest declares a test of two values.
func geoTest[A, B any](x func(types.Datum) A, y func(types.Datum) B, test func(A, B) bool) Func {
	return fn2(func(a, b types.Datum) (types.Datum, error) { return types.Bool(test(x(a), y(b))), nil })
}

// geoNumber is a float that was computed of args: an infinity out of finite numbers is an overflow.
func geoNumber(v float64, args ...types.Datum) (types.Datum, error) {
	if math.IsInf(v, 0) {
		for _, a := range args {
			for _, f := range append(a.Geometry(), floatsBehind(a)...) {
				if math.IsInf(f, 0) {
					return types.Float(v), nil
				}
			}
		}
		return types.Null, errFloatOverflow()
	}
	return types.Float(v), nil
}

// floatsBehind are the numbers of a path or polygon, which has others before.
func floatsBehind(d types.Datum) (out []float64) {
	b := d.Bytes()
	if len(b)%8 == 0 {
		return nil
	}
	for _, p := range types.Bytes(b[len(b)%8:]).Points() {
		out = append(out, p.X, p.Y)
	}
	return out
}

func geoFloat[A any](x func(types.Datum) A, f func(A) float64) Func {
	return fn1(func(a types.Datum) (types.Datum, error) { return geoNumber(f(x(a)), a) })
}

func geoValue[A any](x func(types.Datum) A, f func(A) types.Datum) Func {
	return fn1(func(a types.Datum) (types.Datum, error) { return f(x(a)), nil })
}

// geoDistances are the distances of values of different types, which are declared in both orders.
func geoDistances() []decl {
	var out []decl
	add := func(l, r string, f func(env *Env, a, b types.Datum) (float64, error)) {
		out = append(out, decl{sig: "<->(" + l + "," + r + ") float8", fn: func(env *Env, a []types.Datum) (types.Datum, error) {
			v, err := f(env, a[0], a[1])
			if err != nil {
				return types.Null, err
			}
			return geoNumber(v, a...)
		}})
		if l != r {
			out = append(out, decl{sig: "<->(" + r + "," + l + ") float8", fn: func(env *Env, a []types.Datum) (types.Datum, error) {
				v, err := f(env, a[1], a[0])
				if err != nil {
					return types.Null, err
				}
				return geoNumber(v, a...)
			}})
		}
	}
	plain := func(l, r string, f func(a, b types.Datum) float64) {
		add(l, r, func(_ *Env, a, b types.Datum) (float64, error) { return f(a, b), nil })
	}
	first := func(v float64, _ point) float64 { return v }
	plain("point", "point", func(a, b types.Datum) float64 { return distance(pointOf(a), pointOf(b)) })
	plain("point", "lseg", func(a, b types.Datum) float64 { return first(lsegOf(b).toPoint(pointOf(a))) })
	plain("point", "line", func(a, b types.Datum) float64 { return first(lineOf(b).toPoint(pointOf(a))) })
	plain("point", "box", func(a, b types.Datum) float64 { return boxOf(b).toPoint(pointOf(a)) })
	plain("point", "circle", func(a, b types.Datum) float64 {
		c := circleOf(b)
		return max(distance(pointOf(a), c.center)-c.radius, 0)
	})
	plain("point", "path", func(a, b types.Datum) float64 {
		points, closed := b.Path()
		return distanceToPoints(points, closed, pointOf(a))
	})
	toPolygon := func(p point, points []point) float64 {
		if inside(points, p) != 0 {
			return 0
		}
		return distanceToPoints(points, true, p)
	}
	plain("point", "polygon", func(a, b types.Datum) float64 { return toPolygon(pointOf(a), b.Polygon()) })
	plain("circle", "polygon", func(a, b types.Datum) float64 {
		c := circleOf(a)
		return max(toPolygon(c.center, b.Polygon())-c.radius, 0)
	})
	plain("lseg", "lseg", func(a, b types.Datum) float64 { return lsegOf(a).distance(lsegOf(b)) })
	plain("lseg", "box", func(a, b types.Datum) float64 { return boxOf(b).toSegment(lsegOf(a)) })
	plain("lseg", "line", func(a, b types.Datum) float64 { return first(lsegOf(a).toLine(lineOf(b))) })
	plain("line", "line", func(a, b types.Datum) float64 { return lineOf(a).distance(lineOf(b)) })
	plain("box", "box", func(a, b types.Datum) float64 { return distance(boxOf(a).center(), boxOf(b).center()) })
	plain("circle", "circle", func(a, b types.Datum) float64 {
		c, d := circleOf(a), circleOf(b)
		return max(distance(c.center, d.center)-(c.radius+d.radius), 0)
	})
	add("path", "path", func(env *Env, a, b types.Datum) (float64, error) {
		p, pClosed := a.Path()
		q, qClosed := b.Path()
		return distanceOfPoints(env, p, pClosed, q, qClosed)
	})
	add("polygon", "polygon", func(env *Env, a, b types.Datum) (float64, error) {
		p, q := a.Polygon(), b.Polygon()
		if over, err := polygonsOverlap(env, p, q); err != nil || over {
			return 0, err
		}
		return distanceOfPoints(env, p, true, q, true)
	})
	return out
}

// extent is what positions are compared by.
type extent struct {
	op, name string
	test     func(a, b box, lt, le func(a, b float64) bool) bool
}

var extents = []extent{
	{"<<", "left", func(a, b box, lt, _ func(a, b float64) bool) bool { return lt(a.high.X, b.low.X) }},
	{">>", "right", func(a, b box, lt, _ func(a, b float64) bool) bool { return lt(b.high.X, a.low.X) }},
	{"&<", "overleft", func(a, b box, _, le func(a, b float64) bool) bool { return le(a.high.X, b.high.X) }},
	{"&>", "overright", func(a, b box, _, le func(a, b float64) bool) bool { return le(b.low.X, a.low.X) }},
	{"<<|", "below", func(a, b box, lt, _ func(a, b float64) bool) bool { return lt(a.high.Y, b.low.Y) }},
	{"|>>", "above", func(a, b box, lt, _ func(a, b float64) bool) bool { return lt(b.high.Y, a.low.Y) }},
	{"&<|", "overbelow", func(a, b box, _, le func(a, b float64) bool) bool { return le(a.high.Y, b.high.Y) }},
	{"|&>", "overabove", func(a, b box, _, le func(a, b float64) bool) bool { return le(b.low.Y, a.low.Y) }},
}

func polygonOf(d types.Datum) []point { return d.Polygon() }

// geoTests declares the operators with a boolean result, or with names the functions behind them that have one.
func geoTests() []decl {
	var out []decl
	add := func(sig string, f Func) { out = append(out, decl{sig: sig + " bool", fn: f}) }
	flip := func(f Func) Func {
		return func(env *Env, a []types.Datum) (types.Datum, error) { return f(env, []types.Datum{a[1], a[0]}) }
	}
	contains := func(of, value string, f Func) {
		add("@>("+of+","+value+")", f)
		add("<@("+value+","+of+")", flip(f))
	}
	exactLt, exactLe := func(a, b float64) bool { return types.CompareFloat(a, b) < 0 }, func(a, b float64) bool { return types.CompareFloat(a, b) <= 0 }
	polygonBox := func(d types.Datum) box { return boundingBox(d.Polygon()) }
	circleBox := func(d types.Datum) box { return circleOf(d).bounds() }
	for _, e := range extents {
		add(e.op+"(box,box)", geoTest(boxOf, boxOf, func(a, b box) bool { return e.test(a, b, geoLt, geoLe) }))
		add(e.op+"(circle,circle)", geoTest(circleBox, circleBox, func(a, b box) bool { return e.test(a, b, geoLt, geoLe) }))
		add(e.op+"(polygon,polygon)", geoTest(polygonBox, polygonBox, func(a, b box) bool { return e.test(a, b, exactLt, exactLe) }))
	}
	onPoints := func(f func(p, q point) bool) Func { return geoTest(pointOf, pointOf, f) }
	for op, f := range map[string]func(p, q point) bool{
		"<<": func(p, q point) bool { return geoLt(p.X, q.X) }, ">>": func(p, q point) bool { return geoGt(p.X, q.X) },
		"<<|": func(p, q point) bool { return geoLt(p.Y, q.Y) }, "|>>": func(p, q point) bool { return geoGt(p.Y, q.Y) },
		"<^": func(p, q point) bool { return geoLt(p.Y, q.Y) }, ">^": func(p, q point) bool { return geoGt(p.Y, q.Y) },
		"~=": types.SamePoint, "<>": func(p, q point) bool { return !types.SamePoint(p, q) },
		"?-": func(p, q point) bool { return geoEq(p.Y, q.Y) }, "?|": func(p, q point) bool { return geoEq(p.X, q.X) },
	} {
		add(op+"(point,point)", onPoints(f))
	}
	add("<^(box,box)", geoTest(boxOf, boxOf, func(a, b box) bool { return geoLe(a.high.Y, b.low.Y) }))
	add(">^(box,box)", geoTest(boxOf, boxOf, func(a, b box) bool { return geoGe(a.low.Y, b.high.Y) }))
	for _, op := range []string{"&&", "?#"} {
		add(op+"(box,box)", geoTest(boxOf, boxOf, box.overlaps))
	}
	add("&&(circle,circle)", geoTest(circleOf, circleOf, func(c, d circle) bool { return geoLe(distance(c.center, d.center), c.radius+d.radius) }))
	add("&&(polygon,polygon)", func(env *Env, a []types.Datum) (types.Datum, error) {
		over, err := polygonsOverlap(env, a[0].Polygon(), a[1].Polygon())
		return types.Bool(over), err
	})
	add("~=(box,box)", geoTest(boxOf, boxOf, func(a, b box) bool {
		return types.SamePoint(a.high, b.high) && types.SamePoint(a.low, b.low)
	}))
	add("~=(circle,circle)", geoTest(circleOf, circleOf, circle.same))
	add("~=(polygon,polygon)", geoTest(polygonOf, polygonOf, samePoints))
	add("=(line,line)", geoTest(lineOf, lineOf, line.equal))
	contains("box", "point", geoTest(boxOf, pointOf, box.has))
	contains("box", "box", geoTest(boxOf, boxOf, box.contains))
	contains("circle", "point", geoTest(circleOf, pointOf, func(c circle, p point) bool { return distance(c.center, p) <= c.radius }))
	contains("circle", "circle", geoTest(circleOf, circleOf, func(c, d circle) bool { return geoLe(distance(c.center, d.center), c.radius-d.radius) }))
	contains("polygon", "point", geoTest(polygonOf, pointOf, func(q []point, p point) bool { return inside(q, p) != 0 }))
	contains("polygon", "polygon", func(env *Env, a []types.Datum) (types.Datum, error) {
		within, err := polygonContains(env, a[0].Polygon(), a[1].Polygon())
		return types.Bool(within), err
	})
	contains("path", "point", fn2(func(a, b types.Datum) (types.Datum, error) {
		points, closed := a.Path()
		return types.Bool(onPath(points, closed, pointOf(b))), nil
	}))
	add("<@(point,lseg)", geoTest(pointOf, lsegOf, func(p point, s lseg) bool { return s.has(p) }))
	add("<@(point,line)", geoTest(pointOf, lineOf, func(p point, l line) bool { return l.has(p) }))
	add("<@(lseg,box)", geoTest(lsegOf, boxOf, func(s lseg, b box) bool { return b.has(s[0]) && b.has(s[1]) }))
	add("<@(lseg,line)", geoTest(lsegOf, lineOf, func(s lseg, l line) bool { return l.has(s[0]) && l.has(s[1]) }))
	return append(append(out, geoMeets()...), geoComparisons()...)
}

// geoMeets declares ?#, ?-, ?|, ?|| and ?-|.
func geoMeets() []decl {
	var out []decl
	add := func(sig string, f Func) { out = append(out, decl{sig: sig + " bool", fn: f}) }
	add("?#(lseg,lseg)", geoTest(lsegOf, lsegOf, func(s, t lseg) bool { _, ok := s.meet(t); return ok }))
	add("?#(lseg,line)", geoTest(lsegOf, lineOf, func(s lseg, l line) bool { _, ok := s.meetLine(l); return ok }))
	add("?#(lseg,box)", geoTest(lsegOf, boxOf, func(s lseg, b box) bool { return b.meets(s) }))
	add("?#(line,line)", geoTest(lineOf, lineOf, func(l, m line) bool { _, ok := l.meet(m); return ok }))
	add("?#(line,box)", geoTest(lineOf, boxOf, func(l line, b box) bool {
		for _, s := range b.sides() {
			if _, ok := s.meetLine(l); ok {
				return true
			}
		}
		return false
	}))
	add("?#(path,path)", func(env *Env, a []types.Datum) (types.Datum, error) {
		p, pClosed := a[0].Path()
		q, qClosed := a[1].Path()
		meet, err := pointsMeet(env, p, pClosed, q, qClosed)
		return types.Bool(meet), err
	})
	parallel := func(l, m line) bool { _, ok := l.meet(m); return !ok }
	add("?||(line,line)", geoTest(lineOf, lineOf, parallel))
	add("?-|(line,line)", geoTest(lineOf, lineOf, line.perpendicular))
	add("?||(lseg,lseg)", geoTest(lsegOf, lsegOf, func(s, t lseg) bool { return geoEq(types.Slope(s[0], s[1]), types.Slope(t[0], t[1])) }))
	add("?-|(lseg,lseg)", geoTest(lsegOf, lsegOf, func(s, t lseg) bool { return geoEq(types.Slope(s[0], s[1]), inverseSlope(t[0], t[1])) }))
	level := func(f func(types.Datum) bool) Func {
		return fn1(func(a types.Datum) (types.Datum, error) { return types.Bool(f(a)), nil })
	}
	add("?-(lseg)", level(func(d types.Datum) bool { s := lsegOf(d); return geoEq(s[0].Y, s[1].Y) }))
	add("?|(lseg)", level(func(d types.Datum) bool { s := lsegOf(d); return geoEq(s[0].X, s[1].X) }))
	add("?-(line)", level(func(d types.Datum) bool { return geoZero(lineOf(d).a) }))
	add("?|(line)", level(func(d types.Datum) bool { return geoZero(lineOf(d).b) }))
	return out
}

// geoComparisons declares the comparisons of sizes: areas, lengths, numbers of points.
func geoComparisons() []decl {
	var out []decl
	tests := map[string]func(a, b float64) bool{"=": geoEq, "<": geoLt, "<=": geoLe, ">": geoGt, ">=": geoGe}
	for op, test := range tests {
		add := func(t string, size func(types.Datum) float64) {
			out = append(out, decl{sig: op + "(" + t + "," + t + ") bool", fn: geoTest(size, size, test)})
		}
		add("box", func(d types.Datum) float64 { return boxOf(d).area() })
		add("circle", func(d types.Datum) float64 { return circleOf(d).area() })
		add("path", func(d types.Datum) float64 { p, _ := d.Path(); return float64(len(p)) })
		if op != "=" {
			add("lseg", func(d types.Datum) float64 { return lsegOf(d).length() })
		}
	}
	same := func(s, t lseg) bool { return types.SamePoint(s[0], t[0]) && types.SamePoint(s[1], t[1]) }
	return append(out,
		decl{sig: "=(lseg,lseg) bool", fn: geoTest(lsegOf, lsegOf, same)},
		decl{sig: "<>(lseg,lseg) bool", fn: geoTest(lsegOf, lsegOf, func(s, t lseg) bool { return !same(s, t) })},
		decl{sig: "<>(circle,circle) bool", fn: geoTest(circleOf, circleOf, func(c, d circle) bool { return !geoEq(c.area(), d.area()) })})
}

func geoOps() []decl {
	out := append(append(geoTests(), geoDistances()...), closestOps()...)
	for _, op := range "+-*/" {
		for _, t := range []string{"point", "box", "path", "circle"} {
			out = append(out, decl{sig: string(op) + "(" + t + ",point) " + t, fn: geoArith(t, byte(op))})
		}
	}
	pointOrNull := func(p point, ok bool) (types.Datum, error) {
		if !ok {
			return types.Null, nil
		}
		return types.NewPoints(p), nil
	}
	return append(out,
		decl{sig: "+(path,path) path", fn: fn2(func(a, b types.Datum) (types.Datum, error) {
			p, pClosed := a.Path()
			q, qClosed := b.Path()
			if pClosed || qClosed {
				return types.Null, nil
			}
			return types.NewPath(false, append(p, q...)), nil
		})},
		decl{sig: "#(lseg,lseg) point", fn: fn2(func(a, b types.Datum) (types.Datum, error) { return pointOrNull(lsegOf(a).meet(lsegOf(b))) })},
		decl{sig: "#(line,line) point", fn: fn2(func(a, b types.Datum) (types.Datum, error) { return pointOrNull(lineOf(a).meet(lineOf(b))) })},
		decl{sig: "#(box,box) box", fn: fn2(func(a, b types.Datum) (types.Datum, error) {
			x, y := boxOf(a), boxOf(b)
			if !x.overlaps(y) {
				return types.Null, nil
			}
			return box{point{X: min(x.high.X, y.high.X), Y: min(x.high.Y, y.high.Y)}, point{X: max(x.low.X, y.low.X), Y: max(x.low.Y, y.low.Y)}}.datum(), nil
		})},
		decl{sig: "#(path) int4", fn: geoValue(pathOf, countPoints)}, decl{sig: "#(polygon) int4", fn: geoValue(polygonOf, countPoints)},
		decl{sig: "@-@(lseg) float8", fn: geoFloat(lsegOf, lseg.length)}, decl{sig: "@-@(path) float8", fn: pathLengthFunc},
		decl{sig: "@@(lseg) point", fn: geoValue(lsegOf, func(s lseg) types.Datum { return types.NewPoints(s.center()) })},
		decl{sig: "@@(box) point", fn: geoValue(boxOf, boxCenter)}, decl{sig: "@@(circle) point", fn: geoValue(circleOf, circleCenter)},
		decl{sig: "@@(polygon) point", fn: geoValue(polygonOf, polygonCenter)},
	)
}

func pathOf(d types.Datum) []point { p, _ := d.Path(); return p }

func countPoints(p []point) types.Datum   { return types.Int(int64(len(p))) }
func boxCenter(b box) types.Datum         { return types.NewPoints(b.center()) }
func circleCenter(c circle) types.Datum   { return types.NewPoints(c.center) }
func polygonCenter(p []point) types.Datum { return types.NewPoints(circleOfPoints(p).center) }
func boxDiagonal(b box) types.Datum       { return lseg{b.high, b.low}.datum() }
func boxCircle(b box) types.Datum         { c := b.center(); return circle{c, distance(c, b.high)}.datum() }
func polygonBox(p []point) types.Datum    { return boundingBox(p).datum() }
func polygonCircle(p []point) types.Datum { return circleOfPoints(p).datum() }
func polygonPath(p []point) types.Datum   { return types.NewPath(true, p) }
func lsegCenter(s lseg) types.Datum       { return types.NewPoints(s.center()) }

func boxPolygon(b box) types.Datum {
	return types.NewPolygon([]point{b.low, {X: b.low.X, Y: b.high.Y}, b.high, {X: b.high.X, Y: b.low.Y}})
}

func circleBox(c circle) types.Datum {
	d := c.radius / math.Sqrt2
	return types.NewBox(point{X: c.center.X + d, Y: c.center.Y + d}, point{X: c.center.X - d, Y: c.center.Y - d})
}

var pathLengthFunc = fn1(func(a types.Datum) (types.Datum, error) {
	points, closed := a.Path()
	return geoNumber(pathLength(points, closed), a)
})

func pathPolygon(_ *Env, a []types.Datum) (types.Datum, error) {
	points, closed := a[0].Path()
	if !closed {
		return types.Null, pgerror.New(pgerror.InvalidParameterValue, "open path cannot be converted to polygon")
	}
	return types.NewPolygon(points), nil
}

// circlePolygon is polygon(npts, circle), 12 points if there is no number.
func circlePolygon(env *Env, a []types.Datum) (types.Datum, error) {
	n, c := int64(12), circleOf(a[len(a)-1])
	if len(a) == 2 {
		n = a[0].Int()
	}
	if geoZero(c.radius) {
		return types.Null, pgerror.New(pgerror.FeatureNotSupported, "cannot convert circle with radius zero to polygon")
	}
	if n < 2 {
		return types.Null, pgerror.New(pgerror.InvalidParameterValue, "must request at least 2 points")
	}
	if err := env.Reserve(int(min(16*n, MaxValueBytes+1))); err != nil {
		return types.Null, err
	}
	points := make([]point, n)
	for i := range points {
		angle := 2 * math.Pi / float64(n) * float64(i)
		points[i] = point{X: c.center.X - c.radius*math.Cos(angle), Y: c.center.Y + c.radius*math.Sin(angle)}
	}
	return types.NewPolygon(points), nil
}

// geoNames are the functions behind operators that have names of their own: the name, and the operator's signature.
const geoNames = `
isvertical ?|(point,point);ishorizontal ?-(point,point);isvertical ?|(lseg);ishorizontal ?-(lseg);isvertical ?|(line);
ishorizontal ?-(line);isparallel ?||(lseg,lseg);isperp ?-|(lseg,lseg);isparallel ?||(line,line);isperp ?-|(line,line);
length @-@(lseg);length @-@(path);npoints #(path);npoints #(polygon);center @@(box);center @@(circle)`

func geoFuncs() []decl {
	out := []decl{
		{sig: "point(float8,float8) point", fn: fn2(func(a, b types.Datum) (types.Datum, error) { return types.NewGeometry(a.Float(), b.Float()), nil })},
		{sig: "line(point,point) line", fn: fn2(lineOfPoints)},
		{sig: "lseg(point,point) lseg", fn: fn2(func(a, b types.Datum) (types.Datum, error) { return lseg{pointOf(a), pointOf(b)}.datum(), nil })},
		{sig: "box(point,point) box", fn: fn2(func(a, b types.Datum) (types.Datum, error) { return types.NewBox(pointOf(a), pointOf(b)), nil })},
		{sig: "circle(point,float8) circle", fn: fn2(func(a, b types.Datum) (types.Datum, error) { return circle{pointOf(a), b.Float()}.datum(), nil })},
		{sig: "bound_box(box,box) box", fn: fn2(func(a, b types.Datum) (types.Datum, error) {
			return boundingBox(append(a.Points(), b.Points()...)).datum(), nil
		})},
		{sig: "slope(point,point) float8", fn: fn2(func(a, b types.Datum) (types.Datum, error) {
			return types.Float(types.Slope(pointOf(a), pointOf(b))), nil
		})},
		{sig: "area(box) float8", fn: geoFloat(boxOf, box.area)}, {sig: "area(circle) float8", fn: geoFloat(circleOf, circle.area)},
		{sig: "area(path) float8", fn: fn1(func(a types.Datum) (types.Datum, error) {
			points, closed := a.Path()
			if !closed {
				return types.Null, nil
			}
			return geoNumber(shoelace(points), a)
		})},
		{sig: "width(box) float8", fn: geoFloat(boxOf, box.width)}, {sig: "height(box) float8", fn: geoFloat(boxOf, box.height)},
		{sig: "diagonal(box) lseg", fn: geoValue(boxOf, boxDiagonal)},
		{sig: "radius(circle) float8", fn: geoFloat(circleOf, func(c circle) float64 { return c.radius })},
		{sig: "diameter(circle) float8", fn: geoFloat(circleOf, func(c circle) float64 { return 2 * c.radius })},
		{sig: "isclosed(path) bool", fn: fn1(func(a types.Datum) (types.Datum, error) { _, closed := a.Path(); return types.Bool(closed), nil })},
		{sig: "isopen(path) bool", fn: fn1(func(a types.Datum) (types.Datum, error) { _, closed := a.Path(); return types.Bool(!closed), nil })},
		{sig: "pclose(path) path", fn: geoValue(pathOf, polygonPath)},
		{sig: "popen(path) path", fn: geoValue(pathOf, func(p []point) types.Datum { return types.NewPath(false, p) })},
		{sig: "polygon(int4,circle) polygon", fn: circlePolygon},
	}
	ops := map[string]Func{}
	rets := map[string]string{}
	for _, o := range geoOps() {
		end := strings.IndexByte(o.sig, ')') + 1
		ops[o.sig[:end]], rets[o.sig[:end]] = o.fn, o.sig[end:]
	}
	for entry := range strings.SplitSeq(geoNames, ";") {
		if name, op, ok := strings.Cut(strings.TrimSpace(entry), " "); ok && op != "" {
			out = append(out, decl{sig: name + op[strings.IndexByte(op, '('):] + rets[op], fn: ops[op]})
		}
	}
	return out
}

func lineOfPoints(a, b types.Datum) (types.Datum, error) {
	p, q := pointOf(a), pointOf(b)
	if types.SamePoint(p, q) {
		return types.Null, pgerror.New(pgerror.InvalidParameterValue, "invalid line specification: must be two distinct points")
	}
	l := lineThrough(p, types.Slope(p, q))
	return types.NewGeometry(l.a, l.b, l.c), nil
}

func geoCasts() []typeCast {
	return []typeCast{
		{from: "point", to: "box", context: Assignment, fn: geoValue(pointOf, func(p point) types.Datum { return types.NewBox(p, p) })},
		{from: "lseg", to: "point", context: Explicit, fn: geoValue(lsegOf, lsegCenter)},
		{from: "path", to: "polygon", context: Assignment, fn: pathPolygon},
		{from: "box", to: "point", context: Explicit, fn: geoValue(boxOf, boxCenter)},
		{from: "box", to: "lseg", context: Explicit, fn: geoValue(boxOf, boxDiagonal)},
		{from: "box", to: "polygon", context: Assignment, fn: geoValue(boxOf, boxPolygon)},
		{from: "box", to: "circle", context: Explicit, fn: geoValue(boxOf, boxCircle)},
		{from: "polygon", to: "point", context: Explicit, fn: geoValue(polygonOf, polygonCenter)},
		{from: "polygon", to: "path", context: Assignment, fn: geoValue(polygonOf, polygonPath)},
		{from: "polygon", to: "box", context: Explicit, fn: geoValue(polygonOf, polygonBox)},
		{from: "polygon", to: "circle", context: Explicit, fn: geoValue(polygonOf, polygonCircle)},
		{from: "circle", to: "point", context: Explicit, fn: geoValue(circleOf, circleCenter)},
		{from: "circle", to: "box", context: Explicit, fn: geoValue(circleOf, circleBox)},
		{from: "circle", to: "polygon", context: Explicit, fn: circlePolygon},
	}
}
