package faulttest

import "strings"

// pending is a command whose reply has not passed yet.
type pending struct {
	cmd   []string // as sent; nil when the proxy answers itself
	local *reply   // the proxy's own answer
	rule  *rule    // what is to happen to the reply; nil for nothing

	// Of the commands of the subscribe family, which are answered once for each
	// channel: how many answers have passed, and how many there will be.
	got, want int
}

// kind returns the command's name in lower case, as confirmations have it.
func (p *pending) kind() string {
	if p.local != nil {
		return ""
	}
	return strings.ToLower(p.cmd[0])
}

// tracker finds out which command a reply belongs to. Replies come in the order
// of the commands, but for what the server sends unasked: messages, and the
// notice that a subscription has ended because its slot moved. It does not know
// CLIENT REPLY, MONITOR, and subscribing inside MULTI.
type tracker struct {
	queue []*pending

	resp3 bool // HELLO 3 was answered: what is sent unasked is marked
	// subscribed is set when the connection has ever subscribed. Only then, in
	// RESP2, is an array that looks like a message one.
	subscribed bool
	channels   map[string]map[string]bool // by kind: subscribe, psubscribe, ssubscribe
}

// opens maps the commands that end subscriptions to those that begin them.
var opens = map[string]string{
	"unsubscribe": "subscribe", "punsubscribe": "psubscribe", "sunsubscribe": "ssubscribe",
}

// inFamily reports whether the name, in lower case, is of the subscribe family.
func inFamily(name string) bool {
	switch name {
	case "subscribe", "psubscribe", "ssubscribe", "unsubscribe", "punsubscribe", "sunsubscribe":
		return true
	}
	return false
}

// sent notes a command that is about to be forwarded, or whose answer by the
// proxy awaits its turn.
func (t *tracker) sent(p *pending) {
	if inFamily(p.kind()) {
		t.subscribed = true
	}
	t.queue = append(t.queue, p)
}

// local removes and returns the proxy's own answer when it is its turn.
func (t *tracker) local() *reply {
	if len(t.queue) == 0 || t.queue[0].local == nil {
		return nil
	}
	r := t.queue[0].local
	t.queue = t.queue[1:]
	return r
}

// received notes a value that the server has sent. It returns the command that
// this is the (first) answer to, or nil when it is not one, and whether it is a
// message of a channel.
func (t *tracker) received(v value) (p *pending, message bool) {
	if v.typ == '>' || !t.resp3 && t.subscribed && v.typ == '*' {
		if kind := first(v); kind == "message" || kind == "pmessage" || kind == "smessage" {
			return nil, true
		} else if inFamily(kind) {
			return t.confirmed(kind, v), false
		}
		if v.typ == '>' {
			return nil, false
		}
	}
	if len(t.queue) == 0 {
		return nil, false // such as the farewell of a server that has too many clients
	}
	p = t.queue[0]
	t.queue = t.queue[1:]
	switch p.kind() {
	case "hello":
		if v.typ == '%' || v.typ == '*' {
			t.resp3 = v.typ == '%'
		}
	case "reset":
		t.resp3 = false
	}
	return p, false
}

// confirmed notes the confirmation v of a kind, and returns the command when it
// is its first.
func (t *tracker) confirmed(kind string, v value) *pending {
	var channel string
	if len(v.elems) > 1 {
		channel = v.elems[1].text
	}
	p := t.answered(kind, channel)
	if t.channels == nil {
		t.channels = map[string]map[string]bool{}
	}
	if open, ends := opens[kind]; ends {
		delete(t.channels[open], channel)
	} else {
		if t.channels[kind] == nil {
			t.channels[kind] = map[string]bool{}
		}
		t.channels[kind][channel] = true
	}
	return p
}

// answered counts a confirmation for the command whose turn it is, unless it is
// not for that one, and returns the command when this is its first.
func (t *tracker) answered(kind, channel string) *pending {
	if len(t.queue) == 0 || t.queue[0].kind() != kind {
		return nil
	}
	p := t.queue[0]
	args := p.cmd[1:]
	if p.want == 0 {
		p.want = len(args)
		if len(args) == 0 { // all channels; one confirmation even if there is none
			p.want = max(1, len(t.channels[opens[kind]]))
		}
	}
	if len(args) > 0 && args[p.got] != channel {
		return nil // sent unasked
	}
	p.got++
	if p.got == p.want {
		t.queue = t.queue[1:]
	}
	if p.got > 1 {
		return nil
	}
	return p
}

// first returns the first element's text.
func first(v value) string {
	if len(v.elems) == 0 {
		return ""
	}
	return v.elems[0].text
}
