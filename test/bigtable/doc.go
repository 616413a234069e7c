// Package bigtable tests percodb over Google's Bigtable as processes: an emulator, and SQL processes that are killed and started
// again. It has no code but tests.
package bigtable
