package storage

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
)

// The schemes of addresses.
const (
	SchemeFile = "file" // a folder of this machine
	SchemeS3   = "s3"   // a bucket of an S3-compatible object store
)

// ErrAddress says that a text is not an address where checkpoints could be kept. AddressError matches it.
var ErrAddress = errors.New("not a storage address")

// AddressError says what is wrong with an address, and what would be right. Nothing in it is a credential.
type AddressError struct {
	Text         string // the address, redacted
	Problem, Fix string // as in: TEXT PROBLEM; FIX
}

// Error gives the address, the problem and what would be right.
func (e *AddressError) Error() string {
	return fmt.Sprintf("%v: %s %s; %s", ErrAddress, e.Text, e.Problem, e.Fix)
}

// Is makes errors.Is(err, ErrAddress) true.
func (e *AddressError) Is(target error) bool { return target == ErrAddress }

// Address is where checkpoints are kept: a folder, or a place in an object store. It never holds credentials, as it is
// printed, passed to workers, and part of a suite that is kept with its results.
type Address struct {
	Scheme string
	Bucket string // of an object store
	// Dir is the folder as it was written, or the path within the bucket without a slash in front.
	Dir string
	// Params are the settings of the access to an object store, by name.
	Params map[string]string
}

// s3Params are the settings that an S3 address may have, with their meaning.
func s3Params() []string {
	return []string{"region", "endpoint", "use_path_style", "profile", "anonymous"}
}

var bucketRE = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)

// ParseAddress reads a folder, file:///FOLDER, or s3://BUCKET/PATH?region=R&endpoint=URL. Its errors are
// of type AddressError.
func ParseAddress(text string) (Address, error) {
	scheme, _, isURL := strings.Cut(text, "://")
	if !isURL {
		if scheme, _, ok := strings.Cut(text, ":"); ok && (scheme == SchemeFile || scheme == SchemeS3) {
			return Address{}, &AddressError{Redact(text), "has no // after the scheme", "write " + scheme + "://…"}
		}
		return Address{Scheme: SchemeFile, Dir: text}, nil
	}
	fail := func(problem, fix string) (Address, error) {
		return Address{}, &AddressError{Redact(text), problem, fix}
	}
	if scheme != SchemeFile && scheme != SchemeS3 {
		return fail(fmt.Sprintf("has the unknown scheme %q", scheme), "write a folder, file:///FOLDER or s3://BUCKET/PATH")
	}
	u, err := url.Parse(text)
	switch {
	case err != nil: // what url.Parse says would show the text, with what should not be seen
		return fail("is not a URL", "write s3://BUCKET/PATH?region=REGION, with % escapes for special characters")
	case u.User != nil:
		return fail("has credentials in it", "leave them out: they are taken from the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, or a profile)")
	case u.Fragment != "":
		return fail("has a #, which has no meaning here", "remove what comes after it")
	}
	if scheme == SchemeFile {
		return fileAddress(u, fail)
	}
	return s3Address(u, fail)
}

func fileAddress(u *url.URL, fail func(string, string) (Address, error)) (Address, error) {
	switch {
	case u.Host != "" && u.Host != "localhost":
		return fail(fmt.Sprintf("names the host %q", u.Host), fmt.Sprintf("write file:///%s%s for a folder of this machine", u.Host, u.Path))
	case u.RawQuery != "":
		return fail("has parameters, which a folder does not take", "remove what comes after ?")
	case u.Path == "":
		return fail("names no folder", "write file:///FOLDER")
	}
	return Address{Scheme: SchemeFile, Dir: u.Path}, nil
}

func s3Address(u *url.URL, fail func(string, string) (Address, error)) (Address, error) {
	if !bucketRE.MatchString(u.Host) {
		return fail(fmt.Sprintf("names the bucket %q", u.Host), "write s3://BUCKET/PATH; a bucket has 3 to 63 lower-case letters, digits, dots and dashes")
	}
	a := Address{Scheme: SchemeS3, Bucket: u.Host, Dir: strings.Trim(path.Clean("/"+u.Path), "/"), Params: map[string]string{}}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return fail("has parameters that cannot be read", "write ?region=REGION&endpoint=URL, with % escapes for special characters")
	}
	for _, name := range sortedKeys(query) {
		switch values := query[name]; {
		case isCredential(name):
			return fail(fmt.Sprintf("has credentials in it (%s)", name), "leave them out: they are taken from the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, or a profile)")
		case !slices.Contains(s3Params(), name):
			return fail(fmt.Sprintf("has the unknown parameter %q", name), "known: "+strings.Join(s3Params(), ", "))
		case len(values) > 1:
			return fail(fmt.Sprintf("gives %s twice", name), "give it once")
		default:
			a.Params[name] = values[0]
		}
	}
	for _, name := range []string{"use_path_style", "anonymous"} {
		if v, ok := a.Params[name]; ok && v != "true" && v != "false" {
			return fail(fmt.Sprintf("has %s=%s", name, v), "write true or false")
		}
	}
	if e, ok := a.Params["endpoint"]; ok {
		p, err := url.Parse(e)
		if err != nil || p.Scheme != "http" && p.Scheme != "https" || p.Host == "" || p.User != nil {
			return fail("has an endpoint that is not an address", "write endpoint=http://HOST:PORT or https://HOST, without credentials")
		}
	}
	return a, nil
}

func sortedKeys[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// isCredential tells by a parameter's name that its value is not for everybody's eyes.
func isCredential(name string) bool {
	name = strings.ToLower(name)
	for _, word := range []string{"key", "secret", "token", "password", "credential", "signature"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}

// Join returns the address of a folder in a.
func (a Address) Join(name string) Address {
	a.Dir = path.Join(a.Dir, name)
	return a
}

// Local says whether the address is a folder of this machine.
func (a Address) Local() bool { return a.Scheme == SchemeFile }

// String returns the address as ParseAddress takes it; a folder without its scheme.
func (a Address) String() string {
	if a.Local() {
		return a.Dir
	}
	u := url.URL{Scheme: a.Scheme, Host: a.Bucket, Path: "/" + a.Dir}
	q := url.Values{}
	for _, name := range sortedKeys(a.Params) {
		q.Set(name, a.Params[name])
	}
	u.RawQuery = q.Encode()
	return u.String()
}

// hidden stands for what is not shown.
const hidden = "xxxxx"

var queryValueRE = regexp.MustCompile(`([?&])([^=&#]*)=([^&#]*)`)

// Redact returns a text that may be a URL without its credentials: what comes before an @, and the values of parameters
// that an address does not have. A text that is no URL may be one that was mistyped, and is treated alike.
func Redact(text string) string {
	head, query, hasQuery := strings.Cut(text, "?")
	if start := strings.Index(head, ":"); start >= 0 {
		if at := strings.LastIndex(head, "@"); at > start {
			slashes := len(head[start+1:]) - len(strings.TrimLeft(head[start+1:], "/"))
			head = head[:start+1+slashes] + hidden + head[at:]
		}
	}
	if !hasQuery {
		return head
	}
	return head + queryValueRE.ReplaceAllStringFunc("?"+query, func(part string) string {
		m := queryValueRE.FindStringSubmatch(part)
		name, err := url.QueryUnescape(m[2])
		if err == nil && slices.Contains(s3Params(), name) && !strings.Contains(m[3], "@") && !strings.Contains(m[3], "%40") {
			return part
		}
		return m[1] + m[2] + "=" + hidden
	})
}
