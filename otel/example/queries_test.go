package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2/server"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"

	"relock/relocktest"
	"relock/rlock"
)

// start runs the example program until the test ends, and returns the address of its metrics.
// The lease must be longer than the machine may stand still where a lost lock is not wanted.
func start(t *testing.T, r *relocktest.Redis, lease time.Duration) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, r.Option(), rlock.Config{Lease: lease}, l) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil && !errors.Is(err, rlock.ErrUnavailable) {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	return "http://" + l.Addr().String() + "/metrics"
}

// await scrapes until the page matches all of the patterns, and returns it.
func await(t *testing.T, url string, patterns ...string) []byte {
	t.Helper()
	var page []byte
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); {
		response, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		page, err = io.ReadAll(response.Body)
		if err := errors.Join(err, response.Body.Close()); err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(patterns, func(p string) bool { return !regexp.MustCompile(p).Match(page) }) {
			return page
		}
	}
	t.Fatalf("the page never had all of %q:\n%s", patterns, page)
	return nil
}

// more matches a sample that is not 0, of a series whose labels have this text.
func more(series, label string) string {
	return `(?m)^` + series + `\{[^}]*` + label + `[^}]*\} [1-9]`
}

// grafana puts in for the variables what Grafana does, for a scrape interval of a minute.
var grafana = strings.NewReplacer("$job", "example", "$__rate_interval", "4m")

// legend finds the labels that a legend names.
var legend = regexp.MustCompile(`{{\s*(\w+)\s*}}`)

