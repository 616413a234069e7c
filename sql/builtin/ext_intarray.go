package builtin

import (
	"slices"
	"strings"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// The extension intarray: functions and operators of arrays of int4 without NULLs. Its &&, @> and <@ are those of all arrays.

// numbersOf returns the numbers of an array.
func numbersOf(d types.Datum) ([]int64, error) {
	a := d.Array()
	out := make([]int64, len(a.Elems))
	for i, x := range a.Elems {
		if x.IsNull() {
			return nil, pgerror.New(pgerror.NullValueNotAllowed, "array must not contain nulls")
		}
		out[i] = x.Int()
	}
	return out, nil
}

func numberArray(list []int64) types.Datum {
	elems := make([]types.Datum, len(list))
	for i, n := range list {
		elems[i] = types.Int(n)
	}
	return types.NewArray(&types.Array{Elem: types.TInt4, Elems: elems})
}

// numberSet returns the numbers in order, each once.
func numberSet(list []int64) []int64 {
	slices.Sort(list)
	return slices.Compact(list)
}

// ofNumbers declares a function of an array and its other arguments.
func ofNumbers(f func(list []int64, rest []types.Datum) (types.Datum, error)) Func {
	return func(env *Env, a []types.Datum) (types.Datum, error) {
		if err := env.Step(len(a[0].Array().Elems)); err != nil {
			return types.Null, err
		}
		list, err := numbersOf(a[0])
		if err != nil {
			return types.Null, err
		}
		return f(list, a[1:])
	}
}

// ofNumberSets declares a function of two arrays that yields one.
func ofNumberSets(f func(x, y []int64) []int64) Func {
	return ofNumbers(func(x []int64, rest []types.Datum) (types.Datum, error) {
		y, err := numbersOf(rest[0])
		if err != nil {
			return types.Null, err
		}
		return numberArray(f(x, y)), nil
	})
}

var (
	numberCount = ofNumbers(func(list []int64, _ []types.Datum) (types.Datum, error) { return types.Int(int64(len(list))), nil })
	numberIndex = ofNumbers(func(list []int64, rest []types.Datum) (types.Datum, error) {
		return types.Int(int64(slices.Index(list, rest[0].Int()) + 1)), nil
	})
	numberPush = ofNumbers(func(list []int64, rest []types.Datum) (types.Datum, error) {
		return numberArray(append(list, rest[0].Int())), nil
	})
	numberDelete = ofNumbers(func(list []int64, rest []types.Datum) (types.Datum, error) {
		return numberArray(slices.DeleteFunc(list, func(n int64) bool { return n == rest[0].Int() })), nil
	})
	numberUnionOne = ofNumbers(func(list []int64, rest []types.Datum) (types.Datum, error) {
		return numberArray(numberSet(append(list, rest[0].Int()))), nil
	})
	numberAppend    = ofNumberSets(func(x, y []int64) []int64 { return append(x, y...) })
	numberUnion     = ofNumberSets(func(x, y []int64) []int64 { return numberSet(append(x, y...)) })
	numberIntersect = ofNumberSets(func(x, y []int64) []int64 { return numbersIn(x, y, true) })
	numberSubtract  = ofNumberSets(func(x, y []int64) []int64 { return numbersIn(x, y, false) })
)

// numbersIn returns the numbers of x that are in y, or are not, in order and each once.
func numbersIn(x, y []int64, in bool) []int64 {
	x, y = numberSet(x), numberSet(y)
	return slices.DeleteFunc(x, func(n int64) bool {
		_, found := slices.BinarySearch(y, n)
		return found != in
	})
}

func numberSort(list []int64, rest []types.Datum) (types.Datum, error) {
	if len(list) < 2 { // The direction is not looked at.
		return numberArray(list), nil
	}
	direction := "ASC"
	if len(rest) > 0 {
		direction = strings.ToUpper(rest[0].Text())
	}
	switch slices.Sort(list); direction {
	case "ASC":
	case "DESC":
		slices.Reverse(list)
	default:
		return types.Null, pgerror.New(pgerror.InvalidParameterValue, "second parameter must be \"ASC\" or \"DESC\"")
	}
	return numberArray(list), nil
}

// numberSlice is subarray: places are counted from 1, or from the end if they are negative; a length of 0 means all the rest.
func numberSlice(list []int64, rest []types.Datum) (types.Datum, error) {
	from, n, count := int(rest[0].Int()), 0, len(list)
	if from > 0 {
		from--
	} else if from < 0 {
		from += count
	}
	if len(rest) > 1 {
		n = int(rest[1].Int())
	}
	to := from + n
	if n <= 0 {
		to = count + n
	}
	if from, to = max(from, 0), min(to, count); from >= to {
		return numberArray(nil), nil
	}
	return numberArray(list[from:to]), nil
}

func intarrayOps() []decl {
	return []decl{
		{sig: "#(int4[]) int4", fn: numberCount}, {sig: "#(int4[],int4) int4", fn: numberIndex},
		{sig: "+(int4[],int4) int4[]", fn: numberPush}, {sig: "+(int4[],int4[]) int4[]", fn: numberAppend},
		{sig: "-(int4[],int4) int4[]", fn: numberDelete}, {sig: "-(int4[],int4[]) int4[]", fn: numberSubtract},
		{sig: "|(int4[],int4) int4[]", fn: numberUnionOne}, {sig: "|(int4[],int4[]) int4[]", fn: numberUnion},
		{sig: "&(int4[],int4[]) int4[]", fn: numberIntersect},
	}
}

func intarrayFuncs() []decl {
	descending := func(list []int64, _ []types.Datum) (types.Datum, error) {
		return numberSort(list, []types.Datum{types.Text("DESC")})
	}
	return []decl{
		{sig: "intset(int4) int4[]", fn: fn1(func(a types.Datum) (types.Datum, error) { return numberArray([]int64{a.Int()}), nil })},
		{sig: "icount(int4[]) int4", fn: numberCount}, {sig: "idx(int4[],int4) int4", fn: numberIndex},
		{sig: "sort(int4[],text) int4[]", fn: ofNumbers(numberSort)}, {sig: "sort(int4[]) int4[]", fn: ofNumbers(numberSort)},
		{sig: "sort_asc(int4[]) int4[]", fn: ofNumbers(numberSort)}, {sig: "sort_desc(int4[]) int4[]", fn: ofNumbers(descending)},
		{sig: "uniq(int4[]) int4[]", fn: ofNumbers(func(list []int64, _ []types.Datum) (types.Datum, error) {
			return numberArray(slices.Compact(list)), nil
		})},
		{sig: "subarray(int4[],int4,int4) int4[]", fn: ofNumbers(numberSlice)}, {sig: "subarray(int4[],int4) int4[]", fn: ofNumbers(numberSlice)},
		{sig: "intarray_push_elem(int4[],int4) int4[]", fn: numberPush}, {sig: "intarray_push_array(int4[],int4[]) int4[]", fn: numberAppend},
		{sig: "intarray_del_elem(int4[],int4) int4[]", fn: numberDelete}, {sig: "intset_subtract(int4[],int4[]) int4[]", fn: numberSubtract},
		{sig: "intset_union_elem(int4[],int4) int4[]", fn: numberUnionOne},
	}
}
