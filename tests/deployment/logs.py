"""Lines of real start-up logs, as published, with their sources."""

VLLM_V0_3090 = """
INFO 12-02 10:10:10 model_runner.py:1077] Loading model weights took 14.9888 GB
INFO 12-02 10:10:12 worker.py:232] Memory profiling results: total_gpu_memory=23.58GiB initial_memory_usage=15.34GiB \
peak_torch_memory=17.06GiB memory_usage_post_profile=15.35GiB non_torch_memory=0.35GiB kv_cache_size=3.81GiB \
gpu_memory_utilization=0.90
INFO 12-02 10:10:12 gpu_executor.py:113] # GPU blocks: 1952, # CPU blocks: 2048
INFO 12-02 10:10:12 gpu_executor.py:117] Maximum concurrency for 20000 tokens per request: 1.56x
"""  # Llama-3.1-8B-Instruct, https://github.com/vllm-project/vllm/issues/10517 (figures; prefixes as of v0.6.4)

VLLM_V0_TESLA = """
\x1b[33mINFO\x1b[0m 12-20 20:25:46 worker.py:241] Memory profiling takes 19.77 seconds
INFO 12-20 20:25:46 worker.py:241] the current vLLM instance can use total_gpu_memory (15.77GiB) x \
gpu_memory_utilization (0.90) = 14.20GiB
INFO 12-20 20:25:46 worker.py:241] model weights take 7.51GiB; non_torch_memory takes 0.39GiB; PyTorch activation \
peak memory takes 2.53GiB; the rest of the memory reserved for KV Cache is 3.76GiB.
INFO 12-20 20:25:46 distributed_gpu_executor.py:57] # GPU blocks: 3852, # CPU blocks: 4096
INFO 12-20 20:25:46 distributed_gpu_executor.py:61] Maximum concurrency for 40000 tokens per request: 1.54x
"""  # https://github.com/vllm-project/vllm/issues/11251

VLLM_V0_A100 = """
INFO 01-13 11:35:21 model_runner.py:1099] Loading model weights took 14.9595 GB
INFO 01-13 11:35:23 worker.py:241] the current vLLM instance can use total_gpu_memory (39.50GiB) x \
gpu_memory_utilization (0.90) = 35.55GiB
INFO 01-13 11:35:23 worker.py:241] model weights take 14.96GiB; non_torch_memory takes 0.10GiB; PyTorch activation \
peak memory takes 9.37GiB; the rest of the memory reserved for KV Cache is 11.12GiB.
INFO 01-13 11:35:23 gpu_executor.py:76] # GPU blocks: 5691, # CPU blocks: 2048
INFO 01-13 11:35:23 gpu_executor.py:80] Maximum concurrency for 8192 tokens per request: 11.12x
"""  # Meta-Llama-3-8B, https://github.com/vllm-project/vllm/issues/12330

VLLM_V1_4090 = """
(EngineCore_DP0 pid=2552931) INFO 09-28 21:12:43 [gpu_worker.py:298] Available KV cache memory: 8.60 GiB
(EngineCore_DP0 pid=2552931) INFO 09-28 21:12:51 [gpu_model_runner.py:3118] Graph capturing finished in 7 secs, \
took 0.68 GiB
(EngineCore_DP0 pid=2552931) INFO 09-28 21:12:51 [gpu_worker.py:391] Free memory on device (23.08/23.53 GiB) on \
startup. Desired GPU memory utilization is (0.8, 18.82 GiB). Actual usage is 8.8 GiB for weight, 1.4 GiB for peak \
activation, 0.02 GiB for non-torch memory, and 0.68 GiB for CUDAGraph memory.
"""  # Qwen3-8B-FP8, vLLM 0.11 on an RTX 4090, a public note in a GitHub repository (2025-09)

VLLM_027 = """
(Worker_TP1 pid=448) INFO 08-14 14:07:22 [gpu_model_runner.py:6806] Estimated CUDA graph memory: 0.36 GiB total
(Worker_TP0 pid=447) INFO 08-14 14:07:22 [gpu_worker.py:563] Available KV cache memory: 6.87 GiB
(EngineCore pid=326) INFO 10-06 17:00:33 [kv_cache_utils.py:2464] GPU KV cache size: 460,496 tokens, Maximum \
concurrency for 131,072 tokens per request: 3.51x
"""  # https://github.com/gpustack/runner/pull/251; the last line from a vLLM 0.30 log

