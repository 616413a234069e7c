package txn

import (
	"fmt"
	"math/big"

	"github.com/jackc/pgx/v5/pgtype"
)

// cents scans a numeric exactly.
type cents int64

// ScanNumeric implements pgtype.NumericScanner.
func (c *cents) ScanNumeric(v pgtype.Numeric) error {
	n, err := scaled(v, 2)
	*c = cents(n)
	return err
}

// fraction scans a numeric of up to five decimals exactly, in units of the fifth.
type fraction int64

// ScanNumeric implements pgtype.NumericScanner.
func (f *fraction) ScanNumeric(v pgtype.Numeric) error {
	n, err := scaled(v, 5)
	*f = fraction(n)
	return err
}

// scaled returns a number times 10^decimals, if that is an integer and an int64.
func scaled(v pgtype.Numeric, decimals int32) (int64, error) {
	if !v.Valid || v.NaN || v.InfinityModifier != pgtype.Finite {
		return 0, unexpected("NULL, NaN or infinity in place of a number")
	}
	if v.Exp < -40 || v.Exp > 40 {
		return 0, unexpected("a number with the exponent %d", v.Exp)
	}
	n := v.Int
	shift := v.Exp + decimals
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(shift, -shift))), nil)
	if shift >= 0 {
		n = power.Mul(n, power)
	} else {
		var rest big.Int
		if n, _ = new(big.Int).QuoRem(n, power, &rest); rest.Sign() != 0 {
			return 0, unexpected("%se%d has more than %d decimals", v.Int, v.Exp, decimals)
		}
	}
	if !n.IsInt64() {
		return 0, unexpected("%s is too large for an amount", n)
	}
	return n.Int64(), nil
}

// money formats cents as a parameter of type numeric.
func money(c int64) string {
	sign := ""
	if c < 0 {
		sign, c = "-", -c
	}
	return fmt.Sprintf("%s%d.%02d", sign, c/100, c%100)
}

// commissionOf returns a broker's commission, in cents and rounded half up. The rate is in hundredths of a
// percent.
func commissionOf(qty, price, rate int64) int64 { return (qty*price*rate + 5_000) / 10_000 }

// taxOf returns the tax on a non-negative gain, in cents and rounded half up. The rate is in units of
// its fifth decimal.
func taxOf(gain, rate int64) int64 { return (gain*rate + 50_000) / 100_000 }
