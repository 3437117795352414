package explore

import (
	"fmt"
	"slices"
	"strconv"

	"relock/internal/kind"
	"relock/internal/mutex"
	"relock/internal/script"
)

// Callers of several sessions may name one owner: then they are in together, and each has a hold with an id. Such a session is
// called and asks, since nobody else could give it a hold of its own. One whose owner is inside elsewhere passes those who wait.

// theName is the owner's. An entry has the session in front of it, and so reads like one of that session's first claim.
const theName = ":1"

// A Named is a mutex whose claims have holds of the named owner: the id of a claim's hold is what else would be its owner.
type Named struct{ *mutex.Primitive }

// Acquire asks for one more hold.
func (n Named) Acquire(op *kind.Op) script.Command {
	of := *op
	of.Owner, of.ID, of.Private = theName, op.Owner, false
	return n.Primitive.Acquire(&of)
}

// Release ends the hold of a claim, or takes its entry out of the line.
func (n Named) Release(op *kind.Op) script.Command {
	of := *op
	of.Owner, of.All, of.Private, of.ByIDs = theName, false, false, true
	if op.All {
		of.Ends = []string{op.Owner}
	}
	return n.Primitive.Release(&of)
}

// Renew names the lock and the ids.
func (n Named) Renew(op *kind.Op) script.Command {
	of := *op
	of.Owner, of.Private, of.ByIDs = theName, false, true
	return n.Primitive.Renew(&of)
}

// withNames gives the claims of the first sessions of a setup one name.
func (set *Setup) withNames(p *mutex.Primitive, named int) {
	ours := set.clients
	set.clients = func(set *Setup) []client {
		all := ours(set)
		for i, c := range all[:named] {
			r := c.(*locker).role
			r.prim, r.mode, r.want.Named, r.want.ID = Named{p}, 'n', true, fmt.Sprintf("%032d", i)
		}
		return all
	}
	set.perms = slices.DeleteFunc(set.perms, func(p []int) bool {
		return slices.ContainsFunc(p[:named], func(who int) bool { return who >= named })
	})
	holds := func(w *world) (all []string) {
		for _, id := range w.redis.Do("SMEMBERS", p.IDs()).Elems {
			all = append(all, id.Text)
		}
		return all
	}
	set.owners = func(w *world) (owners []string) {
		for _, owner := range w.redis.Fields("lock") {
			if owner == theName {
				owners = append(owners, holds(w)...)
			} else {
				owners = append(owners, owner)
			}
		}
		return owners
	}
	set.stands = func(w *world, who int, t trust) bool {
		owner := ids[who:who+1] + ":" + strconv.Itoa(int(t.num))
		_, alone := w.redis.Field("lock", owner)
		return alone != (t.mode == 'n') && contains(set.owners(w), owner)
	}
	set.counts = func(w *world) string {
		if n, ok := w.redis.Field("lock", theName); ok && n != strconv.Itoa(len(holds(w))) {
			return "the name has " + n + " holds, and " + strconv.Itoa(len(holds(w))) + " ids"
		}
		return ""
	}
	set.judge = func() judge { return byName{} }
	// Nobody could tell whose hold a late acquisition brings back.
	set.mayFail &^= failing(remove, force)
}

// byName judges in which order callers get the lock. A caller whose owner is inside already gets it too, also in front of those that wait.
type byName struct{ inOrder }

func (j byName) copy() judge { return j }

func (j byName) ran(w *world, who int8, c *command, before *world) string {
	if _, inside := before.redis.Field("lock", theName); inside {
		if _, stays := w.redis.Field("lock", theName); stays {
			return ""
		}
	}
	return j.inOrder.ran(w, who, c, before)
}
