package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// etcdStart bounds the wait for an etcd to answer.
const etcdStart = 20 * time.Second

const etcdName = "etcd"

// errNoEtcd says that there is none on PATH.
var errNoEtcd = fmt.Errorf("%w: no etcd on PATH", errLeftOut)

// startEtcd starts an etcd of one node, as it comes, and returns its address and version.
// It ends with the host. Its data lies in the system's folder for temporary files: etcd
// waits for the disk at each write, so what it can do depends on that.
func startEtcd(h *host) (addr, version string, err error) {
	path, err := exec.LookPath("etcd")
	if err != nil {
		return "", "", errNoEtcd
	}
	text, err := exec.Command(path, "--version").Output()
	if err != nil {
		return "", "", fmt.Errorf("etcd --version: %w", err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	version = strings.TrimSpace(strings.TrimPrefix(first, "etcd Version:"))
	addr, peer := freeAddress(h), freeAddress(h)
	dir := h.TempDir()
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return "", "", err
	}
	defer log.Close() // the child has a copy of its own
	cmd := exec.Command(path, "--data-dir", filepath.Join(dir, "data"),
		"--listen-client-urls", "http://"+addr, "--advertise-client-urls", "http://"+addr,
		"--listen-peer-urls", "http://"+peer, "--initial-advertise-peer-urls", "http://"+peer,
		"--initial-cluster", "default=http://"+peer)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return "", "", fmt.Errorf("etcd: %w", err)
	}
	h.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return addr, version, answersEtcd(addr)
}

// answersEtcd waits until the etcd at addr has elected itself.
func answersEtcd(addr string) error {
	ctx, cancel := context.WithTimeout(context.Background(), etcdStart)
	defer cancel()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{addr}})
	if err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	defer c.Close()
	// The client tries again by itself until ctx ends.
	for {
		if _, err = c.Get(ctx, "nothing"); err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("etcd does not answer: %w", err)
		}
	}
}

// freeAddress returns an address that is free now.
func freeAddress(h *host) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		h.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
