// Package connect is how a client comes about, and why there is none.
//
// explain.go says why a client could not be made, where rueidis's error does not: a server that answers,
// but to TLS only or not to TLS, a certificate that is missing, options that are refused.
//
// url.go reads the URL of a Redis deployment. What such a URL means is rueidis's, which reads
// the most of it. This package refuses what rueidis takes for something else, and adds the certificates.
//
// A URL mostly has a password, and one with a character that is not escaped has it anywhere. So no error
// repeats a part of a URL but the values of known parameters, and not that of sentinel_password.
package connect
