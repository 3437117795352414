package mutex_test

import (
	"fmt"

	"relock/internal/test/locktest"
)

var (
	lineIDs   = locktest.Keys("lock", "line", "ids")
	lineToken = locktest.Keys("lock", "line", "token")

	later   = fmt.Sprint(passed + 1)   // the position of one that was passed over, and was first
	byOther = []string{other, forever} // the lock is held
	called1 = at(called+1, "c")        // one was called long ago
)

// Callers that wait. In replies "~" stands for what counts time: Redis's clock, a position, a TTL.
var fairAcquires = []locktest.ScriptCase{
	kase("a free fair lock is taken", "acquire", nil, line, come("f1"), "1", "[1 1 0 0]", "lock{A1:1}"),
	kase("a named owner takes a free fair lock", "acquire", setup("SADD ids old"), lineIDs, come("i1"), "[1 1 0 1]", "[1 1 0 0]", "ids(id) lock{ann:1}"),
	kase("a caller enters behind a holder, at one place", "acquire", state(byOther), line, come("f1"), "[0 forever ~ ~]", "[0 forever ~ ~]", "line<f1 #f1 sA wf1> lock{other:1}"),
	kase("a named owner enters behind a holder", "acquire", state(byOther), lineIDs, come("i1"), "[0 forever ~ ~]", "[0 forever ~ ~]", "line<i1 #i1 sA wi1> lock{other:1}"),
	kase("a caller enters behind another", "acquire", state(stand("fb"), byOther...), line, come("f1"), "[0 -1 ~ ~]", "[0 -1 ~ ~]", "line<fb f1 #fb #f1 sB sA wfb wf1> lock{other:1}"),
	kase("the old place is kept", "acquire", state(stand("f1 fb"), byOther...), line, come("f1"), "[0 forever ~ 1]", "[0 forever ~ 1]", "line<f1 fb #fb #f1 sA sB wfb wf1> lock{other:1}"),
	kase("the old place is kept behind others", "acquire", state(stand("fb f1 fc"), byOther...), line, come("f1"), "[0 -1 ~ 2]", "[0 -1 ~ 2]", "line<fb f1 fc #fb #fc #f1 sA sB sC wfb wfc wf1> lock{other:1}"),
	kase("who was passed over and comes has the old place", "acquire", state(stand("fb"), append(byOther, at(later, "f1"))...), line, come("f1"), "[0 forever ~ 1]", "[0 forever ~ 1]", "line<f1 fb #fb #f1 sB sA wfb wf1> lock{other:1}"),
	kase("a plain caller that was passed over and comes is the first again", "acquire", state(stand("gb"), append(byOther, at(later, "g1"))...), line, with(come("g1")[:14], 7, "1"), "[0 forever ~ 1]", "[0 forever ~ 1]", "line<g1 gb sB sA wA> lock{other:1}"),
	kase("a new caller stands in front of who was passed over", "acquire", state(byOther, at(later, "fb"), heard("B", fresh)), line, come("f1"), "[0 forever ~ ~]", "[0 forever ~ ~]", "line<f1 fb #f1 sB sA wf1> lock{other:1}"),
	kase("a new caller that says so stands in front of who was passed over", "acquire", state(byOther, at(later, "fb"), heard("B", fresh)), line, with(come("f1"), 7, "0"), "[0 forever ~ ~]", "[0 forever ~ ~]", "line<f1 fb #f1 sB sA wf1> lock{other:1}"),
	kase("a new plain caller stands in front of who was passed over", "acquire", state(byOther, at(later, "gb"), heard("B", fresh)), line, with(come("g1")[:14], 7, "0"), "[0 forever ~ ~]", "[0 forever ~ ~]", "line<g1 gb sB sA wA> lock{other:1}"),
	kase("a new plain caller that says little stands in front of who was passed over", "acquire", state(byOther, at(later, "gb"), heard("B", fresh)), line, come("g1")[:3], "[0 forever ~ ~]", "[0 forever ~ ~]", "line<g1 gb sB sA> lock{other:1}"),
	kase("a new plain caller with tokens stands in front of who was passed over", "acquire", state(byOther, at(later, "gb"), heard("B", fresh)), lineToken, with(with(come("g1")[:14], 7, "0"), 3, "1"), "[0 forever ~ ~]", "[0 forever ~ ~]", "line<g1 gb sB sA wA> lock{other:1}"),
	kase("a plain caller whose entry was lost stands in front of who was passed over", "acquire", state(byOther, at(later, "gb"), heard("B", fresh)), line, come("g1")[:14], "[0 forever ~ ~]", "[0 forever ~ ~]", "line<g1 gb sB sA wA> lock{other:1}"),
	kase("a plain caller that comes for the first time is told what is left of the lease, both times", "acquire", state(byOther), line, with(come("g1")[:14], 7, "0"), "[0 forever ~ ~]", "[0 forever ~ ~]", "line<g1 sA wA> lock{other:1}"),
	kase("a fair caller that comes for the first time behind another is told so, both times", "acquire", state(stand("fb"), byOther...), line, with(come("f1"), 7, "0"), "[0 -1 ~ ~]", "[0 -1 ~ ~]", "line<fb f1 #fb #f1 sB sA wfb wf1> lock{other:1}"),
	kase("the place before is taken again", "acquire", state(stand("fb f2 fc"), byOther...), line, with(come("f1"), 16, "2"), "[0 -1 ~ 2]", "[0 -1 ~ 2]", "line<fb f1 f2 fc #fb #f2 #fc #f1 sA sB sC wfb wf2 wfc wf1> lock{other:1}"),
	kase("the place before is the first", "acquire", state(byOther, at(9, "fb"), heard("B", fresh)), line, with(come("f1"), 16, "5"), "[0 forever ~ 5]", "[0 forever ~ 5]", "line<f1 fb #f1 sB sA wf1> lock{other:1}"),
	kase("a clock that was set back lets nobody overtake", "acquire", state(byOther, at(2300000000000000, "fb"), heard("B", fresh)), line, come("f1"), "[0 -1 ~ ~]", "[0 -1 ~ ~]", "line<fb f1 #f1 sB sA wf1> lock{other:1}"),
	kase("another type of line is not entered", "acquire", state(byOther, "SET line x"), line, come("f1"), wrong, wrong, "line=x lock{other:1}"),
	kase("another type of lock is not waited for", "acquire", state(stand("fb"), "SET lock x"), line, come("f1"), wrong, wrong, "line<fb #fb sB wfb> lock=x"),
	kase("what is no lock is not waited for", "acquire", setup("HSET lock name bob", forever), line, come("f1"), wrong, wrong, "lock{name:bob}"),
	kase("what has no TTL is not waited for", "acquire", state(stand("fb"), other), line, come("f1"), wrong, wrong, "line<fb #fb sB wfb> lock{other:1}"),
	kase("a read-write lock is waited for in the line", "acquire", setup("HSET lock mode read b 1", forever), line, come("f1"), "[0 forever ~ ~]", "[0 forever ~ ~]", "line<f1 #f1 sA wf1> lock{b:1 mode:read}"),

	kase("the last of the line is joined", "acquire", state(stand("fb f2"), byOther...), line, join("f1", "f2"), "[0 -1 ~ 0]", "[0 -1 ~ 0]", "line<fb f2 #fb #f2 sA sB wfb wf2> lock{other:1}"),
	kase("who was passed over is not the last of the line", "acquire", state(stand("f2"), append(byOther, at(later, "fb"), heard("B", fresh))...), line, join("f1", "f2"), "[0 -1 ~ 0]", "[0 -1 ~ 0]", "line<f2 fb #f2 sA sB wf2> lock{other:1}"),
	kase("an entry that has the callers is joined where others came behind", "acquire", state(stand("f2 fb"), byOther...), line, with(join("f1", "f2"), 15, "3"), "[0 -1 ~ 0]", "[0 -1 ~ 0]", "line<f2 fb #f2 #fb sA sB wf2 wfb> lock{other:1}"),
	kase("an entry is not joined when another session's came behind", "acquire", state(stand("f2 fb"), byOther...), line, join("f1", "f2"), "[0 -1 ~ ~]", "[0 -1 ~ ~]", "line<f2 fb f1 #f2 #fb #f1 sA sB wf2 wfb wf1> lock{other:1}"),
	kase("an entry is not joined when a plain one came behind", "acquire", state(stand("f2 gb"), byOther...), line, join("f1", "f2"), "[0 -1 ~ ~]", "[0 -1 ~ ~]", "line<f2 gb f1 #f2 #f1 sA sB wf2 wf1> lock{other:1}"),
	kase("an entry that is gone is not joined", "acquire", state(stand("fb"), byOther...), line, join("f1", "f2"), "[0 -1 ~ ~]", "[0 -1 ~ ~]", "line<fb f1 #fb #f1 sB sA wfb wf1> lock{other:1}"),
	kase("who stands there itself joins no other", "acquire", state(stand("f1 f2"), byOther...), line, join("f1", "f2"), "[0 forever ~ 1]", "[0 forever ~ 1]", "line<f1 f2 #f2 #f1 sA wf2 wf1> lock{other:1}"),

	kase("the first takes what is free", "acquire", state(stand("f1 fb")), line, come("f1"), "[1 1 0 1]", "[1 1 0 0]", "line<fb #fb sA sB wfb> lock{A1:1}"),
	kase("a line goes with the last entry", "acquire", state(stand("f1")), line, come("f1"), "[1 1 0 1]", "[1 1 0 0]", "lock{A1:1}"),
	kase("a free lock with another in front goes to that", "acquire", state(stand("fb")), line, come("f1"), "[0 -1 ~ ~]", "[0 ~ ~ ~]", "line<f1 #f1 sB sA wf1> lock{B1:1}"),
	kase("a free lock with a plain entry in front goes to that", "acquire", state(stand("gb")), line, come("f1"), "[0 -1 ~ ~]", "[0 ~ ~ ~]", "line<f1 #f1 sB sA wf1> lock{B8:1}"),
	kase("a plain caller does not overtake a fair one", "acquire", state(stand("fb")), line, with(come("g1")[:14], 7, "1"), "[0 -1 ~ ~]", "[0 ~ ~ ~]", "line<g1 sB sA wA> lock{B1:1}"),
	kase("a plain caller enters behind a fair one", "acquire", state(stand("fb"), byOther...), line, come("g1")[:14], "[0 -1 ~ ~]", "[0 -1 ~ ~]", "line<fb g1 #fb sB sA wfb wA> lock{other:1}"),
	kase("who is dead is overtaken", "acquire", state(stand("fb"), heard("B", dead)), line, come("f1"), "[1 1 0 1]", "[1 1 0 0]", "lock{A1:1}"),
	kase("who hears nothing is overtaken, and stays", "acquire", state(stand("fb")), line, with(come("f1"), 11, "1"), "[1 1 0 1]", "[1 1 0 0]", "line<fb #fb sB sA wfb> lock{A1:1}"),

	kase("what was given is taken up", "acquire", setup("HSET lock A1 1", "PEXPIRE lock 9000"), line, come("f1"), "[1 1 0 0]", "[1 1 0 0]", "lock{A1:1}"),
	kase("what was given is taken up beside a line of another type", "acquire", setup("HSET lock A1 1", "PEXPIRE lock 9000", "SET line x"), line, come("f1"), "[1 1 0 0]", "[1 1 0 0]", "line=x lock{A1:1}"),
	kase("what was given is taken up with its tokens", "acquire", setup("HSET lock A5 1", "PEXPIRE lock 9000", "SET token 44"), lineToken, come("ft"), "[1 1 44 0]", "[1 1 44 0]", "lock{A5:1} token=44"),
	kase("a fair caller reserves tokens once", "acquire", setup("SET token 41"), lineToken, come("ft"), "[1 1 43 1]", "[1 1 43 0]", "lock{A5:1} token=43"),
	kase("the first draws its tokens, and nobody else's", "acquire", state(stand("ft fb"), "SET token 41"), lineToken, come("ft"), "[1 1 43 1]", "[1 1 43 0]", "line<fb #fb sA sB wfb> lock{A5:1} token=43"),
	kase("an unusable token lets the first not in", "acquire", state(stand("ft"), "SET token x"), lineToken, come("ft"), wrong, wrong, "line<ft #ft sA wft> token=x"),
	kase("an unusable token leaves no entry of a new caller", "acquire", state(stand("fb"), heard("B", dead), "SET token x"), lineToken, come("ft"), wrong, wrong, "token=x"),
	kase("an unusable token of a new caller keeps the first not out", "acquire", state(stand("fb d1"), "SET token x"), lineToken, with(come("ft"), 11, "1"), "[0 -1 ~ ~]", "[0 ~ ~ ~]", "line<ft fb #fb #ft sA sB wfb wft> lock{A6:1} token=x"),
	kase("a named owner that got in elsewhere leaves the line", "acquire", state(stand("i1 fb"), "HSET lock ann 1", forever, "SADD ids a"), lineIDs, come("i1"), "[1 2 0 1]", "[1 2 0 0]", "ids(id a) line<fb #fb sA sB wfb> lock{ann:2}"),
	kase("a named owner that is first takes what is free", "acquire", state(stand("i1"), called1), lineIDs, come("i1"), "[1 1 0 1]", "[1 1 0 0]", "ids(id) lock{ann:1}"),
}

