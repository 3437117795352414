package redisson

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// requireJava is the variable that makes tests fail which would be skipped.
const requireJava = "RELOCK_REQUIRE_JAVA"

var (
	errNoJava   = errors.New("not installed")
	errDownload = errors.New("MAVEN COULD NOT DOWNLOAD Redisson or a plugin; that says nothing about the locks. Is a Maven repository within reach (~/.m2/settings.xml)?")
)

// classPath returns where the Java program is, built if need be.
func classPath(t testing.TB) string {
	t.Helper()
	path, err := built()
	switch {
	case errors.Is(err, errNoJava) && os.Getenv(requireJava) != "1":
		t.Skipf("SKIPPED, no Java: %v", err)
	case err != nil:
		t.Fatal(err)
	}
	return path
}

// built builds the Java program, once in a run of the tests.
var built = sync.OnceValues(func() (string, error) {
	for _, need := range [][2]string{{"java", "a JDK, 17 or later"}, {"javac", "a JDK, 17 or later (a JRE does not do)"}, {"mvn", "Maven"}} {
		if _, err := exec.LookPath(need[0]); err != nil {
			return "", fmt.Errorf("%s is %w; the interoperability tests need %s", need[0], errNoJava, need[1])
		}
	}
	const dir = "peer"
	version := os.Getenv("RELOCK_REDISSON")
	if version == "" {
		pom, err := os.ReadFile(filepath.Join(dir, "pom.xml"))
		if err != nil {
			return "", err
		}
		found := regexp.MustCompile(`<redisson\.version>(.*)</redisson\.version>`).FindSubmatch(pom)
		if found == nil {
			return "", errors.New("peer/pom.xml names no redisson.version")
		}
		version = string(found[1])
	}
	target := filepath.Join(dir, "target", version)
	stamp := filepath.Join(target, "built")
	path := filepath.Join(target, "classes") + string(os.PathListSeparator) + filepath.Join(target, "lib", "*")
	fresh, err := newer(stamp, filepath.Join(dir, "pom.xml"), filepath.Join(dir, "src"))
	if err != nil || fresh {
		return path, err
	}
	// What has been downloaded once is not looked for again: offline first.
	if _, err = maven(dir, version, "-o"); err != nil {
		var out string
		if out, err = maven(dir, version); err != nil {
			return "", blame(out, err)
		}
	}
	return path, os.WriteFile(stamp, nil, 0o600)
})

func maven(dir, version string, args ...string) (output string, err error) {
	cmd := exec.Command("mvn", append(args, "-q", "-B", "-Dredisson.version="+version, "compile")...)
	cmd.Dir = dir
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	return out.String(), err
}

// blame tells a failed download apart from everything else.
func blame(out string, err error) error {
	for _, sign := range []string{"Could not transfer artifact", "Could not find artifact", "Could not resolve dependencies", "could not be resolved"} {
		if strings.Contains(out, sign) {
			return fmt.Errorf("%w\n%s", errDownload, out)
		}
	}
	return fmt.Errorf("mvn compile: %w\n%s", err, out)
}

// newer reports whether the stamp is there, and younger than all that it depends on.
func newer(stamp string, sources ...string) (bool, error) {
	info, err := os.Stat(stamp)
	if err != nil {
		return false, nil // not built yet
	}
	var last time.Time
	for _, source := range sources {
		err = cmp.Or(err, filepath.WalkDir(source, func(_ string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			file, err := d.Info()
			if err == nil && file.ModTime().After(last) {
				last = file.ModTime()
			}
			return err
		}))
	}
	return info.ModTime().After(last), err
}
