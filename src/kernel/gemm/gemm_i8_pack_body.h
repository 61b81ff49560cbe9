/* Packing of bytes into words of four steps, in plain C; vector instruction sets define
 * I8_INTERLEAVE(src, ld, flip, dst), one word of 16 whole lanes, and I8_TRANSPOSE(src,
 * ld, dst, width), 16 words of 16 whole lanes, before they include it. */

static uint32_t word_of(const uint8_t *src, int64_t step, int64_t steps, uint8_t flip)
{
    uint32_t word = 0;
    for (int64_t i = 0; i < steps; i++)
        word |= (uint32_t)(src[i * step] ^ flip) << (8 * i);
    return word;
}

static int64_t word_steps(int64_t left)
{
    return left < STI_I8_STEPS ? left : STI_I8_STEPS;
}

static void pack_rows(const uint8_t *src, int64_t ld, int64_t k, int64_t cols,
                      int64_t width, uint8_t flip, uint32_t *dst)
{
    for (int64_t i = 0; i < k; i += STI_I8_STEPS, src += STI_I8_STEPS * ld) {
        const int64_t steps = word_steps(k - i);
        int64_t j = 0;
#ifdef I8_INTERLEAVE
        for (; steps == STI_I8_STEPS && j + 16 <= cols; j += 16)
            I8_INTERLEAVE(src + j, ld, flip, dst + j);
#endif
        for (; j < width; j++)
            dst[j] = j < cols ? word_of(src + j, ld, steps, flip) : 0;
        dst += width;
    }
}

static void pack_columns(const uint8_t *src, int64_t ld, int64_t k, int64_t cols,
                         int64_t width, uint32_t *dst)
{
    const int64_t words = (k + STI_I8_STEPS - 1) / STI_I8_STEPS;
    int64_t j = 0;
#ifdef I8_TRANSPOSE
    /* Blocks of 16 columns by 16 words; rows a whole number of words apart. */
    for (; ld % STI_I8_STEPS == 0 && j + 16 <= cols; j += 16) {
        int64_t i = 0;
        for (; (i + 16) * STI_I8_STEPS <= k; i += 16)
            I8_TRANSPOSE(src + j * ld + i * STI_I8_STEPS, ld, dst + i * width + j,
                         width);
        for (; i < words; i++)
            for (int64_t l = j; l < j + 16; l++)
                dst[i * width + l] = word_of(src + l * ld + i * STI_I8_STEPS, 1,
                                             word_steps(k - i * STI_I8_STEPS), 0);
    }
#endif
    for (; j < width; j++)
        for (int64_t i = 0; i < words; i++)
            dst[i * width + j] = j < cols ? word_of(src + j * ld + i * STI_I8_STEPS, 1,
                                                    word_steps(k - i * STI_I8_STEPS), 0)
                                          : 0;
}
