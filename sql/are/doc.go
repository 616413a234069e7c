// Package are matches PostgreSQL's regular expressions: advanced (ARE), extended and basic ones.
//
// Which match is chosen follows the rules of PostgreSQL's documentation (9.7.3.5): the match that begins first; of those, the longest
// or the shortest by the preference of the whole expression; within it each part takes as much or as little as its own preference says,
// earlier parts first. The same steps lead there:
//
//   - The parser divides an expression into a tree ([node]) whose leaves need no look inside: they contain neither captures nor back
//     references.
//   - Each node is a fragment of one nondeterministic automaton ([program]). A lazily built deterministic one ([dfa]) answers where the
//     longest or shortest match of a fragment from a position ends, in time linear in the text.
//   - With the whole match found, dissection divides it among the nodes, each verified by its automaton. Without back references it
//     cannot fail; with them it backtracks.
//
// The automata over-approximate back references by what they refer to, so that a match is verified in the dissection alone.
//
// Invariants: a Regexp's tree and program do not change after Compile; its automata do, so a Regexp serves one goroutine at a time.
// Matching calls the caller's poll regularly, and the automata are dropped when they exceed maxCacheBytes.
package are
