"""A real llama.cpp server on a loopback port, as a process of its own, for tests marked `model`.

    python -m tests.llama_server MODEL PORT KEY [WINDOW]

It prints `ready` once it serves and ends when its standard input does.
"""

import os
import sys


def main() -> None:
    answer = os.dup(1)
    os.dup2(2, 1)
    import xllamacpp

    model, port, key, window = sys.argv[1], int(sys.argv[2]), sys.argv[3], int([*sys.argv, "1024"][4])
    params = xllamacpp.CommonParams()
    params.model.path = model
    params.hostnames = ["127.0.0.1"]
    params.port = port
    params.api_keys = [key]
    params.n_ctx = window
    params.n_batch = params.n_ubatch = 64
    params.n_parallel = 1
    # One thread: tests run side by side, and threads that wait for each other on busy cores crawl.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.n_threads_http = 4
    params.fit_params = False
    params.ctx_shift = False
    params.warmup = False
    params.ui = False
    params.verbosity = 1
    server = xllamacpp.Server(params)
    os.write(answer, b"ready\n")
    sys.stdin.buffer.read()
    del server
    os._exit(0)  # llama.cpp's threads would hold an orderly exit up


if __name__ == "__main__":
    main()
