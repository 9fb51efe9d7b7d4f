package trace

import (
	"fmt"
	"io"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/weir-bench/weir/workloads"
)

// nearPoisson is the highest index of dispersion that counts as Poisson.
const nearPoisson = 1.2

// Imitation returns a workload with the trace's number of keys, exponent, rate,
// burstiness and sizes. What the trace lacks takes the plainest value: one key,
// 1,000 records/s, no payload.
func (d *Description) Imitation() workloads.Spec {
	s := workloads.Spec{Kind: workloads.KindUniform, Keys: 1, Rate: 1000}
	if d.Skew != nil {
		s.Keys = int64(d.Skew.Keys)
		if e := math.Round(d.Skew.Fit.Likeliest*1000) / 1000; e > 0 {
			s.Kind, s.Exponent, s.Scramble = workloads.KindZipf, e, true
		}
	}
	if d.Rate > 0 {
		s.Rate = rounded(min(d.Rate, 1e9))
		s.Arrivals.Kind = workloads.ArrivePoisson
		if d.Bursts.index() > nearPoisson {
			s.Arrivals = d.Bursts.twoStates(d.Rate)
		}
	}
	if z := d.Sizes; z != nil && z.Mean > 0 {
		s.Payload = workloads.Measure{Kind: "lognormal", Mean: rounded(z.Mean), Sigma: rounded(z.Sigma), Max: 1 << 30}
		if z.Sigma == 0 {
			s.Payload = workloads.Measure{Kind: "constant", Mean: rounded(z.Mean)}
		}
	}
	return s
}

// rounded keeps four significant digits, enough for an imitation.
func rounded(v float64) float64 {
	r, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 4, 64), 64)
	if err != nil {
		panic(err) // FormatFloat's output always parses
	}
	return r
}

// index is the index of dispersion at the window width of the phases, or of the
// nearest measured width.
func (b *Bursts) index() float64 {
	if b == nil || len(b.Dispersion) == 0 {
		return 1
	}
	best := b.Dispersion[0]
	for _, d := range b.Dispersion {
		if math.Abs(math.Log(float64(d.Window)/float64(b.Window))) < math.Abs(math.Log(float64(best.Window)/float64(b.Window))) {
			best = d
		}
	}
	return best.Index
}

// twoStates returns a Markov-modulated process with the trace's mean rate and
// mean lengths of its phases. The difference Δ of its two rates follows from the
// index of dispersion I at window w, by the variance of its counts,
// λw + 2p(1−p)Δ²·(w/k − (1−e^(−kw))/k²) with k the sum of the inverse mean
// lengths and p the share of high time (Fischer, Meier-Hellstern: "The
// Markov-modulated Poisson process cookbook", 1993, equation 14).
func (b *Bursts) twoStates(rate float64) workloads.Arrivals {
	shortest := 2 * time.Millisecond
	high, low := max(b.HighFor, shortest), max(b.LowFor, shortest)
	p := high.Seconds() / (high + low).Seconds()
	k, w := 1/high.Seconds()+1/low.Seconds(), b.Window.Seconds()
	shape := 2 * p * (1 - p) * (w/k - (1-math.Exp(-k*w))/(k*k))
	delta := math.Sqrt((b.index() - 1) * rate * w / shape)
	delta = min(delta, rate/p) // the low rate is not below 0
	lowFactor := rounded(max(0, rate-p*delta) / rate)
	peak := rounded((rate + (1-p)*delta) / rate)
	high, low = high.Round(time.Millisecond), low.Round(time.Millisecond)
	return workloads.Arrivals{Kind: workloads.ArriveMMPP, Low: &lowFactor, Peak: &peak, High: high, Period: high + low}
}

// WritePreset writes spec as the workload section of a suite file, with a comment
// line first. Fields at their zero value are left out.
func WritePreset(w io.Writer, comment string, spec workloads.Spec) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n", strings.Join(strings.Fields(comment), " "))
	b.WriteString("workload:\n")
	writeFields(&b, "  ", reflect.ValueOf(spec))
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write preset: %w", err)
	}
	return nil
}

