/* The passes of the standard pipeline in their order, one line each (no guard: included
 * where STI_PASS is defined): sti_pass_FUNCTION, name, what it does. */
STI_PASS(dead_code, "dead-code", "remove what no result depends on")
STI_PASS(common_subexpression, "common-subexpression", "compute equal things once")
STI_PASS(fuse, "fuse", "bias, residual and ReLU into the kernel before them")
STI_PASS(norm_behind, "norm-behind", "running statistics into the convolution before")
STI_PASS(own_outputs, "own-outputs", "a block of its own for each result")
STI_PASS(schedule, "schedule", "free memory as early as possible")
STI_PASS(again, "again", "make cheap results again for the backward half")
STI_PASS(inplace, "inplace", "lay results over operands that die")
STI_PASS(loops, "loops", "the tuned loop strings of matrix products")
