// Package journal records what a server has acknowledged, outside of the server. The check uses it to find lost
// acknowledged transactions, and refused ones that are present.
//
//	run ─► Writer.Append ─► one line each ─► DIR/<run>-<start>.journal ─► fsync every 10 ms
//	check ◄─ Read(DIR) ◄────────────────────────────┘
//
// Invariants:
//
//  1. A record is appended after the server's acknowledgement and before the driver acts on it. Append
//     returns after write(2): a driver that is killed loses no record it was given; a machine that goes
//     down loses those of the last 10 ms at most.
//  2. Files are only appended to, and every run writes one of its own. A line carries its checksum: a
//     line that was cut off ends its file without complaint, anything else that does not fit is an error.
//  3. A file whose driver was not killed ends with End. Without it, a driver may have had an
//     acknowledgement for each of its connections which it could not write down. Which tape entries it had
//     on their way is written down before they are sent.
//
// To be useful after a crash of the server's machine, DIR must be on another one.
package journal
