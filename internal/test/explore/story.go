package explore

import (
	"fmt"
	"strings"
)

// String is the step in few words; [Replay] reads it.
func (s step) String() string {
	return s.kind.String() + " " + ids[s.who:s.who+1] + " " + fmt.Sprint(s.arg)
}

func (k stepKind) String() string {
	return [...]string{execute: "execute", reply: "reply", message: "message", own: "own", runLate: "late", resume: "resume",
		leisure: "leisure", pass: "pass", loseReply: "lose-reply", giveUp: "give-up", loseMessage: "lose-message", stop: "stop",
		die: "die", vanish: "vanish", remove: "delete", force: "force"}[k]
}

// tell describes a step that is about to be taken.
func (w *world) tell(s step) string {
	name, wi := who(int(s.who)), &w.wires[s.who]
	c := w.clients[s.who]
	switch s.kind {
	case execute:
		return "Redis executes the " + c.sends(wi.cmds[0])
	case runLate:
		return "Redis executes, late, the " + c.sends(w.late[s.arg].command)
	case reply:
		return fmt.Sprintf("%s gets the answer to its %s: %v", name, c.sends(wi.answers[0].command), wi.answers[0].reply)
	case loseReply:
		return "the answer to the " + c.sends(wi.answers[0].command) + " is lost"
	case giveUp:
		return fmt.Sprintf("%s gives up its %s, which is still on its way", name, c.sends(wi.cmds[0]))
	case message:
		return fmt.Sprintf("%s hears %q", name, wi.parcels[0].text)
	case loseMessage:
		return fmt.Sprintf("%s does not get the message %q", name, wi.parcels[0].text)
	case own, leisure:
		return name + " " + c.describe(s.arg)
	case stop:
		return name + " stops"
	case resume:
		return name + " goes on"
	case die:
		return name + " dies"
	case vanish:
		return name + " vanishes, and Redis does not notice"
	case remove:
		return "the key is deleted"
	case force:
		return "the lock is force-unlocked"
	}
	return fmt.Sprintf("%d ms pass", w.nextTime()-w.now())
}

// story is what happens in steps, numbered, with what Redis has after each that changes that; and at the end the
// steps as [Replay] takes them.
func (set *Setup) story(steps []step, wo *worker) string {
	var b strings.Builder
	w := set.begin()
	last := dump(&w.redis)
	for i, s := range steps {
		fmt.Fprintf(&b, "%3d. %s\n", i+1, w.tell(s))
		w = w.copy()
		w.take(s, wo)
		if d := dump(&w.redis); d != last && s.kind != pass {
			last = d
			b.WriteString(d + "\n")
		}
	}
	if what := w.check(); what != "" {
		fmt.Fprintf(&b, "   Then %s.\n", what)
	}
	fmt.Fprintf(&b, "As a test:\n\t{%q, []string{", set.Name)
	for i, s := range steps {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%q", s)
	}
	b.WriteString("}},\n")
	return b.String()
}

// Replay takes steps of a story in the setup of that name, then the calm run to its end, and returns what was wrong
// on the way, "" if nothing was. A step that is not possible is an error.
func Replay(name string, steps []string) (wrong string, err error) {
	set, err := setupOf(name)
	if err != nil {
		return "", err
	}
	wo := newWorker(set, newSeeds())
	defer wo.close()
	w := set.begin()
	for i, text := range steps {
		s, ok := w.find(text)
		if !ok {
			return "", fmt.Errorf("step %d, %q, is not possible", i+1, text)
		}
		w = w.copy()
		w.take(s, wo)
		if what := w.check(); what != "" {
			return fmt.Sprintf("step %d: %s", i+1, what), nil
		}
	}
	_, cost, what := w.calm(wo, nil)
	if what == "" {
		what = set.tooLong(cost, int(set.faults-w.faults))
	}
	return what, nil
}

// find returns the step of a state that has the name.
func (w *world) find(text string) (step, bool) {
	for _, s := range w.steps(nil) {
		if s.String() == text {
			return s, true
		}
	}
	return step{}, false
}
