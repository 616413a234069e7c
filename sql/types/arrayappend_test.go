package types

import (
	"fmt"
	"sync"
	"testing"
)

// Goal: arrays that appends have made share their elements' store, and none of them ever changes. Method: a chain of appends with branches from
// each of its arrays, all compared at the end; and concurrent appends to one array.
func TestArrayAppend(t *testing.T) {
	ints := func(n int) (list []Datum) {
		for i := range n {
			list = append(list, Int(int64(i)))
		}
		return list
	}
	arrays := []Datum{NewArray(&Array{Elem: TInt4, Elems: ints(3)})}
	for i := 3; i < 200; i++ {
		last := arrays[len(arrays)-1].Array()
		arrays = append(arrays, last.Append(Int(int64(i))))
		branch := last.Append(Int(-1)).Array()
		if got := branch.Elems[len(branch.Elems)-1].Int(); got != -1 || len(branch.Elems) != i+1 {
			t.Fatalf("a branch of %d elements ends with %d", len(branch.Elems), got)
		}
	}
	for n, d := range arrays {
		if got, want := fmt.Sprint(d.Array().Elems), fmt.Sprint(ints(n+3)); got != want {
			t.Fatalf("array %d is %s, want %s", n, got, want)
		}
		if got, want := d.Size(), NewArray(&Array{Elem: TInt4, Elems: d.Array().Elems}).Size(); got != want {
			t.Fatalf("array %d has the size %d, not %d", n, got, want)
		}
	}

	base := arrays[len(arrays)-1].Array()
	var wg sync.WaitGroup
	made := make([]Datum, 8)
	for i := range made {
		wg.Go(func() {
			made[i] = base.Append(Int(int64(1000 + i)))
		})
	}
	wg.Wait()
	for i, d := range made {
		if got := d.Array().Elems[len(base.Elems)].Int(); got != int64(1000+i) {
			t.Errorf("append %d has made an array that ends with %d", i, got)
		}
	}
}

// Goal: the lower bound stays.
func TestArrayAppendKeepsTheLowerBound(t *testing.T) {
	d := NewDimArray(TInt4, []Datum{Int(1)}, []Dim{{Low: 5, Len: 1}}).Array().Append(Int(2)).Array().Append(Int(3))
	if got := d.Array().Dim(0); got != (Dim{5, 3}) {
		t.Errorf("the dimension is %v", got)
	}
}
