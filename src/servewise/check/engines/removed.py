"""Options that engines had and have no more, each with what to do now; from their release notes and sources."""

from __future__ import annotations

from collections.abc import Mapping

REMOVED: Mapping[str, Mapping[str, str]] = {
    "vllm": {
        "--swap-space": "V1 recomputes preempted requests and does not swap: leave it out",
        "--preemption-mode": "V1 recomputes preempted requests: leave it out",
        "--num-scheduler-steps": "multi-step scheduling is gone, async scheduling replaced it: leave it out",
        "--multi-step-stream-outputs": "multi-step scheduling is gone: leave it out",
        "--use-v2-block-manager": "the only block manager now: leave it out",
        "--num-lookahead-slots": "set num_speculative_tokens in --speculative-config",
        "--speculative-model": '--speculative-config \'{"model": ..., "num_speculative_tokens": ...}\'',
        "--num-speculative-tokens": "--speculative-config '{\"num_speculative_tokens\": ...}'",
        "--ngram-prompt-lookup-max": '--speculative-config \'{"method": "ngram", "prompt_lookup_max": ...}\'',
        "--ngram-prompt-lookup-min": '--speculative-config \'{"method": "ngram", "prompt_lookup_min": ...}\'',
        "--speculative-draft-tensor-parallel-size": "draft_tensor_parallel_size in --speculative-config",
        "--speculative-disable-by-batch-size": "not in V1: leave speculation out on busy servers",
        "--quantization-param-path": "scales come with the checkpoint (llm-compressor)",
        "--max-context-len-to-capture": "--max-seq-len-to-capture, then --cudagraph-capture-sizes",
        "--max-seq-len-to-capture": "V1 captures by tokens: --cudagraph-capture-sizes",
        "--worker-use-ray": "--distributed-executor-backend ray",
        "--engine-use-ray": "--distributed-executor-backend ray",
        "--disable-log-requests": "off by default now; --enable-log-requests switches it on",
        "--guided-decoding-backend": "--structured-outputs-config.backend",
        "--enable-reasoning": "--reasoning-parser alone switches it on",
        "--disable-async-output-proc": "gone with V0: leave it out",
        "--device": "the platform is found by itself: leave it out",
        "--task": "--runner and --convert",
        "--rope-scaling": "--hf-overrides '{\"rope_parameters\": ...}'",
        "--rope-theta": "--hf-overrides",
    },
    "sglang": {
        "--enable-mixed-chunk-prefill": "--enable-mixed-chunk",
        "--enable-ep-moe": "--ep-size and --moe-a2a-backend",
        "--enable-deepep-moe": "--moe-a2a-backend deepep",
        "--enable-flashinfer-mla": "--attention-backend flashinfer",
        "--enable-mla": "on by itself for models with MLA: leave it out",
        "--speculative-draft": "--speculative-draft-model-path",
    },
    "trtllm": {},
    "llamacpp": {
        "--defrag-thold": "does nothing any more: leave it out",
        "--draft": "--spec-draft-n-max",
        "--draft-n": "--spec-draft-n-max",
        "--draft-max": "--spec-draft-n-max",
        "--draft-min": "--spec-draft-n-min",
        "--draft-n-min": "--spec-draft-n-min",
        "--embedding-only": "--embedding",
    },
}
