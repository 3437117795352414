package rlock_test

import (
	"context"
	"encoding/json"
	"reflect"
	"sync"
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// The types of this package are defined by those of the machine, and show nothing of what these
// can do: neither methods that a field would lend them, nor fields.
func TestTypesShowTheirOwnMethodsOnly(t *testing.T) {
	methods[plainMethods](t, (*rlock.Mutex)(nil))
	methods[plainMethods](t, (*fairlock.Mutex)(nil))
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
	all, ok := section.(sectionMethods)
	if !ok {
		t.Fatalf("%T does not have all methods of %v", section, reflect.TypeFor[sectionMethods]())
	}
	methods(t, all)
	if text, err := json.Marshal(section); err != nil || string(text) != "{}" {
		t.Errorf("as JSON: %s, %v", text, err)
	}
	must(t, h.Unlock())
}

type plainMethods interface {
	Do(context.Context, func(context.Context) error, ...rlock.LockOption) error
	ForceUnlock(context.Context) (bool, error)
	Lock(context.Context, ...rlock.LockOption) (context.Context, *rlock.Hold, error)
	Locker(context.Context) sync.Locker
	Name() string
	Session() *rlock.Session
	State(context.Context) (rlock.State, error)
	TryLock(context.Context, ...rlock.LockOption) (context.Context, *rlock.Hold, error)
	Waiters(context.Context) (int, error)
}

type sectionMethods interface {
	context.Context
	Around() context.Context // for the machine, which looks for the sections around a Lock
	String() string
}

// methods checks that a value, which has all methods of the interface Want, has no others. It does not
// ask for them by reflect.Type.Method: the linker then keeps all methods of all types, and the binary of
// this package's tests is twice as large as it has to be.
func methods[Want any](t *testing.T, of Want) {
	t.Helper()
	got, want := reflect.TypeOf(of), reflect.TypeFor[Want]()
	if got.NumMethod() != want.NumMethod() {
		t.Errorf("%v has %d methods, and %v %d", got, got.NumMethod(), want, want.NumMethod())
	}
}
