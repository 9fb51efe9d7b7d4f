package sim

import ("testing";"flag";"fmt")
var from = flag.Uint64("from", 1, "")
var n = flag.Uint64("n", 300, "")
var rec = flag.String("rec", "", "")
var mig = flag.String("mig", "", "")
var fl = flag.Int("fl", -1, "")
var verbose = flag.Bool("vv", false, "")
func TestExplore(t *testing.T) {
	bad := 0
	for seed := *from; seed < *from+*n; seed++ {
		r := Run(Config{Seed: seed, Faults: *fl, Migration: *mig, Recovery: *rec})
		if *verbose { for _, tr := range r.Traces { fmt.Printf("%8.2f %s %+v\n", float64(tr.AtNS)/1e6, tr.Kind, tr) } ; fmt.Printf("%+v\n", r.Answers)}
		if r.Violation != "" {
			bad++
			if bad <= 8 { t.Errorf("seed %d rec=%s mig=%s tx=%v faults=%v: %s", seed, r.Recovery, r.Migration, r.Transactional, r.Faults, r.Violation) }
		}
	}
	t.Logf("bad %d of %d", bad, *n)
}
