package otel_test

import (
	"os"
	"regexp"
	"testing"
)

// The documentation lists each word that can be the value of an attribute.
func TestDocumentationListsTheWords(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	must(t, err)
	hooks, err := os.ReadFile("../locktrace/locktrace.go")
	must(t, err)
	attributes := map[string]string{"Outcome": "acquire.outcome", "Grant": "acquire.grant", "HoldReason": "hold.end", "SubscriptionState": "subscription.state", "LineEvent": "line.event"}
	words := regexp.MustCompile(`(Outcome|Grant|HoldReason|SubscriptionState|LineEvent) += "(\w+)"`).FindAllStringSubmatch(string(hooks), -1)
	if len(words) < 25 {
		t.Errorf("%d words were found; there are more", len(words))
	}
	for _, w := range words {
		if line := regexp.MustCompile(`relock\.` + attributes[w[1]] + ` .*\b` + w[2] + `\b`); !line.Match(doc) {
			t.Errorf("the documentation of relock.%s lacks %q", attributes[w[1]], w[2])
		}
	}
}
