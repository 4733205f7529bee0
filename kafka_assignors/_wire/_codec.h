/* What the sources of the compiled codec share. They are one extension module, `_codec`; `codec.py` and
 * `offsets_topic` say in Python what each layout means.
 *
 * The bytes come from anybody: nothing is read that was not first seen to be there. */

#ifndef KAFKA_ASSIGNORS_CODEC_H
#define KAFKA_ASSIGNORS_CODEC_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Only the module's entry is for others; so the compiler can inline within a source. */
#if defined(__GNUC__)
#pragma GCC visibility push(hidden)
#endif

/* What became of reading: taken; left, as the bytes are something else; failed, with a Python exception. */
enum { TAKEN = 1, LEFT = 0, FAILED = -1 };

/* These return from the function that they stand in, unless the step was taken, the condition holds, or there was
 * memory. Without them each field of a layout takes three lines. */
#define CHECK(step)                                                                                                    \
    do {                                                                                                               \
        int outcome_ = (step);                                                                                         \
        if (outcome_ != TAKEN)                                                                                         \
            return outcome_;                                                                                           \
    } while (0)
#define NEED(condition)                                                                                                \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            return LEFT;                                                                                               \
    } while (0)
#define PUT(condition)                                                                                                 \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            return FAILED;                                                                                             \
    } while (0)

/* Bytes, read from the front. */
typedef struct {
    const unsigned char *at, *end;
} Reader;

static inline Py_ssize_t left(const Reader *r) { return r->end - r->at; }

static inline bool is_same(const Reader *one, const Reader *other)
{
    return left(one) == left(other) && (left(one) == 0 || memcmp(one->at, other->at, (size_t)left(one)) == 0);
}

static inline bool read_int16(Reader *r, int16_t *value)
{
    if (left(r) < 2)
        return false;
    *value = (int16_t)(r->at[0] << 8 | r->at[1]);
    r->at += 2;
    return true;
}

static inline int32_t big32(const unsigned char *at)
{
    return (int32_t)((uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3]);
}

static inline bool read_int32(Reader *r, int32_t *value)
{
    if (left(r) < 4)
        return false;
    *value = big32(r->at);
    r->at += 4;
    return true;
}

/* Some of the bytes that are left; none of a negative size. */
static inline bool take(Reader *r, int32_t size, Reader *taken)
{
    if (left(r) < size)
        return false;
    *taken = (Reader){r->at, r->at + (size > 0 ? size : 0)};
    r->at = taken->end;
    return true;
}

/* A string of an int16 length; for null none, and false unless it may be null. */
static inline bool read_string_or_null(Reader *r, Reader *string, bool *is_null)
{
    int16_t size;
    if (!read_int16(r, &size) || size < -1)
        return false;
    *is_null = size < 0;
    return take(r, size, string);
}

static inline bool read_string(Reader *r, Reader *string)
{
    bool is_null;
    return read_string_or_null(r, string, &is_null) && !is_null;
}

/* Numbers or bytes that grow at the end. */
typedef struct {
    unsigned char *bytes;
    size_t size, room;
} Column;

bool grow(Column *c, size_t more);

static inline bool room_for(Column *c, size_t more) { return c->room - c->size >= more || grow(c, more); }

static inline bool put(Column *c, const void *bytes, size_t size)
{
    if (!room_for(c, size))
        return false;
    if (size > 0)
        memcpy(c->bytes + c->size, bytes, size);
    c->size += size;
    return true;
}

static inline bool put32(Column *c, int64_t value)
{
    int32_t narrow = (int32_t)value;
    return put(c, &narrow, sizeof narrow);
}

static inline int64_t count32(const Column *c) { return (int64_t)(c->size / sizeof(int32_t)); }

/* As in messages: the most significant byte first. */
static inline void set_big16(unsigned char *at, size_t value)
{
    at[0] = (unsigned char)(value >> 8);
    at[1] = (unsigned char)value;
}

static inline void set_big32(unsigned char *at, size_t value)
{
    set_big16(at, value >> 16);
    set_big16(at + 2, value);
}

void note_sizes(const Column *columns, size_t count, size_t *sizes);
void cut_columns(Column *columns, size_t count, const size_t *sizes);
void free_columns(Column *columns, size_t count);

