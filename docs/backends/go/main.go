// A game's backend in Go, with the standard library alone.
package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

const (
	leeway  = 60                // seconds that two clocks may differ
	refetch = 30 * time.Second  // between two fetches
	refresh = 600 * time.Second // after which keys are fetched again, and revoked ones forgotten
	longest = 86_400            // seconds that a token may live
)

var (
	errNoKeySet = errors.New("there is no key set")
	errInvalid  = errors.New("the token is not valid")
	client      = &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DialContext: dial, Proxy: http.ProxyFromEnvironment}, CheckRedirect: stay}
	encoding    = base64.RawURLEncoding.Strict()
)

// dial connects to this machine for names under localhost (RFC 6761 §6.3),
// which some systems cannot resolve.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	var dialer net.Dialer
	host, port, err := net.SplitHostPort(address)
	if err != nil || host != "localhost" && !strings.HasSuffix(host, ".localhost") {
		return dialer.DialContext(ctx, network, address)
	}
	connection, err := dialer.DialContext(ctx, network, net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		return dialer.DialContext(ctx, network, net.JoinHostPort("::1", port))
	}
	return connection, nil
}

// stay follows no redirect: the party that can redirect must not choose the keys.
func stay(*http.Request, []*http.Request) error {
	return http.ErrUseLastResponse
}

// keySet has the keys, fetched for the first token, for an unknown kid, and every ten minutes.
type keySet struct {
	url            string
	mutex          sync.Mutex
	keys           map[string]*ecdsa.PublicKey
	asked, fetched time.Time
}

func (set *keySet) key(kid string) (*ecdsa.PublicKey, error) {
	set.mutex.Lock()
	defer set.mutex.Unlock()
	wait := refetch
	if len(set.keys) == 0 {
		wait = time.Second
	}
	wanted := set.keys[kid] == nil || time.Since(set.fetched) >= refresh
	if wanted && time.Since(set.asked) >= wait {
		keys, err := fetch(set.url)
		if err != nil {
			log.Printf("the key set cannot be fetched: %v", err)
		} else {
			set.keys, set.fetched = keys, time.Now()
		}
		set.asked = time.Now()
	}
	if len(set.keys) == 0 {
		return nil, errNoKeySet
	}
	if key := set.keys[kid]; key != nil {
		return key, nil
	}
	return nil, errInvalid
}

func fetch(url string) (map[string]*ecdsa.PublicKey, error) {
	response, err := client.Get(url)
	var unresolved *net.DNSError
	if errors.As(err, &unresolved) {
		return nil, fmt.Errorf("could not resolve %s: %s", unresolved.Name, unresolved.Err)
	}
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d", response.StatusCode)
	}
	var document struct {
		Keys []struct{ Kty, Crv, Kid, X, Y string }
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, 64<<10)).Decode(&document); err != nil {
		return nil, err
	}
	keys := map[string]*ecdsa.PublicKey{}
	for _, jwk := range document.Keys {
		x, errX := encoding.DecodeString(jwk.X)
		y, errY := encoding.DecodeString(jwk.Y)
		if jwk.Kty != "EC" || jwk.Crv != "P-256" || jwk.Kid == "" || errX != nil || errY != nil {
			continue
		}
		key := &ecdsa.PublicKey{Curve: elliptic.P256(), X: new(big.Int).SetBytes(x), Y: new(big.Int).SetBytes(y)}
		if key.Curve.IsOnCurve(key.X, key.Y) {
			keys[jwk.Kid] = key
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("it has no key for ES256")
	}
	return keys, nil
}

// A player. Key data on Sub; Username can change.
type player struct {
	Sub      string `json:"sub"`
	Username string `json:"username"`
	IsAnon   bool   `json:"is_anon"`
}

type verifier struct {
	issuer, audience string
	keys             *keySet
}

func (v *verifier) verify(token string) (*player, error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 || len(token) > 8<<10 {
		return nil, errInvalid
	}
	var header struct {
		Alg, Typ, Kid string
		Crit          json.RawMessage
	}
	// This program chooses the algorithm, not the header.
	if decode(parts[0], &header) != nil || header.Alg != "ES256" || header.Typ != "JWT" ||
		header.Kid == "" || header.Crit != nil {
		return nil, errInvalid
	}
	key, err := v.keys.key(header.Kid)
	if err != nil {
		return nil, err
	}
	signature, err := encoding.DecodeString(parts[2])
	if err != nil || len(signature) != 64 {
		return nil, errInvalid
	}
	digest := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	r, s := new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:])
	if !ecdsa.Verify(key, digest[:], r, s) {
		return nil, errInvalid
	}
	var claims struct {
		Iss, Sub, Username *string
		// A game token is for exactly one audience, so a list is refused.
		Aud      *string
		IsAnon   *bool `json:"is_anon"`
		Exp, Iat *int64
		Nbf      *int64
	}
	if decode(parts[1], &claims) != nil || claims.Iss == nil || claims.Sub == nil || claims.Username == nil ||
		claims.Aud == nil || claims.IsAnon == nil || claims.Exp == nil || claims.Iat == nil {
		return nil, errInvalid
	}
	now := time.Now().Unix()
	good := *claims.Iss == v.issuer && *claims.Aud == v.audience &&
		now < *claims.Exp+leeway && *claims.Iat <= now+leeway && *claims.Iat >= 0 &&
		*claims.Exp-*claims.Iat <= longest &&
		(claims.Nbf == nil || *claims.Nbf <= now+leeway) && strings.TrimSpace(*claims.Sub) != ""
	if !good {
		return nil, errInvalid
	}
	return &player{*claims.Sub, *claims.Username, *claims.IsAnon}, nil
}

func decode(part string, into any) error {
	data, err := encoding.DecodeString(part)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}

func (v *verifier) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "bearer") || token == "" {
		problem(w, 401, "not-signed-in", "This needs a player.")
		return
	}
	player, err := v.verify(strings.TrimLeft(token, " "))
	switch {
	case errors.Is(err, errNoKeySet):
		problem(w, 503, "unavailable", "Players cannot be verified at the moment.")
	case err != nil:
		problem(w, 401, "not-signed-in", "The game token is not valid.")
	case r.Method != http.MethodGet || r.URL.Path != "/api/me":
		problem(w, 404, "not-found", "There is nothing here.")
	default:
		answer(w, 200, "application/json", player)
	}
}

func problem(w http.ResponseWriter, status int, slug, detail string) {
	if status == 401 {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	body := map[string]any{"type": "urn:platform:" + slug, "status": status, "detail": detail}
	answer(w, status, "application/problem+json", body)
}

func answer(w http.ResponseWriter, status int, kind string, body any) {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func main() {
	variable := func(name string) string {
		value := os.Getenv(name)
		if value == "" {
			log.Fatalf("%s is not set", name)
		}
		return value
	}
	v := &verifier{
		issuer:   variable("AUTH_ISSUER"),
		audience: variable("AUTH_AUDIENCE"),
		keys:     &keySet{url: variable("AUTH_JWKS_URL")},
	}
	port := os.Getenv("PORT")
	if port == "" {
		port = "8788"
	}
	log.Fatal(http.ListenAndServe("127.0.0.1:"+port, v))
}
