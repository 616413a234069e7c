package types

import (
	"encoding/binary"
	"math"
	"strconv"
	"strings"

	"github.com/percodb/percodb/sql/pgerror"
)

// The geometric types.
const (
	OIDPoint   OID = 600
	OIDLseg    OID = 601
	OIDPath    OID = 602
	OIDBox     OID = 603
	OIDPolygon OID = 604
	OIDLine    OID = 628
	OIDCircle  OID = 718
)

// A datum of a geometric type is its binary form.

func init() {
	for _, g := range []struct {
		oid, array OID
		name       string
		size       int // of the binary form; 0: it varies
		parse      func(*geoReader) ([]byte, bool)
		append     func(dst []byte, d Datum, cut int) []byte
		check      func(b []byte) ([]byte, error)
	}{
		{OIDPoint, 1017, "point", 16, (*geoReader).readPoint, appendPoint, nil},
		{OIDLseg, 1018, "lseg", 32, (*geoReader).readLseg, appendLseg, nil},
		{OIDPath, 1019, "path", 0, (*geoReader).readPath, appendPath, checkPath},
		{OIDBox, 1020, "box", 32, (*geoReader).readBox, appendBox, checkBox},
		{OIDPolygon, 1027, "polygon", 0, (*geoReader).readPolygon, appendPolygon, checkPolygon},
		{OIDLine, 629, "line", 24, (*geoReader).readLine, appendLine, checkLine},
		{OIDCircle, 719, "circle", 24, (*geoReader).readCircle, appendCircle, checkCircle},
	} {
		length := int16(g.size)
		if g.size == 0 {
			length = -1
		}
		register(&Methods{
			Info:      Info{g.oid, g.name, g.name, g.array, 0, length, CategoryGeometric, false, KindBytes},
			Unordered: true, NoEquality: true, SessionOutput: true,
			Parse: func(s string, _ int32, _ *Format) (Datum, error) {
				r := &geoReader{name: g.name, rest: s}
				b, ok := g.parse(r)
				switch {
				case r.err != nil:
					return Null, r.err
				case !ok || r.rest != "":
					return Null, badSyntax(g.name, s)
				}
				return Bytes(b), nil
			},
			Append: func(dst []byte, d Datum, f *Format) []byte { return g.append(dst, d, f.FloatCut) },
			Receive: func(b []byte, _ int32, _ *Format) (Datum, error) {
				if g.size > 0 {
					if err := requireSize(b, g.size); err != nil {
						return Null, err
					}
				}
				if g.check != nil {
					var err error
					if b, err = g.check(b); err != nil {
						return Null, err
					}
				}
				return Bytes(b), nil
			},
			Send: sendBytes,
		})
	}
}

// Point is a point of the plane.
type Point struct{ X, Y float64 }

// NewGeometry returns a datum of a point, lseg, box, line or circle: its numbers in order.
func NewGeometry(values ...float64) Datum { return Bytes(appendFloats(nil, values...)) }

// NewPoints returns a datum of a geometry of a fixed number of points.
func NewPoints(points ...Point) Datum { return Bytes(appendPoints(nil, points)) }

// NewBox returns the box with two opposite corners.
func NewBox(a, b Point) Datum { return Bytes(boxOf(a, b)) }

// NewPath returns a path.
func NewPath(closed bool, points []Point) Datum { return Bytes(pathOf(closed, points)) }

// NewPolygon returns a polygon.
func NewPolygon(points []Point) Datum { return Bytes(polygonOf(points)) }

// Geometry returns the numbers of a point, lseg, box, line or circle.
func (d Datum) Geometry() []float64 { return floatsOf(d.Bytes()) }

// Points returns the points of a point, lseg or box.
func (d Datum) Points() []Point { return pointsOf(d.Bytes()) }

// Path returns the points of a path, and whether it is closed.
func (d Datum) Path() (points []Point, closed bool) {
	return pointsOf(d.Bytes()[5:]), d.Bytes()[0] != 0
}

// Polygon returns the points of a polygon.
func (d Datum) Polygon() []Point { return pointsOf(d.Bytes()[4:]) }

func appendFloats(dst []byte, values ...float64) []byte {
	for _, v := range values {
		dst = binary.BigEndian.AppendUint64(dst, math.Float64bits(v))
	}
	return dst
}

