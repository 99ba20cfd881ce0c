vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 131072 --max-num-seqs 256 --gpu-memory-utilization 0.99 \
  --speculative-config '{"method": "ngram", "num_speculative_tokens": 8}'
