/* Records of consumers' classic groups, as brokers up to 4.3 write them, to columns.
 *
 * Records in which anything is odd are left alone, and Python reads them. */

#include "_codec.h"

/* The columns, by the names that Python takes them by. Numbers are int32, but for what is said otherwise. */
#define EACH_COLUMN(COLUMN)                                                                                            \
    /* of records: the first is its number in the batch */                                                             \
    COLUMN(RECORD, "record")                                                                                           \
    COLUMN(GENERATION, "generation")                                                                                   \
    COLUMN(VERSION, "version")                                                                                         \
    COLUMN(GROUP, "group")                                                                                             \
    COLUMN(PROTOCOL, "protocol")                                                                                       \
    COLUMN(LEADER, "leader")                                                                                           \
    COLUMN(MEMBER_COUNT, "members")                                                                                    \
    COLUMN(STATE_TIME, "state_time") /* int64 */                                                                       \
    /* of members: the first is which of the records above */                                                          \
    COLUMN(MEMBER_RECORD, "member_record")                                                                             \
    COLUMN(MEMBER, "member_id")                                                                                        \
    COLUMN(INSTANCE, "instance_id")                                                                                    \
    COLUMN(CLIENT, "client_id")                                                                                        \
    COLUMN(HOST, "host")                                                                                               \
    COLUMN(RACK, "rack")                                                                                               \
    COLUMN(SESSION, "session_timeout_ms")                                                                              \
    COLUMN(REBALANCE, "rebalance_timeout_ms")                                                                          \
    COLUMN(SUBSCRIPTION_VERSION, "subscription_version")                                                               \
    COLUMN(TOPICS_BOUNDS, "topics_bounds")                                                                             \
    COLUMN(TOPICS, "topics")                                                                                           \
    COLUMN(USER_DATA_BOUNDS, "user_data_bounds")                                                                       \
    COLUMN(USER_DATA, "user_data")           /* bytes */                                                               \
    COLUMN(USER_DATA_SIZE, "user_data_size") /* -1 for null */                                                         \
    /* of topics that are assigned: which of the members above; see LIST_COLUMNS */                                    \
    COLUMN(ASSIGNED, "assigned_member")                                                                                \
    COLUMN(ASSIGNED_TOPIC, "assigned_topic")                                                                           \
    COLUMN(ASSIGNED_BOUNDS, "assigned_bounds")                                                                         \
    COLUMN(ASSIGNED_IDS, "assigned_ids")                                                                               \
    /* of topics that are claimed; -1 is no topic */                                                                   \
    COLUMN(CLAIMED, "claimed_member")                                                                                  \
    COLUMN(CLAIMED_TOPIC, "claimed_topic")                                                                             \
    COLUMN(CLAIMED_BOUNDS, "claimed_bounds")                                                                           \
    COLUMN(CLAIMED_IDS, "claimed_ids")                                                                                 \
    COLUMN(CLAIM_SOURCE, "claim_source") /* 0 owned, 1 sticky */                                                       \
    COLUMN(CLAIM_GENERATION, "claim_generation")

#define NUMBER(number, name) number,
#define NAME(number, name) name,

enum { EACH_COLUMN(NUMBER) COLUMNS };
static const char *const column_names[COLUMNS] = {EACH_COLUMN(NAME)};

enum { GROUPS, PROTOCOLS, MEMBERS, INSTANCES, CLIENTS, HOSTS, RACKS, TOPIC_NAMES, DICTIONARIES };
static const char *const dictionary_names[DICTIONARIES] = {"groups",  "protocols", "members", "instances",
                                                           "clients", "hosts",     "racks",   "topics"};

typedef struct {
    Column column[COLUMNS];
    Names names[DICTIONARIES];
    /* The topics of the subscription before, and where they are in the column, in bytes. */
    Reader topics;
    size_t topics_from, topics_to;
} Decoder;

