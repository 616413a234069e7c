package catalog

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/percodb/percodb/kv"
)

// The catalog's keys are readable: 01, a word, and for most a slash and a name or number; 00 ends
// each, so that none is a prefix of another. The objects of each database but the first have keys of their
// own (space): 01, the word for a database's objects, its number, and then as those of the first.
const keySpace = "\x01"

var (
	keyFormat  = []byte(keySpace + "format\x00")  // version of this layout
	keyVersion = []byte(keySpace + "version\x00") // schema version, of all databases
	keyIDs     = []byte(keySpace + "ids\x00")     // next relation, index or sequence value id
	keyRowIDs  = []byte(keySpace + "rowids\x00")  // next hidden row id
	keySecret  = []byte(keySpace + "secret\x00")  // random bytes
	keySystem  = []byte(keySpace + "system\x00")  // what ALTER SYSTEM has stored
	keyClosing = []byte(keySpace + "closing\x00") // relation id → marker of a schema change under way
)

// The words that a slash follows. Each database has its own keys under the first seven.
const (
	wordSchema    = "schema"     // name → id and comment
	wordName      = "name"       // schema 00 name → relation id
	wordRelation  = "relation"   // id → descriptor
	wordType      = "type"       // OID → user-defined type
	wordExtension = "extension"  // OID → installed extension
	wordRoutine   = "routine"    // OID → user-defined function, procedure or aggregate
	wordText      = "textsearch" // OID → user-defined text search configuration or dictionary
	wordCollation = "collation"  // OID → user-defined collation
	wordOperator  = "operator"   // OID → user-defined operator
	wordCast      = "cast"       // OID → user-defined cast
	wordOpFamily  = "opfamily"   // OID → user-defined operator family, or what users have added to one of PostgreSQL
	wordOpClass   = "opclass"    // OID → user-defined operator class

	wordDatabase = "database" // OID → database
	wordObject   = "object"   // OID of a database / key of one of its objects
	wordSequence = "sequence" // value id → value
	wordStats    = "stats"    // relation id → statistics
	wordMember   = "member"   // process → which markers it has seen
	wordRole     = "role"     // OID → role; 0: the settings of all roles
	wordDropped  = "dropped"  // id of the record → span to which no descriptor refers any more
	// wordTemporary: id of a session's temporary relation → its process
	wordTemporary = "temporary"

	wordObserverError = "observererror" // observer / key of a row → why it is set aside
	wordSeeding       = "seeding"       // observer → how far its table has been notified
	wordBuild         = "build"         // OID of an index → how far its build has come
	wordAdvisory      = "advisory"      // kind and number of an advisory lock; never has a value
)

// space is what the keys of a database's objects begin with.
type space string

// spaceOf returns the space of a database. That of the first one is that of all keys: it is older than the others.
func spaceOf(database uint32) space {
	if database == FirstDatabase {
		return keySpace
	}
	return space(fmt.Sprintf("%s%s/%020d/", keySpace, wordObject, database))
}

func (s space) schemaKey(name string) []byte {
	return []byte(string(s) + wordSchema + "/" + name + "\x00")
}

func (s space) nameKey(schema, name string) []byte {
	return []byte(string(s) + wordName + "/" + schema + "\x00" + name + "\x00")
}

// grantsKey is the key of default privileges, and of privileges on objects without descriptors.
func (s space) grantsKey() []byte { return []byte(string(s) + "grants\x00") }

// idKey is the key of a numbered thing; padded, so that keys order as numbers do.
func (s space) idKey(word string, id uint64) []byte {
	return fmt.Appendf(nil, "%s%s/%020d\x00", s, word, id)
}

// span is the span of all keys of a word. '0' is the byte after '/'.
func (s space) span(word string) kv.Span {
	return kv.Span{Start: []byte(string(s) + word + "/"), End: []byte(string(s) + word + "0")}
}

// all is the span of the keys of a database's objects, but the first one's.
func (s space) all() kv.Span {
	return kv.Span{Start: []byte(s), End: append([]byte(s[:len(s)-1]), '0')}
}

// idKey is the key of a numbered thing that is no object of a database.
func idKey(word string, id uint64) []byte { return space(keySpace).idKey(word, id) }

// AdvisoryKey is the key that an advisory lock of a database locks, whose key are two numbers (pair), or the halves of one.
func AdvisoryKey(database, high, low uint32, pair bool) []byte {
	kind := "bigint"
	if pair {
		kind = "pair"
	}
	return fmt.Appendf(nil, "%s%s/%s/%08x/%08x\x00", spaceOf(database), wordAdvisory, kind, high, low)
}

// IsAdvisoryKey reports whether a key is one of AdvisoryKey.
func IsAdvisoryKey(key []byte) bool {
	rest, ok := bytes.CutPrefix(key, []byte(keySpace))
	if of, isObject := bytes.CutPrefix(rest, []byte(wordObject+"/")); isObject && len(of) > 21 {
		rest = of[21:] // the database's number and a slash
	}
	return ok && bytes.HasPrefix(rest, []byte(wordAdvisory+"/"))
}

// idOfKey is the inverse of idKey.
func idOfKey(word string, key []byte) (uint64, error) { return space(keySpace).idOfKey(word, key) }

func (s space) idOfKey(word string, key []byte) (uint64, error) {
	prefix := len(s) + len(word) + 1
	if len(key) != prefix+21 {
		return 0, &CorruptionError{Key: key, Detail: "malformed key"}
	}
	id, err := strconv.ParseUint(string(key[prefix:prefix+20]), 10, 64)
	if err != nil {
		return 0, &CorruptionError{Key: key, Detail: "malformed key"}
	}
	return id, nil
}

// wordSpan is the span of all keys of a word that names no objects of a database.
func wordSpan(word string) kv.Span { return space(keySpace).span(word) }
