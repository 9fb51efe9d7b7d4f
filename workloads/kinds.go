package workloads

// Choice is a name that a field of a Spec may have.
type Choice struct{ Name, Doc string }

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
		{KindUniform, "every key has the same share"},
		{KindZipf, "the share of the k-th key goes as k^-exponent"},
		{KindHotSet, "hotKeys of the keys have hotLoad of the records"},
		{KindShares, "explicit shares of the first keys"},
		{KindCycle, "keys in turn, as from sensors"},
		{KindBook, "the words of Newton's Opticks in a loop"},
		{KindReplay, "the keys of a recorded trace"},
		{KindNEXMark, "persons, auctions and bids, 1 : 3 : 46"},
		{KindYSB, "the Yahoo Streaming Benchmark's events"},
		{KindShuffleBench, "ShuffleBench's opaque records"},
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
		{ArriveConstant, "one rate, evenly spaced"},
		{ArrivePoisson, "one rate, exponential gaps"},
		{ArriveSquare, "peak for the time high, then low for the rest of the period"},
		{ArriveSine, "between low and peak once a period, in steps"},
		{ArriveRamp, "from low to peak in the time high, from at on"},
		{ArriveFlash, "at peak from at for the time high, else low; again each period if that is set"},
		{ArriveMMPP, "Markov-modulated: at low and peak for exponential times of mean period − high and high"},
		{ArriveSelfSimilar, "on/off sources whose counts have the Hurst exponent hurst"},
		{ArrivePareto, "independent gaps of a generalised Pareto distribution with shape"},
		{ArriveReplay, "the times of a recorded trace"},
		{ArriveNone, "nothing is scheduled"},
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
		{ChangeStep, "at the time at, shares become Zipf with exponent, or a hot set"},
		{ChangeDrift, "the same, gradually over the time for"},
		{ChangeSwap, "at the time at and every every, the load moves on by by keys"},
		{ChangeFlash, "from at for the time for, one key gets share of all records"},
		{ChangeGrow, "the number of keys grows from from to keys over the time for"},
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
