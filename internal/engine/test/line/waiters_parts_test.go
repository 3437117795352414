package line_test

import (
	"fmt"
	"testing"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// The callers in a long line are counted by several scripts, each of which looks at a part of it: so none grows with
// the line, and no other caller waits for longer.
func TestTheCallersOfALongLineAreCountedInParts(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		const sessions = 1200 // one in two has told how many of its callers wait
		name, ctx := redistest.Name(t), within(t, locktest.Patience)
		ses, p := locktest.DialProxy(t, s, rlock.Config{})
		want := 0
		for first := 0; first < sessions; first += 100 {
			zadd := []string{"ZADD", locktest.LineOf(name)}
			for i := first; i < first+100; i++ {
				id := fmt.Sprintf("s%04d", i)
				zadd = append(zadd, fmt.Sprint(1_700_000_000_000_000+i), fmt.Sprintf("g00012500600000%05d%s:1", len(id), id),
					fmt.Sprint(5_000_000_000_000_000-9_000_000_000_000), "s"+id) // heard of for a long time to come
				if want++; i%2 == 0 {
					zadd = append(zadd, fmt.Sprint(8_600_000_000_000_000+7), "w"+id)
					want += 6
				}
			}
			must(t, s.Do(t, zadd...).Error())
		}
		p.Reset()
		n, err := rlock.New(ses, name).Waiters(ctx)
		must(t, err)
		if n != want {
			t.Errorf("%d callers wait, want %d", n, want)
		}
		if n := p.Count("EVALSHA"); n != 4 { // 3000 members, and one look for more
			t.Errorf("%d scripts have counted them, want one for each thousand members", n)
		}
	})
}