/* What was read of a claim gets its source and generation; a generation without topics gets a row of its own. */
static int end_claim(Decoder *d, int64_t member, int source, int32_t generation)
{
    Column *source_column = &d->column[CLAIM_SOURCE];
    if (d->column[CLAIMED].size == source_column->size && generation != -1)
        PUT(put32(&d->column[CLAIMED], member) && put32(&d->column[CLAIMED_TOPIC], -1) &&
            put32(&d->column[CLAIMED_BOUNDS], count32(&d->column[CLAIMED_IDS])));
    while (source_column->size < d->column[CLAIMED].size)
        PUT(put32(source_column, source) && put32(&d->column[CLAIM_GENERATION], generation));
    return TAKEN;
}

static int put_topics(Decoder *d, const Subscription *s)
{
    Column *column = &d->column[TOPICS];
    if (s->topics_are_known) {
        size_t size = d->topics_to - d->topics_from;
        PUT(room_for(column, size)); /* which can move what is copied */
        PUT(put(column, column->bytes + d->topics_from, size));
    } else {
        Reader topics = {s->topics.at + 4, s->topics.end}, name;
        d->topics = (Reader){NULL, NULL};
        d->topics_from = column->size;
        while (read_string(&topics, &name))
            CHECK(put_text(column, &d->names[TOPIC_NAMES], name));
        d->topics = s->topics;
        d->topics_to = column->size;
    }
    PUT(put32(&d->column[TOPICS_BOUNDS], count32(column)));
    return TAKEN;
}

/* A number, or -1 where there is none. */
static int put_text_or_none(Decoder *d, int column, int dictionary, Reader text, bool is_none)
{
    if (is_none)
        return put32(&d->column[column], -1) ? TAKEN : FAILED;
    return put_text(&d->column[column], &d->names[dictionary], text);
}

static int put_subscription(Decoder *d, Reader bytes, int64_t member, bool sticky, bool cooperative)
{
    Subscription s;
    bool has_twice;
    Names *topics = &d->names[TOPIC_NAMES];
    NEED(read_subscription(bytes, d->topics, &s));
    PUT(put32(&d->column[SUBSCRIPTION_VERSION], s.version));
    CHECK(put_topics(d, &s));
    PUT(put(&d->column[USER_DATA], s.user_data.at, (size_t)left(&s.user_data)) &&
        put32(&d->column[USER_DATA_BOUNDS], (int64_t)d->column[USER_DATA].size) &&
        put32(&d->column[USER_DATA_SIZE], s.user_data_size));
    CHECK(put_text_or_none(d, RACK, RACKS, s.rack, left(&s.rack) == 0));
    if (left(&s.owned) > 0) {
        CHECK(read_partition_list(&s.owned, member, topics, &d->column[CLAIMED], &has_twice));
        NEED(!has_twice);
    }
    CHECK(end_claim(d, member, 0, s.generation));
    if (left(&s.user_data) == 0 || !(sticky || cooperative))
        return TAKEN;
    int32_t generation;
    CHECK(read_user_data(s.user_data, cooperative, member, topics, &d->column[CLAIMED], &generation));
    return end_claim(d, member, 1, generation);
}

static int put_assignment(Decoder *d, Reader bytes, int64_t member)
{
    Reader listed;
    bool has_twice;
    CHECK(read_assignment(&bytes, member, &d->names[TOPIC_NAMES], &d->column[ASSIGNED], &listed, &has_twice));
    NEED(!has_twice);
    return TAKEN;
}

static bool read_blob(Reader *r, Reader *blob)
{
    int32_t size;
    return read_int32(r, &size) && size >= 0 && take(r, size, blob);
}

