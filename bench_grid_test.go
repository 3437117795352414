package relock_test

import (
	"context"
	"flag"
	"fmt"
	"testing"
	"time"

	"relock/internal/test/benchkit"
	"relock/internal/test/redistest"
)

// The benchmarks in this file run for a fixed time, whatever b.N is, since goroutines that
// compete do not divide a number of rounds evenly: two seconds, longer with a longer
// -benchtime, and an instant, only to see them work, with -benchtime 1x.
//
// They report, besides time and allocations for each round (of the whole process, or of all
// processes): cmds/op, the commands that were sent to Redis; x-floor, their rate as a part
// of what one goroutine does with SET NX PX and compare-and-delete alone, or x-ceiling, of
// what 64 goroutines do with them on a key each; and, where goroutines compete, what they
// waited, and Jain's index of their shares (1: all alike). Each fails if the lock ever let
// in who should have waited.

const (
	usualWindow = 2 * time.Second
	aMoment     = 200 * time.Millisecond
)

func window() time.Duration {
	d, err := time.ParseDuration(flag.Lookup("test.benchtime").Value.String())
	switch {
	case err != nil:
		return aMoment // a count
	case d == time.Second:
		return usualWindow // nobody has asked for anything
	}
	return d
}

func scene(b *testing.B, k benchkit.Kind, sc benchkit.Scene) {
	s := redistest.Real(b)
	base, err := benchkit.NewBase(s.Addr)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(base.Close)
	b.ReportAllocs()
	cell, err := base.Measure(context.Background(), k, s.Addr, sc, window())
	if err != nil {
		b.Fatal(err)
	}
	cell.Report(b.ReportMetric)
}

// BenchmarkOwnLocks is 64 goroutines at once, a lock each.
func BenchmarkOwnLocks(b *testing.B) {
	kinds := []string{"rlock", "fairlock", "rwlock-read", "rwlock-write", "semaphore"}
	for _, kind := range kinds {
		b.Run(kind, func(b *testing.B) { scene(b, benchkit.Our(kind), benchkit.OwnKeys64) })
	}
}

// BenchmarkOneLock is many goroutines of one session that want the same lock.
func BenchmarkOneLock(b *testing.B) {
	for _, kind := range []string{"rlock", "fairlock", "rwlock-write"} {
		for _, sc := range []benchkit.Scene{benchkit.Same64, benchkit.Same512} {
			b.Run(fmt.Sprint(kind, "/", sc.Workers), func(b *testing.B) { scene(b, benchkit.Our(kind), sc) })
		}
	}
}

// BenchmarkProcesses is four processes of 16 goroutines each that want the same lock; with
// 1 ms of work inside, a thousand rounds a second are what is possible.
func BenchmarkProcesses(b *testing.B) {
	for _, kind := range []string{"rlock", "fairlock"} {
		for _, sc := range []benchkit.Scene{benchkit.Four16, benchkit.Four16Ms} {
			b.Run(fmt.Sprint(kind, "/", sc.Processes, "x", sc.Workers, "/", sc.Work), func(b *testing.B) {
				scene(b, benchkit.Our(kind), sc)
			})
		}
	}
}

// BenchmarkReaders is 64 goroutines of one session of which 95 % at a time want to read.
func BenchmarkReaders(b *testing.B) { scene(b, benchkit.Our("rwlock"), benchkit.Same64) }

// BenchmarkPermits is 64 goroutines of one session that want one of eight permits.
func BenchmarkPermits(b *testing.B) { scene(b, benchkit.Our("semaphore"), benchkit.Same64) }

// BenchmarkWaiters is what an acquisition costs, in commands above all, when that many wait
// for the lock, in four sessions.
func BenchmarkWaiters(b *testing.B) {
	for _, kind := range []string{"rlock", "fairlock"} {
		for _, n := range []int{8, 100, 1_000, 10_000} {
			b.Run(fmt.Sprint(kind, "/", n), func(b *testing.B) { scene(b, benchkit.Our(kind), benchkit.Waiting(n)) })
		}
	}
}