/* A list of bytes that Python gave, and the dict of columns that it gets. */
Py_ssize_t count_blobs(PyObject *blobs);
bool get_blob(PyObject *blobs, Py_ssize_t i, Reader *blob);
bool add(PyObject *dict, const char *name, PyObject *item);
bool add_columns(PyObject *dict, const char *const *names, const Column *columns, size_t count);

/* Byte strings that were seen, numbered in the order in which they first were; they stay where they are. */
typedef struct {
    struct Seen {
        const unsigned char *bytes;
        Py_ssize_t size;
        uint64_t hash;
        int64_t next; /* what came after it the last time: often what comes after it now */
        int64_t mark; /* of text: -1 if it is not UTF-8, else the last partition list that it was seen in */
    } *seen;
    int64_t count, room;
    int64_t *table; /* number + 1, or 0 */
    int64_t mask;
    int64_t last;
    int64_t lists; /* how many partition lists were read: each marks its topics */
} Names;

int64_t find_number(Names *n, Reader string, bool is_text);

static inline bool is_seen(const Names *n, int64_t number, Reader string)
{
    return n->seen[number].size == left(&string) &&
           memcmp(n->seen[number].bytes, string.at, (size_t)left(&string)) == 0;
}

/* The number of a string, or -1 with a Python exception. Where it came for the first time, it is the last. */
static inline int64_t number_of(Names *n, Reader string, bool is_text)
{
    if (n->count > 0) {
        int64_t guess = n->seen[n->last].next;
        if (guess < n->count && is_seen(n, guess, string))
            return n->last = guess;
    }
    return find_number(n, string, is_text);
}

/* Whether a number is that of text: what is not UTF-8 has one as well. */
static inline bool is_text(const Names *n, int64_t number) { return n->seen[number].mark >= 0; }

/* Put a text's number into a column: TAKEN, LEFT if it is not UTF-8, or FAILED. */
static inline int put_text(Column *c, Names *n, Reader string)
{
    int64_t number = number_of(n, string, true);
    PUT(number >= 0);
    NEED(is_text(n, number));
    return put32(c, number) ? TAKEN : FAILED;
}

bool add_texts(PyObject *dict, const char *name, const Names *n);
bool add_arrow_texts(PyObject *dict, const char *name, const Names *n);
void forget(Names *n);

/* A partition list: how many topics it has; then of each the name, how many ids follow, and these. A null, which
 * Kafka does not write, is -1 where it may be one. */
static inline bool read_topic_count(Reader *r, int32_t least, int32_t *topics)
{
    return read_int32(r, topics) && *topics >= least && *topics <= left(r) / 6;
}

static inline bool read_topic(Reader *r, int32_t least, Reader *name, int32_t *ids)
{
    return read_string(r, name) && read_int32(r, ids) && *ids >= least && *ids <= left(r) / 4;
}

/* Columns of partition lists, int32: of each topic whose it is, its number, and where its ids end, behind a first 0;
 * and all ids. An int32 counts them, as neither a response of Kafka's nor a batch of Arrow's has 2 GB. */
enum { WHOSE, TOPIC, BOUNDS, IDS, LIST_COLUMNS };

int read_partition_list(Reader *r, int64_t whose, Names *topics, Column *list, bool *has_twice);
bool pass_partition_list(Reader *r);

/* A ConsumerProtocolSubscription, v0 and up; what versions after 3 append is not read. */
typedef struct {
    int16_t version;
    Reader topics; /* the array, its count included */
    bool topics_are_known;
    int32_t user_data_size; /* -1 for null */
    Reader user_data;
    Reader owned;       /* a partition list, perhaps; no bytes below v1 */
    int32_t generation; /* -1 below v2 */
    Reader rack;        /* empty for null, and below v3 */
} Subscription;

bool read_subscription(Reader r, Reader known, Subscription *s);
int read_assignment(Reader *r, int64_t whose, Names *topics, Column *list, Reader *listed, bool *has_twice);
int read_user_data(Reader r, bool cooperative, int64_t whose, Names *topics, Column *list, int32_t *generation);

/* What Python calls. */
PyObject *read_partitions(PyObject *module, PyObject *blobs);
PyObject *write_partitions(PyObject *module, PyObject *arguments);
PyObject *read_subscriptions(PyObject *module, PyObject *blobs);
PyObject *read_assignments(PyObject *module, PyObject *blobs);
PyObject *decode(PyObject *module, PyObject *arguments);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#endif
