package workloads_test

import (
	"fmt"
	"time"

	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/workloads"
)

// A flash crowd on one key, read by two sources, with its ground truth and the
// golden counts.
func ExampleOpen() {
	w, err := workloads.Open(workloads.Spec{
		Kind: workloads.KindZipf, Keys: 1000, Exponent: 0.99, Rate: 1000, Seed: 7,
		Changes: []workloads.Change{{Kind: workloads.ChangeFlash, At: 4 * time.Second, For: time.Second, Key: 500, Share: 0.5}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	var batch core.Columns
	for s := range 2 {
		source := workloads.Split(w, s, 2)
		batch.Reset()
		source.Fill(&batch, 0, int(source.Due(2*time.Millisecond)))
		fmt.Println("source", s, "sends at", batch.Times)
	}
	for _, onset := range w.Truth(time.Minute) {
		fmt.Printf("%s at %v: key %s has %.1f %%\n", onset.Kind, onset.Begin, w.KeyName(onset.Hot[0]), 100*onset.After)
	}
	golden := workloads.Counts(w, w.Scheduled(10*time.Second))
	fmt.Println("records", golden.Total())
	// Output:
	// source 0 sends at [0 2000000]
	// source 1 sends at [1000000]
	// start at 0s: key 0 has 12.9 %
	// flash at 4s: key 500 has 50.0 %
	// records 10000
}

// All problems of a spec are reported at once.
func ExampleValidate() {
	for _, problem := range workloads.Validate(workloads.Spec{Kind: "zipf", Exponent: -1, Rate: 100}) {
		fmt.Println(problem)
	}
	// Output:
	// keys: is 0; want at least 1 key
	// exponent: is -1; want a finite number from 0 (uniform) to 100
}
