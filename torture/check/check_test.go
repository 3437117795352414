package check_test

import (
	"strings"
	"testing"
	"time"

	"relock/torture/check"
	"relock/torture/nemesis"
	"relock/torture/oracle"
	"relock/torture/worker"
)

const s = time.Second

// visit is a section of the first lock that stood from in to safe.
func visit(in, safe time.Duration) oracle.Entry {
	return oracle.Entry{
		Kind: oracle.Section, Outcome: oracle.Released, N: 1,
		Times: oracle.Times{Call: in, Got: in, In: in, Safe: safe, Seen: safe, End: safe, Over: safe},
	}
}

// with returns e changed.
func with(e oracle.Entry, change func(*oracle.Entry)) oracle.Entry {
	change(&e)
	return e
}

func lost(e *oracle.Entry) { e.Outcome = oracle.Lost }
func late(e *oracle.Entry) { e.Outcome, e.Flags, e.Over = oracle.Lost, oracle.Late, e.End+3*s }
func outage(e *oracle.Entry) {
	e.Flags, e.Over = e.Flags|oracle.Outage, e.End+s
}
func read(e *oracle.Entry)  { e.Flags |= oracle.Read }
func named(e *oracle.Entry) { e.Owner = 1 }
func token(n int64) func(*oracle.Entry) {
	return func(e *oracle.Entry) { e.Token = n }
}
func count(op oracle.Op, n int64, o oracle.Outcome) oracle.Entry {
	return oracle.Entry{Kind: oracle.Count, Op: op, N: n, Outcome: o, Times: oracle.Times{Call: s, Got: s}}
}

// failing has each of the servers fail from 11 s to 14 s.
func failing(servers ...string) (all []nemesis.Fault) {
	for _, addr := range servers {
		all = append(all, nemesis.Fault{Worker: nemesis.All, Servers: []string{addr}, Begin: 11 * s, End: 14 * s})
	}
	return all
}

