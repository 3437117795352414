package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"gopkg.in/yaml.v3"
)

var yamlBlock = regexp.MustCompile("(?s)```ya?ml\n(.*?)```")

// A manifest is what the documentation's manifests have in common, and what refers to others.
type manifest struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Metadata   struct{ Name string }
	StringData map[string]string `yaml:"stringData"`
	Spec       struct {
		Selector struct {
			MatchLabels map[string]string `yaml:"matchLabels"`
		}
		Template    podTemplate
		JobTemplate struct {
			Spec struct{ Template podTemplate }
		} `yaml:"jobTemplate"`
	}
}

type podTemplate struct {
	Metadata struct{ Labels map[string]string }
	Spec     struct {
		RestartPolicy string `yaml:"restartPolicy"`
		Grace         int    `yaml:"terminationGracePeriodSeconds"`
		Containers    []struct {
			Name, Image string
			Command     []string
			Ports       []struct {
				ContainerPort int `yaml:"containerPort"`
			}
			EnvFrom []struct {
				SecretRef struct{ Name string } `yaml:"secretRef"`
			} `yaml:"envFrom"`
			Env            []struct{ Name string }
			ReadinessProbe struct {
				HTTPGet struct{ Port int } `yaml:"httpGet"`
			} `yaml:"readinessProbe"`
		}
	}
}

// manifests returns those of the documentation. That they are YAML is tested here because this module has a
// parser: repeated keys, tabs and the like are errors.
func manifests(t *testing.T) (all []manifest) {
	t.Helper()
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(files) == 0 {
		t.Fatal("no pages", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range yamlBlock.FindAllSubmatch(text, -1) {
			for documents := yaml.NewDecoder(bytes.NewReader(block[1])); ; {
				var m manifest
				err := documents.Decode(&m)
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatalf("%s: %v in\n%s", file, err, block[1])
				}
				all = append(all, m)
			}
		}
	}
	return all
}

// The manifests of docs/kubernetes.md parse, and refer to what they have.
func TestManifests(t *testing.T) {
	var secrets, kinds []string
	all := manifests(t)
	for _, m := range all {
		kinds = append(kinds, m.Kind)
		if m.APIVersion == "" || m.Metadata.Name == "" {
			t.Errorf("%s %q lacks a version or a name", m.Kind, m.Metadata.Name)
		}
		if m.Kind == "Secret" && m.StringData["RELOCK_REDIS"] != "" {
			secrets = append(secrets, m.Metadata.Name)
		}
	}
	for _, kind := range []string{"Secret", "Deployment", "CronJob", "Job"} {
		if !slices.Contains(kinds, kind) {
			t.Errorf("there is no %s, of %q", kind, kinds)
		}
	}
	for _, m := range all {
		if m.Kind != "Secret" {
			m.checkPods(t, secrets)
		}
	}
}

// checkPods checks what a manifest's pods refer to.
func (m manifest) checkPods(t *testing.T, secrets []string) {
	t.Helper()
	pods := m.Spec.Template
	if m.Kind == "CronJob" {
		pods = m.Spec.JobTemplate.Spec.Template
	}
	if len(pods.Spec.Containers) == 0 {
		t.Errorf("%s has no containers", m.Kind)
	}
	for _, c := range pods.Spec.Containers {
		if c.Name == "" || c.Image == "" || len(c.EnvFrom) == 0 || !slices.Contains(secrets, c.EnvFrom[0].SecretRef.Name) {
			t.Errorf("%s: container %q lacks an image, or a secret with RELOCK_REDIS of %q", m.Kind, c.Name, secrets)
		}
		if m.Kind != "Deployment" && (len(c.Command) < 4 || fmt.Sprint(c.Command[:2]) != "[relock run]" || !slices.Contains(c.Command, "--")) {
			t.Errorf("%s runs %q", m.Kind, c.Command)
		}
		if m.Kind != "Deployment" {
			continue
		}
		if len(c.Ports) == 0 || c.ReadinessProbe.HTTPGet.Port != c.Ports[0].ContainerPort || len(c.Env) == 0 || c.Env[0].Name != "POD_NAME" {
			t.Errorf("the Deployment's ports are %v, its probe asks %d, its environment has %v", c.Ports, c.ReadinessProbe.HTTPGet.Port, c.Env)
		}
	}
	if m.Kind == "Deployment" {
		for label, value := range m.Spec.Selector.MatchLabels {
			if pods.Metadata.Labels[label] != value {
				t.Errorf("the Deployment selects %s=%s, and its pods have %v", label, value, pods.Metadata.Labels)
			}
		}
		if pods.Spec.Grace < 40 { // preStop, Shutdown and Close together
			t.Errorf("the Deployment's grace period is %d s", pods.Spec.Grace)
		}
	} else if pods.Spec.RestartPolicy == "" {
		t.Errorf("%s has no restartPolicy, without which no server takes it", m.Kind)
	}
}