static int read_member(Decoder *d, Reader *r, int16_t version, int64_t record, bool sticky, bool cooperative)
{
    Reader id, instance = {NULL, NULL}, client, host, subscription, assignment;
    bool is_null;
    int32_t rebalance = -1, session;
    int64_t member = count32(&d->column[MEMBER]);
    NEED(read_string(r, &id));
    if (version >= 3)
        NEED(read_string_or_null(r, &instance, &is_null));
    bool is_static = left(&instance) > 0; /* an empty one is as good as none */
    NEED(read_string(r, &client) && read_string(r, &host));
    if (version >= 1)
        NEED(read_int32(r, &rebalance));
    NEED(read_int32(r, &session) && read_blob(r, &subscription) && read_blob(r, &assignment));
    PUT(put32(&d->column[MEMBER_RECORD], record));
    CHECK(put_text(&d->column[MEMBER], &d->names[MEMBERS], id));
    CHECK(put_text_or_none(d, INSTANCE, INSTANCES, instance, !is_static));
    CHECK(put_text(&d->column[CLIENT], &d->names[CLIENTS], client));
    CHECK(put_text(&d->column[HOST], &d->names[HOSTS], host));
    PUT(put32(&d->column[SESSION], session) && put32(&d->column[REBALANCE], rebalance));
    CHECK(put_subscription(d, subscription, member, sticky, cooperative));
    return put_assignment(d, assignment, member);
}

static bool is(Reader string, const char *text)
{
    return left(&string) == (Py_ssize_t)strlen(text) && memcmp(string.at, text, strlen(text)) == 0;
}

static int read_record(Decoder *d, int64_t number, Reader key, Reader value)
{
    Reader group, type, protocol, leader;
    bool no_protocol, no_leader;
    int16_t key_version, version;
    int32_t generation, members;
    int64_t state_time = -1;
    NEED(read_int16(&key, &key_version) && key_version == 2);
    NEED(read_string(&key, &group) && left(&key) == 0);
    NEED(read_int16(&value, &version) && version >= 0 && version <= 3);
    NEED(read_string(&value, &type) && is(type, "consumer"));
    NEED(read_int32(&value, &generation));
    NEED(read_string_or_null(&value, &protocol, &no_protocol) && read_string_or_null(&value, &leader, &no_leader));
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
    CHECK(put_text(&d->column[GROUP], &d->names[GROUPS], group));
    CHECK(put_text_or_none(d, PROTOCOL, PROTOCOLS, protocol, no_protocol));
    CHECK(put_text_or_none(d, LEADER, MEMBERS, leader, no_leader));
    bool sticky = is(protocol, "sticky"), cooperative = is(protocol, "cooperative-sticky");
    for (int32_t i = 0; i < members; i++)
        CHECK(read_member(d, &value, version, record, sticky, cooperative));
    NEED(left(&value) == 0);
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

/* Columns by name, and dictionaries by name of what is a string's number there; -1 is null. */
PyObject *decode(PyObject *module, PyObject *arguments)
{
    (void)module;
    Py_ssize_t count, from[2];
    PyObject *buffers[6], *columns = NULL, *texts = NULL, *result = NULL;
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
    static const int bounds[] = {TOPICS_BOUNDS, USER_DATA_BOUNDS, ASSIGNED_BOUNDS, CLAIMED_BOUNDS};
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++)
        if (!put32(&d->column[bounds[i]], 0))
            goto done;
    for (Py_ssize_t i = 0; i < count; i++) {
        Reader key, value;
        if (!row(&keys, from[0] + i, &key) || !row(&values, from[1] + i, &value))
            continue;
        size_t before[COLUMNS];
        note_sizes(d->column, COLUMNS, before);
        int outcome = read_record(d, i, key, value);
        if (outcome == FAILED)
            goto done;
        if (outcome == LEFT) { /* nothing of it counts */
            cut_columns(d->column, COLUMNS, before);
            d->topics = (Reader){NULL, NULL};
        }
    }
    columns = PyDict_New();
    texts = PyDict_New();
    bool added = columns != NULL && texts != NULL && add_columns(columns, column_names, d->column, COLUMNS);
    for (int i = 0; added && i < DICTIONARIES; i++)
        added = add_arrow_texts(texts, dictionary_names[i], &d->names[i]);
    if (added)
        result = Py_BuildValue("(OO)", columns, texts);
done:
    Py_XDECREF(columns);
    Py_XDECREF(texts);
    free_columns(d->column, COLUMNS);
    for (int i = 0; i < DICTIONARIES; i++)
        forget(&d->names[i]);
    free(d);
    release(&keys);
    release(&values);
    return result;
}
