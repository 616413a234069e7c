package pgwire

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/percodb/percodb/auth"
	"github.com/percodb/percodb/sql/pgerror"
)

var _ auth.Conversation = (*saslConversation)(nil)

// saslConversation exchanges SASL messages with a client that has yet to be let in.
type saslConversation struct{ c *Conn }

// maxSASLBytes is the size of the longest SASL message, as in PostgreSQL.
const maxSASLBytes = 1024

// Begin implements auth.Conversation.
func (s *saslConversation) Begin(mechanisms []string) (string, []byte, error) {
	m, err := s.exchange(&pgproto3.AuthenticationSASL{AuthMechanisms: mechanisms}, pgproto3.AuthTypeSASL)
	if err != nil {
		return "", nil, err
	}
	initial, ok := m.(*pgproto3.SASLInitialResponse)
	if !ok {
		return "", nil, unexpected(m)
	}
	if initial.Data != nil {
		return initial.AuthMechanism, initial.Data, nil
	}
	message, err := s.Challenge(nil) // The client has left its first message for later.
	return initial.AuthMechanism, message, err
}

// Challenge implements auth.Conversation.
func (s *saslConversation) Challenge(message []byte) ([]byte, error) {
	m, err := s.exchange(&pgproto3.AuthenticationSASLContinue{Data: message}, pgproto3.AuthTypeSASLContinue)
	if err != nil {
		return nil, err
	}
	response, ok := m.(*pgproto3.SASLResponse)
	if !ok {
		return nil, unexpected(m)
	}
	return response.Data, nil
}

// Finish implements auth.Conversation.
func (s *saslConversation) Finish(message []byte) error {
	s.c.w.send(&pgproto3.AuthenticationSASLFinal{Data: message})
	return s.c.w.Err()
}

func unexpected(m pgproto3.FrontendMessage) error {
	return pgerror.New(pgerror.ProtocolViolation, "expected SASL response, got %s", strings.TrimPrefix(fmt.Sprintf("%T", m), "*pgproto3."))
}

// exchange sends a message and receives the answer, which is read as of this kind of authentication.
func (s *saslConversation) exchange(m pgproto3.BackendMessage, kind uint32) (pgproto3.FrontendMessage, error) {
	s.c.w.send(m)
	if err := s.c.w.Send(); err != nil {
		return nil, &connectionError{err}
	}
	if err := s.c.backend.SetAuthType(kind); err != nil {
		return nil, err
	}
	s.c.backend.SetMaxBodyLen(maxSASLBytes)
	answer, err := s.c.backend.Receive()
	switch {
	case err == nil:
		s.c.heard()
		return answer, nil
	case errors.Is(err, os.ErrDeadlineExceeded) && !s.c.draining.Load():
		// An error shows when the message is written.
		_ = s.c.net.SetWriteDeadline(time.Now().Add(time.Second))
		return nil, errLoginTimeout()
	}
	return nil, protocolError(err)
}
