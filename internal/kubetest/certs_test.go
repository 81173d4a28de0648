package kubetest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"time"
)

// authority signs the certificates by which the parts of a cluster know each other.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	n    int64
}

func newAuthority(dir string) (*authority, error) {
	a := &authority{dir: dir, cert: &x509.Certificate{
		Subject: pkix.Name{CommonName: "kubetest"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}}
	return a, a.issue("ca", a.cert)
}

// issue writes NAME.crt and NAME.key. Without addresses they are a client's: the user is the common name, in the
// groups of the organisation.
func (a *authority) issue(name string, c *x509.Certificate) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	if c.IsCA {
		a.key = key
	} else {
		c.KeyUsage = x509.KeyUsageDigitalSignature
		c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
	}
	a.n++
	c.SerialNumber, c.NotBefore, c.NotAfter = big.NewInt(a.n), time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, key.Public(), a.key)
	if err != nil {
		return err
	}
	if c.IsCA {
		if a.cert, err = x509.ParseCertificate(der); err != nil {
			return err
		}
	}
	raw, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	if err := a.write(name+".crt", "CERTIFICATE", der); err != nil {
		return err
	}
	return a.write(name+".key", "EC PRIVATE KEY", raw)
}

// serviceAccounts writes the keys that sign and check the tokens of service accounts.
func (a *authority) serviceAccounts() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	secret, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return err
	}
	if err := a.write("accounts.pub", "PUBLIC KEY", public); err != nil {
		return err
	}
	return a.write("accounts.key", "EC PRIVATE KEY", secret)
}

func (a *authority) write(name, kind string, der []byte) error {
	return os.WriteFile(a.dir+"/"+name, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}

// client writes the certificate of a user and NAME.conf, a kubeconfig with it.
func (a *authority) client(name, user string, groups ...string) error {
	if err := a.issue(name, &x509.Certificate{Subject: pkix.Name{CommonName: user, Organization: groups}}); err != nil {
		return err
	}
	return a.config(name, fmt.Sprintf("client-certificate: %[1]s/%[2]s.crt, client-key: %[1]s/%[2]s.key", a.dir, name))
}

// config writes NAME.conf: a kubeconfig for who has these credentials.
func (a *authority) config(name, credentials string) error {
	return os.WriteFile(a.dir+"/"+name+".conf", fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: c
clusters: [{name: c, cluster: {server: "https://%s", certificate-authority: %s/ca.crt}}]
users: [{name: u, user: {%s}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
`, apiAddress, a.dir, credentials), 0o600)
}

func addresses(of ...string) (out []net.IP) {
	for _, a := range of {
		out = append(out, net.ParseIP(a))
	}
	return out
}
