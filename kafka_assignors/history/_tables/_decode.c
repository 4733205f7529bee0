/* The compiled counterpart of kafka_assignors.history._tables.one_by_one, where it stands what the tables
 * mean.
 *
 * It takes the records of consumers' classic groups, as brokers up to 4.3 write them, with nothing odd in them; what
 * else there is it leaves alone, and Python reads it. The bytes come from anybody: nothing is read that was not
 * first seen to be there. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "../../_wire/_bytes.h"

enum { TAKEN = 1, LEFT = 0, FAILED = -1 };

/* Bytes that grow at the end. */
typedef struct {
    unsigned char *bytes;
    size_t size, room;
} Buffer;

static bool room_for(Buffer *b, size_t more)
{
    if (b->room - b->size >= more)
        return true;
    size_t wanted = (b->size + more) * 2;
    unsigned char *bytes = realloc(b->bytes, wanted);
    if (bytes == NULL) {
        PyErr_NoMemory();
        return false;
    }
    b->bytes = bytes;
    b->room = wanted;
    return true;
}

static bool put(Buffer *b, const void *bytes, size_t size)
{
    if (!room_for(b, size))
        return false;
    if (size > 0)
        memcpy(b->bytes + b->size, bytes, size);
    b->size += size;
    return true;
}

static bool put32(Buffer *b, int64_t value)
{
    int32_t narrow = (int32_t)value;
    return put(b, &narrow, sizeof narrow);
}

static bool put_big32(Buffer *b, size_t value)
{
    unsigned char bytes[4] = {(unsigned char)(value >> 24), (unsigned char)(value >> 16), (unsigned char)(value >> 8),
                              (unsigned char)value};
    return put(b, bytes, 4);
}

static int64_t count32(const Buffer *b) { return (int64_t)(b->size / sizeof(int32_t)); }

/* Strings by number. Beside each stands a mark: -1 if it is not UTF-8, else the last list that it was seen in. */
typedef struct {
    Names names;
    Buffer marks;
} Strings;

enum { NOT_UTF8 = -1, NO_MEMORY = -2 };

static bool is_utf8(const unsigned char *bytes, Py_ssize_t size)
{
    unsigned char all = 0;
    for (Py_ssize_t i = 0; i < size; i++)
        all |= bytes[i];
    if (all < 0x80)
        return true;
    PyObject *text = PyUnicode_DecodeUTF8((const char *)bytes, size, "strict");
    if (text == NULL)
        PyErr_Clear();
    Py_XDECREF(text);
    return text != NULL;
}

static int64_t number_in(Strings *s, const unsigned char *bytes, Py_ssize_t size)
{
    bool is_new;
    int64_t number = number_of(&s->names, bytes, size, &is_new);
    if (number < 0)
        return NO_MEMORY;
    if (is_new) {
        int64_t mark = is_utf8(bytes, size) ? 0 : -1;
        if (!put(&s->marks, &mark, sizeof mark))
            return NO_MEMORY;
    }
    return ((int64_t *)(void *)s->marks.bytes)[number] < 0 ? NOT_UTF8 : number;
}

static void free_strings(Strings *s)
{
    forget(&s->names);
    free(s->marks.bytes);
}

/* As Arrow has it: where each string begins, and all of them. One that is not UTF-8 is no record's, and empty. */
static PyObject *strings_object(const Strings *s)
{
    Buffer bounds = {0}, texts = {0};
    PyObject *result = NULL;
    bool fits = put32(&bounds, 0);
    for (int64_t i = 0; fits && i < s->names.count; i++) {
        const struct Seen *seen = &s->names.seen[i];
        if (((int64_t *)(void *)s->marks.bytes)[i] >= 0)
            fits = put(&texts, seen->bytes, (size_t)seen->size);
        fits = fits && put32(&bounds, (int64_t)texts.size);
    }
    if (fits)
        result = Py_BuildValue("(y#y#)", (const char *)bounds.bytes, (Py_ssize_t)bounds.size,
                               texts.bytes ? (const char *)texts.bytes : "", (Py_ssize_t)texts.size);
    free(bounds.bytes);
    free(texts.bytes);
    return result;
}