// Callers that do not wait.
var fairTries = []locktest.ScriptCase{
	kase("who does not wait takes a free lock", "acquire", nil, line, try("o", "A1"), "1", "[1 1 0 0]", "lock{A1:1}"),
	kase("who does not wait is refused what is held", "acquire", state(stand("fb"), byOther...), line, try("o", "A1"), "[0 forever 0 0 other]", "[0 forever 0 0 other]", "line<fb #fb sB wfb> lock{other:1}"),
	kase("who does not wait lets the first in", "acquire", state(stand("fb fc")), line, try("o", "A1"), "[0 -1 0 0]", "[0 ~ 0 0 B1]", "line<fc #fc sB sC wfc> lock{B1:1}"),
	kase("who does not wait calls the first that asks", "acquire", state(stand("e1"), called1), line, try("o", "A1"), "[0 -1 0 0]", "[0 -1 0 0]", "line<e1 #e1 sA c we1>"),
	kase("who does not wait calls the first that wants tokens", "acquire", state(stand("ft"), called1), line, try("o", "A1"), "[0 -1 0 0]", "[0 -1 0 0]", "line<ft #ft sA c wft>"),
	kase("who does not wait draws the tokens of the first", "acquire", state(stand("ht"), "SET token 7"), lineToken, with(try("o", "A1"), 3, "1"), "[0 -1 0 0]", "[0 ~ 0 0 A4]", "lock{A4:1} token=9"),
	kase("who does not wait takes what dead ones waited for", "acquire", state(stand("fb fc"), heard("B", dead), heard("C", dead)), line, try("o", "A1"), "[1 1 0 1]", "[1 1 0 0]", "lock{A1:1}"),
	kase("who does not wait takes what those wait for who hear nothing", "acquire", state(stand("fb")), line, with(try("o", "A1"), 11, "1"), "[1 1 0 1]", "[1 1 0 0]", "line<fb #fb sB wfb> lock{A1:1}"),
	kase("who holds it enters once more", "acquire", state(stand("fb"), "HSET lock ann 1", forever, "SADD ids old"), lineIDs, try("r", "ann"), "[1 2 0 1]", "[1 2 0 0]", "ids(a old) line<fb #fb sB wfb> lock{ann:2}"),
	kase("who only re-enters takes nothing that is free", "acquire", nil, lineIDs, try("r", "ann"), "[0 -1 0 0]", "[0 -1 0 0]", ""),
	kase("who only re-enters is refused what is held", "acquire", state(byOther), lineIDs, try("r", "ann"), "[0 forever 0 0 other]", "[0 forever 0 0 other]", "lock{other:1}"),
	kase("who only re-enters lets the first in", "acquire", state(stand("fb")), lineIDs, try("r", "ann"), "[0 -1 0 0]", "[0 ~ 0 0 B1]", "lock{B1:1}"),
}
