// Package gcpb holds the messages of gc/rpc, generated from reports.proto.
package gcpb

//go:generate protoc --go_out=. --go_opt=paths=source_relative --go-grpc_out=. --go-grpc_opt=paths=source_relative reports.proto