func appendPoints(dst []byte, points []Point) []byte {
	for _, p := range points {
		dst = appendFloats(dst, p.X, p.Y)
	}
	return dst
}

func boxOf(a, b Point) []byte {
	if CompareFloat(a.X, b.X) < 0 {
		a.X, b.X = b.X, a.X
	}
	if CompareFloat(a.Y, b.Y) < 0 {
		a.Y, b.Y = b.Y, a.Y
	}
	return appendFloats(nil, a.X, a.Y, b.X, b.Y)
}

func pathOf(closed bool, points []Point) []byte {
	b := make([]byte, 1, 5+16*len(points))
	if closed {
		b[0] = 1
	}
	return appendPoints(binary.BigEndian.AppendUint32(b, uint32(len(points))), points)
}

func polygonOf(points []Point) []byte {
	return appendPoints(binary.BigEndian.AppendUint32(make([]byte, 0, 4+16*len(points)), uint32(len(points))), points)
}

func floatsOf(b []byte) []float64 {
	out := make([]float64, len(b)/8)
	for i := range out {
		out[i] = math.Float64frombits(binary.BigEndian.Uint64(b[8*i:]))
	}
	return out
}

func pointsOf(b []byte) []Point {
	out := make([]Point, len(b)/16)
	for i := range out {
		out[i] = Point{math.Float64frombits(binary.BigEndian.Uint64(b[16*i:])), math.Float64frombits(binary.BigEndian.Uint64(b[16*i+8:]))}
	}
	return out
}

// GeoEpsilon is the difference within which PostgreSQL's geometric operators take numbers as equal.
const GeoEpsilon = 1e-6

// LineThrough returns the line through a point with a slope: Ax + By + C = 0.
func LineThrough(p Point, slope float64) (a, b, c float64) {
	switch {
	case math.IsInf(slope, 0):
		return -1, 0, p.X
	case slope == 0:
		return 0, -1, p.Y
	}
	if c = p.Y - slope*p.X; c == 0 {
		c = 0 // not negative
	}
	return slope, -1, c
}

// Slope returns that of the line through two points.
func Slope(p, q Point) float64 {
	switch {
	case geoEqual(p.X, q.X):
		return math.Inf(1)
	case geoEqual(p.Y, q.Y):
		return 0
	}
	return (p.Y - q.Y) / (p.X - q.X)
}

func geoEqual(a, b float64) bool { return a == b || math.Abs(a-b) <= GeoEpsilon }

// SamePoint reports whether two points are equal for geometric operators.
func SamePoint(p, q Point) bool {
	if p.X != p.X || p.Y != p.Y || q.X != q.X || q.Y != q.Y {
		return CompareFloat(p.X, q.X) == 0 && CompareFloat(p.Y, q.Y) == 0
	}
	return geoEqual(p.X, q.X) && geoEqual(p.Y, q.Y)
}

// geoReader reads the text form of a geometric value. The methods return false for a syntax error.
type geoReader struct {
	name, rest string
	err        error // another error
}

func (r *geoReader) space() { r.rest = strings.TrimLeft(r.rest, " \t\n\r\v\f") }

func (r *geoReader) take(c byte) bool {
	if r.rest == "" || r.rest[0] != c {
		return false
	}
	r.rest = r.rest[1:]
	return true
}

func (r *geoReader) at(c byte) bool { return r.rest != "" && r.rest[0] == c }

// number reads a number with the blanks around it.
func (r *geoReader) number() (float64, bool) {
	r.space()
	n := floatPrefix(r.rest)
	if n == 0 {
		return 0, false
	}
	text := r.rest[:n]
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || v == 0 && strings.ContainsAny(strings.ToLower(strings.SplitN(strings.ToLower(text), "e", 2)[0]), "123456789") {
		r.err = pgerror.New(pgerror.NumericValueOutOfRange, "\"%s\" is out of range for type double precision", text)
		return 0, false
	}
	r.rest = r.rest[n:]
	r.space()
	return v, true
}

