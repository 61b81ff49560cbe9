/* From the bound that a caller asks for to the step of the quantiser. */
#include "codec/codec_priv.h"

/* The float limit leaves room for the rounding of x' - x in float, so that the bound
 * holds in exact arithmetic; D leaves room for the rounding of x' near `most`. */
void sti_codec_quant_set(const stint_codec_desc *desc, float most,
                         sti_codec_quant *quant_out)
{
    const double largest_bound = 0x1p120, least_bound = STI_CODEC_LEAST_BOUND;
    const double bound = desc->bound < largest_bound ? desc->bound : largest_bound;
    sti_codec_quant q = {.dither = desc->dither,
                         .seed = desc->seed,
                         .id = desc->id,
                         .shard = desc->shard};
    if (bound >= least_bound) {
        const double limit = (double)(float)(bound * (1 - 0x1p-22));
        const double rounding = (double)most * 0x1p-24;
        const double half = rounding < limit / 2 ? limit - rounding : limit / 2;
        q.limit = (float)limit;
        q.step = (float)(2 * half * (1 - 0x1p-21));
        q.inverse = (float)(1 / (double)q.step);
        q.dither_unit = q.step * 0x1p-8f;
    }
    *quant_out = q;
}
