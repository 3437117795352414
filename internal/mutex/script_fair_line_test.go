package mutex_test

import (
	"fmt"

	"relock/internal/test/locktest"
)

var (
	mine  = []string{"HSET lock me 1", forever}
	mineA = append(mine, "SADD ids a")
)

// A release lets in the first entry of the line, or calls its session.
var fairReleases = []locktest.ScriptCase{
	kase("nobody waits", "release", state(mine), line, free("me"), "-1", "[0 0 -1]", ""),
	kase("an entry that others may join is let in", "release", state(stand("f1 fb"), mine...), line, free("me"), "[0 1 -1 0 ~]", "[0 0 -1]", "line<fb #fb sA sB wfb> lock{A1:1}"),
	kase("an entry for one caller is let in", "release", state(stand("h1 fb"), mine...), line, free("me"), "[0 1 -1 0 ~]", "[0 0 -1]", "line<fb #fb sA sB wfb> lock{A3:1}"),
	kase("a plain entry in front is let in", "release", state(stand("gb f1"), mine...), line, free("me"), "[0 1 -1 0 ~]", "[0 0 -1]", "line<f1 #f1 sA sB wf1> lock{B8:1}"),
	kase("a fair entry in front of a plain one is let in", "release", state(stand("f1 gb"), mine...), line, free("me"), "[0 1 -1 0 ~]", "[0 0 -1]", "line<gb sA sB> lock{A1:1}"),
	kase("who hears nothing and said so is let in", "release", state(stand("d1"), mine...), line, with(free("me"), 3, "1"), "[0 1 -1 0 ~]", "[0 0 -1]", "lock{A6:1}"),
	kase("who asks is called, and the lock is free", "release", state(stand("e1 fb"), append(mine, called1)...), line, free("me"), "[0 1 -1 0 ~]", "[0 0 -1]", "line<e1 fb #e1 #fb sA sB c we1 wfb>"),
	kase("a named owner is called, and the lock is free", "release", state(stand("i1"), append(mine, called1)...), line, free("me"), "[0 1 -1 0 ~]", "[0 0 -1]", "line<i1 #i1 sA c wi1>"),
	kase("tokens are drawn for one caller", "release", state(stand("ht"), append(mine, "SET token 7")...), lineToken, freeFenced("me"), "[0 1 -1 0 ~]", "[0 0 -1]", "lock{A4:1} token=9"),
	kase("as many tokens are drawn as callers wait", "release", state(stand("fb ft"), append(mine, "SET token 7", fmt.Sprint("ZREM line ", entries["fb"]))...), lineToken, freeFenced("me"), "[0 1 -1 0 ~]", "[0 0 -1]", "lock{A5:1} token=10"),
	kase("who is not let in for an unusable token is called", "release", state(stand("ft fb"), append(mine, "SET token x", called1)...), lineToken, freeFenced("me"), "[0 1 -1 0 ~]", "[0 0 -1]", "line<ft fb #ft #fb sA sB c wft wfb> token=x"),
	kase("who is silent is passed over", "release", state(stand("fb f1"), append(mine, "ZREM line sB", heard("B", silent))...), line, free("me"), "[0 1 -1 0 ~]", "[0 0 -1]", "line<fb #fb sA sB wfb> lock{A1:1}"),
	kase("who does not hear is passed over", "release", state(stand("fb d1"), mine...), line, with(free("me"), 3, "1"), "[0 1 -1 0 ~]", "[0 0 -1]", "line<fb #fb sA sB wfb> lock{A6:1}"),
	kase("who alone does not hear keeps the place", "release", state(stand("fb"), mine...), line, with(free("me"), 3, "1"), "[0 1 0]", "[0 0 -1]", "line<fb #fb sB wfb>"),
	kase("who was passed over is let in when nobody else waits", "release", state(mine, at(later, "fb"), heard("B", fresh)), line, free("me"), "[0 1 -1 0 ~]", "[0 0 -1]", "lock{B1:1}"),
	kase("the dead leave the line", "release", state(stand("fb f1"), append(mine, heard("B", dead))...), line, free("me"), "[0 1 -1 0 ~]", "[0 0 -1]", "lock{A1:1}"),
	kase("nobody waits but the dead", "release", state(stand("fb fc"), append(mine, heard("B", dead), heard("C", dead))...), line, free("me"), "[0 1 -1]", "[0 0 -1]", ""),
	kase("nobody waits but the dead at the end of a hold by id", "release", state(stand("fb"), append(mineA, heard("B", dead))...), lineIDs, freeOne("me"), "[0 1 -1]", "[0 0 -1]", ""),
	kase("the last hold by id lets the first in", "release", state(stand("f1"), mineA...), lineIDs, freeOne("me"), "[0 1 -1 0 ~]", "[0 0 -1]", "lock{A1:1}").Moving("line<f1 #f1 sA c wf1>"),
	kase("an inner hold lets nobody in", "release", state(stand("f1"), "HSET lock me 2", forever, "SADD ids a b"), lineIDs, freeOne("me"), "[1 1 -1]", "[1 0 -1]", "ids(b) line<f1 #f1 sA wf1> lock{me:1}"),
	kase("another's lock lets nobody in", "release", state(stand("f1"), byOther...), line, free("me"), "[0 0 -1]", "[0 0 -1]", "line<f1 #f1 sA wf1> lock{other:1}"),
	kase("a lock that was lost lets the first in", "release", state(stand("f1 fb")), line, free("me"), "[0 0 -1]", "[0 0 -1]", "line<fb #fb sA sB wfb> lock{A1:1}"),
	kase("a line of another type is no line", "release", state(mine, "SET line x"), line, free("me"), "-1", "[0 0 -1]", "line=x"),
	kase("a line of another type stays at the end of a hold by id", "release", state(mineA, "SET line x"), lineIDs, freeOne("me"), "[0 1 -1]", "[0 0 -1]", "line=x"),
	kase("another type of lock lets nobody in", "release", state(stand("f1"), "SET lock x"), line, free("me"), "[0 0 -1]", "[0 0 -1]", "line<f1 #f1 sA wf1> lock=x"),

	kase("a run comes in again at its place, and is let in", "release", state(mine), line, again("f1", 1), "[0 1 -1 1 ~]", "[0 0 -1]", "lock{A1:1}"),
	kase("a run comes in again at its place, before others", "release", state(stand("fb"), mine...), line, again("f1", 0), "[0 1 -1 0 ~]", "[0 0 -1]", "line<fb #fb sB sA wfb> lock{A1:1}"),
	kase("a run comes in again at its place, behind others", "release", state(stand("fb"), mine...), line, again("f1", 9), "[0 1 -1 9 ~]", "[0 0 -1]", "line<f1 #f1 sB sA wf1> lock{B1:1}"),
	kase("a run does not come in again where its lock is another's", "release", state(byOther), line, again("f1", 1), "[0 0 -1]", "[0 0 -1]", "lock{other:1}"),
	kase("a run does not come in again where the line is none", "release", state(mine, "SET line x"), line, again("f1", 1), "[0 1 -1]", "[0 0 -1]", "line=x"),
	kase("a caller leaves the line", "release", state(stand("fb f1"), byOther...), line, leave("f1"), "[0 0 -1]", "[0 0 -1]", "line<fb #fb sA sB wfb> lock{other:1}"),
	kase("the first leaves the line", "release", state(stand("f1 fb"), byOther...), line, leave("f1"), "[0 0 -1]", "[0 0 -1]", "line<fb #fb sA sB wfb> lock{other:1}"),
	kase("the only one leaves the line", "release", state(stand("f1"), byOther...), line, leave("f1"), "[0 0 -1]", "[0 0 -1]", "lock{other:1}"),
	kase("who leaves takes along no other of its session", "release", state(stand("f1 f2 g1"), byOther...), line, leave("f1"), "[0 0 -1]", "[0 0 -1]", "line<f2 g1 #f2 sA wf2> lock{other:1}"),
	kase("the first leaves a free lock to the next", "release", state(stand("f1 fb fc")), line, leave("f1"), "[0 0 -1]", "[0 0 -1]", "line<fc #fc sA sB sC wfc> lock{B1:1}"),
	kase("who leaves passes on what it was given", "release", state(stand("fb"), "HSET lock A1 1", forever), line, leave("f1"), "[0 1 -1 0 ~]", "[0 0 -1]", "lock{B1:1}"),
	kase("a named owner leaves the line", "release", state(stand("i1 fb"), byOther...), lineIDs, leave("i1"), "[0 0 -1]", "[0 0 -1]", "line<fb #fb sA sB wfb> lock{other:1}"),
	kase("a named owner that leaves keeps what it holds elsewhere", "release", state(stand("i1 fb"), "HSET lock ann 1", forever, "SADD ids old"), lineIDs, leave("i1"), "[1 0 -1]", "[1 0 -1]", "ids(old) line<fb #fb sA sB wfb> lock{ann:1}"),

	kase("a lock that is taken away goes to the first", "force_unlock", state(stand("f1 fb"), mine...), line, force("me"), "[me]", "[]", "line<fb #fb sA sB wfb> lock{A1:1}").Moving("line<f1 fb #f1 #fb sA sB c wf1 wfb>"),
	kase("a lock that is taken away is left to the first that wants tokens", "force_unlock", state(stand("ft"), append(mine, called1)...), line, force("me"), "[me]", "[]", "line<ft #ft sA c wft>"),
	kase("a lock that is taken away passes over who hears nothing", "force_unlock", state(stand("f1"), mine...), line, with(force("me"), 3, "1"), "[me]", "[]", "line<f1 #f1 sA wf1>"),
	kase("a lock that is taken away where only dead ones wait is free", "force_unlock", state(stand("fb"), append(mine, heard("B", dead))...), line, force("me"), "[me]", "[]", ""),
	kase("a lock that is taken away goes to the first once", "force_unlock", state(stand("f1 fb"), mine...), lineMark, with(force("me"), 5, "60000"), "[me]", "[me]", "line<fb #fb sA sB wfb> lock{A1:1} mark(me)"),
	kase("a second run lets nobody in", "force_unlock", state(stand("f1"), append(mine, "SADD mark me")...), lineMark, with(force("me"), 5, "60000"), "[me]", "[me]", "line<f1 #f1 sA wf1> lock{me:1} mark(me)"),
	kase("another that is meant lets nobody in", "force_unlock", state(stand("f1"), mine...), line, force("you"), "[]", "[]", "line<f1 #f1 sA wf1> lock{me:1}"),
}

