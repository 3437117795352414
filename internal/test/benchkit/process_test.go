package benchkit_test

import (
	"path/filepath"
	"testing"
	"time"

	"relock/internal/test/benchkit"
	"relock/internal/test/redistest"
)

// job is one that two processes do.
func job(t *testing.T, kind, addr string) benchkit.Job {
	return benchkit.Job{
		Kind: kind, Addr: addr, Lock: "x", Processes: 2, Workers: 2,
		Window: short, Work: time.Millisecond, GatePath: filepath.Join(t.TempDir(), "gate"),
	}
}

func TestProcessesThatLockNothingAreSeen(t *testing.T) {
	res, err := benchkit.RunProcesses(job(t, "nothing", ""), nil, nil)
	if err != nil || res.Violations == 0 || len(res.PerWorker) != 4 {
		t.Errorf("%d rounds of %d workers, %d violations, %v", res.Ops, len(res.PerWorker), res.Violations, err)
	}
}

func TestProcessesTakeTurns(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		for _, kind := range []string{"rlock", "fairlock"} {
			began, ended := false, false
			res, err := benchkit.RunProcesses(job(t, kind, s.Addr),
				func() error { began = true; return nil }, func() error { ended = true; return nil })
			if err != nil || res.Violations != 0 || len(res.Waits) == 0 || !began || !ended {
				t.Errorf("%s: %d rounds, %d violations, begin %v, end %v, %v", kind, res.Ops, res.Violations, began, ended, err)
			}
		}
	})
}

// What begin counts is what there was before the first round, however late it is.
func TestProcessesLockNothingBeforeTheWindow(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		locked := false
		res, err := benchkit.RunProcesses(job(t, "rlock", s.Addr), func() error {
			for end := time.Now().Add(short); time.Now().Before(end) && !locked; {
				n, err := s.Do(t, "EXISTS", "x").AsInt64()
				if err != nil {
					return err
				}
				locked = n > 0
			}
			return nil
		}, nil)
		if err != nil || locked || len(res.Waits) == 0 {
			t.Errorf("%d rounds, locked before the window: %v, %v", res.Ops, locked, err)
		}
	})
}

func TestAProcessThatFailsIsReported(t *testing.T) {
	if _, err := benchkit.RunProcesses(job(t, "no such kind", ""), nil, nil); err == nil {
		t.Error("no error")
	}
}
