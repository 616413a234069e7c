// Package tsparser divides texts into tokens as PostgreSQL's default parser of full-text search does: words, numbers, mail
// addresses, URLs, files, tags and what lies between them.
//
// A Parser is an automaton with a stack of positions to return to. A rule that tries something pushes the position; what
// fails pops it, and the next rule of the state that pushed is tried. What has failed at a position is not tried there again, so
// that the time is linear but for nested attempts of different kinds.
//
// Invariant: the tokens of a text, put together, are the text, except that parts of a compound (the words of a hyphenated
// word, the host and path of a URL) follow the compound.
package tsparser
