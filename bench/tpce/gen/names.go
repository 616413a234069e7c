package gen

import (
	"fmt"
	"math/bits"
	"strings"
)

// Syllables: a consonant and a vowel, 100 of them. Words composed of them have no meaning.
const (
	consonants = "bcdfghjklmnprstvwxyz"
	vowels     = "aeiou"
	letters    = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
)

// word returns a capitalised word of n syllables. Different numbers below 100^n give different words.
func word(number uint64, n int) string {
	var b strings.Builder
	for i := range n {
		c := consonants[number%20]
		if i == 0 {
			c -= 'a' - 'A'
		}
		b.WriteByte(c)
		b.WriteByte(vowels[number/20%5])
		number /= 100
	}
	return b.String()
}

// scatter is a permutation of [0, n) without visible order. factor and n must be coprime.
func scatter(number, factor, n uint64) uint64 {
	hi, lo := bits.Mul64(number%n, factor)
	return bits.Rem64(hi, lo, n)
}

// uniqueWord returns a word of four syllables, a different one for each number below 10^8.
func uniqueWord(number int64) string {
	return word(scatter(uint64(number), 61_803_399, 100_000_000), 4)
}

// Person is a customer, or another person who may trade on an account.
type Person struct {
	First, Last string
	TaxID       string
}

// otherPersons is the first id of persons who are not customers.
const otherPersons = 1 << 33

// person returns the person with an id: a customer's c_id, or an id above otherPersons. Tax ids are unique.
func (g *Generator) person(id int64) Person {
	r := g.at(streamPerson, id)
	n := scatter(uint64(id), 382_291_583_767, 26*26*1_000_000_000)
	return Person{
		First: word(r.next(), int(r.between(2, 3))),
		Last:  word(r.next(), int(r.between(2, 4))),
		TaxID: fmt.Sprintf("%03d%c%c%06d", n%1000, letters[n/1000%26], letters[n/26_000%26], n/676_000),
	}
}

// text returns size bytes of words.
func text(r *source, size int64) string {
	var b strings.Builder
	for int64(b.Len()) < size {
		b.WriteString(word(r.next(), int(r.between(1, 4))))
		b.WriteByte(' ')
	}
	return b.String()[:size]
}

// prefix returns the first n bytes of s, or all of it.
func prefix(s string, n int) string { return s[:min(n, len(s))] }
