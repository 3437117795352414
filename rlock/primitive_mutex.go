package rlock

// mutex is the Primitive behind Mutex: Redisson's RLock, and RFencedLock if fenced. Names are built once, here.
type mutex struct {
	Names
	channel string
	ids     string   // key of the ids of holds
	keys    []string // the lock and, if fenced, the token
	both    []string // the lock and the ids
}

func newMutex(n Names, fenced bool) *mutex {
	m := &mutex{
		Names: n, channel: n.Prefixed("redisson_lock__channel"), ids: n.Prefixed("relock_holds"), keys: []string{n.Key()},
	}
	m.both = []string{n.Key(), m.ids}
	if fenced {
		m.keys = append(m.keys, n.Prefixed("redisson_lock_token"))
	}
	return m
}

func (m *mutex) Channel() string { return m.channel }
func (m *mutex) Traits() Traits  { return Traits{Exclusive: true} }
func (m *mutex) Part() int       { return 0 }

func (m *mutex) Acquire(op *Op) Command {
	if op.ID == "" {
		return Command{Script: acquireScript, Keys: m.keys, Args: []string{op.Owner, itoa(millis(op.Lease))}}
	}
	draw := "0" // an owner that enters draws anyway; the script knows whether it does
	if op.Draw && op.Holds > 0 {
		draw = "1"
	}
	return Command{
		Script: acquireByIDScript, Keys: append([]string{m.Key(), m.ids}, m.keys[1:]...),
		Args: []string{op.Owner, itoa(millis(op.Lease)), itoa(int64(op.Holds)), op.ID, draw},
	}
}

func (m *mutex) Release(op *Op) Command {
	args := []string{op.Owner, m.channel, m.Publish(), itoa(int64(op.Holds)), itoa(millis(op.Keep))}
	if len(op.Ends) > 0 {
		return Command{Script: releaseByIDScript, Keys: m.both, Args: append(args, op.Ends...)}
	}
	if op.ByID {
		return Command{Script: releaseScript, Keys: m.both, Args: args}
	}
	return Command{Script: releaseScript, Keys: m.keys[:1], Args: args, Wider: m.both}
}

func (m *mutex) Extend(op *Op) Command {
	keys := m.keys[:1]
	if op.ByID {
		keys = m.both
	}
	return Command{Script: extendScript, Keys: keys, Args: []string{op.Owner, itoa(millis(op.Lease)), itoa(int64(op.Holds))}}
}

func (m *mutex) Renew() *Script { return renewScript }

func (m *mutex) RenewArgs(owner string, _ int, byID bool) (keys, args []string) {
	if byID {
		return m.both, []string{owner, ""}
	}
	return m.keys[:1], []string{owner}
}
