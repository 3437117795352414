package line_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// grantsTo returns what scripts tell a session that they have given it a lock.
func grantsTo(t *testing.T, s *redistest.Server, ses *rlock.Session) <-chan string {
	t.Helper()
	c := make(chan string, 100)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	channel := "relock_session:" + ses.ID()
	client := s.Client(t)
	go client.Receive(ctx, client.B().Subscribe().Channel(channel).Build(), func(m rueidis.PubSubMessage) {
		if strings.HasPrefix(m.Message, "granted:") {
			c <- m.Message
		}
	})
	redistest.Eventually(t, 5*time.Second, "one more that listens", func() bool {
		n, err := s.Do(t, "PUBSUB", "NUMSUB", channel).ToArray()
		if err != nil || len(n) != 2 {
			return false
		}
		listeners, err := n[1].AsInt64()
		return err == nil && listeners == 2
	})
	return c
}

// A lock is given to a session whose message is late; its key is deleted meanwhile, and another session takes the
// lock. A look of the first one has been refused since: the message, when it comes, lets nobody in, whether it comes
// before the answer to that look or behind it.
func TestAGrantFromBeforeARefusalLetsNobodyIn(t *testing.T) {
	for what, before := range map[string]bool{"before the answer": true, "behind the answer": false} {
		t.Run(what, func(t *testing.T) {
			redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
				trace, refused := locktest.Refusals()
				holder, other := dial(t, s, rlock.Config{}), dial(t, s, rlock.Config{})
				ses, p := locktest.DialProxy(t, s, rlock.Config{PollFloor: 100 * time.Millisecond, Trace: trace})
				ctx, name := within(t, time.Minute), redistest.Name(t)
				grants := grantsTo(t, s, ses)
				_, h, err := rlock.New(holder, name).Lock(ctx)
				must(t, err)
				waiter := locktest.QueueUp(t, ses, name, ctx)
				locktest.AwaitInLine(t, s, name, ses)
				for range 4 { // so that Redis knows that it listens: it would take it for another than the line's sessions
					locktest.Get(t, refused, 5*time.Second, "a look")
				}
				looks, look := p.HoldRequest(locktest.Calls(t, "acquire"))
				defer look()
				locktest.Get(t, looks, 5*time.Second, "a look")
				p.DropMessages(true) // as if they were late
				must(t, h.Unlock())
				grant := locktest.Get(t, grants, 5*time.Second, "the grant")
				must(t, s.Do(t, "DEL", name).Error())
				_, x, err := rlock.New(other, name).TryLock(ctx)
				must(t, err)
				locktest.Stays(t, ctx, 5*time.Millisecond) // Redis's clock goes on
				answers, answer := p.HoldReply(locktest.Calls(t, "acquire"))
				defer answer()
				for len(refused) > 0 {
					<-refused
				}
				look()
				locktest.Get(t, answers, 5*time.Second, "the refusal at Redis")
				if !before {
					answer()
					locktest.Get(t, refused, 5*time.Second, "the refusal")
				}
				p.DropMessages(false)
				must(t, s.Do(t, "PUBLISH", "relock_session:"+ses.ID(), grant).Error())
				if before {
					locktest.Stays(t, ctx, 20*time.Millisecond) // the message comes
					answer()
					locktest.Get(t, refused, 5*time.Second, "the refusal")
				}
				select {
				case <-refused: // it has asked once more
				case l := <-waiter:
					t.Fatalf("it is inside with the owner of the lock: %v", l.Err)
				case <-time.After(10 * time.Second):
					t.Fatal("it does not ask any more")
				}
				must(t, x.Unlock())
				l := locktest.Get(t, waiter, 5*time.Second, "the waiter")
				must(t, l.Err)
				must(t, l.Hold.Unlock())
			})
		})
	}
}
