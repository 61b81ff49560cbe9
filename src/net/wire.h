/* Bytes on the sockets between ranks. All numbers are little-endian.
 *
 * A pair of ranks has two connections. On "data" every message is a header (tag,
 * length) and its bytes. On "life" each side says now and then that it lives, that it
 * leaves, or why it gives up; those must not queue behind messages that nobody has
 * asked for yet. Both begin with a greeting from the side that connected. Between ranks
 * of one host "data" is a local socket, and mostly a bell: the bytes then go through
 * memory (shared_ring.h). */
#ifndef STI_NET_WIRE_H
#define STI_NET_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stint/status.h"

enum {
    WIRE_VERSION = 5,
    WIRE_TOKEN = 16,   /* of a job: keeps strangers and older jobs out */
    WIRE_DOOR = 8,     /* of a rank: where those of its own host find it */
    WIRE_BUILD = 16,   /* of a program: characters of its hash */
    WIRE_PURPOSE = 16, /* what it was started for */
    WIRE_HELLO = 40,
    WIRE_HEADER = 16,
    WIRE_TEXT = 1000,
    WIRE_LIFE = 7 + WIRE_TEXT, /* the longest */
    WIRE_ADDRESSES = 8,
    WIRE_HOST = 64,
    WIRE_CARD = WIRE_TOKEN + WIRE_DOOR + WIRE_HOST + 4 + WIRE_ADDRESSES * 17 +
                WIRE_BUILD + WIRE_PURPOSE,
    WIRE_RANKS = 65536
};

typedef enum wire_channel {
    WIRE_DATA,
    WIRE_ALIVE,
    WIRE_ROOT,
    WIRE_CHANNELS
} wire_channel;

typedef struct wire_hello {
    wire_channel channel;
    int rank, size;
    uint8_t token[WIRE_TOKEN];
} wire_hello;

void sti_wire_put_hello(const wire_hello *hello, uint8_t out[WIRE_HELLO]);
bool sti_wire_get_hello(const uint8_t in[WIRE_HELLO], wire_hello *hello_out);
/* The version of a greeting, ours or another; 0: it is no greeting. */
uint32_t sti_wire_hello_version(const uint8_t in[WIRE_HELLO]);

void sti_wire_put_header(uint32_t tag, uint64_t n_bytes, uint8_t out[WIRE_HEADER]);
bool sti_wire_get_header(const uint8_t in[WIRE_HEADER], uint32_t *tag_out,
                         uint64_t *bytes_out);

typedef enum wire_life_kind {
    WIRE_LIVES = 'A',
    WIRE_LEAVES = 'B',
    WIRE_GIVES_UP = 'F'
} wire_life_kind;

typedef struct wire_life {
    wire_life_kind kind;
    stint_status status;      /* of giving up: one of the enum, never STINT_OK */
    char text[WIRE_TEXT + 1]; /* printable; longer ones are cut */
} wire_life;

/* Bytes written. */
size_t sti_wire_put_life(const wire_life *life, uint8_t out[WIRE_LIFE]);
/* Bytes taken off the front: 0: more must come first; -1: nonsense. */
int sti_wire_get_life(const uint8_t *in, size_t n_bytes, wire_life *life_out);

/* How to reach a rank: its addresses in the order in which to try them. */
typedef struct wire_address {
    uint8_t family; /* 4 or 6 */
    uint8_t bytes[16];
} wire_address;

typedef struct wire_card {
    uint8_t token[WIRE_TOKEN]; /* rank 0's is the job's */
    uint8_t door[WIRE_DOOR];   /* zeros: none */
    char host[WIRE_HOST];
    uint16_t port;
    int count;
    wire_address addresses[WIRE_ADDRESSES];
    char build[WIRE_BUILD + 1];     /* "": not known */
    char purpose[WIRE_PURPOSE + 1]; /* "": not said */
} wire_card;

void sti_wire_put_card(const wire_card *card, uint8_t out[WIRE_CARD]);
bool sti_wire_get_card(const uint8_t in[WIRE_CARD], wire_card *card_out);

#endif
