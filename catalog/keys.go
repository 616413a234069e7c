package catalog

import (
	"fmt"
	"strconv"

	"github.com/percodb/percodb/kv"
)

// The catalog's keys are readable: 01, a word, and for most a slash and a name or number; 00 ends
// each, so that none is a prefix of another.
const keySpace = "\x01"

var (
	keyFormat  = []byte(keySpace + "format\x00")  // version of this layout
	keyVersion = []byte(keySpace + "version\x00") // schema version
	keyIDs     = []byte(keySpace + "ids\x00")     // next relation, index or sequence value id
	keyRowIDs  = []byte(keySpace + "rowids\x00")  // next hidden row id
	keyGrants  = []byte(keySpace + "grants\x00")  // the database's owner and privileges, default privileges
	keySecret  = []byte(keySpace + "secret\x00")  // random bytes
	keySystem  = []byte(keySpace + "system\x00")  // what ALTER SYSTEM has stored
	keyClosing = []byte(keySpace + "closing\x00") // relation id → marker of a schema change under way
)

// The words that a slash follows.
const (
	wordSchema    = "schema"     // name → id and comment
	wordName      = "name"       // schema 00 name → relation id
	wordRelation  = "relation"   // id → descriptor
	wordSequence  = "sequence"   // value id → value
	wordStats     = "stats"      // relation id → statistics
	wordMember    = "member"     // process → which markers it has seen
	wordRole      = "role"       // OID → role; 0: the settings of all roles
	wordType      = "type"       // OID → user-defined type
	wordExtension = "extension"  // OID → installed extension
	wordRoutine   = "routine"    // OID → user-defined function, procedure or aggregate
	wordText      = "textsearch" // OID → user-defined text search configuration or dictionary
	wordDropped   = "dropped"    // id of the record → span to which no descriptor refers any more
	// wordTemporary: id of a session's temporary relation → its process
	wordTemporary = "temporary"

	wordObserverError = "observererror" // observer / key of a row → why it is set aside
	wordSeeding       = "seeding"       // observer → how far its table has been notified
	wordAdvisory      = "advisory"      // kind and number of an advisory lock; never has a value
)

func schemaKey(name string) []byte { return []byte(keySpace + wordSchema + "/" + name + "\x00") }

func nameKey(schema, name string) []byte {
	return []byte(keySpace + wordName + "/" + schema + "\x00" + name + "\x00")
}

// idKey is the key of a numbered thing; padded, so that keys order as numbers do.
func idKey(word string, id uint64) []byte {
	return fmt.Appendf(nil, "%s%s/%020d\x00", keySpace, word, id)
}

// AdvisoryKey is the key that an advisory lock locks, whose key are two numbers (pair), or the halves of one.
func AdvisoryKey(high, low uint32, pair bool) []byte {
	kind := "bigint"
	if pair {
		kind = "pair"
	}
	return fmt.Appendf(nil, "%s%s/%s/%08x/%08x\x00", keySpace, wordAdvisory, kind, high, low)
}

// idOfKey is the inverse of idKey.
func idOfKey(word string, key []byte) (uint64, error) {
	prefix := len(keySpace) + len(word) + 1
	if len(key) != prefix+21 {
		return 0, &CorruptionError{Key: key, Detail: "malformed key"}
	}
	id, err := strconv.ParseUint(string(key[prefix:prefix+20]), 10, 64)
	if err != nil {
		return 0, &CorruptionError{Key: key, Detail: "malformed key"}
	}
	return id, nil
}

// wordSpan is the span of all keys of a word. '0' is the byte after '/'.
func wordSpan(word string) kv.Span {
	return kv.Span{Start: []byte(keySpace + word + "/"), End: []byte(keySpace + word + "0")}
}
