// Package kvpb holds the messages of kv/rpc, generated from kv.proto, gc.proto and notify.proto.
package kvpb

//go:generate protoc --go_out=. --go_opt=paths=source_relative --go-grpc_out=. --go-grpc_opt=paths=source_relative kv.proto gc.proto notify.proto
