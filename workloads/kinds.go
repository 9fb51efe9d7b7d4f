package workloads

// Choice is a name that a kind field of a Spec may have.
type Choice struct {
	Name, Doc string
	// Fields are the other fields of the same section that it uses, separated
	// by blanks. Those of Spec.Kind are checked one by one instead.
	Fields string
}

// Kinds of key streams and whole workloads, for Spec.Kind.
const (
	KindUniform      = "uniform"
	KindZipf         = "zipf"
	KindHotSet       = "hotset"
	KindShares       = "shares"
	KindCycle        = "cycle"
	KindBook         = "book"
	KindReplay       = "replay"
	KindNEXMark      = "nexmark"
	KindYSB          = "ysb"
	KindShuffleBench = "shufflebench"
)

// Kinds returns all values of Spec.Kind.
func Kinds() []Choice {
	return []Choice{
		{KindUniform, "every key has the same share", ""},
		{KindZipf, "the share of the k-th key goes as k^-exponent", ""},
		{KindHotSet, "hotKeys of the keys have hotLoad of the records", ""},
		{KindShares, "explicit shares of the first keys", ""},
		{KindCycle, "keys in turn, as from sensors", ""},
		{KindBook, "the words of Newton's Opticks in a loop", ""},
		{KindReplay, "the keys of a recorded trace", ""},
		{KindNEXMark, "persons, auctions and bids, 1 : 3 : 46", ""},
		{KindYSB, "the Yahoo Streaming Benchmark's events", ""},
		{KindShuffleBench, "ShuffleBench's opaque records", ""},
	}
}

// Kinds of arrivals, for Arrivals.Kind.
const (
	ArriveConstant    = "constant"
	ArrivePoisson     = "poisson"
	ArriveSquare      = "square"
	ArriveSine        = "sine"
	ArriveRamp        = "ramp"
	ArriveFlash       = "flash"
	ArriveMMPP        = "mmpp"
	ArriveSelfSimilar = "self-similar"
	ArrivePareto      = "pareto"
	ArriveReplay      = "replay"
	ArriveNone        = "none"
)

// ArrivalKinds returns all values of Arrivals.Kind.
func ArrivalKinds() []Choice {
	return []Choice{
		{ArriveConstant, "one rate, evenly spaced", "spacing"},
		{ArrivePoisson, "one rate, exponential gaps", "spacing"},
		{ArriveSquare, "peak for the time high, then low for the rest of the period", "spacing low peak high period"},
		{ArriveSine, "between low and peak once a period, in steps", "spacing low peak period steps"},
		{ArriveRamp, "from low to peak in the time high, from at on", "spacing low peak at high"},
		{ArriveFlash, "at peak from at for the time high, else low; again each period if that is set", "spacing low peak at high period"},
		{ArriveMMPP, "Markov-modulated: at low and peak for exponential times of mean period − high and high", "spacing low peak high period"},
		{ArriveSelfSimilar, "on/off sources whose counts have the Hurst exponent hurst", "spacing hurst"},
		{ArrivePareto, "independent gaps of a generalised Pareto distribution with shape", "shape"},
		{ArriveReplay, "the times of a recorded trace", "replay"},
		{ArriveNone, "nothing is scheduled", ""},
	}
}

// Kinds of changes of the keys, for Change.Kind.
const (
	ChangeStep  = "step"
	ChangeDrift = "drift"
	ChangeSwap  = "swap"
	ChangeFlash = "flash"
	ChangeGrow  = "grow"
)

// ChangeKinds returns all values of Change.Kind.
func ChangeKinds() []Choice {
	return []Choice{
		{ChangeStep, "at the time at, shares become Zipf with exponent, or a hot set", "at exponent hotKeys hotLoad"},
		{ChangeDrift, "the same, gradually over the time for", "at for exponent hotKeys hotLoad"},
		{ChangeSwap, "at the time at and every every, the load moves on by by keys", "at every by"},
		{ChangeFlash, "from at for the time for, one key gets share of all records", "at for key share"},
		{ChangeGrow, "the number of keys grows from from to keys over the time for", "at for from"},
	}
}

// valueKinds are the values of Value.Kind.
func valueKinds() []Choice {
	return []Choice{
		{"none", "no value column", ""},
		{"one", "always 1", ""},
		{"index", "the record's number", ""},
		{"uniform", "0 … max−1", "max"},
		{"flag", "1 for share of the records, else 0", "share"},
	}
}

// measureKinds are the values of Measure.Kind.
func measureKinds() []Choice {
	return []Choice{
		{"none", "nothing", ""},
		{"constant", "always mean", "mean plus by"},
		{"uniform", "evenly between min and max", "min max plus by"},
		{"exponential", "with the given mean", "mean min max plus by"},
		{"lognormal", "with the given mean; the logarithm has standard deviation sigma", "mean sigma min max plus by"},
		{"pareto", "generalised Pareto", "location scale shape min max plus by"},
		{"gev", "generalised extreme value", "location scale shape min max plus by"},
	}
}

// catchUpPolicies are the values of CatchUp.Policy.
func catchUpPolicies() []Choice {
	return []Choice{
		{CatchUpBurst, "send all that is due at once", ""},
		{CatchUpLimit, "send at most factor times the scheduled rate", "factor"},
		{CatchUpSkip, "drop what is overdue by more than after, and count it", "after"},
	}
}

// names lists the names of choices.
func names(choices []Choice) []string {
	out := make([]string, len(choices))
	for i, c := range choices {
		out[i] = c.Name
	}
	return out
}
