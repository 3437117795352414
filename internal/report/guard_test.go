package report_test

import (
	"bytes"
	"context"
	"log/slog"
	"reflect"
	"strings"
	"testing"

	"relock/internal/report"
	"relock/locktrace"
)

// Guard passes on what hooks get and return, and leaves out none; one that it adds does nothing.
func TestGuard(t *testing.T) {
	var text bytes.Buffer
	log := slog.New(slog.NewTextHandler(&text, nil))
	if report.Guard(nil, log) != nil {
		t.Error("no hooks were made some")
	}
	none := reflect.ValueOf(report.Guard(new(locktrace.Trace), log)).Elem()
	all := new(locktrace.Trace)
	hooks := reflect.ValueOf(all).Elem()
	for i := range hooks.NumField() {
		kind := hooks.Field(i).Type()
		hooks.Field(i).Set(reflect.MakeFunc(kind, func([]reflect.Value) []reflect.Value { panic("on purpose") }))
	}
	guarded := reflect.ValueOf(report.Guard(all, log)).Elem()
	for i := range hooks.NumField() {
		name, kind := hooks.Type().Field(i).Name, hooks.Field(i).Type()
		if guarded.Field(i).IsNil() {
			t.Fatalf("%s was left out", name)
		}
		var args []reflect.Value
		for a := range kind.NumIn() {
			args = append(args, reflect.Zero(kind.In(a)))
		}
		none.Field(i).Call(args)
		if text.Len() > 0 {
			t.Errorf("%s was added, and the Logger heard %q", name, text.String())
		}
		guarded.Field(i).Call(args)
		want := `level=ERROR msg="relock: a hook has panicked; the session goes on" hook=` + name + ` panic="on purpose" stack="goroutine `
		if got := text.String(); strings.Count(got, "level=") != 1 || !strings.Contains(got, want) {
			t.Errorf("%s has panicked; the Logger heard %q", name, got)
		}
		text.Reset()
	}

	type key struct{}
	quiet := report.Guard(&locktrace.Trace{
		HoldStart: func(ctx context.Context, e locktrace.HoldStart) context.Context {
			return context.WithValue(ctx, key{}, e.Name)
		},
	}, log)
	if got := quiet.HoldStart(t.Context(), locktrace.HoldStart{Name: "x"}).Value(key{}); got != "x" {
		t.Errorf("the context that the hook has made has %v", got)
	}
	for name, hooks := range map[string]*locktrace.Trace{
		"none":                 {},
		"one that returns nil": {HoldStart: func(context.Context, locktrace.HoldStart) context.Context { return nil }},
		"one that panics":      {HoldStart: func(context.Context, locktrace.HoldStart) context.Context { panic("on purpose") }},
	} {
		if got := report.Guard(hooks, log).HoldStart(t.Context(), locktrace.HoldStart{}); got != t.Context() {
			t.Errorf("%s: the context that goes on is %v", name, got)
		}
	}
}
