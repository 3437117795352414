package main

import (
	"bytes"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/template"
	"gopkg.in/yaml.v3"
)

// ruleTests is what is used of promtool's format in alerts_test.yaml.
type ruleTests struct {
	RuleFiles          []string       `yaml:"rule_files"`
	EvaluationInterval model.Duration `yaml:"evaluation_interval"`
	Tests              []struct {
		Name        string         `yaml:"name"`
		Interval    model.Duration `yaml:"interval"`
		InputSeries []struct {
			Series string `yaml:"series"`
			Values string `yaml:"values"`
		} `yaml:"input_series"`
		AlertRuleTest []struct {
			EvalTime  model.Duration `yaml:"eval_time"`
			Alertname string         `yaml:"alertname"`
			ExpAlerts []alert        `yaml:"exp_alerts"`
		} `yaml:"alert_rule_test"`
	} `yaml:"tests"`
}

// An alert is one that fires.
type alert struct {
	Labels      map[string]string `yaml:"exp_labels"`
	Annotations map[string]string `yaml:"exp_annotations"`
}

func (a alert) equal(b alert) bool {
	return maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Annotations, b.Annotations)
}

// rules returns the rules of alerts.yaml by their names. Prometheus' own parser reads them.
func rules(t *testing.T) map[string]rulefmt.Rule {
	t.Helper()
	groups, errs := rulefmt.ParseFile("alerts.yaml", false, model.UTF8Validation)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	found := map[string]rulefmt.Rule{}
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			found[r.Alert] = r
		}
	}
	return found
}

// Each alert fires when alerts_test.yaml says so, with these labels and texts.
func TestAlertsFireWhenTheyShould(t *testing.T) {
	text, err := os.ReadFile("alerts_test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file ruleTests
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&file); err != nil {
		t.Fatal(err)
	}
	rules, fired, quiet := rules(t), map[string]bool{}, map[string]bool{}
	for _, test := range file.Tests {
		t.Run(test.Name, func(t *testing.T) {
			db := newDatabase()
			for _, s := range test.InputSeries {
				db.load(t, s.Series+" "+s.Values, time.Duration(test.Interval))
			}
			for _, want := range test.AlertRuleTest {
				rule, ok := rules[want.Alertname]
				if !ok {
					t.Fatalf("alerts.yaml has no %s", want.Alertname)
				}
				got := db.firing(t, rule, time.Duration(file.EvaluationInterval), time.Duration(want.EvalTime))
				if !slices.EqualFunc(got, want.ExpAlerts, alert.equal) {
					t.Errorf("%s at %v: %v, want %v", want.Alertname, want.EvalTime, got, want.ExpAlerts)
				}
				fired[want.Alertname] = fired[want.Alertname] || len(got) > 0
				quiet[want.Alertname] = quiet[want.Alertname] || len(got) == 0
			}
		})
	}
	for name := range rules {
		if !fired[name] || !quiet[name] {
			t.Errorf("%s fired: %v, was quiet: %v; both are to be tested", name, fired[name], quiet[name])
		}
	}
}

// load adds a series in promtool's notation.
func (d *database) load(t *testing.T, series string, interval time.Duration) {
	t.Helper()
	l, values, err := parser.ParseSeriesDesc(series)
	if err != nil {
		t.Fatalf("%s: %v", series, err)
	}
	for i, v := range values {
		if !v.Omitted {
			d.add(l, time.Duration(i)*interval, v.Value)
		}
	}
}

// firing evaluates a rule at each interval up to a time, and returns the alerts that have been
// active for as long as the rule says.
func (d *database) firing(t *testing.T, rule rulefmt.Rule, interval, until time.Duration) []alert {
	t.Helper()
	since := map[string]time.Duration{} // when an alert has become active, by its labels
	var fire []alert
	for at := time.Duration(0); at <= until; at += interval {
		active := map[string]time.Duration{}
		fire = nil
		for _, sample := range d.query(t, rule.Expr, at) {
			key := sample.Metric.String()
			active[key] = at
			if first, before := since[key]; before {
				active[key] = first
			}
			if at-active[key] >= time.Duration(rule.For) {
				fire = append(fire, expand(t, rule, sample))
			}
		}
		since = active
	}
	slices.SortFunc(fire, func(a, b alert) int { return strings.Compare(a.Labels["job"], b.Labels["job"]) })
	return fire
}

// expand returns the alert that a rule makes of a sample.
func expand(t *testing.T, rule rulefmt.Rule, sample promql.Sample) alert {
	t.Helper()
	a := alert{Labels: labels.NewBuilder(sample.Metric).Del(labels.MetricName).Labels().Map(), Annotations: map[string]string{}}
	data := template.AlertTemplateData(maps.Clone(a.Labels), nil, "", sample)
	maps.Copy(a.Labels, rule.Labels)
	for name, text := range rule.Annotations {
		full := "{{$labels := .Labels}}{{$value := .Value}}" + text
		e := template.NewTemplateExpander(t.Context(), full, name, data, model.Time(sample.T), nil, &url.URL{}, nil)
		got, err := e.Expand()
		if err != nil {
			t.Fatal(err)
		}
		a.Annotations[name] = got
	}
	return a
}