/* The columns, one behind another as Python takes them. Numbers are int32, but for what is said otherwise. */
enum {
    /* of records */
    RECORD,        /* its number in the batch */
    GENERATION,
    VERSION,
    GROUP,
    PROTOCOL,
    LEADER,
    MEMBER_COUNT,
    STATE_TIME,    /* int64 */
    OWNERS_BOUNDS,
    OWNERS,        /* bytes */
    /* of members */
    MEMBER_RECORD, /* which of the records above */
    MEMBER,
    INSTANCE,
    CLIENT,
    HOST,
    RACK,
    SESSION,
    REBALANCE,
    SUBSCRIPTION_VERSION,
    TOPICS_BOUNDS,
    TOPICS,
    USER_DATA_BOUNDS,
    USER_DATA,     /* bytes */
    USER_DATA_SIZE, /* -1 for null */
    /* of topics that are assigned: which of the members above, the topic, its partitions */
    ASSIGNED_MEMBER,
    ASSIGNED_TOPIC,
    ASSIGNED_BOUNDS,
    ASSIGNED,
    /* of topics that are claimed */
    CLAIM_MEMBER,
    CLAIM_TOPIC,
    CLAIM_BOUNDS,
    CLAIMED,
    CLAIM_SOURCE,  /* 0 owned, 1 sticky */
    CLAIM_GENERATION,
    COLUMNS
};

enum { GROUPS, PROTOCOLS, MEMBERS, INSTANCES, CLIENTS, HOSTS, RACKS, TOPIC_NAMES, DICTIONARIES };

typedef struct {
    Buffer column[COLUMNS];
    Strings strings[DICTIONARIES];
    Buffer owner_sizes, owners; /* of the record that is being read */
    int64_t lists; /* how many partition lists were read: each marks its topics */
    /* The topics of the subscription before: most members' are the same bytes. */
    const unsigned char *topics;
    Py_ssize_t topics_size;
    size_t topics_from, topics_to; /* in the column, in bytes */
} Decoder;

/* Take a string's number down: TAKEN, LEFT if it is not UTF-8, or FAILED. */
static int put_string(Decoder *d, int column, int dictionary, const unsigned char *bytes, int16_t size)
{
    int64_t number = size < 0 ? -1 : number_in(&d->strings[dictionary], bytes, size);
    if (size >= 0 && number < 0)
        return number == NOT_UTF8 ? LEFT : FAILED;
    return put32(&d->column[column], number) ? TAKEN : FAILED;
}

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

/* Four columns from `first` on: member, topic, where its partitions end, partitions. A topic must not come twice. */
static int read_partitions(Decoder *d, Reader *r, int first, int64_t member, int64_t *rows)
{
    int32_t topics;
    NEED(read_int32(r, &topics) && topics >= 0 && topics <= (r->end - r->at) / 6);
    int64_t list = ++d->lists;
    Buffer *ids = &d->column[first + 3];
    for (int32_t i = 0; i < topics; i++) {
        const unsigned char *name;
        int16_t size;
        int32_t count;
        NEED(read_string(r, &name, &size) && size >= 0 && read_int32(r, &count) && count >= 0 &&
             count <= (r->end - r->at) / 4);
        CHECK(put_string(d, first + 1, TOPIC_NAMES, name, size));
        Strings *names = &d->strings[TOPIC_NAMES];
        int64_t *mark = (int64_t *)(void *)names->marks.bytes + names->names.last;
        NEED(*mark != list);
        *mark = list;
        PUT(room_for(ids, (size_t)count * 4));
        unsigned char *to = ids->bytes + ids->size;
        for (int32_t j = 0; j < count; j++, r->at += 4, to += 4) {
            int32_t id = (int32_t)((uint32_t)r->at[0] << 24 | (uint32_t)r->at[1] << 16 | (uint32_t)r->at[2] << 8 |
                                   r->at[3]);
            memcpy(to, &id, 4);
        }
        ids->size += (size_t)count * 4;
        PUT(put32(&d->column[first], member) && put32(&d->column[first + 2], count32(ids)));
    }
    *rows = topics;
    return TAKEN;
}

