package runlog

import (
	"os"
	"path/filepath"
	"testing"
)

func TestMachineNamesWhatItCannotFind(t *testing.T) {
	root := t.TempDir() + "/"
	m := collectMachine(root)
	for _, field := range []string{"cpu_model", "memory_bytes", "load_average", "governor"} {
		if m.Unknown[field] == "" {
			t.Errorf("%s is not known and no reason is given: %+v", field, m)
		}
	}
	for name, content := range map[string]string{
		"proc/cpuinfo": "processor\t: 0\nmodel name\t: Fast One: 3 GHz\n", "proc/meminfo": "MemTotal:       2048 kB\nMemFree: 1 kB\n",
		"proc/loadavg": "0.50 0.25 1.00 1/100 42\n", "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance\n"} {
		if err := os.MkdirAll(filepath.Dir(root+name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(root+name, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	m = collectMachine(root)
	if m.CPUModel != "Fast One: 3 GHz" || m.MemoryBytes != 2<<20 || len(m.LoadAverage) != 3 || m.LoadAverage[1] != 0.25 || m.Governor != "performance" || m.Unknown != nil {
		t.Errorf("read %+v", m)
	}
	if err := os.WriteFile(root+"proc/loadavg", []byte("0.5 x 1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if m = collectMachine(root); m.LoadAverage != nil || m.Unknown["load_average"] == "" {
		t.Errorf("a broken load average is %v, reason %q", m.LoadAverage, m.Unknown["load_average"])
	}
}
