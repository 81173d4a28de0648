package server

import (
	"errors"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/internal/must"
)

// The test uses a shortened log of vLLM 0.32 whose engine was killed. The first line after the
// start has the reason. A hundred lines about failed requests follow.
func TestEndOf(t *testing.T) {
	died := engine.Of("vllm").Died
	start := "(APIServer pid=1) INFO 11-22 05:14:59 [launcher.py:195] Route: /version, Methods: GET\n"
	reason := "(APIServer pid=1) WARNING 11-22 05:15:04 [core_client.py:817] [shutdown] MPClient: engine core exited unexpectedly; starting cleanup\n"
	first := "(APIServer pid=1) ERROR 11-22 05:15:04 [async_llm.py:906] AsyncLLM output_handler failed.\n"
	last := "INFO:     Application shutdown complete.\nINFO:     Finished server process [1]\n"
	log := start + reason + first + strings.Repeat("(APIServer pid=1) ERROR 11-22 05:15:04 [vllm_error.py:54]     await f()\n", 100) + last
	for _, tt := range []struct {
		name, log, err, begins string
		lines                  int // of the excerpt
	}{
		// The excerpt has 15 lines of a long log: the first ten after the first error, a line about
		// what is left out, and the last four.
		{"the engine", log, "the engine process ended: (APIServer pid=1) WARNING 11-22 05:15:04 [core_client.py:817] [shutdown] MPClient: engine core exited unexpectedly; starting cleanup; then the server's process ended by itself: exit status 0", first, 15},
		{"a traceback", start + "Traceback (most recent call last):\nValueError: x\n", "ValueError: x (the server's process ended by itself: exit status 0)", "Traceback", 2},
		{"no error told", start + last, "the server's process ended by itself: exit status 0", start, 3},
		{"no memory", start + "torch.OutOfMemoryError: CUDA out of memory.\n", "the server's process ended by itself: exit status 0; it ran out of memory: torch.OutOfMemoryError: CUDA out of memory.", start, 2},
		{"no memory of a GPU", start + "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 9 MiB: cudaMalloc failed\n", "the server's process ended by itself: exit status 0; it ran out of memory: ggml_backend_cuda_buffer_type_alloc_buffer: allocating 9 MiB: cudaMalloc failed", start, 2},
		{"silent", "", "the server's process ended by itself: exit status 0", "", 0},
	} {
		err := endOf("the server's process ended by itself: exit status 0", tt.log, died)
		var server *exec.ServerError
		if !errors.As(err, &server) || server.Err.Error() != tt.err {
			t.Errorf("%s: %v, want %s", tt.name, err, tt.err)
			continue
		}
		must.Hold(t, strings.HasPrefix(server.Log, tt.begins) && strings.Count(server.Log, "\n") == tt.lines, "%s: the log is\n%s", tt.name, server.Log)
	}
}

// frames is a stack trace in the form in which a process writes it. Each line begins with prefix.
func frames(prefix string, n int, last ...string) string {
	lines := []string{"Traceback (most recent call last):"}
	for range n {
		lines = append(lines, `  File "/srv/engine/core.py", line 92, in start`, "    self.begin()", "    ^^^^^^^^^^^^")
	}
	out := ""
	for _, line := range append(lines, last...) {
		out += prefix + line + "\n"
	}
	return out
}

// These logs have the shape of vLLM's, in which several processes and loggers write. The reason for
// the end is in the traceback of the process that failed first.
func TestException(t *testing.T) {
	const (
		worker = "(VllmWorker rank=0 pid=52) ERROR 11-22 05:15:04 [multiproc_executor.py:492] "
		core   = "(EngineCore_DP0 pid=31) ERROR 11-22 05:15:05 [core.py:708] "
		plain  = "(EngineCore_DP0 pid=31) "
		api    = "(APIServer pid=1) "
		dead   = "(EngineCore_DP0 pid=31) ERROR 11-22 05:15:05 [multiproc_executor.py:123] Worker proc VllmWorker-0 died unexpectedly (exit code: None)\n"
		small  = "ValueError: To serve at least one request with the model's max seq len (8192), 4.00 GiB of KV cache is needed, but only 1.00 GiB is there."
		cuda   = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB."
		again  = "RuntimeError: Engine core initialization failed. See root cause above."
	)
	for _, tt := range []struct{ name, log, want string }{
		{"the KV cache is too small",
			core + "EngineCore failed to start.\n" + frames(core, 5, small) + frames(plain, 5, small) + dead + frames(api, 30, again), small},
		{"a worker has too little memory",
			frames(worker, 9, cuda) + dead + frames(core, 5, "RuntimeError: Worker failed.") + frames(api, 30, again), cuda},
		{"a validation error has its reason in its second line",
			frames(api, 3, "pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig", "  Value error, max_model_len (9000) is greater than 4096 [type=value_error]"),
			"pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig Value error, max_model_len (9000) is greater than 4096 [type=value_error]"},
		{"two processes write at the same time",
			core + "Traceback (most recent call last):\n" + core + "  File \"core.py\", line 1\n" + "(EngineCore_DP0 pid=31) Process EngineCore_DP0:\n" + api + "Note: waiting\n" + strings.Replace(core, "05:15:05", "05:15:06", 1) + small + "\n", small},
		{"a cause and what it caused", frames("", 2, "KeyError: 'rope'") + "\nDuring handling of the above exception, another exception occurred:\n\n" + frames("", 2, "ImportError: x"), "KeyError: 'rope'"},
		{"an exception without a message", frames("[rank0]: ", 2, "AssertionError"), "AssertionError"},
		{"SGLang's form", "[2026-11-22 05:15:04] Scheduler hit an exception: " + frames("", 2, "RuntimeError: Not enough memory."), "RuntimeError: Not enough memory."},
		{"a warning is no reason", frames("WARNING 11-22 05:15:04 [import.py:9] ", 2, "ImportError: no triton") + frames(api, 2, small), small},
		{"an exception that Python ignored", "Exception ignored in: <function Pool.__del__>\n" + frames("", 1, "TypeError: x"), ""},
		{"a consequence is no reason", frames(api, 2, "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue."), ""},
		{"an end on request", frames("", 2, "asyncio.exceptions.CancelledError") + frames("", 2, "KeyboardInterrupt"), ""},
		{"a traceback that was cut off", "Traceback (most recent call last):\n  File x\n", ""},
		{"nothing", "", ""},
	} {
		got, at := exception(tt.log, engine.Of("vllm").Died)
		must.Hold(t, got == tt.want, "%s: %q, want %q", tt.name, got, tt.want)
		must.Hold(t, got == "" || strings.Contains(strings.Split(tt.log, "\n")[at], got[:9]), "%s: line %d does not hold it", tt.name, at)
	}
}

// The report quotes the lines around the exception, although a long stack trace is before it.
func TestExceptionInExcerpt(t *testing.T) {
	log := frames("(A pid=1) ", 50, "ValueError: too small") + frames("(B pid=2) ", 50, "RuntimeError: see above")
	err := endOf("it ended", log, nil)
	var server *exec.ServerError
	must.Need(t, errors.As(err, &server) && server.Error() == "ValueError: too small (it ended)", "error %v", err)
	lines := strings.Split(server.Log, "\n")
	if len(lines) != firstLines+1+lastLines+1 || lines[linesBefore] != "(A pid=1) ValueError: too small" || lines[len(lines)-2] != "(B pid=2) RuntimeError: see above" {
		t.Errorf("the excerpt is\n%s", server.Log)
	}
}
