package rlock_test

import (
	"reflect"
	"slices"
	"testing"

	"relock/fairlock"
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
