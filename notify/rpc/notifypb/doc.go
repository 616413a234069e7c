// Package notifypb holds the messages of notify/rpc, generated from listen.proto.
package notifypb

//go:generate protoc --go_out=. --go_opt=paths=source_relative --go-grpc_out=. --go-grpc_opt=paths=source_relative listen.proto
