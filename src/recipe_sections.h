/* Every section of a recipe, one line each, in the order of the reference (no guard:
 * included where STI_SECTION is defined). */
STI_SECTION(model)
STI_SECTION(data)
STI_SECTION(train)
STI_SECTION(loss)
STI_SECTION(prune)
STI_SECTION(quantise)
STI_SECTION(optimizer)
STI_SECTION(schedule)
STI_SECTION(error)
STI_SECTION(noise)
STI_SECTION(net)
STI_SECTION(run)