// checks are what two processes, a and b, wrote down of one lock, and what is found in it.
var checks = []struct {
	name   string
	kind   worker.Kind
	a, b   []oracle.Entry
	faults []nemesis.Fault
	want   string // in the first violation; "" for none
}{
	{"one after another", worker.Mutex, []oracle.Entry{visit(10*s, 11*s)}, []oracle.Entry{visit(11*s, 12*s)}, nil, ""},
	{"at the same time", worker.Mutex, []oracle.Entry{visit(10*s, 12*s)}, []oracle.Entry{visit(11*s, 12*s)}, nil, "exclusion"},
	{"one owner", worker.Mutex, []oracle.Entry{with(visit(10*s, 12*s), named)}, []oracle.Entry{with(visit(11*s, 12*s), named)}, nil, ""},
	{"readers", worker.RW, []oracle.Entry{with(visit(10*s, 12*s), read)}, []oracle.Entry{with(visit(11*s, 12*s), read)}, nil, ""},
	{"a reader and a writer", worker.RW, []oracle.Entry{with(visit(10*s, 12*s), read)}, []oracle.Entry{visit(11*s, 12*s)}, nil, "exclusion"},
	{"too many permits", worker.Semaphore, []oracle.Entry{visit(10*s, 12*s), visit(10*s, 12*s)}, []oracle.Entry{visit(11*s, 12*s)}, nil, "exclusion"},
	{"a context that ended late", worker.Mutex, []oracle.Entry{with(visit(10*s, 11*s), func(e *oracle.Entry) { e.Seen = 13 * s })}, []oracle.Entry{visit(12*s, 13*s)}, nil, "exclusion by context"},
	{"the same, of a process that did not run", worker.Mutex, []oracle.Entry{with(visit(10*s, 11*s), func(e *oracle.Entry) { e.Seen = 13 * s })}, []oracle.Entry{visit(12*s, 13*s)},
		[]nemesis.Fault{{Worker: 0, Pause: true, Begin: 11 * s, End: 13 * s}}, ""},
	{"a token twice", worker.Fenced, []oracle.Entry{with(visit(10*s, 11*s), token(7))}, []oracle.Entry{with(visit(11*s, 12*s), token(7))}, nil, "tokens"},
	{"tokens in order", worker.Fenced, []oracle.Entry{with(visit(10*s, 11*s), token(7))}, []oracle.Entry{with(visit(11*s, 12*s), token(9))}, nil, ""},
	{"a waiter passed over", worker.Fair,
		[]oracle.Entry{with(visit(15*s, 16*s), func(e *oracle.Entry) { e.Call = 10 * s })},
		[]oracle.Entry{with(visit(13*s, 14*s), func(e *oracle.Entry) { e.Call = 12 * s })}, nil, "fair order"},
	{"a waiter passed over that waited for other locks", worker.Fair,
		[]oracle.Entry{with(visit(15*s, 16*s), func(e *oracle.Entry) { e.Call, e.Flags = 10*s, oracle.Joint })},
		[]oracle.Entry{with(visit(13*s, 14*s), func(e *oracle.Entry) { e.Call = 12 * s })}, nil, ""},
	{"lost for no reason", worker.Mutex, []oracle.Entry{with(visit(10*s, 14*s), lost)}, nil, nil, "no loss"},
	{"lost in a fault", worker.Mutex, []oracle.Entry{with(visit(10*s, 14*s), lost)}, nil, []nemesis.Fault{{Worker: 0, Begin: 11 * s, End: 14 * s}}, ""},
	{"lost in another's fault", worker.Mutex, []oracle.Entry{with(visit(10*s, 14*s), lost)}, nil, []nemesis.Fault{{Worker: 1, Begin: 11 * s, End: 14 * s}}, "no loss"},
	{"a quorum lost when two of five servers failed", worker.Quorum, []oracle.Entry{with(visit(10*s, 14*s), lost)}, nil, failing("1", "2"), "no loss"},
	{"a quorum lost when three of five servers failed", worker.Quorum, []oracle.Entry{with(visit(10*s, 14*s), lost)}, nil, failing("1", "2", "3"), ""},
	{"a release that did not get through", worker.Mutex, []oracle.Entry{with(visit(10*s, 14*s), late)}, nil, []nemesis.Fault{{Worker: nemesis.All, Begin: 14 * s, End: 16 * s}}, ""},
	{"lost before the release", worker.Mutex, []oracle.Entry{with(visit(10*s, 14*s), late)}, nil, []nemesis.Fault{{Worker: nemesis.All, Begin: s, End: 2 * s}}, "no loss"},
	{"not got afterwards", worker.Mutex, []oracle.Entry{{Kind: oracle.Probe, Outcome: oracle.Refused, Times: oracle.Times{Call: s, Got: 40 * s}}}, nil, nil, "progress"},
	{"a sum", worker.Counter, []oracle.Entry{count(oracle.OpAcquire, 3, oracle.Done), count(oracle.OpRelease, 3, oracle.Unknown)}, nil, nil, ""},
	{"a wrong sum", worker.Counter, []oracle.Entry{count(oracle.OpAcquire, 3, oracle.Refused)}, nil, nil, "counter sum"},
	{"a call without end", worker.Mutex, []oracle.Entry{with(visit(40*s, 41*s), func(e *oracle.Entry) { e.Call = s })}, nil, nil, "calls end"},
	{"an outage for no reason", worker.Mutex, []oracle.Entry{with(visit(10*s, 11*s), outage)}, nil, []nemesis.Fault{{Worker: 1, Begin: 11 * s, End: 12 * s}}, "no outage"},
	{"an outage in a fault", worker.Mutex, []oracle.Entry{with(visit(10*s, 11*s), outage)}, nil, []nemesis.Fault{{Worker: 0, Begin: 11 * s, End: 12 * s}}, ""},
	{"a counter's outage for no reason", worker.Counter, []oracle.Entry{with(count(oracle.OpAcquire, 1, oracle.Done), outage)}, nil, nil, "no outage"},
	{"a surprise", worker.Mutex, []oracle.Entry{{Kind: oracle.Odd}}, nil, nil, "surprises"},
}

// waited is a section that stood after a wait from from to to.
func waited(from, to time.Duration) []oracle.Entry {
	return []oracle.Entry{with(visit(to, to+s/1000), func(e *oracle.Entry) { e.Call = from })}
}

