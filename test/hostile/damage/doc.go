// Package damage runs percodb on damaged data directories and on full disks. Its tests judge one rule: after
// damage the server either starts with everything it has acknowledged, or refuses, with a message that says
// what to do and without having changed a byte; a read may fail with an error, but never return other rows. On
// a full disk writes fail with 53100, reads go on, and writes go on by themselves when there is room.
//
// The short runs are part of go test; HACKING.md has the long ones. Full disks are tmpfs mounts and need root.
package damage
