package main

import (
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
)

// A database holds time series in memory, for Prometheus' own query engine.
type database struct {
	series map[string]promql.Series // by their labels as text
	engine *promql.Engine
}

func newDatabase() *database {
	return &database{
		series: map[string]promql.Series{},
		engine: promql.NewEngine(promql.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute}),
	}
}

// zero is the time at which tests begin.
var zero = time.Unix(1_800_000_000, 0)

// add appends a sample that was taken at a time after zero.
func (d *database) add(l labels.Labels, at time.Duration, value float64) {
	s := d.series[l.String()]
	s.Metric = l
	s.Floats = append(s.Floats, promql.FPoint{T: zero.Add(at).UnixMilli(), F: value})
	d.series[l.String()] = s
}

// scrape adds what a page of /metrics says, as Prometheus does for a job named example.
func (d *database) scrape(t *testing.T, page []byte, at time.Duration) {
	t.Helper()
	p := textparse.NewPromParser(page, labels.NewSymbolTable(), false)
	for {
		entry, err := p.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, page)
		}
		if entry != textparse.EntrySeries {
			continue
		}
		var l labels.Labels
		p.Labels(&l)
		_, _, value := p.Series()
		d.add(labels.NewBuilder(l).Set("job", "example").Set("instance", "a").Labels(), at, value)
	}
}

// query returns what expr is at a time after zero.
func (d *database) query(t *testing.T, expr string, at time.Duration) promql.Vector {
	t.Helper()
	found := &storage.MockQuerier{SelectMockFunction: func(_ bool, _ *storage.SelectHints, by ...*labels.Matcher) storage.SeriesSet {
		var set []storage.Series
		for _, s := range d.series {
			if !slices.ContainsFunc(by, func(m *labels.Matcher) bool { return !m.Matches(s.Metric.Get(m.Name)) }) {
				set = append(set, promql.NewStorageSeries(s))
			}
		}
		return &seriesSet{SeriesSet: storage.NoopSeriesSet(), series: set}
	}}
	q, err := d.engine.NewInstantQuery(t.Context(), &storage.MockQueryable{MockQuerier: found}, nil, expr, zero.Add(at))
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	defer q.Close()
	result := q.Exec(t.Context())
	vector, err := result.Vector()
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	return slices.Clone(vector)
}

// A seriesSet goes through series; what it embeds says that there are no errors.
type seriesSet struct {
	storage.SeriesSet
	series []storage.Series
	next   int
}

func (s *seriesSet) Next() bool         { s.next++; return s.next <= len(s.series) }
func (s *seriesSet) At() storage.Series { return s.series[s.next-1] }
