package recipes_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"relock/election"
	"relock/relocktest"
	"relock/rlock"
)

func TestImportStopsWhenItsLockIsLost(t *testing.T) {
	redis := relocktest.Start(t)
	m := rlock.New(redis.Session(t, rlock.Config{}), "import")

	inserted := 0
	err := load(t.Context(), m, []string{"a", "b"}, func(ctx context.Context, row string) error {
		inserted++
		redis.Lose(t, m)
		<-ctx.Done()
		return nil
	})
	if !errors.Is(err, rlock.ErrLost) || inserted != 1 {
		t.Errorf("%d rows, error %v; want 1 and ErrLost", inserted, err)
	}
}

func TestNewsletterGoesOutEveryMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // a minute passes at once in here
		m := rlock.New(relocktest.Session(t), "newsletter")
		sent := 0
		for range 3 {
			err := oncePer(t.Context(), 55*time.Second, m, func(context.Context) error { sent++; return nil })
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(30 * time.Second)
		}
		if sent != 2 {
			t.Errorf("sent %d times in a minute and a half, want 2", sent)
		}
	})
}

// store is application code. It depends on an interface, so that its tests need no Redis.
type store struct{ lock relocktest.Doer }

func (s store) save(ctx context.Context, write func() error) error {
	return s.lock.Do(ctx, func(context.Context) error { return write() })
}

func TestNothingIsWrittenWithoutTheLock(t *testing.T) {
	var lock relocktest.Fake
	lock.Refuse(rlock.ErrNotAcquired)
	err := store{&lock}.save(t.Context(), func() error { t.Error("it was written"); return nil })
	if !errors.Is(err, rlock.ErrNotAcquired) {
		t.Errorf("error %v, want ErrNotAcquired", err)
	}
}

// server is application code that only the leader may write with.
type server struct{ candidate relocktest.Candidate }

func (s *server) run(ctx context.Context, address string) error {
	return s.candidate.Run(ctx, address, election.Callbacks{})
}

func (s *server) write() error {
	if !s.candidate.IsLeader() {
		return errors.New("another server leads")
	}
	return nil
}

func TestStandbyDoesNotWrite(t *testing.T) {
	var e relocktest.FakeElection
	e.Elect(election.Leader{Value: "10.0.0.2:8080"})
	s := &server{candidate: &e}
	go s.run(t.Context(), "10.0.0.1:8080")
	if err := e.AwaitCandidates(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if err := s.write(); err == nil {
		t.Error("it writes beside another leader")
	}
}
