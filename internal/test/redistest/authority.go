package redistest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// An Authority signs the certificates of a test's servers and clients.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority makes an authority that nothing trusts yet.
func NewAuthority(tb testing.TB) *Authority {
	tb.Helper()
	a := new(Authority)
	a.key = newKey(tb)
	a.cert = &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, NotAfter: time.Now().Add(time.Hour)}
	var err error
	if a.cert, err = x509.ParseCertificate(a.sign(tb, a.cert, a.key)); err != nil {
		tb.Fatal(err)
	}
	return a
}

func newKey(tb testing.TB) *ecdsa.PrivateKey {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	return key
}

func (a *Authority) sign(tb testing.TB, c *x509.Certificate, key *ecdsa.PrivateKey) []byte {
	tb.Helper()
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, &key.PublicKey, a.key)
	if err != nil {
		tb.Fatal(err)
	}
	return der
}

// Certificate makes a certificate for hosts, by their names or addresses, or for a client.
func (a *Authority) Certificate(tb testing.TB, hosts ...string) tls.Certificate {
	tb.Helper()
	c := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "peer"}, NotAfter: time.Now().Add(time.Hour)}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			c.IPAddresses = append(c.IPAddresses, ip)
		} else {
			c.DNSNames = append(c.DNSNames, host)
		}
	}
	key := newKey(tb)
	return tls.Certificate{Certificate: [][]byte{a.sign(tb, c, key)}, PrivateKey: key}
}

// pool is what trusts the authority alone.
func (a *Authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// Client returns what a client needs that trusts the authority, and shows the certificates, if any.
func (a *Authority) Client(certs ...tls.Certificate) *tls.Config {
	return &tls.Config{RootCAs: a.pool(), Certificates: certs, MinVersion: tls.VersionTLS12}
}

// Files returns the names of files with the authority's certificate, and with one of a client and its key.
func (a *Authority) Files(tb testing.TB) (ca, cert, key string) {
	tb.Helper()
	dir := tb.TempDir()
	cert, key = pems(tb, dir, a.Certificate(tb))
	return a.file(tb, dir), cert, key
}

func (a *Authority) file(tb testing.TB, dir string) string {
	return writePEM(tb, filepath.Join(dir, "ca"), "CERTIFICATE", a.cert.Raw)
}

// pems writes a certificate and its key to files in dir.
func pems(tb testing.TB, dir string, c tls.Certificate) (cert, key string) {
	tb.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		tb.Fatal(err)
	}
	return writePEM(tb, filepath.Join(dir, "cert"), "CERTIFICATE", c.Certificate[0]),
		writePEM(tb, filepath.Join(dir, "key"), "PRIVATE KEY", der)
}

func writePEM(tb testing.TB, name, kind string, der []byte) string {
	tb.Helper()
	if err := os.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		tb.Fatal(err)
	}
	return name
}