/* What was read of a claim gets its source and generation; a generation without topics gets a row of its own. */
static int end_claim(Decoder *d, int64_t member, int64_t rows, int source, int32_t generation)
{
    if (rows == 0 && generation != -1) {
        PUT(put32(&d->column[CLAIM_MEMBER], member) && put32(&d->column[CLAIM_TOPIC], -1) &&
            put32(&d->column[CLAIM_BOUNDS], count32(&d->column[CLAIMED])));
        rows = 1;
    }
    for (int64_t i = 0; i < rows; i++)
        PUT(put32(&d->column[CLAIM_SOURCE], source) && put32(&d->column[CLAIM_GENERATION], generation));
    return TAKEN;
}

/* Java's layouts: a partition list, and behind it nothing, a generation, or a generation and a weight. */
static int read_sticky(Decoder *d, const unsigned char *data, Py_ssize_t size, int64_t member, bool cooperative)
{
    Reader r = {data, data + size};
    int32_t generation = -1;
    int64_t rows = 0;
    if (cooperative && (size == 4 || size == 8)) {
        read_int32(&r, &generation);
        if (size == 4 || generation != 0)
            return end_claim(d, member, 0, 1, generation);
        r.at = data;
        generation = -1;
    }
    size_t before[4];
    for (int c = 0; c < 4; c++)
        before[c] = d->column[CLAIM_MEMBER + c].size;
    int outcome = read_partitions(d, &r, CLAIM_MEMBER, member, &rows);
    Py_ssize_t left = r.end - r.at;
    if (outcome == FAILED)
        return FAILED;
    if (outcome == LEFT || (left != 0 && left != 4 && left != 8)) {
        /* kafka-python puts a version before it. */
        for (int c = 0; c < 4; c++)
            d->column[CLAIM_MEMBER + c].size = before[c];
        NEED(size >= 2 && data[0] == 0 && data[1] == 1);
        r.at = data + 2;
        CHECK(read_partitions(d, &r, CLAIM_MEMBER, member, &rows));
        NEED(r.end - r.at == 4);
    }
    if (r.end - r.at >= 4)
        read_int32(&r, &generation);
    return end_claim(d, member, rows, 1, generation);
}

static int read_topics(Decoder *d, Reader *r)
{
    Buffer *topics = &d->column[TOPICS];
    const unsigned char *from = r->at;
    if (d->topics != NULL && r->end - r->at >= d->topics_size &&
        memcmp(d->topics, r->at, (size_t)d->topics_size) == 0) {
        size_t size = d->topics_to - d->topics_from;
        PUT(room_for(topics, size)); /* which can move what is copied */
        PUT(put(topics, topics->bytes + d->topics_from, size));
        r->at += d->topics_size;
    } else {
        int32_t count;
        size_t start = topics->size;
        NEED(read_int32(r, &count) && count >= 0 && count <= (r->end - r->at) / 2);
        d->topics = NULL;
        for (int32_t i = 0; i < count; i++) {
            const unsigned char *name;
            int16_t size;
            NEED(read_string(r, &name, &size) && size >= 0);
            CHECK(put_string(d, TOPICS, TOPIC_NAMES, name, size));
        }
        d->topics = from;
        d->topics_size = r->at - from;
        d->topics_from = start;
        d->topics_to = topics->size;
    }
    PUT(put32(&d->column[TOPICS_BOUNDS], count32(topics)));
    return TAKEN;
}