VLLM_CONFIG = """
(EngineCore pid=310) INFO 05-15 04:04:29 [core.py:109] Initializing a V1 LLM engine (v0.20.2rc1.dev249+base) with \
config: model='lukealonso/GLM-5.1-NVFP4-MTP', speculative_config=None, dtype=torch.bfloat16, max_seq_len=202752, \
tensor_parallel_size=8, pipeline_parallel_size=1, data_parallel_size=1, decode_context_parallel_size=2, \
quantization=modelopt_fp4, kv_cache_dtype=fp8, seed=0
(APIServer pid=1) INFO 05-15 04:04:12 [utils.py:240] non-default args: {'max_model_len': 202752, \
'gpu_memory_utilization': 0.865, 'max_num_batched_tokens': 8192, 'max_num_seqs': 64}
(Worker_TP0_DCP0 pid=350) INFO 05-15 04:05:30 [gpu_model_runner.py:5448] Model loading took 55.67 GiB memory and \
44.950075 seconds
(EngineCore pid=310) INFO 05-15 04:06:40 [kv_cache_utils.py:1731] GPU KV cache size: 680,192 tokens
"""  # https://github.com/local-inference-lab/rtx6kpro/blob/e2c2b95/models/glm5.1/benchmarks, glm-dcp2-mtp0/startup.log

VLLM_TOO_LONG = """
INFO 02-11 07:40:45 model_runner.py:1115] Loading model weights took 13.9476 GB
ValueError: The model's max seq len (131072) is larger than the maximum number of tokens that can be stored in KV \
cache (81536). Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine.
vllm serve --tensor_parallel_size 2 --gpu_memory_utilization=0.98 deepseek-ai/DeepSeek-R1-Distill-Qwen-14B
"""  # https://github.com/vllm-project/vllm/issues/13061

VLLM_REFUSAL = """
ValueError: To serve at least one request with the models's max seq len (131072), (4.54 GiB KV cache is needed, which \
is larger than the available KV cache memory (1.71 GiB). Based on the available memory, ...
"""  # gpt-oss-120b, https://github.com/vllm-project/vllm/issues/27508

SGLANG = """
server_args=ServerArgs(model_path='Qwen/Qwen3-14B', tp_size=4, mem_fraction_static=0.8, enable_metrics=True)
[2026-03-01 10:00:00 TP0] Load weight end. type=Qwen3ForCausalLM, dtype=torch.bfloat16, avail mem=16.00 GB, \
mem usage=7.08 GB.
[2026-03-01 10:00:01 TP0] KV Cache is allocated. #tokens: 298447, K size: 5.69 GB, V size: 5.69 GB
[2026-03-01 10:00:09 TP0] max_total_num_tokens=298447, chunked_prefill_size=2048, max_prefill_tokens=16384, \
max_running_requests=3730, context_len=40960, available_gpu_mem=2.82 GB
"""  # Qwen3-14B on four 24 GB cards, a public repository's experiment note (2026)

LLAMACPP = """
load_tensors: offloaded 33/33 layers to GPU
load_tensors:   CPU_Mapped model buffer size =   545.62 MiB
load_tensors:        CUDA0 model buffer size =  5060.88 MiB
llama_context: n_seq_max     = 2
llama_context: n_ctx         = 262144
llama_context: n_ctx_seq     = 262144
llama_kv_cache:      CUDA0 KV buffer size =  4352.00 MiB
llama_kv_cache: size = 4352.00 MiB (262144 cells,   8 layers,  2/1 seqs), K (q8_0): 2176.00 MiB, V (q8_0): 2176.00 MiB
llama_memory_recurrent:      CUDA0 RS buffer size =   100.50 MiB
sched_reserve:      CUDA0 compute buffer size =   808.02 MiB
"""  # Qwen3.5-9B Q4_K_M, a public repository's note (2026)

LLAMACPP_WINDOWS = """
llama_kv_cache_unified_iswa: creating non-SWA KV cache, size = 16384 cells
llama_kv_cache_unified:      ROCm0 KV buffer size =   256.00 MiB
llama_kv_cache_unified:      ROCm1 KV buffer size =   128.00 MiB
llama_kv_cache_unified_iswa: creating     SWA KV cache, size = 1536 cells
llama_kv_cache_unified:      ROCm0 KV buffer size =    96.00 MiB
llama_kv_cache_unified:      ROCm0 KV buffer size =    96.00 MiB
"""  # the wording of builds of 2025-07, a second device and a repeated line added
