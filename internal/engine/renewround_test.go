package engine_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/engine"
	"relock/internal/life"
	"relock/internal/script"
	"relock/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// Scripts that answer with the args behind the lease. If one of those is an error they return
// that, and one that asks to keep quiet leaves an element out.
const source = `
local reply = {}
for i = 2, #ARGV do
  if string.find(ARGV[i], ' ') then return redis.error_reply(ARGV[i]) end
  if ARGV[i] ~= 'quiet' then reply[#reply + 1] = tonumber(ARGV[i]) end
end
return reply`

var one, other = script.New(source), script.New(source + " -- the other")

// sends returns what RenewalRound.Send wants, and what it was given.
func sends(t *testing.T, s *redistest.Server) (send func([]script.Command) []rueidis.RedisResult, sent *[]script.Command) {
	var background life.Group
	run := script.NewRunner(s.Client(t), script.NewConnection(), &background)
	sent = new([]script.Command)
	return func(cmds []script.Command) []rueidis.RedisResult {
		*sent = append(*sent, cmds...)
		return run.Multi(t.Context(), cmds)
	}, sent
}

// One call has questions of one script, one lease and one slot, and no more of them than it is for.
func TestWhatGoesIntoOneCall(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		send, sent := sends(t, s)
		r, names := engine.NewRenewalRound(2), map[*engine.RenewalItem]string{}
		for _, q := range []struct {
			name   string
			script *script.Script
			lease  time.Duration
			slot   int
		}{
			{"a", one, time.Second, 7}, {"b", other, time.Second, 7}, {"c", one, time.Minute, 7},
			{"d", one, time.Second, 8}, {"e", one, time.Second, 7}, {"f", one, time.Second, 7},
			{"g", one, 0, 7},
		} {
			item := new(engine.RenewalItem)
			names[item] = q.name
			r.Add(item, q.lease, q.slot, script.Command{Script: q.script, Keys: []string{"{x}" + q.name}, Args: []string{"1"}})
		}
		answers := r.Send(send)
		var calls []string
		for i, a := range answers {
			call, keys := (*sent)[i].Args[0], (*sent)[i].Keys
			for j, item := range a.Items {
				if keys[j] != "{x}"+names[item] || a.Alive[j] != 1 {
					t.Errorf("%s was asked about by %s, and the answer is %d", names[item], keys[j], a.Alive[j])
				}
				call += names[item]
			}
			calls = append(calls, call)
			if a.Err != nil || a.OneByOne || ((*sent)[i].Script == other) != (call == "1000b") {
				t.Errorf("call %q: %v, one by one: %v, or by the wrong script", call, a.Err, a.OneByOne)
			}
		}
		if want := []string{"1000ae", "1000b", "60000c", "1000d", "1000f", "0g"}; !slices.Equal(calls, want) {
			t.Errorf("the calls are %q, want %q", calls, want)
		}
	})
}

// The reply has an element for each of the args of a question, and an answer names its question
// beside each. A reply of another shape is none.
func TestAnswersBelongToQuestions(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		for _, tc := range []struct {
			args     [][]string // of each question
			err      string
			oneByOne bool
		}{
			{[][]string{{"1", "0"}, {}, {"-1"}, {"1"}}, "", false},
			{[][]string{{"1"}, {"quiet"}}, script.ErrShape.Error(), false},
			{[][]string{{"1"}, {"TRYAGAIN the slot moves"}}, "TRYAGAIN the slot moves", true},
			{[][]string{{"NOPERM No permissions to access a key"}}, "NOPERM No permissions to access a key", true},
			{[][]string{{"OOM not now"}, {"1"}}, "OOM not now", false},
		} {
			send, _ := sends(t, s)
			r := engine.NewRenewalRound(10)
			var items []*engine.RenewalItem
			var alive []int64
			for i, args := range tc.args {
				q := new(engine.RenewalItem)
				r.Add(q, time.Second, 0, script.Command{Script: one, Keys: []string{fmt.Sprint("k", i)}, Args: args})
				for _, arg := range args {
					items = append(items, q)
					if tc.err == "" {
						alive = append(alive, map[string]int64{"1": 1, "0": 0, "-1": -1}[arg])
					}
				}
			}
			a := r.Send(send)[0]
			got := ""
			if a.Err != nil {
				got = a.Err.Error()
			}
			if got != tc.err || a.OneByOne != tc.oneByOne {
				t.Errorf("%v: the error is %q, want %q; one by one: %v", tc.args, got, tc.err, a.OneByOne)
			}
			if !slices.Equal(a.Items, items) || got == "" && !reflect.DeepEqual(a.Alive, alive) {
				t.Errorf("%v: the answer is %v for %d items, want %v for %d", tc.args, a.Alive, len(a.Items), alive, len(items))
			}
		}
	})
}

// A round without a question sends nothing.
func TestARoundWithoutQuestions(t *testing.T) {
	r := engine.NewRenewalRound(1)
	answers := r.Send(func([]script.Command) []rueidis.RedisResult {
		t.Error("something was sent")
		return nil
	})
	if answers != nil {
		t.Errorf("the answers are %v", answers)
	}
}
