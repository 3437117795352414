package relocktest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"relock/election"
	"relock/relocktest"
	"relock/rlock"
)

// A Run on the context of its own leadership leads with that, as code finds that has a candidate of its own inside of
// another's; its end leaves the leadership to the one around it, and a loss is one of both. One that hides its owner waits.
func TestFakeElectionRunsInside(t *testing.T) {
	for what, start := range map[string]func(t *testing.T) (e relocktest.Candidate, lose func()){
		"fake": func(*testing.T) (relocktest.Candidate, func()) {
			f := new(relocktest.FakeElection)
			return f, func() { f.Lose() }
		},
		"real": func(t *testing.T) (relocktest.Candidate, func()) {
			r := relocktest.Start(t)
			e := election.New(r.Session(t, rlock.Config{}), "x")
			return e, func() { r.LoseLeadership(t, e) }
		},
	} {
		t.Run(what, func(t *testing.T) {
			e, lose := start(t)
			ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
			defer stop()
			var second election.Leader
			err := e.Run(ctx, "outer", election.Callbacks{OnStartedLeading: func(leading context.Context) {
				hidden, end := context.WithTimeout(rlock.WithoutOwner(leading), 20*time.Millisecond)
				defer end()
				err := e.Run(hidden, "hidden", election.Callbacks{
					OnStartedLeading: func(context.Context) { t.Error("one that hides its owner leads as well") }})
				if err != nil {
					t.Error("hidden:", err)
				}

				inner, end := context.WithCancel(leading)
				defer end()
				err = e.Run(inner, "inner", election.Callbacks{OnNewLeader: func(l election.Leader) {
					if l.Value == "inner" { // it leads, and has said so
						second = l
						end()
					}
				}})
				if err != nil || second.Term != 1 || leading.Err() != nil || !e.IsLeader() {
					t.Errorf("inside: %v, seen as %v; then the outer leadership: %v, IsLeader %v", err, second, leading.Err(), e.IsLeader())
				}

				err = e.Run(leading, "again", election.Callbacks{OnStartedLeading: func(leading context.Context) {
					lose()
					<-leading.Done()
				}})
				if !errors.Is(err, rlock.ErrLost) || !errors.Is(context.Cause(leading), rlock.ErrLost) || ctx.Err() != nil {
					t.Errorf("a loss: %v inside, and the outer leadership ends with %v", err, context.Cause(leading))
				}
			}})
			if !errors.Is(err, rlock.ErrLost) {
				t.Error("the outer Run:", err)
			}
		})
	}
}

// What has begun inside of a leadership may outlast the Run that it began in: the leadership ends with the last of them.
func TestFakeElectionThatOutlastsTheRunAround(t *testing.T) {
	for name, e := range map[string]relocktest.Candidate{"fake": new(relocktest.FakeElection), "real": election.New(relocktest.Session(t), "x")} {
		ctx, stop := context.WithCancel(t.Context())
		started, returned := make(chan struct{}), make(chan error, 1)
		last, end := context.WithTimeout(t.Context(), 30*time.Second)
		must(t, e.Run(ctx, "outer", election.Callbacks{OnStartedLeading: func(leading context.Context) {
			inner, cancel := context.WithCancel(context.WithoutCancel(leading))
			context.AfterFunc(last, cancel)
			go func() {
				returned <- e.Run(inner, "inner", election.Callbacks{OnStartedLeading: func(context.Context) { close(started) }})
			}()
			select {
			case <-started:
			case <-last.Done():
				t.Error(name, ": it does not lead inside")
			}
			stop()
		}}))
		if !e.IsLeader() {
			t.Error(name, ": the leadership has ended with the Run around")
		}
		end()
		must(t, <-returned)
		if e.IsLeader() {
			t.Error(name, ": it leads although all have resigned")
		}
		stop()
	}
}
