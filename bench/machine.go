package main

import (
	"bufio"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// Machine is what the figures were taken on.
type Machine struct {
	CPU      string
	Cores    int
	System   string
	Go       string
	Redis    string
	Etcd     string // "": not measured
	Redisson string // the same
	Day      string
	Modules  []Module
}

// Module is a library with its version.
type Module struct{ Path, Version string }

// libraries are the modules whose versions matter here.
var libraries = []string{
	"github.com/redis/rueidis", // with rueidislock
	"github.com/go-redsync/redsync/v4",
	"github.com/bsm/redislock",
	"github.com/redis/go-redis/v9",
	"go.etcd.io/etcd/client/v3",
}

func thisMachine() Machine {
	m := Machine{
		CPU: cpu(), Cores: runtime.NumCPU(), System: runtime.GOOS + "/" + runtime.GOARCH,
		Go: runtime.Version(), Day: time.Now().Format(time.DateOnly),
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, path := range libraries {
			for _, dep := range info.Deps {
				if dep.Path == path {
					m.Modules = append(m.Modules, Module{path, dep.Version})
				}
			}
		}
	}
	return m
}

// cpu returns the processor's name where the system tells it.
func cpu() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return "unnamed processor"
	}
	defer f.Close()
	for sc := bufio.NewScanner(f); sc.Scan(); {
		if key, value, ok := strings.Cut(sc.Text(), ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unnamed processor"
}
