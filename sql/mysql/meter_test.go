package mysql_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/percodb/percodb/internal/memory"
	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/mysql"
)

// Goal: a long text draws the memory of its trees before TiDB's parser makes them, and a cancel ends that.
func TestLongMySQLTexts(t *testing.T) {
	text := "INSERT INTO t VALUES (1, 'a')" + strings.Repeat(", (2, 'b')", 30_000)
	account := memory.NewAccount(memory.NewPool("statements", 20<<20), 0)
	m := sql.NewMeter(&account)
	next := func() error {
		lexer := mysql.NewLexer(m)
		lexer.Reset(text)
		_, _, err := lexer.Next()
		return err
	}
	var exceeded *memory.ExceededError
	if err := next(); !errors.As(err, &exceeded) {
		t.Errorf("with little memory: %v", err)
	}
	if m.Release(0); account.Used() != 0 {
		t.Errorf("%d bytes are left over", account.Used())
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	m.Begin(ctx)
	if err := next(); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	m = sql.NewMeter(nil)
	if err := next(); err != nil || m.Drawn() < 180_000*256*9/10 {
		t.Errorf("%v, %d bytes are drawn", err, m.Drawn())
	}
}
