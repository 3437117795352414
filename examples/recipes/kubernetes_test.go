package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"time"

	"relock/relocktest"
	"relock/rlock"
)

// open connects as the manifest says.
func open(ctx context.Context) (*rlock.Session, error) {
	return rlock.DialURL(ctx, os.Getenv("RELOCK_REDIS"), rlock.Config{Prefix: "app:", Label: os.Getenv("POD_NAME")})
}

// ready is for services that can do nothing without locks.
func ready(session *rlock.Session) http.HandlerFunc {
	probe := rlock.New(session, "ready")
	return func(w http.ResponseWriter, r *http.Request) {
		if _, err := probe.State(r.Context()); err != nil { // the probe's timeout ends r.Context()
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	}
}

// A pod whose Redis is away ends with an error. One that runs is ready until it has stopped.
func Example_kubernetes() {
	for name, value := range map[string]string{"RELOCK_REDIS": "redis://127.0.0.1:1", "POD_NAME": "shop-7d4b9"} {
		if err := os.Setenv(name, value); err != nil {
			fmt.Println(err)
		}
	}
	_, err := open(context.Background())
	fmt.Println("Redis is away:", errors.Is(err, rlock.ErrUnavailable))

	session, redis, done := relocktest.Open()
	defer done()
	look := func() int {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second) // the kubelet's timeoutSeconds
		defer cancel()
		answer := httptest.NewRecorder()
		ready(session)(answer, httptest.NewRequestWithContext(ctx, http.MethodGet, "/ready", nil))
		return answer.Code
	}
	fmt.Println("ready:", look())
	redis.Refuse("LOADING Redis is loading the dataset in memory")
	fmt.Println("ready:", look())
	redis.Refuse("")
	fmt.Println("ready:", look())
	fmt.Println("close:", session.Close())
	fmt.Println("ready:", look())
	// Output:
	// Redis is away: true
	// ready: 200
	// ready: 503
	// ready: 200
	// close: <nil>
	// ready: 503
}