static int read_subscription(Decoder *d, const unsigned char *bytes, Py_ssize_t size, int64_t member, bool sticky,
                             bool cooperative)
{
    Reader r = {bytes, bytes + size};
    int16_t version, length = -1;
    int32_t data_size, generation = -1;
    int64_t rows = 0;
    const unsigned char *rack = NULL;
    NEED(read_int16(&r, &version) && version >= 0);
    PUT(put32(&d->column[SUBSCRIPTION_VERSION], version));
    CHECK(read_topics(d, &r));
    NEED(read_int32(&r, &data_size) && data_size >= -1 && data_size <= r.end - r.at);
    const unsigned char *data = r.at;
    Py_ssize_t used = data_size > 0 ? data_size : 0;
    r.at += used;
    PUT(put(&d->column[USER_DATA], data, (size_t)used) &&
        put32(&d->column[USER_DATA_BOUNDS], (int64_t)d->column[USER_DATA].size) &&
        put32(&d->column[USER_DATA_SIZE], data_size));
    if (version >= 1)
        CHECK(read_partitions(d, &r, CLAIM_MEMBER, member, &rows));
    if (version >= 2)
        NEED(read_int32(&r, &generation));
    if (version >= 3)
        NEED(read_string(&r, &rack, &length));
    CHECK(put_string(d, RACK, RACKS, rack, length > 0 ? length : -1));
    CHECK(end_claim(d, member, rows, 0, generation));
    return used > 0 && (sticky || cooperative) ? read_sticky(d, data, used, member, cooperative) : TAKEN;
}

static int read_assignment(Decoder *d, const unsigned char *bytes, Py_ssize_t size, int64_t member,
                           const unsigned char *identity, int16_t identity_size)
{
    Reader r = {bytes, bytes + size};
    int16_t version;
    int32_t user_data;
    int64_t topics;
    if (size == 0)
        return TAKEN;
    NEED(read_int16(&r, &version) && version >= 0);
    const unsigned char *list = r.at;
    CHECK(read_partitions(d, &r, ASSIGNED_MEMBER, member, &topics));
    const unsigned char *list_end = r.at;
    NEED(read_int32(&r, &user_data) && user_data >= -1 && user_data <= r.end - r.at);
    if (topics > 0) {
        unsigned char length[2] = {(unsigned char)(identity_size >> 8), (unsigned char)identity_size};
        size_t before = d->owners.size;
        PUT(put(&d->owners, length, 2) && put(&d->owners, identity, (size_t)identity_size) &&
            put(&d->owners, list, (size_t)(list_end - list)));
        PUT(put_big32(&d->owner_sizes, d->owners.size - before));
    }
    return TAKEN;
}

static int read_blob(Reader *r, const unsigned char **bytes, int32_t *size)
{
    NEED(read_int32(r, size) && *size >= 0 && *size <= r->end - r->at);
    *bytes = r->at;
    r->at += *size;
    return TAKEN;
}

static int read_member(Decoder *d, Reader *r, int16_t version, int64_t record, bool sticky, bool cooperative)
{
    const unsigned char *id, *instance = NULL, *client, *host, *subscription, *assignment;
    int16_t id_size, instance_size = -1, client_size, host_size;
    int32_t rebalance = -1, session, subscription_size, assignment_size;
    int64_t member = count32(&d->column[MEMBER]);
    NEED(read_string(r, &id, &id_size) && id_size >= 0);
    if (version >= 3)
        NEED(read_string(r, &instance, &instance_size));
    if (instance_size == 0) /* as good as none */
        instance_size = -1;
    NEED(read_string(r, &client, &client_size) && client_size >= 0);
    NEED(read_string(r, &host, &host_size) && host_size >= 0);
    if (version >= 1)
        NEED(read_int32(r, &rebalance));
    NEED(read_int32(r, &session));
    CHECK(read_blob(r, &subscription, &subscription_size));
    CHECK(read_blob(r, &assignment, &assignment_size));
    PUT(put32(&d->column[MEMBER_RECORD], record));
    CHECK(put_string(d, MEMBER, MEMBERS, id, id_size));
    CHECK(put_string(d, INSTANCE, INSTANCES, instance, instance_size));
    CHECK(put_string(d, CLIENT, CLIENTS, client, client_size));
    CHECK(put_string(d, HOST, HOSTS, host, host_size));
    PUT(put32(&d->column[SESSION], session) && put32(&d->column[REBALANCE], rebalance));
    CHECK(read_subscription(d, subscription, subscription_size, member, sticky, cooperative));
    return read_assignment(d, assignment, assignment_size, member, instance_size > 0 ? instance : id,
                           instance_size > 0 ? instance_size : id_size);
}

