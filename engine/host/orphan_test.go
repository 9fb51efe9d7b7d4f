//go:build linux

package host

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/weir-bench/weir/engine/coord"
)

// orphanMain runs a job and prints the processes of its workers; it goes on until it is killed.
func orphanMain() int {
	feed := uniformFeed{keys: 100, perSec: 1000}
	started := make(chan struct{})
	h, err := Start(Config{Job: countJob("orphan", "", false), Feed: feed, Due: feed.paced, OnTrace: func(t coord.Trace) {
		if t.Kind == coord.TraceStarted {
			close(started)
		}
	}})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	<-started
	fmt.Println(h.Pid(1), h.Pid(2))
	select {}
}

func TestWorkersDieWithTheHarness(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), orphanVariable+"=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, readErr := bufio.NewReader(out).ReadString('\n')
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed: it says so
	if readErr != nil {
		t.Fatal(readErr)
	}
	pids := strings.Fields(line)
	if len(pids) != 2 {
		t.Fatalf("the harness printed %q, want two processes", line)
	}
	for _, pid := range pids {
		for deadline := time.Now().Add(patience); running(pid); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("worker process %s outlives its harness", pid)
			}
		}
	}
}

// running says whether a process is there and not merely waiting to be reaped.
func running(pid string) bool {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	return err == nil && !strings.Contains(string(stat), ") Z ") && !strings.Contains(string(stat), ") X ")
}
