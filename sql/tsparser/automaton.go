package tsparser

// state is what the parser has read so far.
type state uint8

const (
	base state = iota
	numWord
	asciiWord
	word
	unsigned
	signFirst
	signed
	blank
	fractionFirst
	fraction
	decimalFirst
	decimal
	versionFirst
	version
	signVersion
	exponentFirst
	exponentSign
	exponent
	entityFirst
	entity
	entityNumberFirst
	entityNumber
	entityHexFirst
	entityHex
	entityEnd
	tagFirst
	declaration
	closeTagFirst
	tagName
	emptyTagEnd
	tagBody
	singleQuoted
	doubleQuoted
	tagEscape
	tagEnd
	commentFirst
	commentSecond
	comment
	commentClose
	commentCloseSecond
	commentEnd
	domainFirst
	domainSecond
	domain
	portFirst
	port
	hostFirst
	host
	email
	fileFirst
	fileTilde
	pathFirst
	pathStart
	pathSecond
	file
	fileNext
	urlPathFirst
	urlPathStart
	urlPathRest
	furl
	protocolFirst
	protocolSecond
	protocolEnd
	asciiHyphenFirst
	asciiHyphen
	hyphenFirst
	hyphen
	numHyphenFirst
	numHyphen
	hyphenDigits
	parts
	partsHyphen
	wordPart
	asciiPart
	numPart
	digitsPart
	states
	stay = states // A rule with it does not change the state.
)

// class is a class of characters, or a character if it is positive.
type class int32

const (
	anything class = -iota
	end
	ascii
	letter
	digit
	alnum
	special // a mark that belongs to a word
	notAlnum
	white
	hexDigit
	urlChar
	stopHost // after a host that was looked for
	script   // within a script
	address  // a host follows
	urlPath  // a path follows
)

// what a rule does with the stack of positions.
type effect uint8

const (
	next effect = iota
	push
	pop
	rerun // goes on at the same character
	clear // forgets the position before
	merge // forgets the position before and goes on from here
)

// rule says what a character does in a state. Its kind is that of the token which ends before the character.
type rule struct {
	class   class
	do      effect
	to      state
	kind    Kind
	special func(*Parser)
}

// automaton is indexed by states. The last rule of a state applies to anything.
var automaton [states][]rule

func to(c class, s state) rule            { return rule{class: c, to: s} }
func try(c class, s state) rule           { return rule{class: c, do: push, to: s} }
func forget(c class, s state) rule        { return rule{class: c, do: clear, to: s} }
func found(c class, k Kind, s state) rule { return rule{class: c, to: s, kind: k} }

var fail = rule{do: pop, to: stay}

// all makes rules to one state.
func all(s state, classes ...class) (list []rule) {
	for _, c := range classes {
		list = append(list, to(c, s))
	}
	return list
}

// attempts are rules that fail at the end of the text and for everything else.
func attempts(rules ...rule) []rule {
	return append(append([]rule{{class: end, do: pop, to: stay}}, rules...), fail)
}

// tokens are rules that end a token at the end of the text and for everything else.
func tokens(k Kind, rules ...rule) []rule {
	return append(append([]rule{found(end, k, base)}, rules...), found(anything, k, base))
}

// exponents try an exponent.
var exponents = []rule{try('e', exponentFirst), try('E', exponentFirst)}

func rules(lists ...[]rule) (out []rule) {
	for _, l := range lists {
		out = append(out, l...)
	}
	return out
}

func init() {
	automaton[base] = []rule{to(end, stay), try('<', tagFirst), to(script, blank), to(ascii, asciiWord), to(letter, word), to(digit, unsigned),
		try('-', signFirst), try('+', signFirst), try('&', entityFirst), try('~', fileTilde), try('/', fileFirst), try('.', pathStart), to(anything, blank)}
	words()
	numbers()
	tags()
	hosts()
	files()
	hyphens()
}

func words() {
	automaton[numWord] = tokens(NumWord, to(alnum, numWord), to(special, numWord), try('@', email), try('/', fileFirst),
		try('.', fileNext), try('-', numHyphenFirst))
	automaton[asciiWord] = tokens(AsciiWord, to(ascii, stay), try('.', domainFirst), try('.', fileNext), try('-', hostFirst),
		try('-', asciiHyphenFirst), try('_', hostFirst), try('@', email), try(':', protocolFirst), try('/', fileFirst), try(digit, host),
		to(digit, numWord), to(letter, word), to(special, word))
	automaton[word] = tokens(Word, to(letter, stay), to(special, stay), to(digit, numWord), try('-', hyphenFirst))
	automaton[blank] = tokens(Blank, found('<', Blank, base), to(script, stay), found('-', Blank, base), found('+', Blank, base),
		found('&', Blank, base), found('/', Blank, base), to(notAlnum, blank))
}

