package deadlock

import (
	"strconv"
	"strings"

	"relock/internal/inbox"
)

// A message goes from session to session.
type message struct {
	kind  kind
	nonce uint64 // tells a search, or a confirmation, from all others
	at    int    // confirm: how many steps are confirmed
	steps Cycle  // seek: the path so far; hint: the step of the wait that is to seek
}

type kind byte

const (
	seek    kind = 's'
	hint    kind = 'h'
	confirm kind = 'c'
)

// maxMessage bounds what is sent: names may be of any length.
const maxMessage = 64 << 10

// encode returns the text of a message, and false if it is too long to be sent. Behind the prefix
// come fields.
func (m *message) encode() (string, bool) {
	var b strings.Builder
	b.WriteString(inbox.Deadlock)
	put := func(s string) { b.WriteString(inbox.Field(s)) }
	number := func(n uint64) { put(strconv.FormatUint(n, 10)) }
	put(string(m.kind))
	number(m.nonce)
	number(uint64(m.at))
	for _, s := range m.steps {
		put(s.Wait.ID)
		put(s.Wait.Session)
		put(s.Wait.Key)
		put(s.Wait.Side)
		put(s.Wait.Label)
		put(s.Holder.Session)
		number(s.Holder.Number)
	}
	return b.String(), b.Len() <= maxMessage
}

// parse is the opposite of encode. It reports whether the text is a message.
func parse(text string) (m message, ok bool) {
	rest, ok := strings.CutPrefix(text, inbox.Deadlock)
	if !ok || len(text) > maxMessage {
		return message{}, false
	}
	r := reader{rest: rest}
	k := r.text()
	m.nonce = r.number()
	m.at = int(min(r.number(), maxSteps+1))
	for !r.bad && r.rest != "" {
		var s Step
		s.Wait = Wait{ID: r.text(), Session: r.text(), Key: r.text(), Side: r.text(), Label: r.text()}
		s.Holder = Claim{Session: r.text(), Number: r.number(), Key: s.Wait.Key}
		m.steps = append(m.steps, s)
	}
	n := len(m.steps)
	switch {
	case r.bad, n == 0, n > maxSteps:
	case k == string(seek) && m.at == 0, k == string(hint) && m.at == 0 && n == 1, k == string(confirm) && 0 < m.at && m.at <= n:
		m.kind = kind(k[0])
		return m, true
	}
	return message{}, false
}

// A reader takes fields off a text.
type reader struct {
	rest string
	bad  bool // a field was none
}

func (r *reader) text() string {
	s, rest, ok := inbox.CutField(r.rest)
	r.rest, r.bad = rest, r.bad || !ok
	return s
}

func (r *reader) number() uint64 {
	n, err := strconv.ParseUint(r.text(), 10, 64)
	r.bad = r.bad || err != nil
	return n
}
