package rlock_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// The types of this package are defined by those of the machine, and show nothing of what these
// can do: neither methods that a field would lend them, nor fields.
func TestTypesShowTheirOwnMethodsOnly(t *testing.T) {
	mutex := []string{"Do", "ForceUnlock", "Lock", "Locker", "Name", "Session", "State", "TryLock"}
	methods(t, reflect.TypeFor[*rlock.Mutex](), mutex...)
	methods(t, reflect.TypeFor[*fairlock.Mutex](), append(mutex, "Waiters")...)
	for _, of := range []reflect.Type{reflect.TypeFor[rlock.Mutex](), reflect.TypeFor[rlock.Session](), reflect.TypeFor[rlock.Hold]()} {
		for i := range of.NumField() {
			if f := of.Field(i); f.IsExported() {
				t.Errorf("%v has the field %s", of, f.Name)
			}
		}
	}
}

// The context of a section is a context: what the machine keeps with it, nobody can reach through it.
func TestTheContextOfASectionShowsNothingElse(t *testing.T) {
	ses := dial(t, redistest.Mini(t), rlock.Config{})
	section, h, err := rlock.New(ses, "x").Lock(within(t, 10*time.Second))
	must(t, err)
	methods(t, reflect.TypeOf(section), "Around", "Deadline", "Done", "Err", "String", "Value")
	if text, err := json.Marshal(section); err != nil || string(text) != "{}" {
		t.Errorf("as JSON: %s, %v", text, err)
	}
	must(t, h.Unlock())
}

func methods(t *testing.T, of reflect.Type, want ...string) {
	t.Helper()
	var got []string
	for i := range of.NumMethod() {
		got = append(got, of.Method(i).Name)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v has the methods %q, want %q", of, got, want)
	}
}
