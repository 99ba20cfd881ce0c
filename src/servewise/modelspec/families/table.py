"""Which reader each ``model_type`` and each architecture has."""

from __future__ import annotations

from collections.abc import Callable

from servewise.modelspec.families import hybrids, kin, latent, layernorm, llama, mimo, mixtures
from servewise.modelspec.families.gemma4 import gemma4
from servewise.modelspec.families.network import Network
from servewise.modelspec.fields import Fields

Reader = Callable[[Fields], Network]

FAMILIES: dict[str, Reader] = {
    "llama": llama.llama,
    "mistral": llama.mistral,
    "qwen2": llama.qwen2,
    "qwen3": llama.qwen3,
    "qwen3_vl_text": llama.qwen3,
    "mimo": mimo.mimo,
    "phi3": llama.phi3,
    "olmo": llama.olmo,
    "olmo2": llama.olmo2,
    "stablelm": llama.stablelm,
    "smollm3": llama.smollm3,
    "granite": kin.granite,
    "ministral3": kin.ministral3,
    "seed_oss": kin.seed_oss,
    "ernie4_5": kin.ernie4_5,
    "glm": kin.glm,
    "glm4": kin.glm4,
    "olmo3": kin.olmo3,
    "exaone4": kin.exaone4,
    "cohere2": kin.cohere2,
    "gemma": llama.gemma,
    "gemma2": llama.gemma2,
    "gemma3_text": llama.gemma3,
    "gemma4_text": gemma4,
    "mixtral": mixtures.mixtral,
    "olmoe": mixtures.olmoe,
    "qwen2_moe": mixtures.qwen2_moe,
    "qwen3_moe": mixtures.qwen3_moe,
    "qwen3_vl_moe_text": mixtures.qwen3_moe,
    "minimax_m2": mixtures.minimax_m2,
    "glm4_moe": mixtures.glm4_moe,
    "gpt_oss": mixtures.gpt_oss,
    "llama4_text": mixtures.llama4,
    "mimo_v2_flash": mimo.mimo_v2_flash,
    "deepseek_v2": latent.deepseek_v2,
    "deepseek_v3": latent.deepseek_v3,
    "kimi_k2": latent.deepseek_v3,
    "deepseek_v32": latent.deepseek_v32,
    "glm_moe_dsa": latent.glm_moe_dsa,
    "qwen3_next": hybrids.qwen3_next,
    "qwen3_5_text": hybrids.qwen3_5,
    "qwen3_5_moe_text": hybrids.qwen3_next,
    "kimi_linear": hybrids.kimi_linear,
    "nemotron_h": hybrids.nemotron_h,
    "gpt_neox": layernorm.gpt_neox,
    "phi": layernorm.phi,
    "falcon": layernorm.falcon,
    "opt": layernorm.opt,
    "bloom": layernorm.bloom,
    "gpt2": layernorm.gpt2,
    "starcoder2": layernorm.starcoder2,
}

ARCHITECTURES = {
    "LlamaForCausalLM": "llama",
    "MistralForCausalLM": "mistral",
    "Qwen2ForCausalLM": "qwen2",
    "Qwen3ForCausalLM": "qwen3",
    "Phi3ForCausalLM": "phi3",
    "GemmaForCausalLM": "gemma",
    "Gemma2ForCausalLM": "gemma2",
    "Gemma3ForCausalLM": "gemma3_text",
    "MixtralForCausalLM": "mixtral",
    "Qwen2MoeForCausalLM": "qwen2_moe",
    "Qwen3MoeForCausalLM": "qwen3_moe",
    "GptOssForCausalLM": "gpt_oss",
    "DeepseekV2ForCausalLM": "deepseek_v2",
    "DeepseekV3ForCausalLM": "deepseek_v3",
    "DeepseekV32ForCausalLM": "deepseek_v32",
    "GPTNeoXForCausalLM": "gpt_neox",
    "PhiForCausalLM": "phi",
    "FalconForCausalLM": "falcon",
    "OPTForCausalLM": "opt",
    "BloomForCausalLM": "bloom",
    "NemotronHForCausalLM": "nemotron_h",
    "GraniteForCausalLM": "granite",
    "GPT2LMHeadModel": "gpt2",
    "Starcoder2ForCausalLM": "starcoder2",
}
