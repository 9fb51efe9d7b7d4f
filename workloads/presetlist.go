package workloads

import "time"

func factor(v float64) *float64 { return &v }

// Presets returns all presets: those of stream-processing benchmarks, of
// papers on migration, of measured caches, and of traffic models.
func Presets() []Preset {
	var all []Preset
	all = append(all, benchmarkPresets()...)
	all = append(all, migrationPresets()...)
	all = append(all, cachePresets()...)
	return append(all, trafficPresets()...)
}

func benchmarkPresets() []Preset {
	constant := func(bytes float64) Measure { return Measure{Kind: "constant", Mean: bytes} }
	theodolite := func(name, note string) Preset {
		return Preset{
			Name:   name,
			Source: "Henning, Hasselbring: Theodolite, scalability benchmarking of distributed stream processing engines, Big Data Research 2021: a record a sensor a second, no skew",
			Note:   "10,000 sensors. " + note,
			Spec:   Spec{Kind: KindCycle, Keys: 10_000, Scramble: true, Rate: 10_000, Value: Value{Kind: "uniform", Max: 1000}},
		}
	}
	return []Preset{
		{
			Name:   "nexmark",
			Source: "Tucker et al., NEXMark, 2002, as in Apache Beam: persons, auctions and bids 1 : 3 : 46, 200, 500 and 100 bytes; hot auction 50 %, hot bidder 75 %, hot seller 75 %; late 0.1 by up to 3 s; rate a sine in 10 steps, period 600 s",
			Note:   "10,000 events/s on average, between half and one and a half times that",
			Spec: Spec{
				Kind: KindNEXMark, Rate: 10_000,
				Arrivals: Arrivals{Kind: ArriveSine, Low: factor(0.5), Peak: factor(1.5), Period: 600 * time.Second, Steps: 10},
			},
		},
		{
			Name:   "ysb",
			Source: "Chintapalli et al., Benchmarking streaming computation engines, 2016: 100 campaigns of 10 ads, uniform; view, click, purchase; event times ±50 ms, 1e-5 late by up to 60 s",
			Note:   "10,000 events/s",
			Spec:   Spec{Kind: KindYSB, Keys: 1000, Rate: 10_000},
		},
		{
			Name:   "ycsb",
			Source: "Cooper et al., Benchmarking cloud serving systems with YCSB, SoCC 2010: Zipf 0.99; ten fields of 100 bytes",
			Note:   "1 million keys, 10,000 records/s",
			Spec:   Spec{Kind: KindZipf, Keys: 1_000_000, Exponent: 0.99, Scramble: true, Rate: 10_000, Payload: constant(1000)},
		},
		{
			Name:   "ycsb-hotspot",
			Source: "as ycsb; hot-spot distribution: 20 % of the keys have 80 % of the operations",
			Note:   "1 million keys, 10,000 records/s",
			Spec: Spec{
				Kind: KindHotSet, Keys: 1_000_000, HotKeys: 0.2, HotLoad: 0.8, Scramble: true, Rate: 10_000, Payload: constant(1000),
			},
		},
		{
			Name:   "shufflebench",
			Source: "Henning et al., ShuffleBench, ICPE 2024: 1,024 bytes; 250,000 records/s a source; 1,000 rules with total selectivity 0.2",
			Spec:   Spec{Kind: KindShuffleBench, Keys: 1000, Rate: 250_000},
		},
		theodolite("theodolite-uc1", "UC1 stores each record."),
		theodolite("theodolite-uc2", "UC2 averages over windows of a minute."),
		theodolite("theodolite-uc3", "UC3 averages by time attribute over 30 days, hopping by a day."),
		theodolite("theodolite-uc4", "UC4 adds up nested groups of sensors by a hierarchy stream."),
	}
}

func migrationPresets() []Preset {
	return []Preset{
		{
			Name:   "megaphone",
			Source: "Hoffmann et al., Megaphone: latency-conscious state migration for distributed streaming dataflows, VLDB 2019: 250,000 records/s a worker, 256 million keys and more, up to 2^20 bins",
			Note:   "one worker's rate, uniform keys",
			Spec:   Spec{Kind: KindUniform, Keys: 256_000_000, Scramble: true, Rate: 250_000},
		},
		{
			Name:   "spacker",
			Source: "Spacker: 8 tasks of 5,000 records/s, 32,768 keys of 32 KiB, 1,024 key groups, Zipf 0, 0.6 and 1",
			Note:   "Zipf 1; the others by kind: uniform and exponent: 0.6",
			Spec: Spec{
				Kind: KindZipf, Keys: 32_768, Exponent: 1, Scramble: true, Rate: 40_000,
				State: Measure{Kind: "constant", Mean: 32 << 10},
			},
		},
		{
			Name:   "drrs",
			Source: "DRRS: 4,096 keys, 256 key groups, 25 to 30 tasks, 5,000 records/s, Zipf 1.5 (0 to 2), 7.5 MB a key (0.25 to 10)",
			Spec: Spec{
				Kind: KindZipf, Keys: 4096, Exponent: 1.5, Scramble: true, Rate: 5000,
				State: Measure{Kind: "constant", Mean: 7.5e6},
			},
		},
	}
}

