package owner_test

import (
	"context"
	"errors"
	"testing"

	"relock/internal/lockerr"
	"relock/internal/owner"
)

type section struct{ around context.Context }

func (x section) Around() context.Context { return x.around }

// in returns a context in a section that a Lock with ctx has begun.
func in(ctx context.Context) context.Context {
	return context.WithValue(ctx, owner.Key{}, section{ctx})
}

// The named owner is the innermost one around the sections, unless Without has hidden it.
func TestFrom(t *testing.T) {
	background := context.Background()
	named := owner.With(background, "job")
	for what, c := range map[string]struct {
		ctx  context.Context
		want string
	}{
		"nothing":                  {background, ""},
		"no context":               {nil, ""},
		"a name":                   {named, "job"},
		"sections in a name":       {in(in(named)), "job"},
		"a name in a section":      {owner.With(in(named), "inner"), "inner"},
		"sections alone":           {in(background), ""},
		"a hidden name":            {owner.Without(named), ""},
		"a section in a hidden":    {in(owner.Without(named)), ""},
		"a name in a hidden":       {owner.With(owner.Without(named), "inner"), "inner"},
		"an empty name is a name":  {owner.With(background, ""), ""},
		"Without where nothing is": {owner.Without(background), ""},
	} {
		if id, ok := owner.From(c.ctx); id != c.want || ok != (c.want != "" || what == "an empty name is a name") {
			t.Errorf("%s: %q, %v, want %q", what, id, ok, c.want)
		}
	}
	var none context.Context // which a Lock reports
	if owner.With(none, "job") != nil || owner.Without(none) != nil {
		t.Error("a nil context became another")
	}
	if owner.Without(background) != background {
		t.Error("Without has wrapped a context that has no owner")
	}
}

// A name in the shape of a session's own owners is refused as long as the session lives.
func TestCheck(t *testing.T) {
	release := owner.Reserve("session:a")
	for name, ok := range map[owner.Name]bool{
		"job": true, "session": true, "session:a": true, "other:7": true, "session:a7": true,
		"": false, "session:a:7": false, "session:a:": false,
	} {
		if err := name.Check(); (err == nil) != ok || err != nil && !errors.Is(err, lockerr.ErrArgument) {
			t.Errorf("%q: %v, want it allowed: %v", name, err, ok)
		}
	}
	again := owner.Reserve("session:a") // a session that has the same id
	release()
	if owner.Name("session:a:7").Check() == nil {
		t.Error("the end of one session has released the id of another")
	}
	again()
	if err := owner.Name("session:a:7").Check(); err != nil {
		t.Errorf("of a session that has ended: %v", err)
	}
}
