package locktest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"relock/locktrace"
	"relock/rlock"
)

// A Ledger has the hooks of a Trace and checks that each start has exactly one end, which gets
// the context that its start has returned. It counts what happened.
type Ledger struct {
	mu       sync.Mutex
	visit    func() // what each hook does besides
	next     int
	open     map[string]map[int]bool // the entries of each kind that have begun and not ended
	wrong    []string
	counts   map[string]int // of what ended, by kind and outcome, and of all else
	waits    map[int]bool   // acquires that wait
	listens  int            // subscriptions that are connected
	history  []string
	recorded bool
}

type ledgerKey struct{ kind string }

// Trace returns the hooks.
func (l *Ledger) Trace() *rlock.Trace {
	l.open, l.counts, l.waits = map[string]map[int]bool{}, map[string]int{}, map[int]bool{}
	return &rlock.Trace{
		AcquireStart: func(ctx context.Context, e locktrace.AcquireStart) context.Context {
			return l.begin(ctx, "acquire", "acquire %s %s try %v", e.Kind, e.Name, e.Try)
		},
		Waiting: func(ctx context.Context, e locktrace.Waiting) { l.wait(ctx, e) },
		AcquireEnd: func(ctx context.Context, e locktrace.AcquireEnd) {
			l.acquired(ctx, e)
			l.end(ctx, "acquire", string(e.Outcome), "%s %s %s nested %v", e.Outcome, e.Kind, e.Grant, e.Nested)
		},
		HoldStart: func(ctx context.Context, e locktrace.HoldStart) context.Context {
			return l.begin(ctx, "hold", "hold %s %s", e.Kind, e.Name)
		},
		HoldEnd: func(ctx context.Context, e locktrace.HoldEnd) {
			l.end(ctx, "hold", string(e.Reason), "%s %s", e.Reason, e.Kind)
		},
		ReleaseStart: func(ctx context.Context, e locktrace.ReleaseStart) context.Context {
			if ctx.Value(ledgerKey{"hold"}) == nil {
				l.complain("a release without the context of its hold")
			}
			return l.begin(ctx, "release", "release %s", e.Kind)
		},
		ReleaseEnd: func(ctx context.Context, e locktrace.ReleaseEnd) {
			l.end(ctx, "release", fmt.Sprint(e.Err), "released %v", e.Err)
		},
		Attempt:      func(e locktrace.Attempt) { l.event("attempt", fmt.Sprint(e.Granted), e.Err) },
		HandedOver:   func(e locktrace.HandedOver) { l.event("handed over", e.Kind, nil) },
		Lost:         func(e locktrace.Lost) { l.event("lost", e.Reason, nil) },
		Renewed:      func(e locktrace.Renewed) { l.event("renewed", fmt.Sprint(e.Claims), e.Err) },
		Subscription: l.subscription,
	}
}

// Count returns how often something happened, such as "hold lost" or "acquire timeout".
func (l *Ledger) Count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts[what]
}

// Take returns what was told since the last call: calls and holds, in order.
func (l *Ledger) Take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.recorded = true
	told := l.history
	l.history = nil
	return told
}

// Gauges returns how many calls, waiters, holds, releases and subscriptions have begun and not
// ended.
func (l *Ledger) Gauges() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return fmt.Sprintf("acquiring %d, waiting %d, holding %d, releasing %d, listening %d",
		len(l.open["acquire"]), len(l.waits), len(l.open["hold"]), len(l.open["release"]), l.listens)
}

// AllZero is what Gauges returns when everything has ended.
const AllZero = "acquiring 0, waiting 0, holding 0, releasing 0, listening 0"

// Check fails the test if some end was missing, came twice, or had a wrong context.
func (l *Ledger) Check(t testing.TB) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.wrong[:min(len(l.wrong), 10)] {
		t.Error(w)
	}
	var all []string
	for _, k := range slices.Sorted(maps.Keys(l.counts)) {
		all = append(all, fmt.Sprintf("%s %d", k, l.counts[k]))
	}
	t.Logf("%s", strings.Join(all, ", "))
}

func (l *Ledger) complain(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wrong = append(l.wrong, fmt.Sprintf(format, args...))
}

// Visit has each hook call fn from now on.
func (l *Ledger) Visit(fn func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.visit = fn
}

func (l *Ledger) look() {
	l.mu.Lock()
	fn := l.visit
	l.mu.Unlock()
	if fn != nil {
		fn()
	}
}

func (l *Ledger) note(format string, args ...any) {
	if l.recorded {
		l.history = append(l.history, fmt.Sprintf(format, args...))
	}
}

func (l *Ledger) begin(ctx context.Context, kind, format string, args ...any) context.Context {
	l.look()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next++
	if l.open[kind] == nil {
		l.open[kind] = map[int]bool{}
	}
	l.open[kind][l.next] = true
	l.note(format, args...)
	return context.WithValue(ctx, ledgerKey{kind}, l.next)
}

func (l *Ledger) end(ctx context.Context, kind, outcome, format string, args ...any) {
	l.look()
	l.mu.Lock()
	defer l.mu.Unlock()
	id, _ := ctx.Value(ledgerKey{kind}).(int)
	if !l.open[kind][id] {
		l.wrong = append(l.wrong, fmt.Sprintf("%s %d has ended (%s) but is not open", kind, id, outcome))
	}
	delete(l.open[kind], id)
	l.counts[kind+" "+outcome]++
	l.note(format, args...)
}

func (l *Ledger) wait(ctx context.Context, e locktrace.Waiting) {
	l.look()
	l.mu.Lock()
	defer l.mu.Unlock()
	id, _ := ctx.Value(ledgerKey{"acquire"}).(int)
	if !l.open["acquire"][id] || l.waits[id] || e.Queue < 1 {
		l.wrong = append(l.wrong, fmt.Sprintf("acquire %d waits: open %v, waits already %v, queue %d", id, l.open["acquire"][id], l.waits[id], e.Queue))
	}
	l.waits[id] = true
	l.counts["waiting"]++
	l.note("waiting")
}

func (l *Ledger) acquired(ctx context.Context, e locktrace.AcquireEnd) {
	l.mu.Lock()
	defer l.mu.Unlock()
	id, _ := ctx.Value(ledgerKey{"acquire"}).(int)
	if l.waits[id] != e.Waited {
		l.wrong = append(l.wrong, fmt.Sprintf("acquire %d: Waited %v, Waiting called %v", id, e.Waited, l.waits[id]))
	}
	delete(l.waits, id)
	if ok := e.Outcome == locktrace.OutcomeAcquired; ok != (e.Err == nil) || ok != (e.Grant != "") || ok != (e.Holds > 0) {
		l.wrong = append(l.wrong, fmt.Sprintf("acquire %d: %+v", id, e))
	}
	if e.Err == nil {
		l.counts["grant "+string(e.Grant)]++
	}
}

func (l *Ledger) event(kind, what string, err error) {
	l.look()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts[kind]++
	if err == nil {
		l.counts[kind+" "+what]++
	}
}

func (l *Ledger) subscription(e locktrace.Subscription) {
	l.look()
	l.mu.Lock()
	defer l.mu.Unlock()
	switch e.State {
	case locktrace.SubscriptionConnected:
		l.listens++
	case locktrace.SubscriptionLost, locktrace.SubscriptionClosed:
		l.listens--
	}
	l.counts["subscription "+string(e.State)]++
}
