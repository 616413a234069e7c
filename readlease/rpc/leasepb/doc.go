// Package leasepb is generated from lease.proto.
package leasepb

//go:generate protoc --go_out=. --go_opt=paths=source_relative --go-grpc_out=. --go-grpc_opt=paths=source_relative lease.proto
