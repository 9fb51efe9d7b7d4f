package blob

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	gcaws "gocloud.dev/aws"
	"gocloud.dev/blob/s3blob"

	"github.com/weir-bench/weir/engine/storage"
)

// The patience with a server. A checkpoint has a time-out of its own; these end what hangs for good.
const (
	dialTimeout     = 5 * time.Second
	responseTimeout = 15 * time.Second
	requestTimeout  = time.Minute // of one part of a file, or of reading one whole
	configTimeout   = 10 * time.Second
	maxBackoff      = 500 * time.Millisecond // between the three attempts of a request
)

// defaultRegion is signed with when an endpoint was given and no region: servers other than Amazon's rarely have one.
const defaultRegion = "us-east-1"

// Open is a storage.Opener of folders and of S3 buckets. It asks no server; credentials come from the environment or the
// shared configuration files, as with every program on Amazon's library.
func Open(a storage.Address) (storage.FS, error) {
	if a.Scheme != storage.SchemeS3 {
		return storage.OpenLocal(a)
	}
	ctx, cancel := context.WithTimeout(context.Background(), configTimeout)
	defer cancel()
	params := url.Values{}
	for _, name := range []string{"region", "endpoint", "profile", "anonymous"} {
		if v, ok := a.Params[name]; ok {
			params.Set(name, v)
		}
	}
	endpoint := a.Params["endpoint"]
	if endpoint != "" {
		params.Set("hostname_immutable", strconv.FormatBool(pathStyle(a))) // else the bucket is put in front of the host
	}
	cfg, err := gcaws.V2ConfigFromURLParams(ctx, params)
	if err != nil {
		return nil, fmt.Errorf("configure the access to %s: %w", a, err)
	}
	if cfg.Region == "" {
		if endpoint == "" {
			return nil, &storage.AddressError{Text: a.String(), Problem: "has no region, and the environment has none", Fix: "add ?region=REGION"}
		}
		cfg.Region = defaultRegion
	}
	if endpoint != "" { // not every server knows the newer checksums
		cfg.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
		cfg.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
	}
	cfg.HTTPClient = patient()
	client := s3.NewFromConfig(cfg, func(o *s3.Options) {
		o.UsePathStyle = pathStyle(a)
		o.Retryer = retry.AddWithMaxBackoffDelay(o.Retryer, maxBackoff)
	})
	bucket, err := s3blob.OpenBucket(ctx, client, a.Bucket, &s3blob.Options{RequestChecksumCalculation: cfg.RequestChecksumCalculation})
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", a, err)
	}
	return New(bucket), nil
}

// pathStyle says whether the bucket's name is in the path of a request instead of its host; at an endpoint of its own it
// is, unless the address says otherwise.
func pathStyle(a storage.Address) bool {
	if v, ok := a.Params["use_path_style"]; ok {
		return v == "true"
	}
	return a.Params["endpoint"] != ""
}

// patient is an HTTP client that does not wait for ever.
func patient() *awshttp.BuildableClient {
	return awshttp.NewBuildableClient().
		WithTimeout(requestTimeout).
		WithDialerOptions(func(d *net.Dialer) { d.Timeout = dialTimeout }).
		WithTransportOptions(func(t *http.Transport) { t.ResponseHeaderTimeout = responseTimeout })
}
