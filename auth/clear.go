package auth

import (
	"context"

	"github.com/percodb/percodb/auth/verifier"
	"github.com/percodb/percodb/sql/pgerror"
)

// AdmitPassword decides as Admit does on a client that has sent its password in clear, over TLS. The password is needed whatever the
// method of the rule. One password is checked at a time, and few of one address wait: that takes milliseconds of a processor.
func (g *Gate) AdmitPassword(ctx context.Context, c *Client, password string) (*Rule, error) {
	l := login{gate: g, ctx: ctx, Client: c}
	rule, certErr := l.match()
	if rule == nil {
		return nil, certErr
	}
	leave, err := g.failures.enter(c.Address())
	if err != nil {
		return nil, err
	}
	defer leave()
	if err := l.clear(password); err != nil {
		return nil, l.failedAs(Password, rule, err)
	}
	if certErr != nil {
		return nil, l.failed(rule, certErr)
	}
	return rule, nil
}

// clear checks a password. What does not depend on it takes as long for every user.
func (l *login) clear(password string) error {
	if err := l.lookUp(); err != nil {
		return err
	}
	secret, err := l.gate.opts.Roles.Secret(l.ctx)
	if err != nil {
		return err
	}
	stored, doomed := verifierOf(secret, l.User, l.role)
	if stored.Iterations > verifier.MaxIterations {
		stored, doomed = mockVerifier(secret, l.User), refusal("the verifier of user %q has more than %d iterations", l.User, verifier.MaxIterations)
	}
	if err := l.gate.failures.wait(l.ctx, l.Address()); err != nil {
		return err
	}
	select {
	case l.gate.deriving <- struct{}{}:
	case <-l.ctx.Done():
		return pgerror.New(pgerror.QueryCanceled, "canceling authentication due to timeout")
	}
	matches := stored.Matches(password)
	<-l.gate.deriving
	if doomed == nil && !matches {
		doomed = refusal("the password is wrong")
	}
	if doomed != nil {
		l.gate.failures.add(l.Address())
	}
	return doomed
}
