package holds_test

import (
	"context"
	"errors"
	"testing"

	"relock/internal/api"
	"relock/internal/holds"
)

type section struct{ around context.Context }

func (x section) Around() context.Context { return x.around }

// in returns a context in a section that a Lock with ctx has begun.
func in(ctx context.Context) context.Context {
	return context.WithValue(ctx, holds.OwnerKey{}, section{ctx})
}

// The named owner is the innermost one around the sections, unless Without has hidden it.
func TestFrom(t *testing.T) {
	background := context.Background()
	named := holds.WithOwner(background, "job")
	for what, c := range map[string]struct {
		ctx  context.Context
		want string
	}{
		"nothing":                  {background, ""},
		"no context":               {nil, ""},
		"a name":                   {named, "job"},
		"sections in a name":       {in(in(named)), "job"},
		"a name in a section":      {holds.WithOwner(in(named), "inner"), "inner"},
		"sections alone":           {in(background), ""},
		"a hidden name":            {holds.WithoutOwner(named), ""},
		"a section in a hidden":    {in(holds.WithoutOwner(named)), ""},
		"a name in a hidden":       {holds.WithOwner(holds.WithoutOwner(named), "inner"), "inner"},
		"an empty name is a name":  {holds.WithOwner(background, ""), ""},
		"Without where nothing is": {holds.WithoutOwner(background), ""},
	} {
		if id, ok := holds.OwnerOf(c.ctx); id != c.want || ok != (c.want != "" || what == "an empty name is a name") {
			t.Errorf("%s: %q, %v, want %q", what, id, ok, c.want)
		}
	}
	var none context.Context // which a Lock reports
	if holds.WithOwner(none, "job") != nil || holds.WithoutOwner(none) != nil {
		t.Error("a nil context became another")
	}
	if holds.WithoutOwner(background) != background {
		t.Error("Without has wrapped a context that has no owner")
	}
}

// A name in the shape of a session's own owners is refused as long as the session lives.
func TestCheck(t *testing.T) {
	release := holds.ReserveOwners("session:a")
	for name, ok := range map[holds.OwnerName]bool{
		"job": true, "session": true, "session:a": true, "other:7": true, "session:a7": true,
		"": false, "session:a:7": false, "session:a:": false,
	} {
		if err := name.Check(); (err == nil) != ok || err != nil && !errors.Is(err, api.ErrArgument) {
			t.Errorf("%q: %v, want it allowed: %v", name, err, ok)
		}
	}
	again := holds.ReserveOwners("session:a") // a session that has the same id
	release()
	if holds.OwnerName("session:a:7").Check() == nil {
		t.Error("the end of one session has released the id of another")
	}
	again()
	if err := holds.OwnerName("session:a:7").Check(); err != nil {
		t.Errorf("of a session that has ended: %v", err)
	}
}
