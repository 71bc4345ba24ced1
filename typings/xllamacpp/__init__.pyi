class CommonParamsModel:
    path: str

class CpuParams:
    n_threads: int

class CommonParams:
    model: CommonParamsModel
    cpuparams: CpuParams
    cpuparams_batch: CpuParams
    hostnames: list[str]
    port: int
    api_keys: list[str]
    n_ctx: int
    n_batch: int
    n_ubatch: int
    n_parallel: int
    n_threads_http: int
    fit_params: bool
    ctx_shift: bool
    cache_ram_mib: int
    cache_idle_slots: bool
    warmup: bool
    endpoint_slots: bool
    ui: bool
    verbosity: int

class Server:
    def __init__(self, params: CommonParams) -> None: ...
