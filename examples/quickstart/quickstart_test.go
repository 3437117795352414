package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"relock/examples/internal/demo"
	"relock/internal/test/redistest"
	"relock/rlock"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// testServer is s as main would have opened it.
func testServer(s *redistest.Server) *demo.Redis {
	return &demo.Redis{Option: s.Option(), Text: "test", Prefix: "relock-quickstart:test:", Close: func() {}}
}

func TestRun(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		j := job{services: 3, goroutines: 5, stock: 100, customers: 150, open: time.Minute, lease: s.Slowed(time.Second)}
		var text bytes.Buffer
		res, err := run(t.Context(), testServer(s), j, &screen{w: &text})
		t.Log("\n" + text.String())
		if err != nil {
			t.Fatal(err)
		}

		r := res.locked
		if r.sold != 100 || r.left != 0 || r.oversold() != 0 || r.badAudits != 0 || r.customers != 150 {
			t.Errorf("under the lock: %d sold, %d left, %d bad audits, %d customers", r.sold, r.left, r.badAudits, r.customers)
		}
		if r.acquired != 250 || len(r.waits) != 150 {
			t.Errorf("%d acquisitions, %d waits; want one for each customer and one more for each unit", r.acquired, len(r.waits))
		}
		if r.commands <= 0 || r.perSecond() <= 0 || r.waited(0.5) > r.waited(0.99) || r.waited(0.99) > r.waited(1) {
			t.Errorf("%d commands, %d acquisitions/s, waits %v", r.commands, r.perSecond(), r.waits)
		}
		if r := res.unlocked; r.oversold() == 0 || r.badAudits == 0 || r.acquired != 150+r.sold {
			t.Errorf("without the lock: oversold by %d, %d bad audits; the contrast shows nothing", r.oversold(), r.badAudits)
		}
		c := res.cut
		if c.together || !errors.Is(c.cause, rlock.ErrLost) || !errors.Is(c.unlock, rlock.ErrLost) || !c.intact {
			t.Errorf("cut off: %+v", c)
		}
		if !(0 < c.cut && c.cut < c.ended && c.ended <= c.entered && c.ended-c.cut < j.lease+s.Slack()/3) {
			t.Errorf("cut off: %+v", c)
		}

		checkLines(t, text.String())
		if !strings.Contains(text.String(), "\nOK: ") {
			t.Error("no verdict")
		}
		if keys := s.Keys(t); len(keys) > 0 {
			t.Errorf("keys left behind: %q", keys)
		}
	})
}

// TestRunStops ends a run in the middle, as Ctrl-C does.
func TestRunStops(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		j := fullJob
		j.stock, j.customers, j.open = 1e9, 2e9, time.Hour // never gets there
		out := &screen{terminal: true, w: writerFunc(func(p []byte) {
			if bytes.Contains(p, []byte("\r  with the lock")) {
				cancel()
			}
		})}
		_, err := run(ctx, testServer(s), j, out)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want context.Canceled", err)
		}
		if keys := s.Keys(t); len(keys) > 0 {
			t.Errorf("keys left behind: %q", keys)
		}
	})
}

// TestShopCloses is a run on a Redis that is too slow to sell everything in time.
func TestShopCloses(t *testing.T) {
	s := redistest.Mini(t)
	j := job{services: 2, goroutines: 2, stock: 1e6, customers: 2e6, open: 300 * time.Millisecond}
	locked, open, err := sell(t.Context(), testServer(s), j, &screen{w: new(bytes.Buffer)})
	if err != nil {
		t.Fatal(err)
	}
	if err := locked.check(); err != nil || locked.sold == 0 || locked.sold != locked.customers || locked.left == 0 {
		t.Errorf("%d sold, %d left, %v", locked.sold, locked.left, err)
	}
	if open.took > 10*time.Second {
		t.Errorf("closed after %v", open.took)
	}
}

func TestRunWithoutRedis(t *testing.T) {
	s := redistest.Mini(t)
	s.Kill()
	if _, err := run(t.Context(), testServer(s), fullJob, &screen{w: new(bytes.Buffer)}); err == nil {
		t.Error("no error")
	}
}

func TestViolationsAreErrors(t *testing.T) {
	sold := func(sold, left, bad int) error {
		return sale{stock: 10, sold: sold, left: left, badAudits: bad}.check()
	}
	good := cutOff{cut: 1, ended: 2, entered: 3, cause: rlock.ErrLost, unlock: rlock.ErrLost, intact: true}
	cut := func(spoil func(*cutOff)) error {
		c := good
		spoil(&c)
		return c.check()
	}
	for name, err := range map[string]error{
		"oversold":         sold(11, 0, 0),
		"lost update":      sold(10, 1, 0),
		"bad audit":        sold(10, 0, 1),
		"both hold":        cut(func(c *cutOff) { c.together = true }),
		"wrong order":      cut(func(c *cutOff) { c.entered = 1 }),
		"ended by itself":  cut(func(c *cutOff) { c.ended = 0 }),
		"other cause":      cut(func(c *cutOff) { c.cause = context.Canceled }),
		"late Unlock":      cut(func(c *cutOff) { c.unlock = nil }),
		"next one thrown":  cut(func(c *cutOff) { c.intact = false }),
		"nothing happened": cutOff{}.check(),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for _, err := range []error{sold(10, 0, 0), sold(4, 6, 0), good.check()} {
		if err != nil {
			t.Error(err)
		}
	}
}

// TestReportFits prints numbers larger than any run should have.
func TestReportFits(t *testing.T) {
	var text bytes.Buffer
	s := &screen{w: &text, terminal: true}
	big := sale{
		stock: 12_345_678, customers: 12_345_678, sold: 12_345_678, left: -12_345_678, badAudits: 12_345_678,
		took: time.Hour, acquired: 12_345_678, waits: []time.Duration{time.Hour}, commands: 1 << 40,
	}
	s.header(&demo.Redis{Text: "embedded miniredis (for your own: REDIS_ADDR=host:port)", Prefix: "relock-quickstart:12345678:"}, fullJob)
	s.progressLine("with the lock", 1_234_567, 1_234_567, time.Minute, true)
	s.sales(big, big)
	const ms = time.Millisecond
	for _, c := range []cutOff{
		{cut: 1000 * ms, ended: 2000 * ms, expires: 3000 * ms, entered: 59_000 * ms},
		{cut: 700 * ms, ended: 1650 * ms, expires: 1700 * ms, entered: 1700 * ms},
		{cut: 500 * ms, ended: 1450 * ms, expires: 1440 * ms, entered: 1450 * ms},
		{cut: 460 * ms, ended: 1290 * ms, expires: 1350 * ms, entered: 1350 * ms},
	} {
		c.lease, c.cause, c.unlock, c.intact = time.Second, rlock.ErrLost, rlock.ErrLost, true
		s.timeLine(c)
	}
	s.verdict()
	checkLines(t, text.String())
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1 000", -999: "-999", -1000: "-1 000", 1234567: "1 234 567"} {
		if got := thousands(n); got != want {
			t.Errorf("thousands(%d) = %q", n, got)
		}
	}
}

// checkLines fails on lines that wrap at 80 columns.
func checkLines(t *testing.T, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		line = strings.Trim(line, "\r\n")
		if len(line) > 79 || line != strings.TrimRight(line, " ") {
			t.Errorf("%d columns or spaces at the end: %q", len(line), line)
		}
	}
}

type writerFunc func(p []byte)

func (f writerFunc) Write(p []byte) (int, error) { f(p); return len(p), nil }
