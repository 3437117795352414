package rlock

import (
	"context"
	"fmt"

	"relock/internal/connect"
)

// DialURL is [Dial] with the options of a URL.
//
//	one server    redis://user:password@host:6379/0   with TLS: rediss://
//	a socket      unix://user:password@/path/to/socket?db=0
//	Cluster       redis://host1:6379?addr=host2:6379&addr=host3:6379
//	Sentinel      redis://sentinel1:26379?addr=sentinel2:26379&master_set=mymaster
//
// valkey:// and valkeys:// are redis:// and rediss://. Of a Cluster one node is enough. User and password
// are those of the servers. The host is localhost if it is left out, and the port 6379, or 26379
// with master_set. In all parts of the URL @ is written %40, / is %2F, ? is %3F, # is %23 and % is %25 where
// they are not what they stand for above.
//
//	addr                   another node of the Cluster, or Sentinel; may be repeated
//	db                     the number of the database, if it is not the path
//	master_set             the name of the primary: the addresses are those of Sentinels
//	sentinel_username      who the client is to the Sentinels
//	sentinel_password
//	sentinel_tls           with rediss://: false for Sentinels that do not speak TLS
//	cacert                 with rediss://: a file with the authorities that sign the servers'
//	                       certificates, in PEM, in place of the system's
//	cert, key              with rediss://: the files of the client's certificate and its key, in PEM
//	server_name            with rediss://: the name that the certificate of each server must be valid
//	                       for; the first host by default; empty: each server's own address
//	skip_verify            with rediss://: true accepts any certificate
//	dial_timeout           5s by default
//	write_timeout          after how long without an answer a connection counts as dead; 3s by default
//	client_name            what CLIENT LIST says
//	protocol               2 or 3
//	client_cache           no effect: nothing is cached
//	max_retries            0: the client repeats nothing by itself; the session does
//
// What cannot be said by a URL (a function that gives credentials, say) is for Dial. Errors: [ErrConfig] for
// a URL that is not like this, with what would be right; its text has no part of a password. Files that
// cannot be read are ErrConfig too. Else those of Dial.
func DialURL(ctx context.Context, url string, cfg Config) (*Session, error) {
	opt, err := connect.ParseURL(url)
	if err != nil {
		return nil, fmt.Errorf("dial: %w", err)
	}
	return dial(ctx, opt, cfg, connect.URL)
}
