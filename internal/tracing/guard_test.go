package tracing_test

import (
	"context"
	"reflect"
	"testing"

	"relock/internal/tracing"
	"relock/locktrace"
)

// Guard passes on what hooks get and return, leaves out none, and adds none.
func TestGuard(t *testing.T) {
	var told []string
	tell := func(hook string, panicked any, stack []byte) {
		if panicked != "on purpose" || len(stack) == 0 {
			t.Errorf("%s: told of %v, with %d bytes of stack", hook, panicked, len(stack))
		}
		told = append(told, hook)
	}
	if tracing.Guard(nil, tell) != nil {
		t.Error("no hooks were made some")
	}
	none := reflect.ValueOf(tracing.Guard(new(locktrace.Trace), tell)).Elem()
	all := new(locktrace.Trace)
	hooks := reflect.ValueOf(all).Elem()
	for i := range hooks.NumField() {
		kind := hooks.Field(i).Type()
		hooks.Field(i).Set(reflect.MakeFunc(kind, func([]reflect.Value) []reflect.Value { panic("on purpose") }))
	}
	guarded := reflect.ValueOf(tracing.Guard(all, tell)).Elem()
	for i := range hooks.NumField() {
		name, kind := hooks.Type().Field(i).Name, hooks.Field(i).Type()
		if !none.Field(i).IsNil() {
			t.Errorf("%s was added", name)
		}
		if guarded.Field(i).IsNil() {
			t.Fatalf("%s was left out", name)
		}
		var args []reflect.Value
		for a := range kind.NumIn() {
			args = append(args, reflect.Zero(kind.In(a)))
		}
		guarded.Field(i).Call(args)
		if len(told) != i+1 || told[i] != name {
			t.Errorf("%s has panicked; told of %q", name, told)
		}
	}

	type key struct{}
	quiet := tracing.Guard(&locktrace.Trace{
		HoldStart: func(ctx context.Context, e locktrace.HoldStart) context.Context {
			return context.WithValue(ctx, key{}, e.Name)
		},
	}, tell)
	if got := quiet.HoldStart(t.Context(), locktrace.HoldStart{Name: "x"}).Value(key{}); got != "x" {
		t.Errorf("the context that the hook has made has %v", got)
	}
}
