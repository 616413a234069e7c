package builtin

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/cockroachdb/apd/v3"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// randomNumeric returns a positive decimal number with up to whole and frac digits before and after the point, and
// sometimes one close to 1 or a simple one.
func randomNumeric(r *rand.Rand, whole, frac int) string {
	digits := func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteByte(byte('0' + r.IntN(10)))
		}
		return b.String()
	}
	switch r.IntN(8) {
	case 0:
		return fmt.Sprintf("1.%s%s", strings.Repeat("0", r.IntN(40)), digits(1+r.IntN(20)))
	case 1:
		return fmt.Sprintf("0.%s%s", strings.Repeat("9", 1+r.IntN(40)), digits(1+r.IntN(20)))
	case 2:
		return []string{"0.5", "2", "10", "1", "0.1", "1.5", "0.25", "100", "20", "4", "2.25"}[r.IntN(11)]
	case 3:
		return "0." + strings.Repeat("0", r.IntN(60)) + digits(1+r.IntN(10)) + "1"
	}
	return digits(1+r.IntN(whole)) + "." + digits(r.IntN(frac)+1)
}

// Goal: exp, ln, log, power and sqrt of numeric return PostgreSQL's digits. Method: compare with a PostgreSQL 15, for
// random arguments of random sizes.
func TestTranscendentalsAgainstPostgreSQL(t *testing.T) {
	dsn := os.Getenv("PERCODB_TEST_PG_DSN")
	if dsn == "" {
		t.Skip("PERCODB_TEST_PG_DSN is not set")
	}
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	r := rand.New(rand.NewPCG(11, 12))
	signed := func(s string) string {
		if r.IntN(3) == 0 {
			return "-" + s
		}
		return s
	}
	wrong := 0
	for i := range 12000 {
		var name string
		args := []string{randomNumeric(r, 12, 30)}
		switch i % 6 {
		case 0:
			name, args[0] = "exp", signed(randomNumeric(r, 4, 30))
		case 1:
			name = "ln"
		case 2:
			name, args = "log", append(args, randomNumeric(r, 20, 20))
		case 3:
			name, args = "power", append(args, signed(fmt.Sprint(r.IntN(1<<(1+r.IntN(9))))))
			args[0] = signed(args[0])
		case 4:
			name, args = "power", append(args, signed(randomNumeric(r, 2, 12)))
		case 5:
			name, args[0] = "sqrt", randomNumeric(r, 60, 60)
		}
		numbers := make([]*apd.Decimal, len(args))
		for j, a := range args {
			d, err := types.ParseText(types.TNumeric, a, nil)
			if err != nil {
				t.Fatal(err)
			}
			numbers[j] = d.Decimal()
		}
		var out *apd.Decimal
		switch name {
		case "exp":
			out, err = ExpNumeric(numbers[0])
		case "ln":
			out, err = LnNumeric(numbers[0])
		case "log":
			out, err = LogNumeric(numbers[0], numbers[1])
		case "power":
			out, err = PowNumeric(numbers[0], numbers[1])
		case "sqrt":
			out, err = SqrtNumeric(&Env{}, numbers[0])
		}
		got := ""
		var mine *pgerror.Error
		if errors.As(err, &mine) {
			got = string(mine.Code)
		} else {
			got = string(types.AppendNumeric(nil, out))
		}
		call := name + "('" + strings.Join(args, "'::numeric, '") + "'::numeric)"
		var want string
		var theirs *pgconn.PgError
		if err := conn.QueryRow(ctx, "SELECT "+call+"::text").Scan(&want); errors.As(err, &theirs) {
			want = theirs.Code
		} else if err != nil {
			t.Fatal(err)
		}
		if got != want {
			if wrong++; wrong <= 20 {
				t.Errorf("%s\n is   %s\n want %s", call, got, want)
			}
		}
	}
	if wrong > 0 {
		t.Errorf("%d of 12000 differ", wrong)
	}
}

// Goal: the binary functions have the documented precision. Method: compare with results of more bits,
// and exp with ln.
func TestBigFloatPrecision(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	near := func(a, b *big.Float, prec uint) bool {
		d := new(big.Float).SetPrec(b.Prec()).Sub(a, b)
		return d.Sign() == 0 || d.MantExp(nil) <= b.MantExp(nil)-int(prec)+1
	}
	for range 3000 {
		prec := uint(20 + r.IntN(1200))
		text := randomNumeric(r, 3, 40)
		d, err := types.ParseText(types.TNumeric, text, nil)
		if err != nil {
			t.Fatal(err)
		}
		x := floatOf(d.Decimal(), 4000)
		if x.Sign() == 0 {
			continue
		}
		if got, want := bigExp(x, prec), bigExp(x, prec+500); !near(got, want, prec) {
			t.Fatalf("exp(%s) to %d bits: %v, want %v", text, prec, got, want)
		}
		ln := bigLn(x, prec+500)
		if got := bigLn(x, prec); !near(got, ln, prec) {
			t.Fatalf("ln(%s) to %d bits: %v, want %v", text, prec, got, ln)
		}
		if back := bigExp(ln, prec); !near(back, x, prec) {
			t.Fatalf("exp(ln(%s)) to %d bits: %v", text, prec, back)
		}
	}
}

func BenchmarkNumericMath(b *testing.B) {
	number := func(s string) *apd.Decimal {
		d, err := types.ParseText(types.TNumeric, s, nil)
		if err != nil {
			b.Fatal(err)
		}
		return d.Decimal()
	}
	x, y := number("1.2345678901"), number("37.123456")
	for name, f := range map[string]func() (*apd.Decimal, error){
		"exp":      func() (*apd.Decimal, error) { return ExpNumeric(y) },
		"ln":       func() (*apd.Decimal, error) { return LnNumeric(y) },
		"power":    func() (*apd.Decimal, error) { return PowNumeric(x, y) },
		"powerInt": func() (*apd.Decimal, error) { return PowNumeric(x, number("100000")) },
		"sqrt":     func() (*apd.Decimal, error) { return SqrtNumeric(&Env{}, y) },
		"sqrtLong": func() (*apd.Decimal, error) { return SqrtNumeric(&Env{}, number(strings.Repeat("7", 100000))) },
	} {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				if _, err := f(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
