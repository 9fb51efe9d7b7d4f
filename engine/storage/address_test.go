package storage

import (
	"errors"
	"strings"
	"testing"
)

func TestAddresses(t *testing.T) {
	for _, c := range []struct{ in, scheme, bucket, dir, out string }{
		{"checkpoints", SchemeFile, "", "checkpoints", "checkpoints"},
		{"/data/a b", SchemeFile, "", "/data/a b", "/data/a b"},
		{"./odd:name", SchemeFile, "", "./odd:name", "./odd:name"},
		{"file:///data/check%20points", SchemeFile, "", "/data/check points", "/data/check points"},
		{"file://localhost/data", SchemeFile, "", "/data", "/data"},
		{"s3://bucket", SchemeS3, "bucket", "", "s3://bucket/"},
		{"s3://bucket/a//b/?region=eu-west-1", SchemeS3, "bucket", "a/b", "s3://bucket/a/b?region=eu-west-1"},
		{"s3://bucket/p?endpoint=http://127.0.0.1:9000&use_path_style=true", SchemeS3, "bucket", "p",
			"s3://bucket/p?endpoint=http%3A%2F%2F127.0.0.1%3A9000&use_path_style=true"},
	} {
		a, err := ParseAddress(c.in)
		if err != nil || a.Scheme != c.scheme || a.Bucket != c.bucket || a.Dir != c.dir || a.String() != c.out {
			t.Errorf("%s: %+v, prints %q: %v", c.in, a, a, err)
		}
		if b, err := ParseAddress(a.String()); err != nil || b.String() != a.String() {
			t.Errorf("%s: prints %s, which reads as %s: %v", c.in, a, b, err)
		}
	}
}

func TestBadAddresses(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"gs://bucket/x", `unknown scheme "gs"; write a folder, file:///FOLDER or s3://BUCKET/PATH`},
		{"http://host/x", "unknown scheme"},
		{"s3:/bucket", "no // after the scheme"},
		{"file:/data", "write file://"},
		{"file://data/x", "names the host \"data\"; write file:///data/x"},
		{"file://", "names no folder"},
		{"file:///x?a=b", "parameters"},
		{"s3://", "names the bucket \"\""},
		{"s3://Bucket_1/x", "a bucket has 3 to 63 lower-case letters"},
		{"s3://bucket?regoin=x", `unknown parameter "regoin"; known: region, endpoint`},
		{"s3://bucket?region=a&region=b", "region twice"},
		{"s3://bucket?anonymous=maybe", "write true or false"},
		{"s3://bucket?endpoint=localhost:9000", "endpoint=http://HOST:PORT"},
		{"s3://bucket/#x", "has a #"},
		{"s3://buc%zzket", "is not a URL"},
		{"s3://bucket?region=%zz", "parameters that cannot be read"},
	} {
		_, err := ParseAddress(c.in)
		if !errors.Is(err, ErrAddress) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.in, err, c.want)
		}
	}
}

// Whatever is wrong with an address, what looks like credentials in it is not shown.
func TestCredentialsAreRefusedAndNotShown(t *testing.T) {
	for _, in := range []string{
		"s3://AKIAHUSH:hush@bucket/path",
		"s3://hush@bucket/path?region=eu",
		"s3://AKIA:hu%zzsh/hush@bucket",
		"s3://bucket/path?access_key_id=AKIAHUSH&secret_access_key=hush",
		"s3://bucket?Aws%53ecret=hush",
		"s3://bucket?sessionToken=hush",
		"s3://bucket?region=eu&something=hush",
		"s3://bucket?endpoint=http://root:hush@host:9000",
		"s3://bucket?endpoint=http%3A%2F%2Froot%3Ahush%40host%3A9000",
		"gs://AKIA:hush@bucket",
		"s3:/AKIA:hush@bucket",
		"https://host/x?X-Amz-Signature=hush",
	} {
		_, err := ParseAddress(in)
		if !errors.Is(err, ErrAddress) {
			t.Errorf("%s was accepted", in)
		} else if text := strings.ToLower(err.Error()); strings.Contains(text, "hush") {
			t.Errorf("shown: %v", err)
		} else if !strings.Contains(text, hidden) {
			t.Errorf("nothing says that something was left out: %v", err)
		}
	}
}

func TestOpenLocalHasFoldersOnly(t *testing.T) {
	for in, ok := range map[string]bool{"data": true, "s3://bucket": false} {
		a, err := ParseAddress(in)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := OpenLocal(a); (err == nil) != ok {
			t.Errorf("%s: %v", in, err)
		}
	}
}
