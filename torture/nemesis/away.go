package nemesis

import (
	"slices"
	"time"

	"relock/internal/test/redistest"
	"relock/torture/proxy"
	"relock/torture/servers"
)

// victims returns a master; of several servers a minority. The fault f is about them alone.
func (r *Redis) victims(f *Fault) []*redistest.Server {
	chosen := []*redistest.Server{r.master()}
	if r.Set.Topology == servers.Several {
		chosen = chosen[:0]
		for _, i := range r.Rnd.Perm(len(r.Set.Nodes))[:1+r.Rnd.IntN(r.Set.Minority())] {
			chosen = append(chosen, r.Set.Nodes[i])
		}
		r.Journal.Hit(f, chosen)
	}
	return chosen
}

func (r *Redis) restart(f *Fault) {
	r.away(r.victims(f), (*redistest.Server).Kill, 2500*time.Millisecond)
}

// forget spares the first of several servers, which has locks that are no quorums.
func (r *Redis) forget(f *Fault) {
	all := r.victims(f)
	if r.Set.Topology == servers.Several {
		all = slices.DeleteFunc(all, func(s *redistest.Server) bool { return s == r.Set.Nodes[0] })
	}
	r.away(all, r.Set.Forget, 1500*time.Millisecond)
}

// another stops a minority of the servers until sections stand on the votes of the others
// alone. When they are back one of those others comes back empty: its vote and theirs would be a
// majority for a second owner. A worker that is inside is cut off meanwhile, and does not hear of it.
func (r *Redis) another(f *Fault) {
	var chosen []*redistest.Server
	for _, i := range r.Rnd.Perm(len(r.Set.Nodes) - 1)[:1+r.Set.Minority()] {
		chosen = append(chosen, r.Set.Nodes[1+i]) // the first one keeps its locks, as in forget
	}
	r.Journal.Hit(f, chosen)
	for _, s := range chosen[1:] {
		s.Pause()
	}
	time.Sleep(r.Lease + r.upTo(r.Lease/2))
	for _, s := range chosen[1:] {
		s.Resume()
	}
	time.Sleep(r.upTo(100 * time.Millisecond)) // what has waited for them arrives
	if n := r.Holder(); n != nil {
		n.Set(proxy.Rule{CutUp: true, CutDown: true})
		defer n.Set(proxy.Rule{})
	}
	r.away(chosen[:1], r.Set.Forget, time.Millisecond)
	time.Sleep(r.Lease * 3 / 4)
}

// away ends servers, and starts them again after a while.
func (r *Redis) away(all []*redistest.Server, end func(*redistest.Server), most time.Duration) {
	for _, s := range all {
		end(s)
	}
	time.Sleep(r.upTo(most))
	for _, s := range all {
		s.Restart(r.tb)
	}
}