func numbers() {
	automaton[unsigned] = tokens(UInt, rules([]rule{to(digit, stay), try('.', domainFirst), try('.', fractionFirst)}, exponents,
		[]rule{try('-', hostFirst), try('_', hostFirst), try('@', email), try(ascii, host), to(letter, numWord), to(special, numWord), try('/', fileFirst)})...)
	automaton[signFirst] = attempts(forget(digit, signed))
	automaton[signed] = tokens(Int, append([]rule{to(digit, stay), try('.', decimalFirst)}, exponents...)...)
	automaton[fractionFirst] = attempts(forget(digit, fraction))
	automaton[fraction] = tokens(Float, append([]rule{to(digit, fraction), try('.', versionFirst)}, exponents...)...)
	automaton[decimalFirst] = attempts(forget(digit, decimal))
	automaton[decimal] = tokens(Float, append([]rule{to(digit, decimal), try('.', signVersion)}, exponents...)...)
	automaton[versionFirst] = attempts(forget(digit, version))
	automaton[signVersion] = attempts(rule{class: digit, to: unsigned, kind: Blank, special: (*Parser).sign})
	automaton[version] = tokens(Version, to(digit, version), try('.', versionFirst))
	automaton[exponentFirst] = attempts(forget(digit, exponent), to('+', exponentSign), to('-', exponentSign))
	automaton[exponentSign] = attempts(forget(digit, exponent))
	automaton[exponent] = tokens(SFloat, to(digit, exponent))
}

func tags() {
	automaton[entityFirst] = attempts(append([]rule{to('#', entityNumberFirst)}, all(entity, ascii, ':', '_')...)...)
	automaton[entity] = attempts(append(all(entity, alnum, ':', '_', '.', '-'), to(';', entityEnd))...)
	automaton[entityNumberFirst] = attempts(to('x', entityHexFirst), to('X', entityHexFirst), to(digit, entityNumber))
	automaton[entityNumber] = attempts(to(digit, entityNumber), to(';', entityEnd))
	automaton[entityHexFirst] = attempts(to(hexDigit, entityHex))
	automaton[entityHex] = attempts(to(hexDigit, entityHex), to(';', entityEnd))
	automaton[entityEnd] = []rule{found(anything, Entity, base)}

	automaton[tagFirst] = attempts(try('/', closeTagFirst), try('!', commentFirst), try('?', declaration),
		try(ascii, tagName), try(':', tagName), try('_', tagName))
	automaton[declaration] = attempts(to('x', tagBody), to('X', tagBody))
	automaton[closeTagFirst] = attempts(to(ascii, tagName))
	automaton[tagName] = attempts(append([]rule{to('/', emptyTagEnd), {class: '>', to: tagEnd, special: (*Parser).tag},
		{class: white, to: tagBody, special: (*Parser).tag}}, all(stay, alnum, ':', '_', '.', '-')...)...)
	automaton[emptyTagEnd] = attempts(to('>', tagEnd))
	automaton[tagBody] = attempts(append([]rule{{class: '>', to: tagEnd, special: (*Parser).tag}, to('\'', singleQuoted), to('"', doubleQuoted)},
		append(all(stay, ascii, digit, '=', '-', '_', '#', '/', ':', '.', '&', '?', '%', '~'),
			rule{class: white, to: stay, special: (*Parser).tag})...)...)
	automaton[singleQuoted] = []rule{{class: end, do: pop, to: stay}, try('\\', tagEscape), to('\'', tagBody), to(anything, singleQuoted)}
	automaton[doubleQuoted] = []rule{{class: end, do: pop, to: stay}, try('\\', tagEscape), to('"', tagBody), to(anything, doubleQuoted)}
	automaton[tagEscape] = []rule{{class: end, do: pop, to: stay}, {do: merge, to: stay}}
	automaton[tagEnd] = []rule{found(anything, Tag, base)}

	automaton[commentFirst] = attempts(to('-', commentSecond), to('D', tagBody), to('d', tagBody))
	automaton[commentSecond] = attempts(to('-', comment))
	automaton[comment] = []rule{{class: end, do: pop, to: stay, special: (*Parser).openComment}, to('-', commentClose), to(anything, stay)}
	automaton[commentClose] = []rule{{class: end, do: pop, to: stay, special: (*Parser).openComment}, to('-', commentCloseSecond), to(anything, comment)}
	automaton[commentCloseSecond] = []rule{{class: end, do: pop, to: stay, special: (*Parser).openComment}, to('-', stay), to('>', commentEnd), to(anything, comment)}
	automaton[commentEnd] = []rule{found(anything, Tag, base)}
}