static bool is_text(const unsigned char *bytes, int16_t size, const char *text)
{
    return size == (int16_t)strlen(text) && memcmp(bytes, text, (size_t)size) == 0;
}

static int read_record(Decoder *d, int64_t number, Reader key, Reader value)
{
    const unsigned char *group, *type, *protocol, *leader;
    int16_t key_version, version, group_size, type_size, protocol_size, leader_size;
    int32_t generation, members;
    int64_t state_time = -1;
    NEED(read_int16(&key, &key_version) && key_version == 2);
    NEED(read_string(&key, &group, &group_size) && group_size >= 0 && key.at == key.end);
    NEED(read_int16(&value, &version) && version >= 0 && version <= 3);
    NEED(read_string(&value, &type, &type_size) && is_text(type, type_size, "consumer"));
    NEED(read_int32(&value, &generation));
    NEED(read_string(&value, &protocol, &protocol_size) && read_string(&value, &leader, &leader_size));
    if (version >= 2) {
        int32_t high, low;
        NEED(read_int32(&value, &high) && read_int32(&value, &low));
        state_time = (int64_t)((uint64_t)(uint32_t)high << 32 | (uint32_t)low);
    }
    NEED(read_int32(&value, &members) && members >= 0);
    int64_t record = count32(&d->column[RECORD]);
    PUT(put32(&d->column[RECORD], number) && put32(&d->column[GENERATION], generation) &&
        put32(&d->column[VERSION], version) && put32(&d->column[MEMBER_COUNT], members) &&
        put(&d->column[STATE_TIME], &state_time, sizeof state_time));
    CHECK(put_string(d, GROUP, GROUPS, group, group_size));
    CHECK(put_string(d, PROTOCOL, PROTOCOLS, protocol, protocol_size));
    CHECK(put_string(d, LEADER, MEMBERS, leader, leader_size));
    bool sticky = is_text(protocol, protocol_size, "sticky");
    bool cooperative = is_text(protocol, protocol_size, "cooperative-sticky");
    d->owner_sizes.size = d->owners.size = 0;
    for (int32_t i = 0; i < members; i++)
        CHECK(read_member(d, &value, version, record, sticky, cooperative));
    NEED(value.at == value.end);
    Buffer *owners = &d->column[OWNERS];
    PUT(put_big32(owners, d->owner_sizes.size / 4) && put(owners, d->owner_sizes.bytes, d->owner_sizes.size) &&
        put(owners, d->owners.bytes, d->owners.size));
    PUT(put32(&d->column[OWNERS_BOUNDS], (int64_t)d->column[OWNERS].size));
    return TAKEN;
}

/* Arrow's buffers of a binary column. */
typedef struct {
    Py_buffer valid, bounds, bytes;
    bool has_valid, has_bounds, has_bytes;
} BinaryColumn;

static void release(BinaryColumn *c)
{
    if (c->has_valid)
        PyBuffer_Release(&c->valid);
    if (c->has_bounds)
        PyBuffer_Release(&c->bounds);
    if (c->has_bytes)
        PyBuffer_Release(&c->bytes);
}

static bool acquire(BinaryColumn *c, PyObject *valid, PyObject *bounds, PyObject *bytes, Py_ssize_t from,
                    Py_ssize_t count)
{
    if (valid != Py_None && !(c->has_valid = PyObject_GetBuffer(valid, &c->valid, PyBUF_CONTIG_RO) == 0))
        return false;
    if (!(c->has_bounds = PyObject_GetBuffer(bounds, &c->bounds, PyBUF_CONTIG_RO) == 0))
        return false;
    if (bytes != Py_None && !(c->has_bytes = PyObject_GetBuffer(bytes, &c->bytes, PyBUF_CONTIG_RO) == 0))
        return false;
    const int32_t *at = c->bounds.buf;
    Py_ssize_t size = c->has_bytes ? c->bytes.len : 0;
    bool fits = from >= 0 && count >= 0 && c->bounds.len / 4 > from + count && at[from] >= 0 &&
                at[from + count] <= size && (!c->has_valid || c->valid.len >= (from + count + 7) / 8);
    for (Py_ssize_t i = from; fits && i < from + count; i++)
        fits = at[i] <= at[i + 1];
    if (!fits)
        PyErr_SetString(PyExc_ValueError, "the buffers are no Arrow array of bytes of this length");
    return fits;
}

