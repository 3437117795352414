package faulttest

// AnswerWith puts other bytes in place of the reply to the next matching command, which has run. They must be
// one value of RESP, since the client would take what follows for the replies to later commands.
func (p *Proxy) AnswerWith(bytes string, match func(cmd []string) bool) {
	p.onReply(&rule{match: match, instead: bytes})
}
