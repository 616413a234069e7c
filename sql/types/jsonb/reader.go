package jsonb

// Event is a step of a Reader through a JSON text.
type Event uint8

// The events. A Key is followed by the events of its value.
const (
	End Event = iota
	BeginObject
	EndObject
	BeginArray
	EndArray
	Key
	StringEvent
	NumberEvent
	TrueEvent
	FalseEvent
	NullEvent
)

// Reader reads a JSON text event by event. Create one with NewReader.
type Reader struct {
	lex   lexer
	want  want
	open  []bool // the containers around the present position: true for objects
	poll  func() error
	steps int
}

// want is what the grammar expects next.
type want uint8

const (
	wantValue want = iota
	wantElement
	wantElementOrEnd
	wantKey
	wantKeyOrEnd
	wantCommaInArray
	wantCommaInObject
	wantEnd
)

// NewReader returns a reader of text. With decode it unescapes strings, and refuses those that have no text form
// (\u0000, half a surrogate pair); without, they stay as they are. poll, unless nil, is called from time to time; its error
// ends the reading.
func NewReader(text string, decode bool, poll func() error) *Reader {
	return &Reader{lex: lexer{in: text, decode: decode}, poll: poll}
}

// Text returns the string of the last event, a Key or StringEvent, or the characters of a NumberEvent. It does not change
// with later events.
func (r *Reader) Text() string {
	if r.lex.tok == tokString {
		return r.lex.text
	}
	return r.lex.in[r.lex.start:r.lex.end]
}

// Start returns the position of the last event's first byte.
func (r *Reader) Start() int { return r.lex.start }

const eventsPerPoll = 16 << 10

// Next reads the next event; End is the last.
//
// Errors: 22P02 with the place, 22P05 for \u0000 if strings are decoded, 54001 for too deep nesting, and poll's.
func (r *Reader) Next() (Event, error) {
	if r.steps++; r.steps%eventsPerPoll == 0 && r.poll != nil {
		if err := r.poll(); err != nil {
			return End, err
		}
	}
	if err := r.lex.next(); err != nil {
		return End, err
	}
	switch r.want {
	case wantCommaInArray:
		switch r.lex.tok {
		case tokEndArray:
			return r.close(EndArray), nil
		case tokComma:
			r.want = wantElement
			return r.afterComma()
		}
		return End, r.lex.errExpected(`"," or "]"`)
	case wantCommaInObject:
		switch r.lex.tok {
		case tokEndObject:
			return r.close(EndObject), nil
		case tokComma:
			r.want = wantKey
			return r.afterComma()
		}
		return End, r.lex.errExpected(`"," or "}"`)
	case wantEnd:
		if r.lex.tok != tokEnd {
			return End, r.lex.errExpected("end of input")
		}
		return End, nil
	}
	return r.item()
}

func (r *Reader) afterComma() (Event, error) {
	if err := r.lex.next(); err != nil {
		return End, err
	}
	return r.item()
}

// item reads a key, or a value.
func (r *Reader) item() (Event, error) {
	switch r.want {
	case wantKeyOrEnd:
		if r.lex.tok == tokEndObject {
			return r.close(EndObject), nil
		}
		if r.lex.tok != tokString {
			return End, r.lex.errExpected(`string or "}"`)
		}
		return r.key()
	case wantKey:
		if r.lex.tok != tokString {
			return End, r.lex.errExpected("string")
		}
		return r.key()
	case wantElementOrEnd:
		if r.lex.tok == tokEndArray {
			return r.close(EndArray), nil
		}
	}
	return r.value()
}

// key reads the colon behind a key, but keeps the key as the present token.
func (r *Reader) key() (Event, error) {
	text, start := r.lex.text, r.lex.start
	if err := r.lex.next(); err != nil {
		return End, err
	}
	if r.lex.tok != tokColon {
		return End, r.lex.errExpected(`":"`)
	}
	r.lex.tok, r.lex.text, r.lex.start = tokString, text, start
	r.want = wantValue
	return Key, nil
}

func (r *Reader) value() (Event, error) {
	var e Event
	switch r.lex.tok {
	case tokBeginObject:
		return BeginObject, r.push(true)
	case tokBeginArray:
		return BeginArray, r.push(false)
	case tokString:
		e = StringEvent
	case tokNumber:
		e = NumberEvent
	case tokTrue:
		e = TrueEvent
	case tokFalse:
		e = FalseEvent
	case tokNull:
		e = NullEvent
	default:
		return End, r.lex.errExpected("JSON value")
	}
	r.valueDone()
	return e, nil
}

func (r *Reader) push(object bool) error {
	if len(r.open) >= MaxDepth {
		return ErrTooDeep()
	}
	r.open = append(r.open, object)
	r.want = wantElementOrEnd
	if object {
		r.want = wantKeyOrEnd
	}
	return nil
}

func (r *Reader) close(e Event) Event {
	r.open = r.open[:len(r.open)-1]
	r.valueDone()
	return e
}

func (r *Reader) valueDone() {
	switch n := len(r.open); {
	case n == 0:
		r.want = wantEnd
	case r.open[n-1]:
		r.want = wantCommaInObject
	default:
		r.want = wantCommaInArray
	}
}

// Skip reads up to the end of the value whose first event was first, and returns the position behind it.
func (r *Reader) Skip(first Event) (end int, err error) {
	if first != BeginObject && first != BeginArray {
		return r.lex.end, nil
	}
	for depth := len(r.open); len(r.open) >= depth; {
		if _, err := r.Next(); err != nil {
			return 0, err
		}
	}
	return r.lex.end, nil
}

// Validate checks that text is JSON, as type json accepts it.
func Validate(text string, poll func() error) error {
	r := NewReader(text, false, poll)
	for {
		if e, err := r.Next(); e == End || err != nil {
			return err
		}
	}
}
