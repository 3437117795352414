package rlock

// mutex is the Primitive behind Mutex: Redisson's RLock, and RFencedLock if token is
// set. Names are built once, here.
type mutex struct {
	s                  *Session
	name, key, channel string
	token              string // key of the fencing token; "" unless fenced
	keys               []string
}

func (m *mutex) init(s *Session, fenced bool) {
	m.s = s
	m.key = s.cfg.Prefix + m.name
	m.channel = s.names.Prefix("redisson_lock__channel", m.key)
	m.keys = []string{m.key}
	if fenced {
		m.token = s.names.Prefix("redisson_lock_token", m.key)
		m.keys = append(m.keys, m.token)
	}
}

func (m *mutex) Name() string    { return m.name }
func (m *mutex) Key() string     { return m.key }
func (m *mutex) Channel() string { return m.channel }
func (m *mutex) Exclusive() bool { return true }
func (m *mutex) Part() int       { return 0 }

func (m *mutex) Acquire(op *Op) Command {
	draw := "0"
	if op.Draw && m.token != "" {
		draw = "1"
	}
	if op.Request == "" {
		return Command{acquireScript, m.keys,
			[]string{op.Owner, itoa(millis(op.Lease)), itoa(int64(op.Known)), itoa(int64(op.Want)), draw}}
	}
	keys := []string{m.key, m.record(op)}
	if m.token != "" {
		keys = append(keys, m.token)
	}
	if op.Known == 0 {
		draw = "0" // the script draws if the owner enters, and knows better than we
	}
	return Command{acquireSharedScript, keys,
		[]string{op.Owner, itoa(millis(op.Lease)), itoa(int64(op.Known)), itoa(millis(op.Remember)), draw}}
}

func (m *mutex) Release(op *Op) Command {
	if op.Request == "" {
		return Command{releaseScript, m.keys[:1],
			[]string{op.Owner, itoa(int64(op.Known)), itoa(int64(op.Want)), itoa(millis(op.Keep)), m.channel, m.s.pub}}
	}
	return Command{releaseSharedScript, []string{m.key, m.record(op)},
		[]string{op.Owner, itoa(int64(op.Known - op.Want)), itoa(millis(op.Remember)), m.channel, m.s.pub}}
}

func (m *mutex) Undo(op *Op) Command {
	return Command{undoSharedScript, []string{m.key, m.record(op)},
		[]string{op.Owner, itoa(millis(op.Remember)), m.channel, m.s.pub}}
}

func (m *mutex) Extend(op *Op) Command {
	shorten := "0"
	if op.Shorten {
		shorten = "1"
	}
	return Command{extendScript, m.keys[:1], []string{op.Owner, itoa(millis(op.Lease)), shorten}}
}

func (m *mutex) Renew() *Script { return renewScript }

func (m *mutex) RenewArgs(owner string, _ int) (keys, args []string) {
	return m.keys[:1], []string{owner}
}

// record is the key under which a request of a shared owner is remembered.
func (m *mutex) record(op *Op) string {
	return m.s.names.Prefix("relock_request", m.key) + ":" + op.Request
}
