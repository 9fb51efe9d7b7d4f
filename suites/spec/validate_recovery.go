package spec

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