// floatPrefix returns the length of the number with which s begins.
func floatPrefix(s string) int {
	i := 0
	if i < len(s) && (s[i] == '+' || s[i] == '-') {
		i++
	}
	for _, word := range []string{"infinity", "inf", "nan"} {
		if hasPrefixFold(s[i:], word) && !(word == "nan" && i > 0) {
			return i + len(word)
		}
	}
	digits := 0
	for ; i < len(s) && isDigit(s[i]); i++ {
		digits++
	}
	if i < len(s) && s[i] == '.' {
		for i++; i < len(s) && isDigit(s[i]); i++ {
			digits++
		}
	}
	if digits == 0 {
		return 0
	}
	if i < len(s) && s[i]|0x20 == 'e' {
		j := i + 1
		if j < len(s) && (s[j] == '+' || s[j] == '-') {
			j++
		}
		if j < len(s) && isDigit(s[j]) {
			for i = j; i < len(s) && isDigit(s[i]); i++ {
				continue
			}
		}
	}
	return i
}

// pair reads "x,y" or "(x,y)".
func (r *geoReader) pair() (p Point, ok bool) {
	r.space()
	inParens := r.take('(')
	if p.X, ok = r.number(); !ok || !r.take(',') {
		return p, false
	}
	if p.Y, ok = r.number(); !ok {
		return p, false
	}
	if inParens {
		if !r.take(')') {
			return p, false
		}
		r.space()
	}
	return p, true
}

// list reads n points, in parentheses or not; in brackets, which make it open, if mayOpen.
func (r *geoReader) list(n int, mayOpen bool) (points []Point, open, ok bool) {
	depth := 0
	r.space()
	if open = r.at('['); open {
		if !mayOpen {
			return nil, false, false
		}
		depth, r.rest = 1, r.rest[1:]
	} else if r.at('(') {
		inner := strings.TrimLeft(r.rest[1:], " \t\n\r\v\f")
		if strings.HasPrefix(inner, "(") || strings.LastIndexByte(r.rest, '(') == 0 {
			depth, r.rest = 1, inner
		}
	}
	points = make([]Point, 0, min(n, len(r.rest)))
	for range n {
		p, ok := r.pair()
		if !ok {
			return nil, false, false
		}
		r.take(',')
		points = append(points, p)
	}
	for ; depth > 0; depth-- {
		if !r.take(')') && !(open && depth == 1 && r.take(']')) {
			return nil, false, false
		}
		r.space()
	}
	return points, open, true
}

// pairs counts the points by the commas; 0 if they make no whole number.
func (r *geoReader) pairs() int {
	n := strings.Count(r.rest, ",")
	if n%2 == 0 {
		return 0
	}
	return (n + 1) / 2
}

func (r *geoReader) readPoint() ([]byte, bool) {
	p, ok := r.pair()
	return appendPoints(nil, []Point{p}), ok
}

func (r *geoReader) readLseg() ([]byte, bool) {
	points, _, ok := r.list(2, true)
	return appendPoints(nil, points), ok
}

func (r *geoReader) readBox() ([]byte, bool) {
	points, _, ok := r.list(2, false)
	if !ok {
		return nil, false
	}
	return boxOf(points[0], points[1]), true
}

func (r *geoReader) readPath() ([]byte, bool) {
	n := r.pairs()
	if n == 0 {
		return nil, false
	}
	r.space()
	wrapped := r.at('(') && strings.LastIndexByte(r.rest, '(') == 0
	if wrapped {
		r.rest = r.rest[1:]
	}
	points, open, ok := r.list(n, true)
	if !ok || wrapped && !r.take(')') {
		return nil, false
	}
	r.space()
	return pathOf(!open, points), true
}

func (r *geoReader) readPolygon() ([]byte, bool) {
	n := r.pairs()
	if n == 0 {
		return nil, false
	}
	points, _, ok := r.list(n, false)
	return polygonOf(points), ok
}

func (r *geoReader) readCircle() ([]byte, bool) {
	depth := 0
	r.space()
	if r.take('<') {
		depth = 1
	} else if r.at('(') {
		if inner := strings.TrimLeft(r.rest[1:], " \t\n\r\v\f"); strings.HasPrefix(inner, "(") {
			depth, r.rest = 1, inner
		}
	}
	center, ok := r.pair()
	if !ok {
		return nil, false
	}
	r.take(',')
	radius, ok := r.number()
	if !ok || radius < 0 {
		return nil, false
	}
	if depth > 0 {
		if !r.take(')') && !r.take('>') {
			return nil, false
		}
		r.space()
	}
	return appendFloats(nil, center.X, center.Y, radius), true
}

