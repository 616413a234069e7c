package builtin

import (
	"fmt"
	"strings"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
	"github.com/percodb/percodb/sql/types/jsonb"
)

// arrayPopulator makes an array of a JSON array. Arrays within arrays are dimensions, down to the level where the first element is no array.
type arrayPopulator struct {
	p     *populator
	elem  types.Type
	key   string      // of the member, for errors
	dims  []types.Dim // with a length of -1 until it is known; nil until their number is known
	sizes []int       // the elements so far, by level
	out   []types.Datum
}

// array makes an array with elements of type elem.
func (p *populator) array(env *Env, s jsonSource, elem types.Type, key string) (types.Datum, error) {
	a := &arrayPopulator{p: p, elem: elem, key: key}
	if err := a.level(env, s, 0); err != nil {
		return types.Null, err
	}
	a.dims[0].Len = int32(a.sizes[0])
	return types.NewDimArray(elem, a.out, a.dims), nil
}

// level reads an array at a level, 0 for the outermost.
func (a *arrayPopulator) level(env *Env, s jsonSource, level int) error {
	if s.v.Kind() != jsonb.Array {
		return a.errNoArray(level)
	}
	elems, err := s.elements(env)
	if err != nil {
		return err
	}
	if err := env.reserveList(len(elems)); err != nil {
		return err
	}
	a.sizes = append(a.sizes[:level], 0)
	if a.dims == nil && (len(elems) == 0 || elems[0].v.Kind() != jsonb.Array) {
		if err := a.setDims(level + 1); err != nil {
			return err
		}
	}
	for _, e := range elems {
		if level+1 == len(a.dims) {
			var d types.Datum
			d, err = a.p.convert(env, e, a.elem, a.key, types.Null)
			a.out = append(a.out, d)
		} else if err = a.level(env, e, level+1); err == nil {
			err = a.match(level + 1)
		}
		if err != nil {
			return err
		}
		a.sizes[level]++
	}
	return nil
}

func (a *arrayPopulator) setDims(n int) error {
	if n > types.MaxArrayDims {
		return pgerror.New(pgerror.ProgramLimitExceeded, "number of array dimensions (%d) exceeds the maximum allowed (%d)", n, types.MaxArrayDims)
	}
	a.dims = make([]types.Dim, n)
	for i := range a.dims {
		a.dims[i] = types.Dim{Low: 1, Len: -1}
	}
	return nil
}

// match checks that an array which has been read is as long as those beside it.
func (a *arrayPopulator) match(level int) error {
	n := int32(a.sizes[level])
	if a.dims[level].Len >= 0 && a.dims[level].Len != n {
		return pgerror.New(pgerror.InvalidTextRepresentation, "malformed JSON array").
			WithDetail("Multidimensional arrays must have sub-arrays with matching dimensions.")
	}
	a.dims[level].Len = n
	return nil
}

func (a *arrayPopulator) errNoArray(level int) error {
	err := pgerror.New(pgerror.InvalidTextRepresentation, "expected JSON array")
	if level == 0 {
		return err.WithHint("See the value of key \"" + a.key + "\".")
	}
	var at strings.Builder
	for _, i := range a.sizes[:level] {
		fmt.Fprintf(&at, "[%d]", i)
	}
	return err.WithHint("See the array element " + at.String() + " of key \"" + a.key + "\".")
}