/* The bytes of a row; false for null. */
static bool row(const BinaryColumn *c, Py_ssize_t i, Reader *r)
{
    if (c->has_valid && !(((const unsigned char *)c->valid.buf)[i / 8] >> i % 8 & 1))
        return false;
    const int32_t *at = c->bounds.buf;
    const unsigned char *bytes = c->has_bytes ? c->bytes.buf : (const unsigned char *)"";
    *r = (Reader){bytes + at[i], bytes + at[i + 1]};
    return true;
}

static PyObject *buffer_object(const Buffer *b)
{
    return PyBytes_FromStringAndSize((const char *)b->bytes, (Py_ssize_t)b->size);
}

PyDoc_STRVAR(decode_doc, "decode(count, from, key, value)\n--\n\n"
                         "Columns and dictionaries of what was taken; see kafka_assignors.history._tables.fast.");

static PyObject *decode(PyObject *module, PyObject *arguments)
{
    (void)module;
    Py_ssize_t count, from[2];
    PyObject *buffers[6], *columns = NULL, *dictionaries = NULL, *result = NULL;
    if (!PyArg_ParseTuple(arguments, "n(nOOO)(nOOO)", &count, &from[0], &buffers[0], &buffers[1], &buffers[2], &from[1],
                          &buffers[3], &buffers[4], &buffers[5]))
        return NULL;
    BinaryColumn keys = {0}, values = {0};
    Decoder *d = calloc(1, sizeof *d);
    if (d == NULL)
        return PyErr_NoMemory();
    if (!acquire(&keys, buffers[0], buffers[1], buffers[2], from[0], count) ||
        !acquire(&values, buffers[3], buffers[4], buffers[5], from[1], count))
        goto done;
    static const int bounds[] = {OWNERS_BOUNDS, TOPICS_BOUNDS, USER_DATA_BOUNDS, ASSIGNED_BOUNDS, CLAIM_BOUNDS};
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++)
        if (!put32(&d->column[bounds[i]], 0))
            goto done;
    for (Py_ssize_t i = 0; i < count; i++) {
        Reader key, value;
        if (!row(&keys, from[0] + i, &key) || !row(&values, from[1] + i, &value))
            continue;
        size_t before[COLUMNS];
        for (int c = 0; c < COLUMNS; c++)
            before[c] = d->column[c].size;
        int outcome = read_record(d, i, key, value);
        if (outcome == FAILED)
            goto done;
        if (outcome == LEFT) { /* nothing of it counts */
            for (int c = 0; c < COLUMNS; c++)
                d->column[c].size = before[c];
            d->topics = NULL;
        }
    }
    columns = PyList_New(0);
    dictionaries = PyList_New(0);
    if (columns == NULL || dictionaries == NULL)
        goto done;
    for (int c = 0; c < COLUMNS + DICTIONARIES; c++) {
        PyObject *item = c < COLUMNS ? buffer_object(&d->column[c]) : strings_object(&d->strings[c - COLUMNS]);
        int added = item == NULL ? -1 : PyList_Append(c < COLUMNS ? columns : dictionaries, item);
        Py_XDECREF(item);
        if (added < 0)
            goto done;
    }
    result = Py_BuildValue("(OO)", columns, dictionaries);
done:
    Py_XDECREF(columns);
    Py_XDECREF(dictionaries);
    for (int c = 0; c < COLUMNS; c++)
        free(d->column[c].bytes);
    for (int s = 0; s < DICTIONARIES; s++)
        free_strings(&d->strings[s]);
    free(d->owner_sizes.bytes);
    free(d->owners.bytes);
    free(d);
    release(&keys);
    release(&values);
    return result;
}

