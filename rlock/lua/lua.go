// Package lua has the Lua scripts of Redisson's lock hash, for the packages that share them.
package lua

import "embed"

// Files are the scripts, to be given to script.Load.
//
//go:embed *.lua
var Files embed.FS
