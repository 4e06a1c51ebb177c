package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const interval = 50 * time.Millisecond

// await returns when all of WHAT is there, and says what was missing when the time is over. The folder is the one that
// `setup pki` wrote.
func await(folder, seconds string, what []string) error {
	limit, err := strconv.Atoi(seconds)
	if err != nil {
		return err
	}
	client, address, err := adminClient(folder)
	if err != nil {
		return err
	}
	deadline := time.Now().Add(time.Duration(limit) * time.Second)
	for _, one := range what {
		for {
			missing := look(client, address, one)
			if missing == "" {
				break
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("%s was not ready within %d s: %s", one, limit, missing)
			}
			time.Sleep(interval)
		}
	}
	return nil
}

// look says what is missing, or nothing.
func look(client *http.Client, address, what string) string {
	switch name, isNode := strings.CutPrefix(what, "node/"); {
	case what == "api":
		_, missing := get(client, address+"/readyz")
		return missing
	case strings.HasPrefix(what, "http://"):
		_, missing := get(client, what)
		return missing
	case strings.HasPrefix(what, "/") && strings.HasSuffix(what, ".sock"):
		connection, err := net.Dial("unix", what)
		if err != nil {
			return err.Error()
		}
		_ = connection.Close()
		return ""
	case what == "account":
		_, missing := get(client, address+"/api/v1/namespaces/default/serviceaccounts/default")
		return missing
	case isNode:
		body, missing := get(client, address+"/api/v1/nodes/"+name)
		if missing != "" {
			return missing
		}
		return lacks(body, "Ready")
	case what == "definitions":
		body, missing := get(client, address+"/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
		if missing != "" {
			return missing
		}
		return lacks(body, "Established")
	}
	return "no such thing can be waited for"
}

// object is as much of an object, or of a list of them, as readiness needs.
type object struct {
	Metadata struct{ Name string }
	Status   struct {
		Conditions []struct{ Type, Status, Message string }
	}
	Items []object
}

func lacks(body []byte, condition string) string {
	var read object
	if err := json.Unmarshal(body, &read); err != nil {
		return err.Error()
	}
	if read.Items == nil {
		return read.lacks(condition)
	}
	for _, item := range read.Items {
		if missing := item.lacks(condition); missing != "" {
			return missing
		}
	}
	return ""
}

func (read object) lacks(condition string) string {
	for _, one := range read.Status.Conditions {
		if one.Type != condition {
			continue
		}
		if one.Status == "True" {
			return ""
		}
		return read.Metadata.Name + ": " + one.Message
	}
	return fmt.Sprintf("%s has no condition %s", read.Metadata.Name, condition)
}

func get(client *http.Client, url string) (body []byte, missing string) {
	answer, err := client.Get(url)
	if err != nil {
		return nil, err.Error()
	}
	defer answer.Body.Close()
	body, err = io.ReadAll(answer.Body)
	if err != nil {
		return nil, err.Error()
	}
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Sprintf("%s: %s", answer.Status, strings.TrimSpace(string(body)))
	}
	return body, ""
}

func adminClient(folder string) (*http.Client, string, error) {
	pair, err := tls.LoadX509KeyPair(filepath.Join(folder, "admin.crt"), filepath.Join(folder, "admin.key"))
	if err != nil {
		return nil, "", err
	}
	authority, err := os.ReadFile(filepath.Join(folder, "ca.crt"))
	if err != nil {
		return nil, "", err
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(authority)
	settings := &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: trusted}
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{TLSClientConfig: settings}}
	return client, "https://127.0.0.1", nil
}