/* Owners by topic and partition, twice: who had it, and who has it. */
typedef struct {
    struct Place {
        int32_t topic; /* -1 for an empty place of the table */
        int32_t partition;
        int32_t owner[2]; /* -1 for nobody */
    } *place;
    int64_t room, count;
} Table;

static uint64_t place_hash(int64_t topic, int32_t partition)
{
    uint64_t hash = ((uint64_t)topic << 32 | (uint32_t)partition) * 0x9E3779B97F4A7C15u;
    return hash ^ hash >> 32;
}

static struct Place *find_place(const Table *t, int64_t topic, int32_t partition)
{
    uint64_t at = place_hash(topic, partition) & (uint64_t)(t->room - 1);
    while (t->place[at].topic >= 0 && (t->place[at].topic != topic || t->place[at].partition != partition))
        at = (at + 1) & (uint64_t)(t->room - 1);
    return &t->place[at];
}

static bool clear(Table *t, int64_t wanted)
{
    if (wanted > t->room) {
        int64_t room = 64;
        while (room < wanted)
            room *= 2;
        struct Place *place = realloc(t->place, (size_t)room * sizeof *place);
        if (place == NULL) {
            PyErr_NoMemory();
            return false;
        }
        t->place = place;
        t->room = room;
    }
    for (int64_t i = 0; i < t->room; i++)
        t->place[i].topic = -1;
    t->count = 0;
    return true;
}

static bool is_later(const Names *names, int64_t one, int64_t other)
{
    const struct Seen *a = &names->seen[one], *b = &names->seen[other];
    int order = memcmp(a->bytes, b->bytes, (size_t)(a->size < b->size ? a->size : b->size));
    return order != 0 ? order > 0 : a->size > b->size;
}

/* Note the owners that the bytes tell: TAKEN, LEFT if they are none, or FAILED. */
static int read_owners(Table *t, Strings *topics, Strings *members, Reader r, int side)
{
    int32_t member_count;
    NEED(read_int32(&r, &member_count) && member_count >= 0 && member_count <= (r.end - r.at) / 4);
    r.at += 4 * (Py_ssize_t)member_count; /* sizes, which only Python has use for */
    while (r.at < r.end) {
        const unsigned char *name;
        int16_t size;
        int32_t topic_count;
        NEED(read_string(&r, &name, &size) && size >= 0 && read_int32(&r, &topic_count) && topic_count >= 0);
        int64_t member = number_in(members, name, size);
        NEED(member != NOT_UTF8);
        PUT(member >= 0);
        for (int32_t i = 0; i < topic_count; i++) {
            int32_t count, partition = 0;
            NEED(read_string(&r, &name, &size) && size >= 0 && read_int32(&r, &count) && count >= 0 &&
                 count <= (r.end - r.at) / 4);
            int64_t topic = number_in(topics, name, size);
            NEED(topic != NOT_UTF8);
            PUT(topic >= 0);
            for (int32_t j = 0; j < count; j++) {
                read_int32(&r, &partition);
                struct Place *place = find_place(t, topic, partition);
                if (place->topic < 0) {
                    *place = (struct Place){(int32_t)topic, partition, {-1, -1}};
                    t->count++;
                }
                int32_t owner = place->owner[side];
                if (owner < 0 || is_later(&members->names, member, owner))
                    place->owner[side] = (int32_t)member;
            }
        }
    }
    return TAKEN;
}

static const Names *sorted_names; /* of the topics; under the interpreter's lock */

static int compare_places(const void *one, const void *other)
{
    const struct Place *a = one, *b = other;
    if (a->topic != b->topic)
        return is_later(sorted_names, a->topic, b->topic) ? 1 : -1;
    return (a->partition > b->partition) - (a->partition < b->partition);
}

enum { PAIR, PARTITION, TOPIC, SOURCE, TARGET, MOVE_COLUMNS };

