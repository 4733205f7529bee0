/* What the compiled parts share: reading big-endian bytes that can be anything, and numbering strings.
 *
 * Nothing is read that was not first seen to be there. Included after Python.h. */

#ifndef KAFKA_ASSIGNORS_BYTES_H
#define KAFKA_ASSIGNORS_BYTES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Bytes, read from the front. */
typedef struct {
    const unsigned char *at, *end;
} Reader;

static inline bool read_int16(Reader *r, int16_t *value)
{
    if (r->end - r->at < 2)
        return false;
    *value = (int16_t)(r->at[0] << 8 | r->at[1]);
    r->at += 2;
    return true;
}

static inline bool read_int32(Reader *r, int32_t *value)
{
    if (r->end - r->at < 4)
        return false;
    *value = (int32_t)((uint32_t)r->at[0] << 24 | (uint32_t)r->at[1] << 16 | (uint32_t)r->at[2] << 8 | r->at[3]);
    r->at += 4;
    return true;
}

/* A string of an int16 length; *size is -1 for null. */
static inline bool read_string(Reader *r, const unsigned char **string, int16_t *size)
{
    if (!read_int16(r, size) || *size < -1 || r->end - r->at < *size)
        return false;
    *string = r->at;
    if (*size > 0)
        r->at += *size;
    return true;
}

/* Byte strings that were seen, numbered in the order in which they first were; they stay where they are. */
typedef struct {
    struct Seen {
        const unsigned char *bytes;
        Py_ssize_t size;
        uint64_t hash;
        int64_t next; /* what came after it the last time: often what comes after it now */
    } *seen;
    int64_t count, room;
    int64_t *table; /* number + 1, or 0 */
    int64_t mask;
    int64_t last;
} Names;

static inline uint64_t hash_of(const unsigned char *bytes, Py_ssize_t size)
{
    /* Where the loader put this function is hard to guess for who would make up names that collide. */
    uint64_t hash = (uint64_t)size * 0x9E3779B97F4A7C15u ^ (uint64_t)(uintptr_t)&hash_of, word;
    for (; size >= 8; size -= 8, bytes += 8) {
        memcpy(&word, bytes, 8);
        hash = (hash ^ word) * 0x9FB21C651E98DF25u;
        hash ^= hash >> 32;
    }
    word = 0;
    memcpy(&word, bytes, (size_t)size);
    hash = (hash ^ word) * 0x9FB21C651E98DF25u;
    return hash ^ hash >> 29;
}

static inline void forget(Names *n)
{
    free(n->seen);
    free(n->table);
}

static inline bool is_seen(const Names *n, int64_t number, const unsigned char *bytes, Py_ssize_t size)
{
    return n->seen[number].size == size && memcmp(n->seen[number].bytes, bytes, (size_t)size) == 0;
}

static inline bool make_room(Names *n)
{
    if (n->count < n->room)
        return true;
    int64_t room = n->room * 2 + 32;
    struct Seen *seen = realloc(n->seen, (size_t)room * sizeof *seen);
    if (seen != NULL)
        n->seen = seen;
    int64_t size = 64;
    while (size < room * 2)
        size *= 2;
    int64_t *table = calloc((size_t)size, sizeof *table);
    if (seen == NULL || table == NULL) {
        free(table);
        PyErr_NoMemory();
        return false;
    }
    free(n->table);
    n->table = table;
    n->mask = size - 1;
    n->room = room;
    for (int64_t number = 0; number < n->count; number++) {
        int64_t at = (int64_t)(n->seen[number].hash) & n->mask;
        while (table[at])
            at = (at + 1) & n->mask;
        table[at] = number + 1;
    }
    return true;
}

/* The number of a string, or -1 with a Python exception. Sets *is_new. */
static inline int64_t number_of(Names *n, const unsigned char *bytes, Py_ssize_t size, bool *is_new)
{
    *is_new = false;
    if (n->count > 0) {
        int64_t guess = n->seen[n->last].next;
        if (guess < n->count && is_seen(n, guess, bytes, size))
            return n->last = guess;
    }
    if (!make_room(n))
        return -1;
    uint64_t hash = hash_of(bytes, size);
    int64_t at = (int64_t)hash & n->mask;
    for (; n->table[at]; at = (at + 1) & n->mask) {
        int64_t number = n->table[at] - 1;
        if (n->seen[number].hash == hash && is_seen(n, number, bytes, size)) {
            n->seen[n->last].next = number;
            return n->last = number;
        }
    }
    int64_t number = n->count++;
    n->table[at] = n->count;
    n->seen[number] = (struct Seen){bytes, size, hash, number + 1};
    if (number > 0)
        n->seen[n->last].next = number;
    *is_new = true;
    return n->last = number;
}

#endif
