package main

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"testing"
)

// dashboard is what of the file is checked.
type dashboard struct {
	Title, UID    string
	SchemaVersion int
	Templating    struct{ List []variable }
	Panels        []panel
}

type variable struct {
	Name, Type string
	Query      any
	Datasource source
}

type panel struct {
	ID                       int
	Type, Title, Description string
	Datasource               source
	GridPos                  struct{ X, Y, W, H int }
	FieldConfig              struct{ Defaults struct{ Unit string } }
	Targets                  []struct {
		RefID, Expr, LegendFormat string
		Datasource                source
	}
}

// A source names where numbers come from.
type source struct{ Type, UID string }

func readDashboard(t *testing.T) dashboard {
	t.Helper()
	text, err := os.ReadFile("dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var b dashboard
	if err := json.Unmarshal(text, &b); err != nil {
		t.Fatal(err)
	}
	return b
}

// What Grafana's linter asks for: a data source that can be chosen, variables that exist,
// panels with a title, a description and a unit, beside each other.
func TestDashboardIsWellFormed(t *testing.T) {
	b, chosen := readDashboard(t), source{"prometheus", "${datasource}"}
	if b.Title == "" || b.UID == "" || b.SchemaVersion == 0 || len(b.Panels) < 10 {
		t.Errorf("title %q, uid %q, schema %d, %d panels", b.Title, b.UID, b.SchemaVersion, len(b.Panels))
	}
	known := []string{"__rate_interval"}
	for _, v := range b.Templating.List {
		known = append(known, v.Name)
		if v.Type == "query" && v.Datasource != chosen {
			t.Errorf("variable %s asks %v", v.Name, v.Datasource)
		}
	}
	if i := slices.IndexFunc(b.Templating.List, func(v variable) bool { return v.Name == "datasource" }); i < 0 || b.Templating.List[i].Type != "datasource" {
		t.Errorf("no data source can be chosen")
	}
	taken, ids := map[[2]int]string{}, map[int]bool{}
	for _, p := range b.Panels {
		if p.Type == "" || p.Title == "" || p.Description == "" || p.FieldConfig.Defaults.Unit == "" || ids[p.ID] {
			t.Errorf("panel %d %q lacks a type, title, description, unit or an id of its own", p.ID, p.Title)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("%q and %q share the place %d, %d, or it is outside", p.Title, other, x, y)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		p.checkTargets(t, known, chosen)
	}
}

var used = regexp.MustCompile(`\$(\w+)`)

// checkTargets checks what a panel asks for: the variables that it may use, and where.
func (p panel) checkTargets(t *testing.T, known []string, chosen source) {
	t.Helper()
	if len(p.Targets) == 0 || p.Datasource != chosen {
		t.Errorf("%q asks %v for %d queries", p.Title, p.Datasource, len(p.Targets))
	}
	refs := map[string]bool{}
	for _, q := range p.Targets {
		if q.RefID == "" || refs[q.RefID] || q.Datasource != chosen {
			t.Errorf("%q: query %q is there twice, or asks %v", p.Title, q.RefID, q.Datasource)
		}
		refs[q.RefID] = true
		for _, v := range used.FindAllStringSubmatch(q.Expr, -1) {
			if !slices.Contains(known, v[1]) {
				t.Errorf("%q: no variable %s", p.Title, v[0])
			}
		}
	}
}
