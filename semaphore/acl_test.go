package semaphore_test

import (
	"testing"
	"time"

	"relock/internal/test/redistest"
	"relock/rlock"
)

// The ACL that docs/operations.md gives is enough to run everything of this package (R29).
func TestDocumentedACLIsEnough(t *testing.T) {
	s := redistest.Real(t)
	must(t, s.Do(t, redistest.DocumentedACL(t)...).Error())
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
