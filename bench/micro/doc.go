// Package micro measures percodb's rooms from the storage engine up against a bare Pebble that holds
// the same rows with the same settings, in the same run on the same machine:
//
//	go test ./bench/micro -run - -bench . -benchtime 2s
//
// What counts are the ratios of cpu-µs/op within one run: processor time of the whole process,
// background work included. ns/op is latency times the number of workers, and depends on the disk.
// Every benchmark has a sub-benchmark "raw", which is the bare Pebble.
//
// The stores (harness.go), the ways to reach them (layers.go) and the turns in which ways are compared
// (turns.go) also serve `percodb bench kv`.
package micro
