package spec

import "regexp"

// storage checks where checkpoints go.
func (c *checker) storage() {
	if c.d.known.CheckStorage == nil || !c.has("checkpoint.dir") || c.bad("checkpoint.dir") {
		return
	}
	if c.cfg.Checkpoint.Dir == "" {
		c.fail("checkpoint.dir", "is empty", "write a folder or URL, or remove it for a folder in the run directory")
		return
	}
	for _, p := range c.d.known.CheckStorage(c.cfg.Checkpoint.Dir) {
		c.fail("checkpoint.dir", p.Problem, p.Fix)
	}
}

var (
	userinfoRE = regexp.MustCompile(`://[^/\s]*@`)
	secretRE   = regexp.MustCompile(`(?i)([?&][^=&]*(?:key|secret|token|password|credential|signature)[^=&]*=)[^&\s]*`)
)

// withoutCredentials hides what looks like credentials in the URLs of a text, so that an error can show it.
func withoutCredentials(text string) string {
	return secretRE.ReplaceAllString(userinfoRE.ReplaceAllString(text, "://REDACTED@"), "${1}REDACTED")
}
