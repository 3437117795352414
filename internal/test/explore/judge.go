package explore

import "fmt"

// inOrder is the judge of a lock whose line is served in the order of arrival, as long as nothing has failed.
type inOrder struct{}

func (j inOrder) copy() judge { return j }
func (inOrder) write(*hasher) {}

func (inOrder) ran(w *world, who int8, c *command, before *world) string {
	had, has := before.set.owners(before), w.set.owners(w)
	for _, owner := range has {
		if in, _, ok := claimOf(owner); contains(had, owner) || ok && w.foreign(in) {
			continue
		}
		if c.what == nests {
			return owner + " has the lock by a nested hold"
		}
		if first := before.firstWaiter(w, append(has, had...)); first != "" && !before.standsBefore(owner, first) {
			return fmt.Sprintf("%s has the lock, and %s is the first of the line", owner, first)
		}
	}
	return ""
}

// standsBefore reports whether an owner stands in the line, and not behind another one; one that was passed over has its
// old place again when it is heard of.
func (w *world) standsBefore(owner, other string) bool {
	at := map[string]float64{}
	for k := range w.redis.Keys {
		for _, m := range k.Members {
			if isEntry(m.Name) {
				at[ownerOf(m.Name)] = place(m.Score)
			}
		}
	}
	mine, ok := at[owner]
	return ok && mine <= at[other]
}

// firstWaiter is the owner of the first entry in the line whose session is there and waits for it, but for those that are
// in; "" if there is none, or if the first has wanted more than is free for a second: then others may pass it. An entry that
// was called leaves the order to those who come, but one that is never given anything keeps its place for as long as what is
// free is left to it.
func (w *world) firstWaiter(of *world, in []string) (owner string) {
	position, asks := 0.0, false
	marks := make(map[string]float64)
	for k := range w.redis.Keys {
		for _, m := range k.Members {
			if m.Score > 1e15 && m.Name[0] == 'k' && w.now()-int64(m.Score-sinceScore['k']) >= 1000 {
				return ""
			}
			marks[m.Name] = m.Score
		}
	}
	called, calls := marks["c"]
	for m, score := range marks {
		if !isEntry(m) || contains(in, ownerOf(m)) || owner != "" && score > position {
			continue
		}
		who, num, ok := claimOf(ownerOf(m))
		heard := 5e15 - marks["s"+ids[who:who+1]]
		if ok && of.wires[who].state == alive && of.clients[who].lives(num) && int64(heard) >= w.now() {
			owner, position, asks = ownerOf(m), score, m[0] == 'C' || m[0] == 'n'
		}
	}
	if calls && !(asks && int64(called-untilScore['c']) > w.now()) {
		return ""
	}
	return owner
}

func contains(all []string, s string) bool {
	for _, a := range all {
		if a == s {
			return true
		}
	}
	return false
}
