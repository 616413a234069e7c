package server

import (
	"strings"
	"syscall"
	"testing"
)

func TestListenErrorNamesTheFlag(t *testing.T) {
	for _, flag := range []string{"--listen", "--rpc-listen", "--admin-listen"} {
		err := &ListenError{Flag: flag, Addr: "127.0.0.1:7000", Err: syscall.EADDRINUSE}
		if !strings.Contains(err.Error(), "give "+flag+" another port") {
			t.Errorf("%s: %v", flag, err)
		}
	}
}