func (r *geoReader) readLine() ([]byte, bool) {
	r.space()
	if !r.take('{') {
		points, _, ok := r.list(2, true)
		if !ok || r.rest != "" {
			return nil, false
		}
		if SamePoint(points[0], points[1]) {
			r.err = pgerror.New(pgerror.InvalidTextRepresentation, "invalid line specification: must be two distinct points")
			return nil, false
		}
		a, b, c := LineThrough(points[0], Slope(points[0], points[1]))
		return appendFloats(nil, a, b, c), true
	}
	var v [3]float64
	for i := range v {
		var ok bool
		if v[i], ok = r.number(); !ok || !r.take(",,}"[i]) {
			return nil, false
		}
	}
	if r.space(); r.rest != "" {
		return nil, false
	}
	if err := requireLine(v[0], v[1], pgerror.InvalidTextRepresentation); err != nil {
		r.err = err
		return nil, false
	}
	return appendFloats(nil, v[:]...), true
}

func requireLine(a, b float64, code pgerror.Code) error {
	if math.Abs(a) <= GeoEpsilon && math.Abs(b) <= GeoEpsilon {
		return pgerror.New(code, "invalid line specification: A and B cannot both be zero")
	}
	return nil
}

func appendNumbers(dst []byte, cut int, open, end string, values ...float64) []byte {
	dst = append(dst, open...)
	for i, v := range values {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendFloat(dst, v, 64, cut)
	}
	return append(dst, end...)
}

func appendPointList(dst []byte, cut int, open, end string, points []Point) []byte {
	dst = append(dst, open...)
	for i, p := range points {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendNumbers(dst, cut, "(", ")", p.X, p.Y)
	}
	return append(dst, end...)
}

func appendPoint(dst []byte, d Datum, cut int) []byte {
	return appendNumbers(dst, cut, "(", ")", d.Geometry()...)
}

func appendLine(dst []byte, d Datum, cut int) []byte {
	return appendNumbers(dst, cut, "{", "}", d.Geometry()...)
}

func appendLseg(dst []byte, d Datum, cut int) []byte {
	return appendPointList(dst, cut, "[", "]", d.Points())
}

func appendBox(dst []byte, d Datum, cut int) []byte {
	return appendPointList(dst, cut, "", "", d.Points())
}

func appendPath(dst []byte, d Datum, cut int) []byte {
	points, closed := d.Path()
	if closed {
		return appendPointList(dst, cut, "(", ")", points)
	}
	return appendPointList(dst, cut, "[", "]", points)
}

func appendPolygon(dst []byte, d Datum, cut int) []byte {
	return appendPointList(dst, cut, "(", ")", d.Polygon())
}

func appendCircle(dst []byte, d Datum, cut int) []byte {
	v := d.Geometry()
	dst = appendNumbers(append(dst, '<'), cut, "(", "),", v[:2]...)
	return append(appendFloat(dst, v[2], 64, cut), '>')
}

func checkBox(b []byte) ([]byte, error) {
	p := pointsOf(b)
	return boxOf(p[0], p[1]), nil
}

func checkLine(b []byte) ([]byte, error) {
	v := floatsOf(b)
	return b, requireLine(v[0], v[1], pgerror.InvalidBinaryRepresentation)
}

func checkCircle(b []byte) ([]byte, error) {
	if floatsOf(b)[2] < 0 {
		return nil, badBinary("invalid radius in external \"circle\" value")
	}
	return b, nil
}

func checkPath(b []byte) ([]byte, error) {
	if len(b) == 0 {
		return nil, pgerror.New(pgerror.ProtocolViolation, "no data left in message")
	}
	rest, err := checkPoints(b[1:], "path")
	if err != nil {
		return nil, err
	}
	return pathOf(b[0] != 0, pointsOf(rest)), nil
}

func checkPolygon(b []byte) ([]byte, error) {
	rest, err := checkPoints(b, "polygon")
	if err != nil {
		return nil, err
	}
	return polygonOf(pointsOf(rest)), nil
}

// checkPoints returns the points after their number.
func checkPoints(b []byte, name string) ([]byte, error) {
	if len(b) < 4 {
		return nil, errShortMessage()
	}
	n := int32(binary.BigEndian.Uint32(b))
	if n <= 0 || n >= math.MaxInt32/16 {
		return nil, badBinary("invalid number of points in external \"%s\" value", name)
	}
	return b[4:], requireSize(b[4:], 16*int(n))
}
