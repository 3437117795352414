package relock_test

import (
	"context"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// BenchmarkServerCPU is what the server pays for each acquisition and release, by its own account
// of its CPU time: of one goroutine alone, and of four sessions of 16 goroutines each that want
// the same lock.
func BenchmarkServerCPU(b *testing.B) {
	for name, mutex := range map[string]func(*rlock.Session) *rlock.Mutex{
		"rlock":    func(s *rlock.Session) *rlock.Mutex { return rlock.New(s, "x") },
		"fairlock": func(s *rlock.Session) *rlock.Mutex { return fairlock.New(s, "x").Mutex },
	} {
		b.Run(name+"/alone", func(b *testing.B) { serverCPU(b, mutex, 1, 1) })
		b.Run(name+"/4x16", func(b *testing.B) { serverCPU(b, mutex, 4, 16) })
	}
}

func serverCPU(b *testing.B, mutex func(*rlock.Session) *rlock.Mutex, sessions, goroutines int) {
	s := redistest.Real(b)
	var mutexes []*rlock.Mutex
	for range sessions {
		mutexes = append(mutexes, mutex(openWith(b, s, rlock.Config{})))
	}
	before, stop := cpu(b, s), time.Now().Add(window())
	var wg sync.WaitGroup
	n := 0 // guarded by the lock
	for _, m := range mutexes {
		for range goroutines {
			wg.Go(func() {
				for time.Now().Before(stop) {
					if err := m.Do(context.Background(), func(context.Context) error { n++; return nil }); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
	}
	wg.Wait()
	b.ReportMetric(float64((cpu(b, s)-before).Nanoseconds())/1000/float64(n), "server-µs/op")
	b.ReportMetric(float64(n)/window().Seconds(), "ops/s")
	b.ReportMetric(0, "ns/op")
}

var cpuTimes = regexp.MustCompile(`(?m)^used_cpu_(?:user|sys):([0-9.]+)`)

// cpu is the CPU time that the server has used.
func cpu(b *testing.B, s *redistest.Server) (sum time.Duration) {
	text, err := s.Do(b, "INFO", "cpu").ToString()
	if err != nil {
		b.Fatal(err)
	}
	for _, m := range cpuTimes.FindAllStringSubmatch(text, -1) {
		seconds, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			b.Fatal(err)
		}
		sum += time.Duration(seconds * float64(time.Second))
	}
	return sum
}
