package locktest

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"relock/internal/test/redistest"
)

// slotTag puts all keys of the cases into one slot.
const slotTag = "{moves}"

// WhileASlotMoves runs the cases on the node of a Cluster that their slot is about to leave. There Redis
// refuses a script of which a key is missing, before it runs; and inside of a script each command
// with a key that is not there (any more). So a script that touches a key after it has taken the
// last member out of it fails midway. Each must be refused as a whole, or do what it does elsewhere;
// or a second run must do the rest, and reply as that of a script whose answer was lost.
func WhileASlotMoves(t *testing.T, sources map[string]string, cases []ScriptCase, plain ...func(state string) string) {
	c := redistest.NewCluster(t)
	from, to := c.Node(c.SlotOwner(t, redistest.Slot(slotTag))), ""
	for _, addr := range c.Addrs {
		if addr != from.Addr {
			to = addr
		}
	}
	target, err := c.Node(to).Do(t, "CLUSTER", "MYID").ToString()
	Must(t, err)
	slot, ran := strconv.Itoa(redistest.Slot(slotTag)), 0
	state := func() string {
		got := strings.ReplaceAll(Describe(t, from), slotTag, "")
		for _, fn := range plain {
			got = fn(got)
		}
		return got
	}
	for _, k := range cases {
		k.begin(t, from)
		eval := k.tagged(sources[k.script])
		before := state()
		Must(t, from.Do(t, "CLUSTER", "SETSLOT", slot, "MIGRATING", target).Error())
		got := reply(from, t, eval)
		Must(t, from.Do(t, "CLUSTER", "SETSLOT", slot, "STABLE").Error())
		after, want := state(), k.state
		if k.moving != "" {
			want = k.moving
		}
		switch {
		case refusedToMove.MatchString(got):
			if after != before {
				t.Errorf("%s/%s was refused, but Redis has %q, and had %q", k.script, k.name, after, before)
			}
		case strings.Contains(got, "non local key"):
			again, want := reply(from, t, eval), k.again
			switch {
			case k.rest != "":
				want = k.rest
			case after == before:
				want = k.first
			}
			if end := state(); end != k.state || again != want {
				t.Errorf("%s/%s ended midway, with %q; then replied %s, and Redis has %q; want %s and %q", k.script, k.name, after, again, end, want, k.state)
			}
		case got != k.first || after != want:
			t.Errorf("%s/%s replied %s, and Redis has %q; want %s and %q", k.script, k.name, got, after, k.first, want)
		default:
			ran++
		}
	}
	if ran == 0 {
		t.Error("all scripts were refused")
	}
}

// begin has nothing stand on the node but what stands there before the script.
func (c ScriptCase) begin(t *testing.T, on *redistest.Server) {
	on.FlushAll(t)
	for _, cmd := range c.setup {
		cmd = slices.Clone(cmd)
		cmd[1] = slotTag + cmd[1]
		Must(t, on.Do(t, cmd...).Error())
	}
}

// tagged is the command that runs the script, with all keys in the slot.
func (c ScriptCase) tagged(source string) []string {
	eval := []string{"EVAL", source, strconv.Itoa(len(c.keys))}
	for _, key := range c.keys {
		eval = append(eval, slotTag+key)
	}
	return append(eval, c.args...)
}

// Rest says what the second run replies to do the rest, where that is not what it replies when the first
// has done all.
func (c ScriptCase) Rest(reply string) ScriptCase {
	c.rest = reply
	return c
}

// Moving says what Redis has where the slot moves, where that is not what it has elsewhere: a key that is
// gone cannot be made anew there.
func (c ScriptCase) Moving(state string) ScriptCase {
	c.moving = state
	return c
}

// refusedToMove are the answers to a script of which some of the keys, or all, are not there.
var refusedToMove = regexp.MustCompile(`^(TRYAGAIN|ASK) `)
