package oracle_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"relock/torture/oracle"
)

const childLog = "RELOCK_ORACLE_CHILD"

func TestMain(m *testing.M) {
	if path := os.Getenv(childLog); path != "" {
		die(path)
	}
	os.Exit(m.Run())
}

// die writes down a section and kills its own process.
func die(path string) {
	log, err := oracle.Create(path, 0)
	if err != nil {
		panic(err)
	}
	r := log.Begin(oracle.Section, 0, 3, 2, 5, oracle.Read)
	r.Returned()
	r.Settle(oracle.Held)
	r.Inside(func() bool { return true }, func() time.Duration { return time.Second })
	self, _ := os.FindProcess(os.Getpid())
	_ = self.Kill()
	select {}
}

func TestRecordsSurviveKill(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childLog+"="+path)
	before := oracle.Now()
	if err := cmd.Run(); err == nil {
		t.Fatal("the process was not killed")
	}
	all, err := oracle.Load(path)
	if err != nil || len(all) != 1 {
		t.Fatalf("%v, %v", all, err)
	}
	e := all[0]
	if e.Kind != oracle.Section || e.Lock != 3 || e.Owner != 2 || e.N != 5 || e.Outcome != oracle.Held || !e.Has(oracle.Read) {
		t.Errorf("%+v", e)
	}
	if !(before < e.Call && e.Call <= e.Got && e.Got <= e.In && e.In == e.Safe && e.Safe < oracle.Now()) {
		t.Errorf("times of two processes do not compare: %v, %+v", before, e)
	}
}

func TestInsideIsTheTimeBeforeTheQuestion(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	log, err := oracle.Create(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	r := log.Begin(oracle.Section, 0, 0, 0, 1, 0)
	var asked time.Duration
	alive := func() bool { asked = oracle.Now(); return true }
	r.Inside(alive, func() time.Duration { return time.Second })
	r.Inside(func() bool { return false }, nil)
	all, err := oracle.Load(path)
	if err != nil || len(all) != 1 {
		t.Fatalf("%v, %v", all, err)
	}
	if e := all[0]; e.In == 0 || e.Safe > asked || e.In != e.Safe || e.Seen != e.Safe {
		t.Errorf("asked at %v: %+v", asked, e)
	}
}
