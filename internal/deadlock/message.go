package deadlock

import (
	"fmt"
	"relock/internal/inbox"
	"strconv"
	"strings"

	"relock/internal/api"
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

// encode returns the text of a message, and false if it is too long to be sent. After the prefix
// come fields, each as "<length>:<bytes>".
func (m *message) encode() (string, bool) {
	var b strings.Builder
	b.WriteString(inbox.Deadlock)
	put := func(s string) { b.WriteString(strconv.Itoa(len(s)) + ":" + s) }
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

// parse is the opposite of encode.
func parse(text string) (m message, err error) {
	rest, ok := strings.CutPrefix(text, inbox.Deadlock)
	if !ok || len(text) > maxMessage {
		return m, fmt.Errorf("deadlock: not a message of at most %d bytes", maxMessage)
	}
	r := reader{rest: rest}
	k := r.text()
	m.nonce = r.number()
	m.at = int(min(r.number(), maxSteps+1))
	for r.err == nil && r.rest != "" {
		var s Step
		s.Wait = Wait{ID: r.text(), Session: r.text(), Key: r.text(), Side: r.text(), Label: r.text()}
		s.Holder = Claim{Session: r.text(), Number: r.number(), Key: s.Wait.Key}
		m.steps = append(m.steps, s)
	}
	if r.err != nil {
		return message{}, r.err
	}
	n := len(m.steps)
	switch {
	case n == 0 || n > maxSteps:
		err = fmt.Errorf("deadlock: a message with %d steps", n)
	case k == string(seek) && m.at == 0, k == string(hint) && m.at == 0 && n == 1, k == string(confirm) && 0 < m.at && m.at <= n:
		m.kind = kind(k[0])
		return m, nil
	default:
		err = fmt.Errorf("deadlock: a message of kind %q at %d of %d", k, m.at, n)
	}
	return message{}, err
}

// A reader takes fields off a text.
type reader struct {
	rest string
	err  error
}

func (r *reader) text() (s string) {
	if r.err != nil {
		return ""
	}
	length, rest, ok := strings.Cut(r.rest, ":")
	n, err := strconv.ParseUint(length, 10, 32)
	if !ok || err != nil || n > uint64(len(rest)) {
		r.err = fmt.Errorf("deadlock: a field of %s bytes where %d are left", api.Quote(length), len(rest))
		return ""
	}
	r.rest = rest[n:]
	return rest[:n]
}

func (r *reader) number() uint64 {
	n, err := strconv.ParseUint(r.text(), 10, 64)
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("deadlock: %w", err)
	}
	return n
}
