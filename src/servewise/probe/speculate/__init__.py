"""Does speculation pay on one's own prompts and machine: acceptance, costs, predicted and measured speed-up."""
