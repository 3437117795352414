package locktest

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"relock/internal/test/redistest"
)

// Few and many sessions that wait. A script looks at 17 entries of the dead at most, and at 64 more of the living, so
// it costs among the few what it costs among all: SetLimit tells the first hundred, too. (miniredis sorts a line each time that it is asked for a part of it.)
const (
	crowdFew, crowdMany, crowdMini = 150, 5000, 250
	// crowdSlack is by how many commands it may differ: what a script finds of slow takers depends on the time a little.
	crowdSlack = 4
	// crowdMost is how many scripts of one act are looked at: a release goes on until it has looked at all the dead.
	crowdMost = 3
	// crowdLongest is what the longest script may take.
	crowdLongest = 5 * time.Millisecond
)

// Check checks that no script does work that grows with the line: among many it calls as many commands as among few,
// and on a real server it takes less than 5 ms, by the server's own account, also among 5000 who are dead.
func (k Crowd) Check(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		n := crowdMini
		if !s.IsMini() {
			n = crowdMany
			Must(t, s.Do(t, "CONFIG", "SET", "slowlog-log-slower-than", "0").Error())
		}
		few, many := k.costs(t, s, crowdFew), k.costs(t, s, n)
		var longest crowdCost
		for _, what := range slices.Sorted(maps.Keys(many)) {
			a, b := few[what], many[what]
			for i := range max(len(a), len(b)) {
				if i >= len(a) || i >= len(b) {
					t.Errorf("%s: %d scripts among %d, %d among %d", what, len(a), crowdFew, len(b), n)
					break
				}
				if b[i].commands > a[i].commands+crowdSlack || b[i].commands < a[i].commands-crowdSlack {
					t.Errorf("%s: script %d calls %d commands among %d, %d among %d", what, i, a[i].commands, crowdFew, b[i].commands, n)
				}
				if b[i].took > crowdLongest {
					t.Errorf("%s: script %d takes %v among %d, want less than %v", what, i, b[i].took, n, crowdLongest)
				}
				t.Logf("%-60s script %d: %3d commands, %6v", what, i, b[i].commands, b[i].took)
				if b[i].took > longest.took {
					longest = b[i]
				}
			}
		}
		t.Logf("the longest script: %v", longest.took)
	})
}

// A crowdCost is what a script costs: how many commands it calls, with itself, and how long it takes.
type crowdCost struct {
	commands int
	took     time.Duration
}

// costs returns what each script costs of what happens, among n of the living, the dead, and slow takers.
func (k Crowd) costs(t *testing.T, s *redistest.Server, n int) map[string][]crowdCost {
	t.Helper()
	all := map[string][]crowdCost{}
	run := func(who, crowd string) {
		for what, act := range k.Acts {
			all[what+", "+who] = k.cost(t, s, crowd, act)
		}
	}
	c := &CrowdScene{TB: t, s: s}
	normal := c.fill(k, n, "")
	run("nobody listens", normal)
	stop := c.listen(n)
	run("alive", normal)
	if k.Slow != "" {
		slow := c.fill(k, n, k.Slow)
		now, err := s.Do(t, "TIME").AsIntSlice()
		Must(t, err)
		c.heard(slow, n, (now[0]+60)*1000)
		run("slow takers", slow)
	}
	stop()
	c.heard(normal, n, 1)
	run("silent", normal)
	s.FlushAll(t)
	return all
}

// cost lets it happen once, and then runs the first of each of the scripts again that sessions have sent, until it is
// known what they cost: a machine that was busy with something else does not count.
func (k Crowd) cost(t *testing.T, s *redistest.Server, crowd string, act CrowdAct) (all []crowdCost) {
	t.Helper()
	c := &CrowdScene{TB: t, s: s, crowd: crowd, most: crowdMost}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	act(ctx, c)
	var scripts [][]string
	for _, cmd := range c.sent(1) {
		same := func(other []string) bool { return other[1] == cmd[1] && len(other) == len(cmd) }
		if len(scripts) < c.most && !slices.ContainsFunc(scripts, same) {
			scripts = append(scripts, cmd)
		}
	}
	cancel()
	c.end()
	for round := range 50 { // a busy machine takes the processor away in the middle of most scripts
		c.restore()
		again := false
		for i, cmd := range scripts {
			now := c.measure(cmd)
			if round == 0 {
				all = append(all, now)
			}
			again = again || round == 0 || round < 8 && now.commands != all[i].commands || min(now.took, all[i].took) >= crowdLongest
			all[i].commands = min(all[i].commands, now.commands)
			all[i].took = min(all[i].took, now.took)
		}
		if !again {
			break
		}
	}
	c.clear(true)
	return all
}

// measure runs a script.
func (c *CrowdScene) measure(cmd []string) (cost crowdCost) {
	c.Helper()
	if !c.s.IsMini() {
		Must(c, c.s.Do(c, "SLOWLOG", "RESET").Error())
	}
	before := crowdCommands(c, c.s)
	Must(c, c.s.Do(c, cmd...).Error())
	cost.commands = crowdCommands(c, c.s) - before
	if c.s.IsMini() {
		return cost
	}
	slow, err := c.s.Do(c, "SLOWLOG", "GET", "8").ToArray()
	Must(c, err)
	for _, one := range slow {
		entry, err := one.ToArray()
		Must(c, err)
		args, err := entry[3].AsStrSlice()
		Must(c, err)
		if strings.EqualFold(args[0], "EVALSHA") {
			us, err := entry[2].AsInt64()
			Must(c, err)
			cost.took = time.Duration(us) * time.Microsecond
			return cost
		}
	}
	c.Fatalf("the slow log has no script: %v", slow)
	return cost
}

// crowdCommands returns how many commands the server has run, but for those that measure.
func crowdCommands(t testing.TB, s *redistest.Server) (n int) {
	t.Helper()
	if s.IsMini() {
		return s.Mini.CommandCount()
	}
	for name, calls := range s.Commands(t) {
		if !strings.HasPrefix(name, "slowlog") && name != "info" && name != "ping" {
			n += calls
		}
	}
	return n
}
