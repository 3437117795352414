package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/rueidis"

	"relock/internal/keyname"
)

// InLine is an entry in the line of a lock, a semaphore or a counter; of a read-write lock the readers come last.
type InLine struct {
	Session string   `json:"session"`
	Callers int64    `json:"callers"` // how many of its callers wait, as of its last look
	Reads   bool     `json:"reads,omitempty"`
	Silent  bool     `json:"silent"` // it was not heard of for so long that its callers do not count
	Process *process `json:"process,omitempty"`
}

// The scores of a line say what a member is about; line.lua of package script has the layout.
const (
	lineEntries = 4.85e15 // scores of entries are not negative, and lower than this
	lineAlive   = 5e15    // less until when a session is alive, in ms
	lineListens = 6e15    // less until when it surely listens, in ms
	lineWaiting = 8.6e15
	lineReaders = 8.7e15 // scores of readers' entries are not lower
	entryHead   = 20     // letters in front of an entry's session
	listensFor  = 450    // ms for which a session says that it listens
)

// line returns the entries in the line of a lock, in their order, by Redis's time in ms. own is how many
// sessions of the line listen to the lock's channel, or did a moment ago.
func (s *server) line(ctx context.Context, name string, now int64) (all []InLine, own int64, err error) {
	key := s.style.Prefix(keyname.Line, name)
	members, err := s.client.Do(ctx, s.client.B().Zrange().Key(key).Min("0").Max("-1").Withscores().Build()).AsZScores()
	if err != nil {
		return nil, 0, fmt.Errorf("read the line of %q: %w", name, err)
	}
	all, own = parseLine(members, now)
	return all, own, nil
}

// parseLine takes a line apart.
func parseLine(members []rueidis.ZScore, now int64) (all []InLine, own int64) {
	score := make(map[string]float64, len(members))
	for _, z := range members {
		score[z.Member] = z.Score
	}
	all, lives := []InLine{}, map[string]int64{}
	for _, z := range members {
		session, life, ok := entryOf(z)
		if !ok {
			continue
		}
		e := InLine{Session: session, Callers: 1, Silent: true, Reads: z.Score >= lineReaders}
		if v, ok := score["s"+session]; ok {
			e.Silent = int64(lineAlive-v) < now
		}
		counted := "w" + session
		if isFair(z.Member) { // a session has an entry for each run of its callers
			counted = "w" + z.Member
		}
		if v, ok := score[counted]; ok {
			e.Callers = max(1, int64(v-lineWaiting))
		}
		lives[session] = life
		all = append(all, e)
	}
	for m, v := range score {
		session, ok := strings.CutPrefix(m, "l")
		if !ok || v <= lineAlive || v > lineListens {
			continue
		}
		until := int64(lineListens - v)
		if life, waits := lives[session]; waits { // said at a look, and true until it waits no more
			until += life - listensFor
		}
		if until >= now {
			own++
		}
	}
	return all, own
}

// entryOf returns whose entry a member is, and for how many ms its session counts as alive after a look. It
// reports whether the member is an entry.
func entryOf(z rueidis.ZScore) (session string, life int64, ok bool) {
	m := z.Member
	if len(m) <= entryHead || z.Score < 0 {
		return "", 0, false
	}
	reads, other := strings.ContainsRune("RS", rune(m[0])), strings.ContainsRune("gzandefhiPQCVUWN", rune(m[0]))
	if !(other && z.Score < lineEntries) && !(reads && z.Score >= lineReaders) {
		return "", 0, false
	}
	life, err1 := strconv.ParseInt(m[8:15], 10, 64)
	length, err2 := strconv.Atoi(m[15:entryHead])
	if err1 != nil || err2 != nil || length < 1 || length > len(m)-entryHead {
		return "", 0, false
	}
	return m[entryHead : entryHead+length], life, true
}

// isFair reports whether an entry is of callers of a fair lock.
func isFair(entry string) bool { return strings.ContainsRune("defhi", rune(entry[0])) }

// forgetOwn takes those listeners of the lock's channel out of the count whose sessions stand in the line:
// their callers count there. It returns how many commands that took.
func (s *server) forgetOwn(ctx context.Context, locks []*Lock) (sent int, err error) {
	var now int64
	for _, l := range locks {
		if l.Wait == 0 || l.Line == 0 {
			continue
		}
		if now == 0 {
			sent++
			if now, err = s.now(ctx); err != nil {
				return sent, err
			}
		}
		sent++
		_, own, err := s.line(ctx, l.Name, now)
		if err != nil {
			return sent, err
		}
		l.Wait = max(0, l.Wait-own)
	}
	return sent, nil
}

// labelLine adds to each session in the line who it is.
func (s *server) labelLine(ctx context.Context, line []InLine) {
	owners := make([]Owner, len(line))
	for i, e := range line {
		owners[i].ID = e.Session + ":0" // as an owner of that session
	}
	s.labels.load(ctx, s.client, owners)
	for i := range line {
		line[i].Process = s.labels.of(owners[i])
	}
}

// lineRows are the rows that show the line, at a time of Redis.
func lineRows(line []InLine, now int64) [][]string {
	rows := [][]string{{"PLACE", "PROCESS", "RUNNING", "CALLERS", "STATE", "SESSION"}}
	for i, e := range line {
		row := []string{strconv.Itoa(i + 1), "not known", "-"}
		if e.Process != nil {
			row[1], row[2] = printable(e.Process.Label), e.Process.age(now)
		}
		state := "waits"
		if e.Silent {
			state = "silent"
		}
		rows = append(rows, append(row, strconv.FormatInt(e.Callers, 10), state, printable(e.Session)))
	}
	return rows
}