// A session looks after its entries.
var fairLooks = []locktest.ScriptCase{
	kase("entries are kept", "look", state(stand("f1 fb f2"), byOther...), line, looks("f2", "f1"), "[-1 forever ~]", "[-1 forever ~]", "line<f1 fb f2 #f1 #fb #f2 sA sB wf1 wfb wf2> lock{other:1}"),
	kase("plain and fair entries are kept", "look", state(stand("g1 f1"), byOther...), line, looks("g1", "f1"), "[forever -1 ~]", "[forever -1 ~]", "line<g1 f1 #f1 sA wf1> lock{other:1}"),
	kase("an entry that is lost is not made anew", "look", state(stand("fb"), byOther...), line, looks("f1"), "[0 ~]", "[0 ~]", "line<fb #fb sB wfb> lock{other:1}"),
	kase("a line that is lost is not made anew", "look", nil, line, looks("f1", "f2"), "[0 0 ~]", "[0 0 ~]", ""),
	kase("the first is to ask for what is free", "look", state(stand("f1 fb")), line, looks("f1"), "[0 ~]", "[0 ~]", "line<f1 fb #f1 #fb sA sB wf1 wfb>"),
	kase("another's look lets the first in", "look", state(stand("fb f1")), line, looks("f1"), "[-1 ~]", "[~ ~]", "line<f1 #f1 sA sB wf1> lock{B1:1}"),
	kase("another's look draws the tokens of the first", "look", state(stand("ht fb"), "SET token 7"), lineToken, with(looks("fb"), 4, "1"), "[-1 ~]", "[~ ~]", "line<fb #fb sA sB wfb> lock{A4:1} token=9"),
	kase("another's look passes over who hears nothing", "look", state(stand("fb d1")), line, with(looks("f1"), 2, "1"), "[0 ~]", "[0 ~]", "line<fb #fb sA sB wfb> lock{A6:1}"),
	kase("another's look takes the dead out of the line", "look", state(stand("fb f1"), heard("B", dead)), line, looks("f1"), "[0 ~]", "[0 ~]", "line<f1 #f1 sA wf1>"),
	kase("a named owner that got in elsewhere is to ask", "look", state(stand("i1"), "HSET lock ann 1", forever, "SADD ids old"), lineIDs[:2], looks("i1"), "[0 ~]", "[0 ~]", "ids(old) line<i1 #i1 sA wi1> lock{ann:1}"),
	kase("another type of lock is told", "look", state(stand("f1"), "SET lock x"), line, looks("f1"), wrong, wrong, "line<f1 #f1 sA wf1> lock=x"),
	kase("another type of line is told", "look", state(byOther, "SET line x"), line, looks("f1"), wrong, wrong, "line=x lock{other:1}"),

	kase("nobody waits", "waiters", nil, line[1:], []string{"0"}, "[0 0]", "[0 0]", ""),
	kase("the callers of all entries wait", "waiters", state(stand("f1 gb fb f2")), line[1:], []string{"0"}, "[12 0]", "[12 0]", "line<f1 gb fb f2 #f1 #fb #f2 sA sB wf1 wfb wf2>"),
	kase("plain callers are counted by session", "waiters", state(stand("g1 f1 gb"), at(8600000000000007, "wA")), line[1:], []string{"0"}, "[11 0]", "[11 0]", "line<g1 f1 gb #f1 sA sB wf1 wA>"),
	kase("the silent do not wait", "waiters", state(stand("f1 fb gb"), "ZREM line sB", heard("B", silent)), line[1:], []string{"0"}, "[2 0]", "[2 0]", "line<f1 fb gb #f1 #fb sA sB wf1 wfb>"),
	kase("an entry of which nothing is said does not wait", "waiters", setup(at(1, "f1")), line[1:], []string{"0"}, "[0 0]", "[0 0]", "line<f1>"),
	kase("a line of another type is told", "waiters", setup("SET line x"), line[1:], []string{"0"}, wrong, wrong, "line=x"),
}
