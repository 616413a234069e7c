package tsearch

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// The bits of a rank's normalization.
const (
	byLogLength   = 1
	byLength      = 2
	byDistance    = 4
	byUnique      = 8
	byLogUnique   = 16
	byRankPlus1   = 32
	noPosition    = MaxPosition // of a word without positions
	rankOfNothing = float32(1e-20)
)

// DefaultWeights are the weights of D, C, B and A in ranks.
var DefaultWeights = [4]float32{0.1, 0.2, 0.4, 1}

// length counts the positions of a document; a lexeme without positions counts as one.
func (v Vector) length() int {
	n := 0
	for i := range v {
		n += max(len(v[i].Pos), 1)
	}
	return n
}

// Rank is ts_rank. Like PostgreSQL, it computes with 32 bits where PostgreSQL does.
func (v Vector) Rank(weights [4]float32, q *Query, normalize int) float32 {
	if len(v) == 0 || q.Root == nil {
		return 0
	}
	r := ranking{v: v, weights: weights, operands: distinct(q.Root.operands())}
	var res float32
	if (q.Root.Op == And || q.Root.Op == Phrase) && len(r.operands) > 1 {
		res = r.all()
	} else {
		res = r.any()
	}
	if res < 0 {
		res = rankOfNothing
	}
	if normalize&byLogLength != 0 {
		res = float32(float64(res) / (math.Log(float64(v.length()+1)) / math.Log(2)))
	}
	if normalize&byLength != 0 {
		res /= float32(v.length())
	}
	if normalize&byUnique != 0 {
		res /= float32(len(v))
	}
	if normalize&byLogUnique != 0 {
		res = float32(float64(res) / (math.Log(float64(len(v)+1)) / math.Log(2)))
	}
	if normalize&byRankPlus1 != 0 {
		res /= res + 1
	}
	return res
}

// distinct sorts operands and keeps one for each word.
func distinct(list []*Node) []*Node {
	slices.SortStableFunc(list, func(a, b *Node) int { return strings.Compare(a.Word, b.Word) })
	return slices.CompactFunc(list, func(a, b *Node) bool { return a.Word == b.Word })
}

type ranking struct {
	v        Vector
	weights  [4]float32
	operands []*Node
}

func (r *ranking) weight(p Position) float32 { return r.weights[p.Weight()] }

var unpositioned = []Position{At(noPosition, 0)}

// closeness is 1 for neighbours, and less with the distance of words.
func closeness(distance int) float32 {
	if distance > 100 {
		return 1e-30
	}
	return float32(1 / (1.005 + 0.05*math.Exp(float64(float32(distance))/1.5-2)))
}

// all ranks by the distances between the words of different operands.
func (r *ranking) all() float32 {
	res := float32(-1)
	lists := make([][]Position, len(r.operands))
	bare := make([]bool, len(r.operands))
	for i, n := range r.operands {
		for _, l := range r.v.matching(n) {
			lists[i], bare[i] = l.Pos, len(l.Pos) == 0
			if bare[i] {
				lists[i] = unpositioned
			}
			for k := range i {
				for _, p := range lists[i] {
					for _, q := range lists[k] {
						distance := p.Pos() - q.Pos()
						if distance < 0 {
							distance = -distance
						}
						if distance == 0 {
							if !bare[i] && !bare[k] {
								continue
							}
							distance = MaxPosition + 1
						}
						w := float32(math.Sqrt(float64(r.weight(p) * r.weight(q) * closeness(distance))))
						if res < 0 {
							res = w
						} else {
							res = float32(1 - (1-float64(res))*(1-float64(w)))
						}
					}
				}
			}
		}
	}
	return res
}

// any ranks by the number of the words and their weights.
func (r *ranking) any() float32 {
	var res float32
	for _, n := range r.operands {
		for _, l := range r.v.matching(n) {
			list := l.Pos
			if len(list) == 0 {
				list = unpositioned
			}
			sum, best, at := float32(0), float32(-1), 0
			for j, p := range list {
				sum += r.weight(p) / float32((j+1)*(j+1))
				if w := r.weight(p); w > best {
					best, at = w, j
				}
			}
			// The sum of 1/n² is pi²/6.
			res = float32(float64(res) + float64(best+sum-best/float32((at+1)*(at+1)))/1.64493406685)
		}
	}
	return res / float32(max(len(r.operands), 1))
}

// occurrence is a position of a document with the operands that it matches.
type occurrence struct {
	at       Position
	lexeme   int
	operands []*Node
}

