package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"relock/relocktest"
	"relock/rlock"
	"relock/rwlock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scrape makes everything happen that is measured, and returns what Prometheus gets to see.
func scrape(t *testing.T) string {
	t.Helper()
	trace, metrics, err := instrument()
	if err != nil {
		t.Fatal(err)
	}
	r := relocktest.Start(t)
	s := r.Session(t, rlock.Config{Trace: trace, Lease: 300 * time.Millisecond})
	m := rlock.New(s, "a")
	ctx, h, err := m.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	waited := make(chan error, 1)
	go func() { waited <- m.Do(t.Context(), pretend) }()
	r.AwaitWaiters(t, "a", 1)
	r.Lose(t, m)
	<-ctx.Done()
	if err := h.Unlock(); !errors.Is(err, rlock.ErrLost) {
		t.Error(err)
	}
	if err := <-waited; err != nil {
		t.Error(err)
	}
	if err := rwlock.New(s, "b").RDo(t.Context(), func(context.Context) error {
		for !strings.Contains(get(metrics), "relock_renewals_total") {
			if t.Context().Err() != nil {
				break
			}
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	return get(metrics)
}

func get(h http.Handler) string {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	return w.Body.String()
}

var series = regexp.MustCompile(`\brelock_[a-z_]+`)

// What the dashboard and the alerts ask for is there, under these names.
func TestQueriesNameWhatIsServed(t *testing.T) {
	page := scrape(t)
	for _, file := range []string{"dashboard.json", "alerts.yaml"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, ".json") && !json.Valid(text) {
			t.Errorf("%s is no JSON", file)
		}
		var asked []string
		for _, name := range series.FindAllString(string(text), -1) {
			if !slices.Contains(asked, name) {
				asked = append(asked, name)
			}
		}
		if len(asked) < 5 {
			t.Errorf("%s asks for %v only", file, asked)
		}
		for _, name := range asked {
			if !regexp.MustCompile(`\b` + name + `(\{|=| )`).MatchString(page) {
				t.Errorf("%s asks for %s, which is not served", file, name)
			}
		}
	}
	for _, line := range []string{`relock_hold_lost_total{`, `relock_subscription_events_total{`} {
		if !strings.Contains(page, line) {
			t.Errorf("no %s in\n%s", line, page)
		}
	}
	if t.Failed() {
		t.Log(page)
	}
}
