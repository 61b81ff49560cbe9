#include "atari/cart.h"

#include <string.h>

#include "atari/bus.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"

static stint_status check_size(size_t n_bytes, const char *name)
{
    if (n_bytes == 0)
        return sti_fail(STINT_E_INPUT, "%s: empty; a cartridge's image is wanted",
                        name);
    if (n_bytes > STI_CART_BYTES_MOST)
        return sti_fail(STINT_E_INPUT,
                        "%s: %zu bytes, more than the 512 KiB of the largest mapper; a "
                        "cartridge's image is wanted",
                        name, n_bytes);
    return STINT_OK;
}

stint_status sti_cart_load(const uint8_t *bytes, size_t n_bytes, const char *name,
                           sti_cart *cart_out)
{
    sti_cart cart = {.bytes = (uint32_t)n_bytes};
    sti_sha256 hash;
    stint_status st = check_size(n_bytes, name);
    if (st != STINT_OK)
        return st;
    cart.mapper = sti_mapper_find(bytes, cart.bytes, &cart.ram_bytes);
    if (!cart.mapper)
        return sti_fail(
            STINT_E_INPUT,
            "%s: %zu bytes is no size that a mapper of ours has: 2048, 4096, "
            "8192, 10240 (or 10495, 10496), 12288, 16384, 32768, or, for 3F "
            "and 3E, any multiple of 2048 with their signature; an image that "
            "was cut, or has a header, must be mended first",
            name, n_bytes);
    cart.rom = sti_alloc(n_bytes, "atari.rom");
    cart.decoded = sti_alloc(sti_cpu_decoded_count(cart.bytes) * sizeof *cart.decoded,
                             "atari.decoded");
    if (!cart.rom || !cart.decoded) {
        sti_cart_close(&cart);
        return STINT_E_MEMORY;
    }
    memcpy(cart.rom, bytes, n_bytes);
    sti_cpu_decode(cart.rom, cart.bytes, cart.mapper->direct,
                   cart.mapper->direct + cart.mapper->direct_bytes, cart.decoded);
    sti_sha256_init(&hash);
    sti_sha256_add(&hash, bytes, n_bytes);
    sti_sha256_hex(&hash, cart.sha256);
    *cart_out = cart;
    return STINT_OK;
}

stint_status sti_cart_open(const char *path, sti_cart *cart_out)
{
    void *data = NULL;
    size_t n_bytes = 0;
    stint_status st = sti_path_check_file(path);
    if (st == STINT_OK)
        st = sti_file_read(path, STI_CART_BYTES_MOST, &data, &n_bytes);
    if (st == STINT_OK)
        st = sti_cart_load(data, n_bytes, path, cart_out);
    sti_free(data);
    return st;
}

void sti_cart_close(sti_cart *cart)
{
    sti_free(cart->rom);
    sti_free(cart->decoded);
    *cart = (sti_cart){0};
}

const char *sti_cart_mapper_name(const sti_cart *cart)
{
    return cart->mapper->name;
}
