package memredis

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"
)

// An Interpreter runs scripts on states. It keeps each script that it has compiled. It is not safe for
// concurrent use.
type Interpreter struct {
	l        *lua.LState
	compiled map[string]*lua.LFunction
	redis    *Redis // that the script which runs speaks to
	args     []string
}

// NewInterpreter returns one, which is to be closed.
func NewInterpreter() *Interpreter {
	in := &Interpreter{l: lua.NewState(lua.Options{SkipOpenLibs: true}), compiled: make(map[string]*lua.LFunction)}
	for _, open := range []lua.LGFunction{lua.OpenBase, lua.OpenTable, lua.OpenString, lua.OpenMath} {
		in.l.Push(in.l.NewFunction(open))
		in.l.Call(0, 0)
	}
	api := in.l.NewTable()
	in.l.SetFuncs(api, map[string]lua.LGFunction{
		"call":        func(l *lua.LState) int { return in.call(l, true) },
		"pcall":       func(l *lua.LState) int { return in.call(l, false) },
		"error_reply": func(l *lua.LState) int { return reply1(l, "err") },
		"sha1hex": func(l *lua.LState) int {
			sum := sha1.Sum([]byte(l.CheckString(1)))
			l.Push(lua.LString(hex.EncodeToString(sum[:])))
			return 1
		},
	})
	in.l.SetGlobal("redis", api)
	// Redis lets no script use a global that is not there, nor make one.
	meta := in.l.NewTable()
	for _, event := range []string{"__index", "__newindex"} {
		meta.RawSetString(event, in.l.NewFunction(func(l *lua.LState) int {
			l.RaiseError("the script uses the global variable %q, which is not there", l.CheckString(2))
			return 0
		}))
	}
	in.l.SetMetatable(in.l.G.Global, meta)
	return in
}

// Close ends it.
func (in *Interpreter) Close() { in.l.Close() }

// reply1 makes a table of one text.
func reply1(l *lua.LState, field string) int {
	t := l.NewTable()
	t.RawSetString(field, lua.LString(l.CheckString(1)))
	l.Push(t)
	return 1
}

// Run runs a script on a state, as EVAL does. A script that is no Lua is a panic.
func (in *Interpreter) Run(r *Redis, src string, keys, args []string) Reply {
	fn := in.compiled[src]
	if fn == nil {
		chunk, err := parse.Parse(strings.NewReader(src), "script")
		if err != nil {
			panic(fmt.Sprintf("memredis: %v in\n%s", err, src))
		}
		proto, err := lua.Compile(chunk, "script")
		if err != nil {
			panic(fmt.Sprintf("memredis: %v", err))
		}
		fn = in.l.NewFunctionFromProto(proto)
		in.compiled[src] = fn
	}
	in.redis = r
	in.l.G.Global.RawSetString("KEYS", in.strings(keys))
	in.l.G.Global.RawSetString("ARGV", in.strings(args))
	err := in.l.CallByParam(lua.P{Fn: fn, NRet: 1, Protect: true})
	if err != nil {
		if api, ok := err.(*lua.ApiError); ok {
			if t, ok := api.Object.(*lua.LTable); ok {
				if s, ok := t.RawGetString("err").(lua.LString); ok {
					return Reply{Kind: Error, Text: string(s)}
				}
			}
			return Reply{Kind: Error, Text: "ERR " + api.Object.String()}
		}
		return Reply{Kind: Error, Text: "ERR " + err.Error()}
	}
	ret := in.l.Get(-1)
	in.l.Pop(1)
	return toReply(ret)
}

func (in *Interpreter) strings(items []string) *lua.LTable {
	t := in.l.CreateTable(len(items), 0)
	for _, it := range items {
		t.Append(lua.LString(it))
	}
	return t
}

// call is redis.call and redis.pcall.
func (in *Interpreter) call(l *lua.LState, raise bool) int {
	args := in.args[:0]
	var r Reply
	for i := 1; i <= l.GetTop(); i++ {
		switch v := l.Get(i).(type) {
		case lua.LString:
			args = append(args, string(v))
		case lua.LNumber:
			args = append(args, formatArg(float64(v)))
		default:
			r = Reply{Kind: Error, Text: "ERR Lua redis lib command arguments must be strings or integers"}
		}
	}
	in.args = args
	if r.Kind != Error {
		r = in.redis.Do(args...)
	}
	v := in.toLua(r)
	if raise && r.Kind == Error {
		l.Error(v, 0)
	}
	l.Push(v)
	return 1
}

// formatArg writes a number as Redis does when a script gives it to a command.
func formatArg(f float64) string {
	if f == math.Trunc(f) && math.Abs(f) < 1<<62 {
		return strconv.FormatInt(int64(f), 10)
	}
	return strconv.FormatFloat(f, 'g', 17, 64)
}

// toLua is how Redis gives a reply to a script.
func (in *Interpreter) toLua(r Reply) lua.LValue {
	switch r.Kind {
	case Int:
		return lua.LNumber(r.Int)
	case Bulk:
		return lua.LString(r.Text)
	case Array:
		t := in.l.CreateTable(len(r.Elems), 0)
		for i, e := range r.Elems {
			t.RawSetInt(i+1, in.toLua(e))
		}
		return t
	case Status, Error:
		t := in.l.NewTable()
		t.RawSetString(map[Kind]string{Status: "ok", Error: "err"}[r.Kind], lua.LString(r.Text))
		return t
	}
	return lua.LFalse
}

// toReply is what Redis makes of what a script returns.
func toReply(v lua.LValue) Reply {
	switch v := v.(type) {
	case lua.LString:
		return bulk(string(v))
	case lua.LNumber:
		return Reply{Kind: Int, Int: int64(v)}
	case lua.LBool:
		if v {
			return integer(1)
		}
	case *lua.LTable:
		if s, ok := v.RawGetString("err").(lua.LString); ok {
			return Reply{Kind: Error, Text: string(s)}
		}
		if s, ok := v.RawGetString("ok").(lua.LString); ok {
			return Reply{Kind: Status, Text: string(s)}
		}
		a := Reply{Kind: Array}
		for i := 1; ; i++ {
			e := v.RawGetInt(i)
			if e == lua.LNil {
				return a
			}
			a.Elems = append(a.Elems, toReply(e))
		}
	}
	return none
}
