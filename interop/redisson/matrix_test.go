package redisson

import "testing"

// A row is one thing that two processes do to each other, and how it must end.
type row struct {
	name string
	run  func(*testing.T, *env)
}

// TestMatrix goes through all that Java and Go can do to each other, lock by lock, with
// messages on plain channels and on sharded ones (a Cluster). All rows of
// one Redis share three Java processes.
func TestMatrix(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		for group, rows := range map[string][]row{
			"lock": exclusiveRows(exclusives[0]), "fenced": exclusiveRows(exclusives[1]), "write": exclusiveRows(exclusives[2]),
			"rw": rwRows, "tokens": tokenRows, "fair": fairRows,
			"semaphore": semaphoreRows, "permits": permitsRows, "names": nameRows,
			"latch": latchRows, "multi": multiRows, "keep": keepRows(),
		} {
			for _, r := range rows {
				t.Run(group+"/"+r.name, func(t *testing.T) {
					t.Parallel()
					e.skipFlaw(t, e.java, group+"/"+r.name)
					r.run(t, e)
				})
			}
		}
	})
}
