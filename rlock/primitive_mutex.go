package rlock

// mutex is the Primitive behind Mutex: Redisson's RLock, and RFencedLock if token is
// set. Names are built once, here.
type mutex struct {
	Names
	channel string
	ids     string // key of the ids of holds whose owner is shared
	token   string // key of the fencing token; "" unless fenced
	keys    []string
}

func newMutex(n Names, fenced bool) *mutex {
	m := &mutex{Names: n, channel: n.Prefixed("redisson_lock__channel"), ids: n.Prefixed("relock_holds"), keys: []string{n.Key()}}
	if fenced {
		m.token = n.Prefixed("redisson_lock_token")
		m.keys = append(m.keys, m.token)
	}
	return m
}

func (m *mutex) Channel() string { return m.channel }
func (m *mutex) Traits() Traits  { return Traits{Exclusive: true} }
func (m *mutex) Part() int       { return 0 }

func (m *mutex) Acquire(op *Op) Command {
	draw := "0"
	if op.Draw && m.token != "" {
		draw = "1"
	}
	if op.Known == 0 && op.Request != "" {
		draw = "0" // the script draws if the owner enters, and knows better than we
	}
	if op.Request == "" {
		return Command{acquireScript, m.keys,
			[]string{op.Owner, itoa(millis(op.Lease)), itoa(int64(op.Known)), itoa(int64(op.Want)), draw}}
	}
	return Command{acquireSharedScript, append([]string{m.Key(), m.ids}, m.keys[1:]...),
		[]string{op.Owner, itoa(millis(op.Lease)), itoa(int64(op.Known)), op.Request, draw}}
}

func (m *mutex) Release(op *Op) Command {
	if len(op.Ends) == 0 {
		return Command{releaseScript, m.keys[:1],
			[]string{op.Owner, itoa(int64(op.Known)), itoa(int64(op.Want)), itoa(millis(op.Keep)), m.channel, m.Publish()}}
	}
	return Command{releaseSharedScript, []string{m.Key(), m.ids},
		append([]string{op.Owner, m.channel, m.Publish()}, op.Ends...)}
}

func (m *mutex) Extend(op *Op) Command {
	shorten := "0"
	if op.Shorten {
		shorten = "1"
	}
	keys := m.keys[:1]
	if op.ByID {
		keys = []string{m.Key(), m.ids}
	}
	return Command{extendScript, keys, []string{op.Owner, itoa(millis(op.Lease)), shorten}}
}

func (m *mutex) Renew() *Script { return renewScript }

func (m *mutex) RenewArgs(owner string, _ int, byID bool) (keys, args []string) {
	if byID {
		return []string{m.Key(), m.ids}, []string{owner, ""}
	}
	return m.keys[:1], []string{owner}
}
