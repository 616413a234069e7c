package pgwire

import (
	"errors"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
)

// A client that listens is sent notifications while it waits for its next message. A sender's goroutine ends the read of the
// connection with a deadline that has passed; the connection's own goroutine sends what has arrived and reads on. A connection
// that does not listen pays nothing for that.

// receiveOrNotify reads a message. Meanwhile it sends notifications, if the client waits outside of a transaction. deadline is
// the read's own; zero: there is none.
func (c *Conn) receiveOrNotify(deadline time.Time) (pgproto3.FrontendMessage, error) {
	if !c.waiting || !c.session.Listening() {
		return c.backend.Receive()
	}
	for {
		if !c.session.AwaitNotifications(c.wake) {
			if err := c.notify(); err != nil {
				return nil, &connectionError{err}
			}
			if err := c.w.Send(); err != nil {
				return nil, &connectionError{err}
			}
			continue
		}
		m, err := c.backend.Receive()
		woken := c.session.StopAwaitingNotifications()
		if woken {
			// An error shows at once, as one of the read.
			_ = c.net.SetReadDeadline(deadline)
			if c.draining.Load() {
				c.interruptRead() // The deadline may have replaced Shutdown's.
			}
		}
		if !woken || !errors.Is(err, os.ErrDeadlineExceeded) || c.draining.Load() {
			return m, err
		}
	}
}

// interruptRead ends the read of a message, now or when it begins.
func (c *Conn) interruptRead() { _ = c.net.SetReadDeadline(past) }

// notify sends the notifications that have arrived, if the session may be sent them now.
func (c *Conn) notify() error {
	messages := c.session.TakeNotifications()
	for i := range messages {
		if err := c.w.notification(&messages[i]); err != nil {
			return err
		}
	}
	return nil
}
