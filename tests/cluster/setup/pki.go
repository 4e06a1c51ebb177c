package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Long enough for a day of trying things, short enough that a key left lying about is worth nothing.
const validity = 24 * time.Hour

type authority struct {
	folder      string
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         []byte
}

// A principal gets NAME.crt, NAME.key and NAME.conf (a kubeconfig).
type principal struct {
	name, commonName, organisation string
}

// writeKeys makes the authority, the API server's certificate, the service accounts' key pair, and a kubeconfig for
// everyone who talks to the API server at this address.
func writeKeys(folder, address string, nodes []string) error {
	ca, err := newAuthority(folder)
	if err != nil {
		return err
	}
	if err := ca.writeServer("api", address); err != nil {
		return err
	}
	if err := writeServiceAccountKeys(folder); err != nil {
		return err
	}
	principals := []principal{
		{"admin", "admin", "system:masters"},
		{"kube-controller-manager", "system:kube-controller-manager", ""},
		{"kube-scheduler", "system:kube-scheduler", ""},
	}
	for _, node := range nodes {
		principals = append(principals, principal{node, "system:node:" + node, "system:nodes"})
	}
	for _, one := range principals {
		if err := ca.writeClient(one, address); err != nil {
			return err
		}
	}
	return nil
}

func newAuthority(folder string) (*authority, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := blank("muster-cluster", "")
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	ca := &authority{folder, certificate, key, encode("CERTIFICATE", der)}
	if _, err := writeKey(filepath.Join(folder, "ca.key"), key); err != nil {
		return nil, err
	}
	return ca, os.WriteFile(filepath.Join(folder, "ca.crt"), ca.pem, 0o600)
}

// Webhooks that run beside the API server serve with its certificate too.
func (ca *authority) writeServer(name, address string) error {
	template := blank("kube-apiserver", "")
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	template.IPAddresses = []net.IP{net.ParseIP("127.0.0.1"), net.ParseIP(address), net.ParseIP("10.96.0.1")}
	template.DNSNames = []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"}
	_, _, err := ca.issue(name, template)
	return err
}

func (ca *authority) writeClient(who principal, address string) error {
	template := blank(who.commonName, who.organisation)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	certificate, key, err := ca.issue(who.name, template)
	if err != nil {
		return err
	}
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters:
- name: muster
  cluster: {server: "https://%s", certificate-authority-data: %s}
users:
- name: %s
  user: {client-certificate-data: %s, client-key-data: %s}
contexts:
- name: muster
  context: {cluster: muster, user: %[3]s, namespace: default}
current-context: muster
`, address, base64.StdEncoding.EncodeToString(ca.pem), who.name,
		base64.StdEncoding.EncodeToString(certificate), base64.StdEncoding.EncodeToString(key))
	return os.WriteFile(filepath.Join(ca.folder, who.name+".conf"), []byte(text), 0o600)
}

func (ca *authority) issue(name string, template *x509.Certificate) (certificate, key []byte, err error) {
	pair, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca.certificate, &pair.PublicKey, ca.key)
	if err != nil {
		return nil, nil, err
	}
	certificate = encode("CERTIFICATE", der)
	if err := os.WriteFile(filepath.Join(ca.folder, name+".crt"), certificate, 0o600); err != nil {
		return nil, nil, err
	}
	key, err = writeKey(filepath.Join(ca.folder, name+".key"), pair)
	return certificate, key, err
}

func writeServiceAccountKeys(folder string) error {
	pair, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	if _, err := writeKey(filepath.Join(folder, "sa.key"), pair); err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(&pair.PublicKey)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "sa.pub"), encode("PUBLIC KEY", public), 0o600)
}

func blank(commonName, organisation string) *x509.Certificate {
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		panic(err) // the system has no randomness: nothing below would be worth having
	}
	subject := pkix.Name{CommonName: commonName}
	if organisation != "" {
		subject.Organization = []string{organisation}
	}
	now := time.Now()
	return &x509.Certificate{SerialNumber: serial, Subject: subject, NotBefore: now.Add(-time.Minute), NotAfter: now.Add(validity)}
}

func writeKey(path string, pair *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(pair)
	if err != nil {
		return nil, err
	}
	text := encode("EC PRIVATE KEY", der)
	return text, os.WriteFile(path, text, 0o600)
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
