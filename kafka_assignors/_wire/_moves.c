/* What moved between two records of a group: the partitions whose owners differ. */

#include "_codec.h"

/* The last owners by topic and partition, twice: who had it, and who has it. Of those that had it each but the
   last has a place of its own, without owners. */
typedef struct {
    struct Place {
        int32_t topic; /* -1 for an empty place of the table */
        int32_t partition;
        int32_t other; /* who had it, too; -1 in the place of the owners */
        int32_t owner[2]; /* -1 for nobody */
    } *place;
    int64_t room;
} Table;

static uint64_t place_hash(int64_t topic, int32_t partition, int32_t other)
{
    uint64_t hash = ((uint64_t)topic << 32 | (uint32_t)partition) * 0x9E3779B97F4A7C15u;
    hash += (uint64_t)(other + 1) * 0xC2B2AE3D27D4EB4Fu;
    return hash ^ hash >> 32;
}

static struct Place *find_place(const Table *t, int64_t topic, int32_t partition, int32_t other)
{
    uint64_t at = place_hash(topic, partition, other) & (uint64_t)(t->room - 1);
    while (t->place[at].topic >= 0 && (t->place[at].topic != topic || t->place[at].partition != partition ||
                                       t->place[at].other != other))
        at = (at + 1) & (uint64_t)(t->room - 1);
    return &t->place[at];
}

static struct Place *take_place(Table *t, int64_t topic, int32_t partition, int32_t other)
{
    struct Place *place = find_place(t, topic, partition, other);
    if (place->topic < 0)
        *place = (struct Place){(int32_t)topic, partition, other, {-1, -1}};
    return place;
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
    return true;
}

static bool is_later(const Names *names, int64_t one, int64_t other)
{
    const struct Seen *a = &names->seen[one], *b = &names->seen[other];
    int order = memcmp(a->bytes, b->bytes, (size_t)(a->size < b->size ? a->size : b->size));
    return order != 0 ? order > 0 : a->size > b->size;
}

static int number_of_owner(Names *names, Reader text, int64_t *number)
{
    *number = number_of(names, text, true);
    PUT(*number >= 0);
    return is_text(names, *number) ? TAKEN : LEFT;
}

static void note_former(Table *t, const Names *members, int64_t topic, int32_t partition, int32_t member)
{
    int32_t *last = &take_place(t, topic, partition, -1)->owner[0], other = member;
    if (*last < 0 || is_later(members, member, *last)) {
        other = *last;
        *last = member;
    }
    if (other >= 0 && other != *last)
        take_place(t, topic, partition, other);
}

static void note_present(Table *t, const Names *members, int64_t topic, int32_t partition, int32_t member)
{
    struct Place *place = take_place(t, topic, partition, -1);
    int32_t had = place->owner[0], *has = &place->owner[1];
    if (had >= 0 && (member == had || find_place(t, topic, partition, member)->topic >= 0))
        *has = had; /* what one of its owners keeps has not moved */
    else if (*has < 0 || (*has != had && is_later(members, member, *has)))
        *has = member;
}

/* Note the owners that the bytes tell: TAKEN, LEFT if they are none, or FAILED. */
static int read_owners(Table *t, Names *topics, Names *members, Reader r, int side)
{
    int32_t member_count, topic_count, ids;
    int64_t member, topic;
    Reader name;
    NEED(read_int32(&r, &member_count) && member_count >= 0 && member_count <= left(&r) / 4);
    r.at += 4 * (Py_ssize_t)member_count; /* sizes, which only Python has use for */
    while (left(&r) > 0) {
        NEED(read_string(&r, &name));
        CHECK(number_of_owner(members, name, &member));
        NEED(read_topic_count(&r, 0, &topic_count));
        for (int32_t i = 0; i < topic_count; i++) {
            NEED(read_topic(&r, 0, &name, &ids));
            CHECK(number_of_owner(topics, name, &topic));
            for (; ids > 0; ids--, r.at += 4) {
                if (side == 0)
                    note_former(t, members, topic, big32(r.at), (int32_t)member);
                else
                    note_present(t, members, topic, big32(r.at), (int32_t)member);
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

enum { PAIR, PARTITION, MOVED_TOPIC, SOURCE, TARGET, COLUMNS };
static const char *const column_names[COLUMNS] = {"pair", "partition", "topic", "source", "target"};

static int put_moves(Table *t, const Names *topics, int64_t pair, Column *column)
{
    int64_t moved = 0;
    for (int64_t i = 0; i < t->room; i++)
        if (t->place[i].topic >= 0 && t->place[i].owner[0] != t->place[i].owner[1])
            t->place[moved++] = t->place[i];
    sorted_names = topics;
    qsort(t->place, (size_t)moved, sizeof *t->place, compare_places);
    for (int64_t i = 0; i < moved; i++) {
        const struct Place *p = &t->place[i];
        PUT(put32(&column[PAIR], pair) && put32(&column[PARTITION], p->partition) &&
            put32(&column[MOVED_TOPIC], p->topic) && put32(&column[SOURCE], p->owner[0]) &&
            put32(&column[TARGET], p->owner[1]));
    }
    return TAKEN;
}

/* Columns by name, and what the numbers of topics and members stand for. */
PyObject *moves(PyObject *module, PyObject *arguments)
{
    (void)module;
    PyObject *sides[2], *result = NULL;
    if (!PyArg_ParseTuple(arguments, "OO", &sides[0], &sides[1]))
        return NULL;
    Py_ssize_t count = count_blobs(sides[0]), others = count_blobs(sides[1]);
    if (count < 0 || others < 0)
        return NULL;
    if (others != count) {
        PyErr_SetString(PyExc_ValueError, "before and after must be of one length");
        return NULL;
    }
    Table table = {0};
    Names topics = {0}, members = {0};
    Column column[COLUMNS] = {{0}};
    for (Py_ssize_t pair = 0; pair < count; pair++) {
        Reader reader[2];
        if (!get_blob(sides[0], pair, &reader[0]) || !get_blob(sides[1], pair, &reader[1]))
            goto done;
        if (is_same(&reader[0], &reader[1]))
            continue;
        /* A partition takes four bytes, and names some more: a third of the table or more stays empty. */
        if (!clear(&table, (left(&reader[0]) + left(&reader[1])) / 3 + 1))
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
    result = PyDict_New();
    if (result != NULL &&
        !(add_columns(result, column_names, column, COLUMNS) && add_arrow_texts(result, "topics", &topics) &&
          add_arrow_texts(result, "members", &members)))
        Py_CLEAR(result);
done:
    free_columns(column, COLUMNS);
    forget(&topics);
    forget(&members);
    free(table.place);
    return result;
}
