// Package javapeer builds the Java program that speaks for the real Redisson: see
// interop/redisson/peer.
package javapeer

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
	"time"
)

// Errors of Build.
var (
	// ErrNoJava says that a JDK or Maven is not installed.
	ErrNoJava = errors.New("not installed")
	// ErrDownload says that Maven could not get Redisson or a plugin.
	ErrDownload = errors.New("MAVEN COULD NOT DOWNLOAD Redisson or a plugin; that says nothing about the locks. Is a Maven repository within reach (~/.m2/settings.xml)?")
)

// Build builds the Java program in dir, of the version of Redisson that RELOCK_REDISSON names or
// else its pom.xml, unless what is there is younger than its sources; and returns the class path.
// Errors: [ErrNoJava], [ErrDownload], and those of Maven.
func Build(dir string) (string, error) {
	for _, need := range [][2]string{{"java", "a JDK, 17 or later"}, {"javac", "a JDK, 17 or later (a JRE does not do)"}, {"mvn", "Maven"}} {
		if _, err := exec.LookPath(need[0]); err != nil {
			return "", fmt.Errorf("%s is %w; Redisson needs %s", need[0], ErrNoJava, need[1])
		}
	}
	version := os.Getenv("RELOCK_REDISSON")
	if version == "" {
		pom, err := os.ReadFile(filepath.Join(dir, "pom.xml"))
		if err != nil {
			return "", err
		}
		found := regexp.MustCompile(`<redisson\.version>(.*)</redisson\.version>`).FindSubmatch(pom)
		if found == nil {
			return "", fmt.Errorf("%s/pom.xml names no redisson.version", dir)
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
}

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
			return fmt.Errorf("%w\n%s", ErrDownload, out)
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
