/* Choice of depthwise kernels. */
#include "kernel/conv_depthwise.h"

#include "kernel/dispatch.h"

const sti_depthwise_kernels *sti_depthwise_kernels_now(void)
{
    return STI_KERNELS_NOW(sti_depthwise_kernels);
}