func cachePresets() []Preset {
	const twitter = "Yang, Yue, Rashmi: A large scale analysis of hundreds of in-memory cache clusters at Twitter, OSDI 2020: "
	cache := func(name, source, note string, exponent, rate, bytes float64, keys int64, flagged float64) Preset {
		s := Spec{
			Kind: KindZipf, Keys: keys, Exponent: exponent, Scramble: true, Rate: rate,
			Arrivals: Arrivals{Kind: ArrivePoisson}, Payload: Measure{Kind: "constant", Mean: bytes},
		}
		if flagged > 0 {
			s.Value = Value{Kind: "flag", Share: flagged}
		}
		return Preset{Name: name, Source: twitter + source, Note: note, Spec: s}
	}
	return []Preset{
		cache("twitter-hot", "α 2.10, 26,400 requests/s, keys of 18 and values of 37 bytes", "1 million keys, Poisson arrivals", 2.10, 26_400, 18+37, 1_000_000, 0),
		cache("twitter-typical", "α 1.21, 24,300 requests/s, keys of 20 and values of 273 bytes", "1 million keys, Poisson arrivals", 1.21, 24_300, 20+273, 1_000_000, 0),
		cache("twitter-write", "α 0.30, 80 % writes (value 1), keys of 44 and values of 1,030 bytes, 81 % of the keys occur once",
			"20,000 requests/s, Poisson arrivals, and as many keys as make 81 % of those seen in a minute occur once", 0.30, 20_000, 44+1030, 3_000_000, 0.8),
		cache("twitter-counter", "α 0.27, 30 % increments (value 1), keys of 35 and values of 224 bytes", "1 million keys, 20,000 requests/s, Poisson arrivals", 0.27, 20_000, 35+224, 1_000_000, 0.3),
		{
			Name:   "fb-etc",
			Source: "Atikoglu et al., Workload analysis of a large-scale key-value store, SIGMETRICS 2012: key bytes GEV(30.7984, 8.20449, 0.078688), value bytes generalised Pareto(0, 214.476, 0.348238), gaps in µs generalised Pareto(0, 16.0292, 0.154971)",
			Note:   "1 million keys with Zipf 1; the rate is that of the gaps' mean, 16.0292 / (1 − 0.154971) µs",
			Spec: Spec{
				Kind: KindZipf, Keys: 1_000_000, Exponent: 1, Scramble: true, Rate: 1e6 * (1 - 0.154971) / 16.0292,
				Arrivals: Arrivals{Kind: ArrivePareto, Shape: 0.154971},
				Payload: Measure{
					Kind: "pareto", Scale: 214.476, Shape: 0.348238, Max: 1 << 20,
					Plus: &Measure{Kind: "gev", Location: 30.7984, Scale: 8.20449, Shape: 0.078688, Max: 250},
				},
			},
		},
	}
}

func trafficPresets() []Preset {
	return []Preset{
		{
			Name:   "linear-road",
			Source: "Arasu et al., Linear Road: a stream data management benchmark, VLDB 2004 (from memory, not checked against the paper): a report a car every 30 s, a ramp of 3 h to about 1,700 reports/s an expressway",
			Note:   "one expressway; the number of cars grows with the rate to 51,000, in 64 steps",
			Spec: Spec{
				Kind: KindCycle, Keys: 51_000, Scramble: true, Rate: 1700,
				Arrivals: Arrivals{Kind: ArriveRamp, High: 3 * time.Hour},
				Changes:  []Change{{Kind: ChangeGrow, From: 1, For: 3 * time.Hour}},
			},
		},
		{
			Name:   "self-similar",
			Source: "Leland, Taqqu, Willinger, Wilson: On the self-similar nature of Ethernet traffic, 1994 (from memory, not checked against the paper): Hurst 0.8 to 0.9",
			Note:   "Hurst 0.85, 10,000 records/s, 10,000 uniform keys",
			Spec: Spec{
				Kind: KindUniform, Keys: 10_000, Scramble: true, Rate: 10_000,
				Arrivals: Arrivals{Kind: ArriveSelfSimilar, Hurst: 0.85},
			},
		},
	}
}
