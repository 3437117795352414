package main

import (
	"context"
	"log"

	"github.com/redis/rueidis"

	"relock/rlock"
)

func main() {
	ctx := context.Background()
	session, err := rlock.Dial(ctx, rueidis.ClientOption{InitAddress: []string{"localhost:6379"}}, rlock.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()

	err = rlock.New(session, "stock:42").Do(ctx, func(ctx context.Context) error {
		log.Print("selling") // alone in all processes; ctx ends when the lock cannot be trusted any more
		return nil
	})
	if err != nil {
		log.Print(err)
	}
}
