package pgwire

import (
	"cmp"
	"net"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/percodb/percodb/session/settings"
	"github.com/percodb/percodb/sql/pgerror"
)

// DefaultKeepAlive is the time without traffic after which a client's TCP connection is probed, and the time between two probes.
const DefaultKeepAlive = 30 * time.Second

// keepAlive applies the settings of keepalives.
func (c *Conn) keepAlive(k settings.KeepAlive) {
	err := c.tcp.SetKeepAliveConfig(net.KeepAliveConfig{
		Enable: true, Idle: cmp.Or(k.Idle, DefaultKeepAlive), Interval: cmp.Or(k.Interval, DefaultKeepAlive), Count: k.Count,
	})
	if err != nil {
		c.log.Warn("keepalives of a client's connection", "err", err)
	}
}

// handleWatched is handle with a check in each interval that the client is still connected; if it is not, the statement is canceled.
func (c *Conn) handleWatched(m pgproto3.FrontendMessage, interval time.Duration) error {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
			}
			if hungUp(c.net) {
				c.Terminate(pgerror.New(pgerror.ConnectionFailure, "connection to client lost"))
				c.session.Terminate()
				return
			}
		}
	}()
	defer func() {
		close(done)
		<-ended
	}()
	return c.handle(m)
}