static int put_moves(Table *t, const Strings *topics, int64_t pair, Buffer *column)
{
    int64_t moved = 0;
    for (int64_t i = 0; i < t->room; i++)
        if (t->place[i].topic >= 0 && t->place[i].owner[0] != t->place[i].owner[1])
            t->place[moved++] = t->place[i];
    sorted_names = &topics->names;
    qsort(t->place, (size_t)moved, sizeof *t->place, compare_places);
    for (int64_t i = 0; i < moved; i++) {
        const struct Place *p = &t->place[i];
        PUT(put32(&column[PAIR], pair) && put32(&column[PARTITION], p->partition) &&
            put32(&column[TOPIC], p->topic) && put32(&column[SOURCE], p->owner[0]) &&
            put32(&column[TARGET], p->owner[1]));
    }
    return TAKEN;
}

PyDoc_STRVAR(moves_doc, "moves(before, after)\n--\n\nSee kafka_assignors.history._tables.moves.");

static PyObject *moves(PyObject *module, PyObject *arguments)
{
    (void)module;
    PyObject *sides[2], *result = NULL;
    if (!PyArg_ParseTuple(arguments, "O!O!", &PyList_Type, &sides[0], &PyList_Type, &sides[1]))
        return NULL;
    Py_ssize_t count = PyList_Size(sides[0]);
    if (PyList_Size(sides[1]) != count) {
        PyErr_SetString(PyExc_ValueError, "before and after must be of one length");
        return NULL;
    }
    Table table = {0};
    Strings topics = {0}, members = {0};
    Buffer column[MOVE_COLUMNS] = {{0}};
    for (Py_ssize_t pair = 0; pair < count; pair++) {
        Reader reader[2];
        Py_ssize_t total = 0;
        for (int side = 0; side < 2; side++) {
            char *bytes;
            Py_ssize_t size;
            if (PyBytes_AsStringAndSize(PyList_GetItem(sides[side], pair), &bytes, &size) < 0)
                goto done;
            reader[side] = (Reader){(unsigned char *)bytes, (unsigned char *)bytes + size};
            total += size;
        }
        if (reader[0].end - reader[0].at == reader[1].end - reader[1].at &&
            memcmp(reader[0].at, reader[1].at, (size_t)(reader[0].end - reader[0].at)) == 0)
            continue;
        /* A partition takes four bytes, and names some more: a third of the table or more stays empty. */
        if (!clear(&table, total / 3 + 1))
            goto done;
        for (int side = 0; side < 2; side++) {
            int outcome = read_owners(&table, &topics, &members, reader[side], side);
            if (outcome == LEFT)
                PyErr_SetString(PyExc_ValueError, "the bytes are no owners");
            if (outcome != TAKEN)
                goto done;
        }
        if (put_moves(&table, &topics, pair, column) != TAKEN)
            goto done;
    }
    PyObject *topic_names = strings_object(&topics), *member_names = strings_object(&members);
    if (topic_names != NULL && member_names != NULL)
        result = Py_BuildValue("(NNNNNOO)", buffer_object(&column[PAIR]), buffer_object(&column[PARTITION]),
                               buffer_object(&column[TOPIC]), buffer_object(&column[SOURCE]),
                               buffer_object(&column[TARGET]), topic_names, member_names);
    Py_XDECREF(topic_names);
    Py_XDECREF(member_names);
done:
    for (int c = 0; c < MOVE_COLUMNS; c++)
        free(column[c].bytes);
    free_strings(&topics);
    free_strings(&members);
    free(table.place);
    return result;
}

static PyMethodDef methods[] = {{"decode", decode, METH_VARARGS, decode_doc},
                                {"moves", moves, METH_VARARGS, moves_doc},
                                {NULL, NULL, 0, NULL}};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT,
                                    .m_name = "_decode",
                                    .m_doc = "Records of classic groups to the columns of tables, compiled.",
                                    .m_size = 0,
                                    .m_methods = methods};

PyMODINIT_FUNC PyInit__decode(void) { return PyModuleDef_Init(&module); }