func writeFields(b *strings.Builder, indent string, v reflect.Value) {
	for i := range v.NumField() {
		f := v.Field(i)
		if f.IsZero() {
			continue
		}
		name := v.Type().Field(i).Tag.Get("yaml")
		if f.Kind() == reflect.Pointer && f.Elem().Kind() == reflect.Struct {
			f = f.Elem()
		}
		if f.Kind() == reflect.Struct {
			fmt.Fprintf(b, "%s%s:\n", indent, name)
			writeFields(b, indent+"  ", f)
			continue
		}
		value := scalar(f)
		if name == "rate" {
			value += "/s" // a suite's rates have a unit
		}
		fmt.Fprintf(b, "%s%s: %s\n", indent, name, value)
	}
}

func scalar(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case time.Duration:
		return x.String()
	case string:
		return strconv.Quote(x)
	case float64:
		return strconv.FormatFloat(x, 'f', -1, 64)
	case *float64:
		return strconv.FormatFloat(*x, 'f', -1, 64)
	}
	return fmt.Sprint(v.Interface())
}

// Write writes the description for people to read.
func (d *Description) Write(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "rows        %d", d.Rows)
	if d.Skipped > 0 {
		fmt.Fprintf(&b, " (%d bad rows skipped)", d.Skipped)
	}
	b.WriteByte('\n')
	if d.Rate > 0 {
		fmt.Fprintf(&b, "span        %v, mean rate %.4g records/s\n", d.Span.Round(time.Millisecond), d.Rate)
	}
	if s := d.Skew; s != nil {
		s.write(&b)
	}
	if s := d.Bursts; s != nil {
		s.write(&b)
	}
	if s := d.Sizes; s != nil {
		fmt.Fprintf(&b, "sizes       mean %.4g bytes, p50 %.4g, p99 %.4g; σ of the logarithm %.3g\n", s.Mean, s.P50, s.P99, s.Sigma)
	}
	for _, m := range d.Missing {
		fmt.Fprintf(&b, "not measured: %s\n", m)
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write description: %w", err)
	}
	return nil
}

func (s *Skew) write(b *strings.Builder) {
	fmt.Fprintf(b, "keys        %d, of which %.1f %% occur once\n", s.Keys, 100*s.Once)
	fmt.Fprintf(b, "hot shares  hottest key %.2f %%, top ten %.1f %%, top hundred %.1f %%\n", 100*s.Hottest, 100*s.TopTen, 100*s.TopHundred)
	fmt.Fprintf(b, "exponent    likeliest Zipf %.3f (largest difference of cumulated shares %.3f)", s.Fit.Likeliest, s.Fit.Distance)
	if math.IsNaN(s.Fit.Slope) {
		b.WriteString("; slope: too few frequent keys\n")
	} else {
		fmt.Fprintf(b, "; slope %.3f (R² %.4f)\n", s.Fit.Slope, s.Fit.R2)
	}
	if s.Overlap != nil {
		fmt.Fprintf(b, "hot set     share of the first tenth's ten hottest keys that stay hot, by tenths: %.1f\n", s.Overlap)
	}
}

func (s *Bursts) write(b *strings.Builder) {
	b.WriteString("dispersion ")
	for _, d := range s.Dispersion {
		fmt.Fprintf(b, " %.3g at %v,", d.Index, d.Window)
	}
	b.WriteString(" (Poisson: 1)\n")
	if !math.IsNaN(s.HurstVariance) && !math.IsNaN(s.HurstRS) {
		fmt.Fprintf(b, "Hurst       %.2f by aggregated variance, %.2f by rescaled range, windows of %v\n", s.HurstVariance, s.HurstRS, s.Window)
	}
	fmt.Fprintf(b, "phases      %.1f %% of the windows of %v are above the mean and hold %.1f %% of the records: %.4g records/s for %v, else %.4g for %v\n",
		100*s.HighWindows, s.Window, 100*s.HighRecords, s.High, s.HighFor.Round(time.Millisecond), s.Low, s.LowFor.Round(time.Millisecond))
}