// The costs are 1 s for one session, 3 s for several, 500 ms for a look, 500 ms to recover; the lease is 4 s,
// and 2 s need no cause.
var waits = []struct {
	name   string
	a, b   []oracle.Entry
	faults []nemesis.Fault
	ok     bool
}{
	{"a short one", waited(10*s, 11*s), nil, nil, true},
	{"one without a cause", waited(10*s, 13*s), nil, nil, false},
	{"while the servers failed", waited(10*s, 17*s), nil, []nemesis.Fault{{Worker: nemesis.All, Begin: 11 * s, End: 14 * s}}, true},
	{"long after they had failed", waited(10*s, 21*s), nil, []nemesis.Fault{{Worker: nemesis.All, Begin: 11 * s, End: 14 * s}}, false},
	{"while a server was busy", waited(10*s, 16*s), nil, []nemesis.Fault{{Worker: nemesis.All, Busy: true, Begin: 11 * s, End: 14 * s}}, false},
	{"while the caller was cut off", waited(10*s, 17*s), nil, []nemesis.Fault{{Worker: 0, Gone: 1, Begin: 11 * s, End: 14 * s}}, true},
	{"while another was slow", waited(10*s, 17*s), nil, []nemesis.Fault{{Worker: 1, Begin: 11 * s, End: 14 * s}}, true},
	{"while another was gone", waited(10*s, 17*s), nil, []nemesis.Fault{{Worker: 1, Gone: 1, Begin: 11 * s, End: 17 * s}}, false},
	{"as long as one that is gone costs", waited(10*s, 14*s), nil, []nemesis.Fault{{Worker: 1, Gone: 1, Begin: 11 * s, End: 17 * s}}, true},
	{"as long as many that are gone cost", waited(10*s, 16*s), nil, []nemesis.Fault{{Worker: 1, Gone: 9, Begin: 11 * s, End: 17 * s}}, true},
	{"while one had the lock that is gone", waited(10*s, 17*s), []oracle.Entry{visit(10*s, 12*s)}, []nemesis.Fault{{Worker: 1, Gone: 1, Begin: 11 * s, End: 17 * s}}, true},
}

// A crowd's waits are explained by what faults cost, and by nothing else.
func TestWaits(t *testing.T) {
	t.Parallel()
	for _, w := range waits {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			got := check.Run(&check.Round{
				Locks:     []worker.Lock{{Kind: worker.Mutex, Name: "x"}},
				Processes: []check.Process{{Worker: 0, Session: "a", Lease: 4 * s, Entries: w.a}, {Worker: 1, Session: "b", Lease: 4 * s, Entries: w.b}},
				Faults:    w.faults, MaxLease: 4 * s,
				Costs: &check.Costs{Grant: s, Together: 3 * s, Look: s / 2},
			}).Violations
			if ok := len(got) == 0; ok != w.ok {
				t.Errorf("found %v", got)
			}
		})
	}
}

func TestChecks(t *testing.T) {
	t.Parallel()
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := &check.Round{
				Locks:     []worker.Lock{{Kind: c.kind, Name: "x", Limit: 2}},
				Processes: []check.Process{{Worker: 0, Session: "a", Lease: 4 * s, Entries: c.a}, {Worker: 1, Session: "b", Lease: 4 * s, Entries: c.b}},
				Faults:    c.faults, MaxLease: 4 * s, Minority: 2,
				Counters: map[int]int64{0: 1},
			}
			got := check.Run(r).Violations
			switch {
			case c.want == "" && len(got) > 0:
				t.Errorf("found %v", got)
			case c.want != "" && (len(got) == 0 || !strings.Contains(got[0].Check, c.want)):
				t.Errorf("found %v, want %q", got, c.want)
			case c.want != "" && got[0].Tolerated:
				t.Errorf("tolerated: %v", got)
			}
			if c.want == "" || c.want == "counter sum" || c.want == "progress" {
				return
			}
			r.Faults = append(r.Faults, nemesis.Fault{Worker: nemesis.All, Loss: true, End: 20 * s})
			for _, v := range check.Run(r).Violations {
				if !v.Tolerated {
					t.Errorf("not tolerated although data was lost: %v", v)
				}
			}
		})
	}
}
