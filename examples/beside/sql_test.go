package beside_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	_ "modernc.org/sqlite"

	"relock/relocktest"
	"relock/rlock"
)

// CREATE TABLE balances (account TEXT PRIMARY KEY, amount INTEGER, token INTEGER NOT NULL)

var errStale = errors.New("a later owner has written")

// setBalance writes unless a later owner of the lock has written before. The row remembers the
// highest token that it has seen.
func setBalance(ctx context.Context, db *sql.DB, account string, amount, token int64) error {
	result, err := db.ExecContext(ctx,
		`UPDATE balances SET amount = $1, token = $2 WHERE account = $3 AND token <= $2`, amount, token, account)
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		return errors.Join(errStale, err)
	}
	return nil
}

// deposit reads and writes under the lock, with the lock's token.
func deposit(ctx context.Context, session *rlock.Session, db *sql.DB, account string, amount int64) error {
	section, hold, err := rlock.New(session, "balance:"+account, rlock.Fenced()).Lock(ctx)
	if err != nil {
		return err
	}
	defer hold.Unlock()
	var balance int64
	err = db.QueryRowContext(section, `SELECT amount FROM balances WHERE account = $1`, account).Scan(&balance)
	if err != nil {
		return err
	}
	return setBalance(section, db, account, balance+amount, hold.Token())
}

// A table refuses an owner that was paused past its lease.
func Example_sql() {
	session, _, done := relocktest.Open()
	defer done()
	ctx := context.Background()
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()
	db.SetMaxOpenConns(1) // each connection to :memory: is a database of its own
	_, err = db.Exec(`CREATE TABLE balances (account TEXT PRIMARY KEY, amount INTEGER, token INTEGER NOT NULL);
		INSERT INTO balances VALUES ('ada', 100, 0)`)
	if err != nil {
		fmt.Println(err)
		return
	}

	m := rlock.New(session, "balance:ada", rlock.Fenced())
	_, paused, _ := m.Lock(ctx)
	_, _ = m.ForceUnlock(ctx) // as if the process had been paused until its lease was over
	fmt.Println("next owner:", deposit(ctx, session, db, "ada", 50))
	fmt.Println("paused owner:", setBalance(ctx, db, "ada", 0, paused.Token()))
	var balance int64
	fmt.Println(db.QueryRow(`SELECT amount FROM balances`).Scan(&balance), balance)
	// Output:
	// next owner: <nil>
	// paused owner: a later owner has written
	// <nil> 150
}
