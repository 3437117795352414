package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/rueidis"
	"github.com/spf13/cobra"

	"relock/internal/script"
	"relock/rlock"
	"relock/rwlock"
)

// Shown is what show prints: a Lock with all its owners, and who waits.
type Shown struct {
	Lock
	Held    bool     `json:"held"`
	Writers int64    `json:"waiting_writers"` // of a rwlock: those of its writers that wait
	InLine  []InLine `json:"line_sessions"`   // in the order of the line
}

func newShow(g *global) *cobra.Command {
	return &cobra.Command{
		Use:   "show NAME",
		Short: "Show one lock: kind, owners, leases, waiters",
		Long: `Show one lock: its kind, all its owners with their processes, their holds, what is
left of the lease, and who waits: of a plain lock the sessions in its line, in their order.
A session is silent if it was not heard of for so long that its callers do not count.

A free lock leaves nothing in Redis, so its kind is not known then. The exit code is 0 for
a free lock too.`,
		Args: exactlyOneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := g.interruptible()
			defer stop()
			s, err := g.connect(ctx)
			if err != nil {
				return err
			}
			defer s.close()
			shown, err := s.show(ctx, args[0])
			if err != nil {
				return err
			}
			if g.json {
				return writeJSON(cmd.OutOrStdout(), shown)
			}
			return shown.print(cmd.OutOrStdout())
		},
	}
}

// inspect finds out what kind of lock the name is. A free lock has an empty kind.
func (s *server) inspect(ctx context.Context, name string) (*Lock, error) {
	locks, err := s.read(ctx, []string{name})
	if err != nil {
		return nil, err
	}
	l := locks[0]
	if l.denied != nil || l.Kind != "" {
		return l, l.denied
	}
	if l.Free != nil {
		l.Kind = kindCounter
		as := []*Lock{{Name: name, Kind: kindLatch}}
		if _, err := s.countListeners(ctx, as); err != nil {
			return l, err
		}
		if as[0].Wait > 0 { // by its channel alone it is told from a counter
			l.asLatch()
		}
		return l, nil
	}
	if !l.exists {
		return l, nil
	}
	switch kind, err := s.client.Do(ctx, s.client.B().Type().Key(name).Build()).ToString(); {
	case script.Denied(err): // only the text would be the better for it
		return l, errOther(name, "key")
	case err != nil:
		return l, err
	case kind != "none": // it has just ended
		return l, errOther(name, kind)
	}
	return l, nil
}

// show asks all that can be known of one lock.
func (s *server) show(ctx context.Context, name string) (*Shown, error) {
	l, err := s.inspect(ctx, name)
	if err != nil {
		return nil, err
	}
	shown := &Shown{Lock: *l}
	switch l.Kind {
	case kindMutex:
		var st rlock.State
		if st, err = rlock.New(s.session, name).State(ctx); err == nil {
			shown.setOwners(st.Owners, st.TTL.Milliseconds())
		}
	case kindRW:
		var st rwlock.State
		if st, err = rwlock.New(s.session, name).State(ctx); err == nil {
			shown.Mode = st.Mode
			shown.setOwners(st.Owners, st.TTL.Milliseconds())
		}
	case kindSemaphore:
		var now int64
		var out []rueidis.ZScore
		if now, out, err = s.permits(ctx, name); err == nil { // instead of a sample of them
			shown.Owner, shown.TTL = []Owner{}, 0
			shown.addPermits(now, out)
		}
	}
	if err != nil {
		return nil, err
	}
	shown.Held = shown.held()
	if err := s.waitersOf(ctx, &shown.Lock); err != nil {
		return nil, err
	}
	if shown.InLine = []InLine{}; l.Kind == "" || hasLine(l.Kind) {
		now, err := s.now(ctx)
		if err != nil {
			return nil, err
		}
		if shown.InLine, _, err = s.line(ctx, name, now); err != nil {
			return nil, err
		}
		for _, e := range shown.InLine {
			if l.Kind == kindRW && !e.Reads && !e.Silent {
				shown.Writers += e.Callers
			}
		}
	}
	shown.Token, _ = s.client.Do(ctx, s.client.B().Get().Key(s.style.Prefix("redisson_lock_token", name)).Build()).AsInt64()
	if _, err := s.elections(ctx, []*Lock{&shown.Lock}); err != nil {
		return nil, err
	}
	s.label(ctx, []*Lock{&shown.Lock})
	s.labelLine(ctx, shown.InLine)
	return shown, nil
}

// setOwners replaces a sample of the owners by all of them.
func (l *Lock) setOwners(holds map[string]int, ttl int64) {
	l.Owner, l.Count, l.TTL = []Owner{}, len(holds), ttl
	for id, n := range holds {
		l.Owner = append(l.Owner, Owner{ID: id, Holds: int64(n)})
	}
	slices.SortFunc(l.Owner, func(a, b Owner) int { return strings.Compare(a.ID, b.ID) })
}

