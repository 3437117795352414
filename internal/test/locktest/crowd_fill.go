package locktest

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/test/redistest"
	"relock/rlock"
)

// waiterID is the id of a session of the crowd.
func waiterID(i int) string { return fmt.Sprintf("waiter%06d", i) }

// entryHead is what an entry begins with, see line.lua.
var entryHead = regexp.MustCompile(`^[A-Za-z][0-9a-z]{7}\d{12}$`)

// fill makes a line in which n sessions stand, and returns its key. letter is what their entries begin with, if not as
// those of the session that showed how to enter.
func (c *CrowdScene) fill(k Crowd, n int, letter string) (key string) {
	c.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	Must(c, k.Hold(ctx, c.Session()))
	id := waiterID(999999)
	ses := c.dial(rlock.Config{ID: id, Lease: time.Hour, PollFloor: time.Hour, QueueLease: time.Hour})
	c.From()
	waitCtx, stop := context.WithCancel(ctx)
	ended := c.Enter(waitCtx, ses, false, k.Wait)
	enters := entering(c.sent(1))
	if enters == nil {
		c.Fatalf("none of %q enters the line", c.sent(1))
	}
	stop()
	<-ended
	redistest.Eventually(c, 20*time.Second, "the session to leave the line", func() bool { return c.inLine(crowdLine) == 0 })
	client := c.s.Client(c)
	for first := 0; first < n; first += 1000 {
		var cmds rueidis.Commands
		for i := first; i < min(n, first+1000); i++ {
			cmd := client.B().Arbitrary()
			for _, arg := range enters {
				if letter != "" && entryHead.MatchString(arg) {
					arg = letter + arg[1:]
				}
				if strings.HasPrefix(arg, "relock_requests:") { // which has no session's id in it that could be read
					arg += waiterID(i)
				}
				cmd = cmd.Args(strings.ReplaceAll(arg, id, waiterID(i)))
			}
			cmds = append(cmds, cmd.Build())
		}
		for _, r := range client.DoMulti(ctx, cmds...) {
			Must(c, r.Error())
		}
	}
	key = fmt.Sprintf("%s%d%s", crowdKeys, n, letter)
	Must(c, c.s.Do(c, "COPY", crowdLine, key).Error())
	if in := c.inLine(key); in != int64(n) {
		c.Fatalf("%d stand in the line, want %d", in, n)
	}
	c.end()
	c.clear(true)
	return key
}

// entering returns the one of these scripts that enters the line.
func entering(scripts [][]string) []string {
	for _, cmd := range scripts {
		for _, arg := range cmd {
			if entryHead.MatchString(arg) {
				return cmd
			}
		}
	}
	return nil
}

// heard says until when the sessions count as alive, in ms since 1970: ten minutes after a sign of life.
func (c *CrowdScene) heard(key string, n int, until int64) {
	c.Helper()
	cmd := []string{"ZADD", key, "XX"}
	for i := range n {
		cmd = append(cmd, strconv.FormatInt(5e15-until, 10), "s"+waiterID(i))
	}
	Must(c, c.s.Do(c, cmd...).Error())
}

// listen has somebody listen to the channel of each session, until stop is called.
func (c *CrowdScene) listen(n int) (stop func()) {
	c.Helper()
	channels := make([]string, n)
	for i := range channels {
		channels[i] = "relock_session:" + waiterID(i)
	}
	client := c.s.Client(c)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- client.Receive(ctx, client.B().Subscribe().Channel(channels...).Build(), func(rueidis.PubSubMessage) {})
	}()
	listening := func(want int64) {
		redistest.Eventually(c, 20*time.Second, "the subscriptions", func() bool {
			r, err := c.s.Do(c, "PUBSUB", "NUMSUB", channels[n-1]).ToArray()
			Must(c, err)
			got, err := r[1].AsInt64()
			Must(c, err)
			return got == want
		})
	}
	listening(1)
	return func() {
		cancel()
		<-done
		client.Close()
		listening(0)
	}
}
