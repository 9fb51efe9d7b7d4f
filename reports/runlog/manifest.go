package runlog

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// Manifest is manifest.json: everything a reader needs to judge, or repeat, a run.
type Manifest struct {
	SchemaVersion int    `json:"schema_version"`
	Suite         string `json:"suite"`
	// SuiteText is the suite file as run, byte for byte but for credentials in URLs, which are in no field here.
	SuiteText string `json:"suite_text"`
	// Overrides are the --set arguments, in order.
	Overrides   []string `json:"overrides,omitempty"`
	Seed        uint64   `json:"seed"`
	CommandLine []string `json:"command_line"`
	// Runtime names the world: process, container or sim. Simulated time is no performance figure.
	Runtime   string     `json:"runtime"`
	Versions  Versions   `json:"versions"`
	Machine   Machine    `json:"machine"`
	StartedAt time.Time  `json:"started_at"`
	EndedAt   *time.Time `json:"ended_at"`
	// Partial stays true until the run has finished.
	Partial       bool   `json:"partial"`
	PartialReason string `json:"partial_reason,omitempty"`
}

// Versions names the software.
type Versions struct {
	Weir   string `json:"weir"`
	Go     string `json:"go"`
	OS     string `json:"os"`
	Arch   string `json:"arch"`
	Kernel string `json:"kernel,omitempty"`
}

// Machine describes the hardware and its state at the start. What could not be found out is absent and named, with the
// reason, in Unknown.
type Machine struct {
	CPUModel     string            `json:"cpu_model,omitempty"`
	LogicalCores int               `json:"logical_cores"`
	MemoryBytes  int64             `json:"memory_bytes,omitempty"`
	LoadAverage  []float64         `json:"load_average,omitempty"`
	Governor     string            `json:"governor,omitempty"`
	Unknown      map[string]string `json:"unknown,omitempty"`
}

// CollectVersions returns the versions of the running program. weir overrides the version from the build information
// when it is not empty.
func CollectVersions(weir string) Versions {
	v := Versions{Weir: weir, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	if v.Weir == "" {
		v.Weir = buildVersion()
	}
	if b, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		v.Kernel = strings.TrimSpace(string(b))
	}
	return v
}

func buildVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	version, dirty := info.Main.Version, ""
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			version = s.Value
		case "vcs.modified":
			if s.Value == "true" {
				dirty = "+dirty"
			}
		}
	}
	return orElse(version, "unknown") + dirty
}

// CollectMachine describes this machine from /proc and /sys.
func CollectMachine() Machine { return collectMachine("/") }

func collectMachine(root string) Machine {
	m := Machine{LogicalCores: runtime.NumCPU(), Unknown: map[string]string{}}
	note := func(field string, err error) {
		if err != nil {
			m.Unknown[field] = err.Error()
		}
	}
	var err error
	m.CPUModel, err = procField(root+"proc/cpuinfo", "model name")
	note("cpu_model", err)
	kib, err := procField(root+"proc/meminfo", "MemTotal")
	if err == nil {
		var n int64
		if n, err = strconv.ParseInt(strings.TrimSuffix(kib, " kB"), 10, 64); err == nil {
			m.MemoryBytes = n * 1024
		}
	}
	note("memory_bytes", err)
	m.LoadAverage, err = loadAverage(root + "proc/loadavg")
	note("load_average", err)
	g, err := os.ReadFile(root + "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
	m.Governor = strings.TrimSpace(string(g))
	note("governor", err)
	if len(m.Unknown) == 0 {
		m.Unknown = nil
	}
	return m
}

func procField(path, name string) (string, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	for line := range bytes.Lines(b) {
		if key, value, ok := strings.Cut(string(line), ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value), nil
		}
	}
	return "", fmt.Errorf("%s has no line %q", path, name)
}

func loadAverage(path string) ([]float64, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	fields := strings.Fields(string(b))
	if len(fields) < 3 {
		return nil, fmt.Errorf("%s: %d fields, want at least 3", path, len(fields))
	}
	var load []float64
	for _, f := range fields[:3] {
		v, err := strconv.ParseFloat(f, 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		load = append(load, v)
	}
	return load, nil
}
