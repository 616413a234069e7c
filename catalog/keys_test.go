package catalog

import "testing"

// Goal: keys of advisory locks are told from all others, in each database. Method: those of two databases, beside keys of objects with such names.
func TestIsAdvisoryKey(t *testing.T) {
	for _, database := range []uint32{FirstDatabase, FirstDatabase + 1} {
		s := spaceOf(database)
		for _, pair := range []bool{false, true} {
			if key := AdvisoryKey(database, 1, 2, pair); !IsAdvisoryKey(key) {
				t.Errorf("%q", key)
			}
		}
		for _, key := range [][]byte{s.schemaKey("advisory"), s.nameKey("advisory", "advisory/"), s.idKey(wordObject, 7), keyVersion, nil, []byte("advisory/")} {
			if IsAdvisoryKey(key) {
				t.Errorf("%q", key)
			}
		}
	}
}
