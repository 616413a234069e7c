package builtin

import "math"

// The functions of degrees are exact if the result is a simple fraction. They fold the angle to the first quadrant and
// scale by the value at 30 or 60 degrees, as PostgreSQL does.

// radiansPerDegree is a variable, so that products with it are rounded as they are for any other angle: a
// constant expression is exact.
var radiansPerDegree float64 = math.Pi / 180

// The values to scale by. They are computed, not constants, so that their error cancels.
var (
	sin30     = sinExact(30 * radiansPerDegree)
	oneLess60 = 1 - cosExact(60*radiansPerDegree)
	asinHalf  = asinExact(0.5)
	acosHalf  = acosExact(0.5)
)

func sinTo30(v float64) float64 { return sinExact(v*radiansPerDegree) / sin30 / 2 }
func cosTo60(v float64) float64 { return 1 - (1-cosExact(v*radiansPerDegree))/oneLess60/2 }

func sinQuadrant(v float64) float64 {
	if v <= 30 {
		return sinTo30(v)
	}
	return cosTo60(90 - v)
}

func cosQuadrant(v float64) float64 {
	if v <= 60 {
		return cosTo60(v)
	}
	return sinTo30(90 - v)
}

// fold brings an angle to the first quadrant. The signs are those by which odd functions of the angle
// (negative), of its complement to 360 (reflected) and to 180 (mirrored) change.
func fold(v float64) (angle float64, negative, reflected, mirrored bool) {
	v = math.Mod(v, 360)
	if v < 0 {
		v, negative = -v, true
	}
	if v > 180 {
		v, reflected = 360-v, true
	}
	if v > 90 {
		v, mirrored = 180-v, true
	}
	return v, negative, reflected, mirrored
}

func signed(v float64, negative bool) float64 {
	if negative {
		return -v
	}
	return v
}

func sinDegrees(v float64) float64 {
	angle, negative, reflected, _ := fold(v)
	return signed(sinQuadrant(angle), negative != reflected)
}

func cosDegrees(v float64) float64 {
	angle, _, _, mirrored := fold(v)
	return signed(cosQuadrant(angle), mirrored)
}

func tanDegrees(v float64) float64 {
	angle, negative, reflected, mirrored := fold(v)
	tan45 := sinQuadrant(45) / cosQuadrant(45)
	r := signed(sinQuadrant(angle)/cosQuadrant(angle)/tan45, (negative != reflected) != mirrored)
	if r == 0 {
		return 0 // no negative zero
	}
	return r
}

func cotDegrees(v float64) float64 {
	angle, negative, reflected, mirrored := fold(v)
	cot45 := cosQuadrant(45) / sinQuadrant(45)
	r := signed(cosQuadrant(angle)/sinQuadrant(angle)/cot45, (negative != reflected) != mirrored)
	if r == 0 {
		return 0
	}
	return r
}

func arcSinQuadrant(v float64) float64 {
	if v <= 0.5 {
		return asinExact(v) / asinHalf * 30
	}
	return 90 - float64(acosExact(v)/acosHalf*60)
}

func arcSinDegrees(v float64) float64 {
	if v < 0 {
		return -arcSinQuadrant(-v)
	}
	return arcSinQuadrant(v)
}

func arcCosDegrees(v float64) float64 {
	switch {
	case v < 0:
		return 90 + arcSinQuadrant(-v)
	case v <= 0.5:
		return 90 - float64(asinExact(v)/asinHalf*30)
	}
	return acosExact(v) / acosHalf * 60
}