// The running program is scraped. Every query of the dashboard finds numbers, with the labels
// that its legend names.
func TestDashboardShowsTheRunningProgram(t *testing.T) {
	board := readDashboard(t)
	r, db := relocktest.Start(t), newDatabase()
	url := start(t, r, 3*time.Second)
	// A counter that appears with its first count hides that count from rates.
	await(t, url, `(?m)^relock_renewals_total\{[^}]*relock_result="error"[^}]*\} 0$`,
		`(?m)^relock_hold_lost_total\{[^}]*\} 0$`, `(?m)^relock_subscription_events_total\{[^}]*="polling"[^}]*\} 0$`)
	all := []string{more("relock_renewals_total", `relock_result="ok"`), more("relock_subscription_connections", "")}
	for _, kind := range []string{"mutex", "read", "write"} {
		all = append(all, more("relock_hold_duration_seconds_count", `relock_lock_kind="`+kind+`"`),
			more("relock_release_duration_seconds_count", `relock_lock_kind="`+kind+`"`))
	}
	db.scrape(t, await(t, url, all...), 0)
	report := rlock.New(r.Session(t, rlock.Config{}), "example:report")
	end := time.Now().Add(30 * time.Second)
	for lost := false; !lost; time.Sleep(time.Millisecond) { // the program may be about to take it again
		if time.Now().After(end) {
			t.Fatal("the report is never locked")
		}
		var err error
		if lost, err = report.ForceUnlock(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	await(t, url, more("relock_hold_lost_total", ""))

	// Rates need that something has happened between two scrapes, which takes a moment.
	var missing []string
	late := time.Now().Add(30 * time.Second)
	for at := time.Minute; time.Now().Before(late); at += time.Minute {
		db.scrape(t, await(t, url), at)
		if missing = board.missing(func(expr string) promql.Vector { return db.query(t, expr, at) }); len(missing) == 0 {
			break
		}
	}
	for _, m := range missing {
		t.Error(m)
	}
}

// missing returns what is asked for in vain of something that evaluates queries.
func (b dashboard) missing(query func(expr string) promql.Vector) (what []string) {
	for _, p := range b.Panels {
		for _, q := range p.Targets {
			expr := grafana.Replace(q.Expr)
			found := query(expr)
			if !slices.ContainsFunc(found, func(s promql.Sample) bool { return !math.IsNaN(s.F) }) {
				what = append(what, fmt.Sprintf("%s: no numbers for %s: %v", p.Title, expr, found))
			}
			for _, l := range legend.FindAllStringSubmatch(q.LegendFormat, -1) {
				if slices.ContainsFunc(found, func(s promql.Sample) bool { return !s.Metric.Has(l[1]) }) {
					what = append(what, fmt.Sprintf("%s: the legend names %s, of %v", p.Title, l[1], found))
				}
			}
		}
	}
	return what
}

// The program meets trouble. The alerts that are about it become active over what is scraped;
// those that are not stay silent, but find their series.
func TestAlertsSeeTheRunningProgram(t *testing.T) {
	for _, test := range []struct {
		name          string
		lease         time.Duration
		before, after func(*testing.T, *relocktest.Redis)
		want          []string
		may           string // become active as well: a waiter that was about to listen polls, a busy machine is slow
	}{
		{"Redis goes away", 3 * time.Second, calm, goAway, []string{"RelockLocksLost", "RelockRedisUnavailable", "RelockRenewalsFail"}, "RelockPolls"},
		{"subscriptions are refused", rlock.DefaultLease, refuseSubscriptions, calm, []string{"RelockPolls"}, "RelockRedisUnavailable"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, db, rules := relocktest.Start(t), newDatabase(), rules(t)
			test.before(t, r)
			url := start(t, r, test.lease)
			db.scrape(t, await(t, url, more("relock_holds", `relock_lock_kind="mutex"`), more("relock_holds", `relock_lock_kind="read"`)), 0)
			test.after(t, r)
			// A scrape collects one instrument after the other: what has begun in between shows
			// in the later ones only, until the next scrape.
			var active, blind []string
			late := time.Now().Add(30 * time.Second)
			for at := time.Minute; time.Now().Before(late); at += time.Minute {
				db.scrape(t, await(t, url), at)
				blind = nil
				for name, rule := range rules {
					if len(db.query(t, rule.Expr, at)) > 0 && name != test.may && !slices.Contains(active, name) {
						active = append(active, name)
					}
					if series := db.query(t, measured(t, rule), at); len(series) == 0 && name != "RelockRedisUnavailable" {
						blind = append(blind, fmt.Sprintf("%s measures nothing with %s", name, rule.Expr))
					}
				}
				slices.Sort(active)
				if slices.Equal(active, test.want) && len(blind) == 0 {
					return
				}
			}
			t.Errorf("active: %q, want %q; %q", active, test.want, blind)
		})
	}
}

func calm(*testing.T, *relocktest.Redis) {}

// goAway stops Redis until the test ends; the program can release its locks then. It holds one for
// long, whose renewals fail.
func goAway(t *testing.T, r *relocktest.Redis) {
	for end := time.Now().Add(30 * time.Second); !r.Miniredis().Exists("example:report"); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the report is not locked")
		}
	}
	r.Stop()
	t.Cleanup(r.Resume)
}

// refuseSubscriptions has Redis do what an ACL without channels does.
func refuseSubscriptions(t *testing.T, r *relocktest.Redis) {
	r.Session(t, rlock.Config{}) // the embedded server begins with its first connection
	r.Miniredis().Server().SetPreHook(func(c *server.Peer, command string, _ ...string) bool {
		if !strings.HasSuffix(command, "SUBSCRIBE") {
			return false
		}
		c.WriteError("NOPERM this user has no permissions to access one of the channels")
		return true
	})
}

// measured returns what a rule compares with its threshold.
func measured(t *testing.T, rule rulefmt.Rule) string {
	t.Helper()
	expr, err := parser.ParseExpr(rule.Expr)
	if err != nil {
		t.Fatal(err)
	}
	comparison, ok := expr.(*parser.BinaryExpr)
	if !ok || !comparison.Op.IsComparisonOperator() {
		t.Fatalf("%s compares nothing: %s", rule.Alert, rule.Expr)
	}
	return comparison.LHS.String()
}
