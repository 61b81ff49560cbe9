/* The networks for text, one line each (no guard: included where STI_TEXT_MODEL is
 * defined): name, whether it has Llama's form, what it is. */
STI_TEXT_MODEL("gpt", false, "GPT-2's form: layer-norm, learned positions, tied output")
STI_TEXT_MODEL("llama", true,
               "Llama's form: RMS-norm, rotary positions, gated feed-forward")
STI_TEXT_MODEL("gpt2-124m", false,
               "GPT-2 as published: 12 layers of 768, 50,257 tokens")
