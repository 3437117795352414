package redistest

import (
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"testing"
)

// Version says which server program the tests run on.
type Version struct {
	Valkey       bool
	Major, Minor int
}

// ServerVersion returns the version of the server program. Without one it skips the test, or
// fails it; see the package comment.
func ServerVersion(tb testing.TB) Version {
	tb.Helper()
	v, err := versionOf(binary(tb))
	if err != nil {
		tb.Fatalf("the version of the server program: %v", err)
	}
	return v
}

var versionLine = regexp.MustCompile(`(Redis|Valkey) server v=(\d+)\.(\d+)`)

// versions remembers what each program has said of itself.
var versions sync.Map // path -> Version

func versionOf(path string) (Version, error) {
	if v, ok := versions.Load(path); ok {
		return v.(Version), nil
	}
	out, err := exec.Command(path, "--version").CombinedOutput()
	if err != nil {
		return Version{}, err
	}
	m := versionLine.FindSubmatch(out)
	if m == nil {
		return Version{}, strconv.ErrSyntax
	}
	v := Version{Valkey: string(m[1]) == "Valkey"}
	v.Major, _ = strconv.Atoi(string(m[2]))
	v.Minor, _ = strconv.Atoi(string(m[3]))
	versions.Store(path, v)
	return v, nil
}

// AtLeast reports whether the server has what Redis brought with the given version. Every
// Valkey has what Redis 7.2 has.
func (v Version) AtLeast(major, minor int) bool {
	if v.Valkey {
		return true
	}
	return v.Major > major || v.Major == major && v.Minor >= minor
}

// Sharded reports whether a Cluster of these servers has sharded channels.
func (v Version) Sharded() bool { return v.AtLeast(7, 0) }

// NeedSharded skips a test of sharded channels on servers that have none.
func NeedSharded(tb testing.TB) {
	tb.Helper()
	if !ServerVersion(tb).Sharded() {
		tb.Skip("SKIPPED: sharded channels came with Redis 7.0")
	}
}

// Subscribed returns the channels on which messages for locks of addr's slots are awaited:
// the sharded channels of that node, or, where the servers have none, the channels that are
// subscribed on any living node, for a PUBLISH reaches all.
func (c *Cluster) Subscribed(tb testing.TB, addr string) []string {
	tb.Helper()
	if ServerVersion(tb).Sharded() {
		return c.Node(addr).sorted(tb, "PUBSUB", "SHARDCHANNELS")
	}
	var all []string
	for _, s := range c.nodes {
		list, _ := s.Do(tb, "PUBSUB", "CHANNELS").AsStrSlice() // a killed node has no subscribers
		all = append(all, list...)
	}
	return all
}

// SubscribedOn reports whether the channel is awaited where messages of addr's slots are
// published, and, with sharded channels, nowhere else. An empty addr asks whether it is
// awaited nowhere.
func (c *Cluster) SubscribedOn(tb testing.TB, channel, addr string) bool {
	tb.Helper()
	sharded := ServerVersion(tb).Sharded()
	for _, a := range c.Addrs {
		want := a == addr || !sharded && addr != ""
		if slices.Contains(c.Subscribed(tb, a), channel) != want {
			return false
		}
	}
	return true
}
