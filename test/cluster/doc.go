// Package cluster tests percodb as several processes: an oracle, stores and SQL processes that are stopped,
// killed and started again while clients look. It has no code but tests.
package cluster
