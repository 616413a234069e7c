// Package tsopb holds the messages of tso/rpc, generated from tso.proto.
package tsopb

//go:generate protoc --go_out=. --go_opt=paths=source_relative --go-grpc_out=. --go-grpc_opt=paths=source_relative tso.proto