// permits returns all permits that are out, and Redis's time.
func (s *server) permits(ctx context.Context, name string) (now int64, scores []rueidis.ZScore, err error) {
	now, err = s.now(ctx)
	if err != nil {
		return 0, nil, err
	}
	out := s.client.B().Zrangebyscore().Key(s.style.Suffix(name, "timeout")).
		Min(strconv.FormatInt(now+1, 10)).Max("+inf").Withscores().Build()
	scores, err = s.client.Do(ctx, out).AsZScores()
	if err != nil {
		return 0, nil, fmt.Errorf("read %q: %w", name, err)
	}
	return now, scores, nil
}

// waitersOf counts the waiters of one lock. Where it is free its kind is not known, and
// waiters of any kind count: they may just be about to take it.
func (s *server) waitersOf(ctx context.Context, l *Lock) error {
	kinds := []string{l.Kind}
	if l.Kind == "" {
		kinds = []string{kindMutex, kindRW, kindSemaphore, kindLatch}
	}
	for _, kind := range kinds {
		one := []*Lock{{Name: l.Name, Kind: kind}}
		if _, err := s.countWaiters(ctx, one); err != nil {
			return err
		}
		l.Wait += one[0].Wait
		l.Line = max(l.Line, one[0].Line) // a name has one line
		l.Fair = l.Fair || one[0].Fair
	}
	return nil
}

// print writes the lock for people.
func (l *Shown) print(w io.Writer) error {
	rows := [][]string{{"name", printable(l.Name)}}
	switch {
	case l.Kind == kindCounter:
		rows = append(rows, []string{"kind", "counter, a latch that nobody waits for, or a semaphore with no permits out"})
	case l.Kind == "":
		rows = append(rows, []string{"kind", "not known while it is free"})
	default:
		rows = append(rows, []string{"kind", l.kindText()})
	}
	switch {
	case l.Held:
		rows = append(rows, []string{"state", "held"}, []string{"lease", leaseText(l.TTL)})
	case l.Left != nil:
		rows = append(rows, []string{"count", strconv.FormatInt(*l.Left, 10)})
	case l.Kind != kindCounter:
		rows = append(rows, []string{"state", "free"})
	}
	if l.Free != nil {
		rows = append(rows, []string{"free", strconv.FormatInt(*l.Free, 10)})
	}
	if l.Limit != nil {
		rows = append(rows, []string{"limit", strconv.FormatInt(*l.Limit, 10)})
	}
	if l.Leader != nil {
		rows = append(rows, []string{"leader", printable(l.Leader.Value)}, []string{"term", strconv.FormatInt(l.Leader.Term, 10)})
	}
	if l.Token > 0 {
		rows = append(rows, []string{"token", strconv.FormatInt(l.Token, 10) + " (the highest drawn)"})
	}
	rows = append(rows, []string{"waiting", l.waitingText()})
	err := table(w, rows)
	if err == nil && l.Held {
		err = below(w, l.ownerRows())
	}
	if err == nil && len(l.InLine) > 0 {
		err = below(w, lineRows(l.InLine, l.now))
	}
	return err
}

// below writes one more table.
func below(w io.Writer, rows [][]string) error {
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	return table(w, rows)
}

// leaseText prints what is left of a lease.
func leaseText(ttl int64) string {
	if ttl > noEnd {
		return left(ttl)
	}
	return left(ttl) + " left"
}

// waitingText prints who waits.
func (l *Shown) waitingText() string {
	parts := []string{count(l.Wait, "session listens for the release", "sessions listen for the release")}
	if l.Line > 0 {
		parts = append(parts, count(l.Line, "caller in the line", "callers in the line"))
	}
	if l.Writers > 0 {
		parts = append(parts, count(l.Writers, "of them a writer", "of them writers"))
	}
	return strings.Join(parts, ", ")
}

// ownerRows are the rows that show the owners.
func (l *Shown) ownerRows() [][]string {
	rows := [][]string{{"PROCESS", "RUNNING", "VERSION", "HOLDS", "HELD FOR", "OWNER"}}
	for _, o := range l.Owner {
		row := []string{"not known", "-", "-"}
		if o.Process != nil {
			row = []string{printable(o.Process.Label), o.Process.age(l.now), printable(o.Process.Version)}
		}
		id := printable(o.ID)
		if o.Kept {
			id += " (" + mayBeKept + ")"
		}
		rows = append(rows, append(row, strconv.FormatInt(o.Holds, 10), between(o.Least, o.Most), id))
	}
	return rows
}
