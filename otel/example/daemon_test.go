package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"

	"relock/relocktest"
	"relock/rlock"
)

// installed returns the path of a program of Prometheus. Where there is none the test is skipped, or
// fails if RELOCK_REQUIRE_PROMETHEUS is set.
func installed(t *testing.T, program string) string {
	t.Helper()
	file, err := exec.LookPath(program)
	if err != nil && os.Getenv("RELOCK_REQUIRE_PROMETHEUS") != "" {
		t.Fatalf("RELOCK_REQUIRE_PROMETHEUS is set: %v", err)
	}
	if err != nil {
		t.Skipf("%v; the Debian package prometheus has it", err)
	}
	return file
}

// promtool itself accepts the rules and runs their tests.
func TestPromtoolAccepts(t *testing.T) {
	promtool := installed(t, "promtool")
	for _, args := range [][]string{{"check", "rules", "alerts.yaml"}, {"test", "rules", "alerts_test.yaml"}} {
		if out, err := exec.Command(promtool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %q: %v\n%s", args, err, out)
		}
	}
}

// A daemon is a running Prometheus.
type daemon struct{ url string }

// listening is what Prometheus logs when it serves.
var listening = regexp.MustCompile(`msg="Listening on".* address=(\S+)`)

// startDaemon runs a Prometheus that scrapes an address ten times a second, as the job example, and
// evaluates alerts.yaml as often, until the test ends.
func startDaemon(t *testing.T, target string) *daemon {
	t.Helper()
	rules, err := filepath.Abs("alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	config := fmt.Sprintf(`
global: {scrape_interval: 100ms, scrape_timeout: 100ms, evaluation_interval: 100ms}
rule_files: [%q]
scrape_configs: [{job_name: example, static_configs: [{targets: [%q]}]}]
`, rules, target)
	if err := os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(installed(t, "prometheus"), "--config.file="+filepath.Join(dir, "prometheus.yml"),
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address=127.0.0.1:0")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	found, read := make(chan string, 1), make(chan []string)
	go func() {
		var said []string
		for lines := bufio.NewScanner(stderr); lines.Scan(); said = append(said, lines.Text()) {
			if m := listening.FindStringSubmatch(lines.Text()); m != nil {
				found <- m[1]
			}
		}
		close(found)
		read <- said
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended already
		said := <-read
		if err := cmd.Wait(); err != nil {
			t.Errorf("prometheus: %v\n%s", err, strings.Join(said, "\n"))
		}
	})
	address, ok := <-found
	if !ok {
		t.Fatal("prometheus has ended before it served")
	}
	return &daemon{"http://" + address}
}

// ask calls the HTTP API, and decodes the data of the answer.
func (d *daemon) ask(t *testing.T, path string, data any) {
	t.Helper()
	var answer struct {
		Status, Error string
		Data          json.RawMessage
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		response, err := http.Get(d.url + path)
		if err != nil {
			t.Fatal(err)
		}
		ready := response.StatusCode != http.StatusServiceUnavailable // until it has opened its database
		if ready {
			err = json.NewDecoder(response.Body).Decode(&answer)
		}
		response.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if ready {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("prometheus does not become ready")
		}
	}
	if answer.Status != "success" {
		t.Fatalf("%s: %s", path, answer.Error)
	}
	if err := json.Unmarshal(answer.Data, data); err != nil {
		t.Fatal(err)
	}
}

// query returns what expr is now.
func (d *daemon) query(t *testing.T, expr string) (vector promql.Vector) {
	t.Helper()
	var data struct {
		Result []struct {
			Metric map[string]string
			Value  [2]any
		}
	}
	d.ask(t, "/api/v1/query?query="+url.QueryEscape(expr), &data)
	for _, r := range data.Result {
		value, err := strconv.ParseFloat(r.Value[1].(string), 64)
		if err != nil {
			t.Fatal(err)
		}
		vector = append(vector, promql.Sample{Metric: labels.FromMap(r.Metric), F: value})
	}
	return vector
}

// firing returns the alerts that fire, and fails if Prometheus has not loaded a rule, or cannot
// evaluate it.
func (d *daemon) firing(t *testing.T) (fire []string) {
	t.Helper()
	var data struct {
		Groups []struct {
			Rules []struct{ Name, Health, LastError, State string }
		}
	}
	d.ask(t, "/api/v1/rules", &data)
	left := rules(t)
	for _, g := range data.Groups {
		for _, r := range g.Rules {
			if delete(left, r.Name); r.Health == "err" {
				t.Errorf("%s: %s", r.Name, r.LastError)
			}
			if r.State == "firing" {
				fire = append(fire, r.Name)
			}
		}
	}
	for name := range left {
		t.Errorf("prometheus has not loaded %s", name)
	}
	return fire
}

// A Prometheus scrapes the running program. Each query of the dashboard, and what the alerts measure, finds
// numbers in it, and the alert about lost locks fires when one is lost.
func TestPrometheusScrapesTheRunningProgram(t *testing.T) {
	installed(t, "prometheus")
	board, r := readDashboard(t), relocktest.Start(t)
	page, err := url.Parse(start(t, r, 3*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	d := startDaemon(t, page.Host)
	within := func(what func() bool) bool {
		for end := time.Now().Add(time.Minute); !t.Failed() && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
			if what() {
				return true
			}
		}
		return false
	}
	// A counter that appears with its first count hides that count from rates.
	if !within(func() bool { return len(d.query(t, "relock_hold_lost_total == 0")) > 0 }) {
		t.Fatal("prometheus never scraped the program")
	}
	if fire := d.firing(t); len(fire) > 0 {
		t.Errorf("%q fire before anything has happened", fire)
	}
	report := rlock.New(r.Session(t, rlock.Config{}), "example:report")
	lost := false
	if !within(func() bool {
		if !lost { // the program may be about to take it again
			if lost, err = report.ForceUnlock(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		return slices.Contains(d.firing(t), "RelockLocksLost")
	}) {
		t.Errorf("a lock was lost (%v), and RelockLocksLost does not fire", lost)
	}
	var missing []string
	if !within(func() bool {
		missing = board.missing(func(expr string) promql.Vector { return d.query(t, expr) })
		for name, rule := range rules(t) { // Redis was never away
			if name != "RelockRedisUnavailable" && len(d.query(t, measured(t, rule))) == 0 {
				missing = append(missing, name+" measures nothing with "+rule.Expr)
			}
		}
		return len(missing) == 0
	}) && len(missing) > 0 {
		t.Error(strings.Join(missing, "\n"))
	}
}
