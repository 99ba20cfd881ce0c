"""The study's own figures, as it prints them; every other file of this room computes.

The study: "LLM serving", part 2 of 4 of a computer-science roadmap (definitions, pipeline, results). Its inputs are
round: 13e9 parameters in 26e9 bytes, an 80e9-byte device of 312e12 FLOP/s and 2e12 bytes/s, 819,200 KV bytes a token.
"""

from __future__ import annotations

PROMPT_TOKENS = 5
SEQUENCE_TOKENS = 2048  # of the decode-step table
BATCH_AT_53_GB = 32

# Tokens generated -> positions without a cache, with one, largest difference of a logit.
CACHE_WORK = {
    20: ("290", "25", "4e-15"),
    40: ("980", "45", "5e-15"),
    80: ("3,560", "85", "7e-15"),
    160: ("13,520", "165", "7e-15"),
}
WALL_S = {"without cache": "0.310", "with cache": "0.022"}  # 160 tokens, on the study's machine

# Sequence length -> KV gigabytes of one sequence (16 bits).
KV_GB = {512: "0.42", 2048: "1.68", 8192: "6.71"}
KV_GB_AT_BATCH_32 = "53.69"

# Sequence length -> largest batch per variant.
BATCH_VARIANTS = ("16-bit cache", "8-bit cache", "4-bit weights", "1/8 as many KV heads")
LARGEST_BATCH = {
    512: ("128", "257", "175", "1,029"),
    2048: ("32", "64", "43", "257"),
    8192: ("8", "16", "10", "64"),
}

# Batch -> compute ms, memory ms, tokens per second.
DECODE_STEP = {
    1: ("0.08", "13.8", "72"),
    4: ("0.33", "16.4", "245"),
    8: ("0.67", "19.7", "406"),
    16: ("1.33", "26.4", "606"),
    32: ("2.67", "39.8", "803"),
}
RIDGE_BATCH = "156"
THROUGHPUT_GAIN_AT_32 = "11"
TIME_GAIN_AT_32 = "2.9"
COMPUTE_SHARE_BELOW = "0.10"

# Requests per step -> policy -> p50, p95 (steps), utilisation.
SLOTS, WINDOW_STEPS = 8, 20
MEAN_OUTPUT, MEAN_LONGEST_OF_8 = "78", "203"
BATCHING = {
    0.01: {"static": ("483", "1,134", "0.38"), "dynamic": ("139", "467", "0.16"), "continuous": ("58", "204", "0.18")},
    0.02: {"static": ("370", "735", "0.39"), "dynamic": ("199", "560", "0.22"), "continuous": ("58", "202", "0.24")},
    0.03: {"static": ("369", "715", "0.39"), "dynamic": ("299", "726", "0.29"), "continuous": ("59", "206", "0.32")},
    0.04: {
        "static": ("791", "1,547", "0.39"),
        "dynamic": ("805", "1,567", "0.37"),
        "continuous": ("58", "211", "0.41"),
    },
    0.07: {
        "static": ("7,811", "14,559", "0.39"),
        "dynamic": ("8,022", "14,685", "0.39"),
        "continuous": ("64", "216", "0.69"),
    },
}
SATURATION = {"static": "0.039", "continuous": "0.10"}

# Draft cost -> acceptance -> best K, speed-up.
DRAFT_COST_MS = (1.8, 14.1)  # a 4B draft against a 70B Chinchilla target (Chen et al. 2023)
SPECULATION = {
    0.05: {0.5: ("3", "1.63"), 0.7: ("6", "2.35"), 0.8: ("8", "3.09"), 0.9: ("13", "4.67")},
    0.128: {0.5: ("2", "1.39"), 0.7: ("4", "1.83"), 0.8: ("5", "2.25"), 0.9: ("9", "3.03")},
}
TOKENS_PER_VERIFICATION_AT_4 = {0.5: "1.94", 0.7: "2.77", 0.8: "3.36", 0.9: "4.10"}
ACCEPTANCE_FOR_TWICE = "0.8"

# Distance of the draft from the target -> distance of the rule's output from the target (total variation).
RULE_DISTANCE = {0.15: "0.006", 0.47: "0.005"}

# Bits -> KL [nats], top-1 agreement.
QUANTISATION = {
    "weights": {
        8: ("0.00007", "0.997"),
        6: ("0.0014", "0.975"),
        4: ("0.027", "0.931"),
        3: ("0.113", "0.875"),
        2: ("0.847", "0.705"),
    },
    "KV cache": {
        8: ("0.00001", "0.998"),
        6: ("0.0001", "0.997"),
        4: ("0.0019", "0.982"),
        3: ("0.011", "0.959"),
        2: ("0.091", "0.884"),
    },
}

# Prompt caching: a prompt of 1,000 tokens, a million calls a day, $3 per million tokens, 90% off when cached.
CACHED_PROMPT_TOKENS, CALLS_PER_DAY = 1000, 1_000_000
USD_PER_MILLION_TOKENS, CACHED_DISCOUNT = 3.0, 0.9
USD_PER_DAY = {"without cache": "3,000", "with cache": "300"}