// occurrences lists the positions of the words of a query.
func (v Vector) occurrences(q *Query) []occurrence {
	var list []occurrence
	for _, n := range q.Root.operands() {
		first, _ := v.find(n.Word)
		for i, l := range v.matching(n) {
			for _, p := range l.Pos {
				if n.Weights == 0 || n.Weights>>p.Weight()&1 != 0 {
					list = append(list, occurrence{p, first + i, []*Node{n}})
				}
			}
		}
	}
	slices.SortStableFunc(list, func(a, b occurrence) int {
		return cmp.Or(cmp.Compare(a.at.Pos(), b.at.Pos()), cmp.Compare(a.at, b.at), cmp.Compare(a.lexeme, b.lexeme))
	})
	out := list[:0]
	for _, o := range list {
		if n := len(out); n > 0 && out[n-1].at == o.at && out[n-1].lexeme == o.lexeme {
			out[n-1].operands = append(out[n-1].operands, o.operands...)
			continue
		}
		out = append(out, o)
	}
	return out
}

// cover is a part of a document that satisfies a query: the occurrences from begin to end.
type cover struct{ begin, end int }

// covers finds the shortest covers from left to right. poll is called for each step and may stop the search.
func covers(list []occurrence, q *Query, found func(cover), poll func() error) error {
	for start := 0; start < len(list); {
		end, ok, err := extend(list, q, start, len(list)-1, 1, poll)
		if err != nil || !ok {
			return err
		}
		begin, ok, err := extend(list, q, end, start, -1, poll)
		if err != nil {
			return err
		}
		if !ok || list[begin].at.Pos() > list[end].at.Pos() {
			start++
			continue
		}
		found(cover{begin, end})
		start = begin + 1
	}
	return nil
}

// extend collects occurrences from one to another until they satisfy the query.
func extend(list []occurrence, q *Query, from, to, step int, poll func() error) (int, bool, error) {
	seen := map[*Node][]int{}
	has := func(n *Node, where *positions) match {
		at, ok := seen[n]
		if !ok {
			return no
		}
		if where != nil {
			where.list = at
			if step < 0 {
				where.list = slices.Clone(at)
				slices.Reverse(where.list)
			}
		}
		return yes
	}
	for i := from; i*step <= to*step; i += step {
		if err := poll(); err != nil {
			return 0, false, err
		}
		pos := list[i].at.Pos()
		for _, n := range list[i].operands {
			if at := seen[n]; len(at) == 0 || at[len(at)-1] != pos {
				seen[n] = append(at, pos)
			}
		}
		if q.Root.holds(has) != no {
			return i, true, nil
		}
	}
	return 0, false, nil
}

// RankCoverDensity is ts_rank_cd: it ranks by how close together the words of a query are. poll may stop it.
func (v Vector) RankCoverDensity(weights [4]float32, q *Query, normalize int, poll func() error) (float32, error) {
	if q.Root == nil {
		return 0, nil
	}
	list := v.occurrences(q)
	var inverse [4]float64
	for i, w := range weights {
		inverse[i] = 1 / float64(w)
	}
	var rank, distances, previous float64
	count := 0
	err := covers(list, q, func(c cover) {
		sum := 0.0
		for _, o := range list[c.begin : c.end+1] {
			sum += inverse[o.at.Weight()]
		}
		first, last := list[c.begin].at.Pos(), list[c.end].at.Pos()
		noise := last - first - (c.end - c.begin)
		if noise < 0 {
			noise = (c.end - c.begin) / 2
		}
		rank += float64(c.end-c.begin+1) / sum / float64(1+noise)
		middle := float64(first+last) / 2
		if count > 0 && middle > previous {
			distances += 1 / (middle - previous)
		}
		previous = middle
		count++
	}, poll)
	if err != nil || len(list) == 0 {
		return 0, err
	}
	if normalize&byLogLength != 0 {
		rank /= math.Log(float64(v.length() + 1))
	}
	if normalize&byLength != 0 {
		rank /= float64(v.length())
	}
	if normalize&byDistance != 0 && count > 0 && distances > 0 {
		rank /= float64(count) / distances
	}
	if normalize&byUnique != 0 {
		rank /= float64(len(v))
	}
	if normalize&byLogUnique != 0 {
		rank /= math.Log(float64(len(v)+1)) / math.Log(2)
	}
	if normalize&byRankPlus1 != 0 {
		rank /= rank + 1
	}
	return float32(rank), nil
}
