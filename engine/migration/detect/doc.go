// Package detect is the doorbell of migration: it watches the load meters of
// key groups and says when, and only when, tasks have become skewed.
//
// Meters decay exponentially. Imbalance is judged task by task, since an
// average over tasks hides the hot one, against a threshold with hysteresis, a
// hold time and the noise to be expected of the counts. Detector is a pure
// state machine that learns the time from its samples. Score measures it
// against the known beginning and end of skew.
//
// May import: the standard library.
package detect
