package faulttest

import (
	"slices"
	"strings"
)

// requested returns the proxy's own answer to the command, or the fault that is
// to strike it before it is forwarded.
func (p *Proxy) requested(cmd []string) (refusal string, r *rule) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if refusal = p.refused[strings.ToUpper(cmd[0])]; refusal != "" {
		return refusal, nil
	}
	return "", take(&p.requests, cmd)
}

// forwarded counts the command and returns the fault that is to strike its reply.
func (p *Proxy) forwarded(cmd []string) *rule {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.log = append(p.log, cmd)
	return take(&p.replies, cmd)
}

func (p *Proxy) dropsMessages() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.noMsgs
}

// take removes and returns the first rule that matches the command.
func take(rules *[]*rule, cmd []string) *rule {
	i := slices.IndexFunc(*rules, func(r *rule) bool { return r.match(cmd) })
	if i < 0 {
		return nil
	}
	r := (*rules)[i]
	*rules = slices.Delete(*rules, i, i+1)
	return r
}
