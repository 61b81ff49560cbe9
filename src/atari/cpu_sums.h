/* Sums of cpu_body.h, which includes this: binary, decimal as the NMOS chip has them,
 * and decimal as ALE has them. */

CPU_INLINE void cpu_add_binary(sti_cpu *r, uint8_t value)
{
    const unsigned sum = (unsigned)r->a + value + r->carry;
    r->overflow = ((r->a ^ sum) & (value ^ sum) & 0x80) != 0;
    r->carry = sum > 0xff;
    r->a = cpu_flag(r, (uint8_t)sum);
}

/* The number that two digits of base ten say, and the two digits of a number below 256.
 * Digits above 9 count as what they are. */
CPU_INLINE int cpu_from_digits(uint8_t digits)
{
    return (digits >> 4) * 10 + (digits & 15);
}

CPU_INLINE uint8_t cpu_to_digits(int number)
{
    return (uint8_t)(number % 100 / 10 << 4 | number % 10);
}

/* ALE takes overflow from the signs of the operand and of what came out. */
CPU_INLINE void cpu_decimal_result(sti_cpu *r, uint8_t value, uint8_t result)
{
    r->overflow = ((r->a ^ result) & (result ^ value) & 0x80) != 0;
    r->a = cpu_flag(r, result);
}

static void cpu_add_tens(sti_cpu *r, uint8_t value)
{
    const int sum = cpu_from_digits(r->a) + cpu_from_digits(value) + r->carry;
    r->carry = sum > 99;
    cpu_decimal_result(r, value, cpu_to_digits(sum & 0xff));
}

/* A difference that stays negative after a hundred was lent comes of digits above 9.
 * What ALE finds for it is 256 more taken for digits. */
static void cpu_subtract_tens(sti_cpu *r, uint8_t value)
{
    const uint8_t lent = !r->carry;
    int rest = cpu_from_digits(r->a) - cpu_from_digits(value) - lent;
    uint8_t result = 0;
    rest += rest < 0 ? 100 : 0;
    result = rest < 0 ? (uint8_t)cpu_from_digits((uint8_t)rest) : cpu_to_digits(rest);
    r->carry = r->a >= value + lent;
    cpu_decimal_result(r, value, result);
}

/* NMOS: Z is that of the binary sum, N and V are those before the high digit is mended.
 */
static void cpu_add_nmos(sti_cpu *r, uint8_t value)
{
    const uint8_t binary = (uint8_t)(r->a + value + r->carry);
    unsigned low = (r->a & 15u) + (value & 15u) + r->carry;
    unsigned sum = 0;
    low = low > 9 ? ((low + 6) & 15) + 16 : low;
    sum = (r->a & 0xf0u) + (value & 0xf0u) + low;
    r->nonzero = binary;
    r->negative = (uint8_t)sum;
    r->overflow = ((r->a ^ sum) & (value ^ sum) & 0x80) != 0;
    r->carry = sum > 0x9f;
    r->a = (uint8_t)(sum > 0x9f ? sum + 0x60 : sum);
}

/* NMOS: all flags are those of the binary difference. */
static void cpu_subtract_nmos(sti_cpu *r, uint8_t value)
{
    const uint8_t a = r->a, lent = !r->carry;
    int low = (a & 15) - (value & 15) - lent, rest = 0;
    low = low < 0 ? ((low - 6) & 15) - 16 : low;
    rest = (a & 0xf0) - (value & 0xf0) + low;
    rest -= rest < 0 ? 0x60 : 0;
    cpu_add_binary(r, (uint8_t)~value);
    r->a = (uint8_t)rest;
}

CPU_INLINE void cpu_add(sti_cpu *r, uint8_t value)
{
    if (!r->decimal)
        cpu_add_binary(r, value);
    else if (CPU_EXACT)
        cpu_add_nmos(r, value);
    else
        cpu_add_tens(r, value);
}

CPU_INLINE void cpu_subtract(sti_cpu *r, uint8_t value)
{
    if (!r->decimal)
        cpu_add_binary(r, (uint8_t)~value);
    else if (CPU_EXACT)
        cpu_subtract_nmos(r, value);
    else
        cpu_subtract_tens(r, value);
}

/* ARR: AND, then rotate right through the adder, which leaves its marks on C and V and,
 * in decimal mode, mends the digits. */
static void cpu_and_rotate(sti_cpu *r, uint8_t value)
{
    const uint8_t both = r->a & value;
    const uint8_t turned = (uint8_t)(both >> 1 | r->carry << 7);
    r->a = cpu_flag(r, turned);
    r->overflow = (turned >> 6 ^ turned >> 5) & 1;
    r->carry = turned >> 6 & 1;
    if (!r->decimal)
        return;
    r->overflow = (both ^ turned) >> 6 & 1;
    if ((both & 0x0f) + (both & 0x01) > 0x05)
        r->a = (uint8_t)((r->a & 0xf0) | ((r->a + 6) & 0x0f));
    r->carry = (both & 0xf0) + (both & 0x10) > 0x50;
    if (r->carry)
        r->a = (uint8_t)(r->a + 0x60);
}
