package semaphore_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"relock/internal/test/redistest"
	"relock/rlock"
)

// The ACL that the README gives is enough to run everything of this package (R29).
func TestDocumentedACLIsEnough(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	must(t, err)
	block := regexp.MustCompile("(?s)```\nACL SETUSER (.*?)```").FindSubmatch(readme)
	if block == nil {
		t.Fatal("the README has no ACL SETUSER block")
	}
	s := redistest.Real(t)
	must(t, s.Do(t, append([]string{"ACL", "SETUSER"}, strings.Fields(string(block[1]))...)...).Error())
	must(t, s.Do(t, "ACL", "LOG", "RESET").Error())
	opt := s.Option()
	opt.Username, opt.Password = "locks", "secret"
	ses, err := rlock.Dial(within(t, 20*time.Second), opt, rlock.Config{Prefix: "app:", PollFloor: time.Minute})
	must(t, err)
	oddName(t, ses, "x")
	must(t, ses.Close())
	log, err := s.Do(t, "ACL", "LOG").ToArray()
	must(t, err)
	for _, entry := range log {
		t.Errorf("refused: %v", entry.String())
	}
}
