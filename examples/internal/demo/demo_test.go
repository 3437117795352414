package demo

import (
	"strings"
	"testing"
)

func TestOpenRedis(t *testing.T) {
	for addr, want := range map[string]string{
		"127.0.0.1:1":               "127.0.0.1:1",
		"redis://u:p@127.0.0.1:2/3": "127.0.0.1:2",
	} {
		r, err := OpenRedis(addr, "x")
		if err != nil || r.Option.InitAddress[0] != want || !strings.Contains(r.Text, want) || strings.Contains(r.Text, "u:p") {
			t.Errorf("OpenRedis(%q) = %+v, %v", addr, r, err)
		}
	}
	if _, err := OpenRedis("http://127.0.0.1:1", "x"); err == nil {
		t.Error("a bad URL was taken")
	}
	r, err := OpenRedis("", "x")
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
}

func TestCommandsAreCountedWhereverWritesEnd(t *testing.T) {
	stream := []byte("*1\r\n$4\r\nPING\r\n*3\r\n$3\r\nSET\r\n$8\r\n*1\r\n$1\r\n\r\n\r\n$0\r\n\r\n*1\r\n$4\r\nPING\r\n")
	for cut := range len(stream) + 1 {
		var p respParser
		if n := p.commands(stream[:cut]) + p.commands(stream[cut:]); n != 3 {
			t.Errorf("%d commands when cut at %d, want 3", n, cut)
		}
	}
}