func hosts() {
	automaton[domainFirst] = attempts(to(ascii, domainSecond), to(digit, host))
	automaton[domainSecond] = attempts(to(ascii, domain), try(digit, host), try('-', hostFirst), try('_', hostFirst), try('.', domainFirst), try('@', email))
	automaton[domain] = []rule{found(end, Host, base), to(ascii, domain), try(digit, host), try(':', portFirst), try('-', hostFirst), try('_', hostFirst),
		try('.', domainFirst), try('@', email), {class: digit, do: pop, to: stay}, found(stopHost, Host, urlPathStart), try('/', furl), found(anything, Host, base)}
	automaton[portFirst] = attempts(to(digit, port))
	automaton[port] = []rule{found(end, Host, base), to(digit, port), found(stopHost, Host, urlPathStart), try('/', furl), found(anything, Host, base)}
	automaton[hostFirst] = attempts(to(digit, host), to(ascii, host))
	automaton[host] = attempts(to(digit, host), to(ascii, host), try('@', email), try('.', domainFirst), try('-', hostFirst), try('_', hostFirst))
	automaton[email] = []rule{{class: stopHost, do: pop, to: stay}, found(address, Email, base), fail}
	automaton[urlPathFirst] = attempts(to(urlChar, urlPathRest))
	automaton[urlPathStart] = []rule{to(anything, urlPathRest)}
	automaton[urlPathRest] = tokens(URLPath, to(urlChar, urlPathRest))
	automaton[furl] = attempts(rule{class: urlPath, to: base, kind: URL, special: (*Parser).host})
	automaton[protocolFirst] = attempts(to('/', protocolSecond))
	automaton[protocolSecond] = attempts(to('/', protocolEnd))
	automaton[protocolEnd] = []rule{found(anything, Protocol, base)}
}

func files() {
	automaton[fileFirst] = attempts(to(ascii, file), to(digit, file), to('.', pathFirst), to('_', file), try('~', fileTilde))
	automaton[fileTilde] = attempts(to(ascii, file), to(digit, file), to('_', file), to('/', fileFirst))
	automaton[pathStart] = attempts(to('.', pathSecond), to('/', fileFirst))
	automaton[pathFirst] = attempts(to(ascii, file), to(digit, file), to('_', file), to('.', pathSecond), to('/', fileFirst))
	automaton[pathSecond] = []rule{found(end, File, base), try('/', fileFirst), found('/', File, base), found(white, File, base), fail}
	automaton[file] = []rule{found(end, File, base), to(ascii, file), to(digit, file), try('.', fileNext), to('_', file), to('-', file),
		try('/', fileFirst), found(anything, File, base)}
	automaton[fileNext] = attempts(forget(ascii, file), forget(digit, file), forget('_', file))
}

// hyphens parse words with hyphens, then their parts.
func hyphens() {
	compound := func(k Kind, list ...rule) []rule {
		at := func(c class) rule { return rule{class: c, to: parts, kind: k, special: (*Parser).again} }
		return append(append([]rule{at(end)}, list...), at(anything))
	}
	part := func(k Kind, list ...rule) []rule {
		return append(append([]rule{found(end, k, base)}, list...), found(anything, k, parts))
	}
	automaton[asciiHyphenFirst] = attempts(to(ascii, asciiHyphen), to(letter, hyphen), to(digit, hyphenDigits))
	automaton[asciiHyphen] = compound(AsciiHWord, to(ascii, asciiHyphen), to(letter, hyphen), to(special, hyphen), to(digit, numHyphen), try('-', asciiHyphenFirst))
	automaton[hyphenFirst] = attempts(to(letter, hyphen), to(digit, hyphenDigits))
	automaton[hyphen] = compound(HWord, to(letter, hyphen), to(special, hyphen), to(digit, numHyphen), try('-', hyphenFirst))
	automaton[numHyphenFirst] = attempts(to(letter, numHyphen), to(digit, hyphenDigits))
	automaton[numHyphen] = compound(NumHWord, to(alnum, numHyphen), to(special, numHyphen), try('-', numHyphenFirst))
	automaton[hyphenDigits] = attempts(to(digit, hyphenDigits), to(letter, numHyphen), to(special, numHyphen))
	automaton[parts] = []rule{{class: end, do: rerun, to: base}, to(ascii, asciiPart), to(letter, wordPart), try(digit, digitsPart),
		try('-', partsHyphen), {do: rerun, to: base}}
	automaton[partsHyphen] = attempts(found(alnum, Blank, parts), found(special, Blank, parts))
	automaton[wordPart] = part(HWordPart, to(letter, wordPart), to(special, wordPart), to(digit, numPart))
	automaton[asciiPart] = part(HWordAsciiPart, to(ascii, asciiPart), to(letter, wordPart), to(special, wordPart), to(digit, numPart))
	automaton[numPart] = part(HWordNumPart, to(alnum, numPart), to(special, numPart))
	automaton[digitsPart] = attempts(to(digit, stay), forget(letter, numPart), forget(special, numPart))
}
