package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"relock/relocktest"
	"relock/rlock"
)

// stop ends a service within the orchestrator's grace period. Requests that wait for a lock end at
// once with rlock.ErrClosed; those that hold one may finish.
func stop(server *http.Server, session *rlock.Session, grace time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	locks := make(chan error, 1)
	go func() { locks <- session.Shutdown(ctx) }()
	return errors.Join(server.Shutdown(ctx), <-locks)
}

// A service is stopped while a request is in a section.
func Example_rollingRestart() {
	session, redis, done := relocktest.Open()
	defer done()
	inside, goOn := make(chan struct{}), make(chan struct{})
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := rlock.New(session, "report").Do(r.Context(), func(ctx context.Context) error {
			close(inside)
			<-goOn
			return ctx.Err()
		})
		fmt.Fprint(w, err)
	})}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	go func() { _ = server.Serve(listener) }()
	answer := make(chan string, 1)
	go func() {
		response, err := http.Get("http://" + listener.Addr().String())
		if err != nil {
			answer <- err.Error()
			return
		}
		defer response.Body.Close()
		body, _ := io.ReadAll(response.Body)
		answer <- string(body)
	}()
	<-inside

	stopped := make(chan error, 1)
	go func() { stopped <- stop(server, session, 25*time.Second) }()
	for { // Shutdown has begun when a new caller is turned away
		_, hold, err := rlock.New(session, "another").TryLock(context.Background())
		if errors.Is(err, rlock.ErrClosed) {
			break
		}
		_ = hold.Unlock()
	}
	close(goOn)
	fmt.Println("the section:", <-answer)
	fmt.Println("stop:", <-stopped)
	fmt.Println("still locked:", redis.Miniredis().Exists("report"))
	// Output:
	// the section: <nil>
	// stop: <nil>
	// still locked: false
}
