/* What members say: subscriptions of the consumer protocol, and user data of sticky members. */

#include "_codec.h"

enum { OWNED_SINCE = 1, GENERATION_SINCE = 2, RACK_SINCE = 3 };

/* Find the fields of a subscription. Most members' topics are the same bytes as another's: they are gone through
 * only where they are not those known. */
bool read_subscription(Reader r, Reader known, Subscription *s)
{
    int32_t count;
    *s = (Subscription){.generation = -1};
    if (!read_int16(&r, &s->version) || s->version < 0)
        return false;
    s->topics.at = r.at;
    s->topics_are_known = left(&known) > 0 && left(&r) >= left(&known) &&
                          memcmp(r.at, known.at, (size_t)left(&known)) == 0;
    if (s->topics_are_known) {
        r.at += left(&known);
    } else {
        Reader name;
        if (!read_int32(&r, &count) || count < 0 || count > left(&r) / 2)
            return false;
        for (int32_t i = 0; i < count; i++)
            if (!read_string(&r, &name))
                return false;
    }
    s->topics.end = r.at;
    if (!read_int32(&r, &s->user_data_size) || s->user_data_size < -1 || !take(&r, s->user_data_size, &s->user_data))
        return false;
    s->owned = s->rack = (Reader){r.at, r.at};
    if (s->version >= OWNED_SINCE && !pass_partition_list(&r))
        return false;
    s->owned.end = r.at;
    if (s->version >= GENERATION_SINCE && !read_int32(&r, &s->generation))
        return false;
    bool is_null;
    return s->version < RACK_SINCE || read_string_or_null(&r, &s->rack, &is_null);
}

/* A sticky member's user data in one of Java's layouts: a partition list, and behind it nothing, a generation, or a
 * generation and a weight; of a cooperative member also a generation without a list. */
int read_user_data(Reader r, bool cooperative, int64_t whose, Names *topics, Column *list, int32_t *generation)
{
    const Reader all = r;
    bool has_twice;
    if (cooperative && (left(&r) == 4 || left(&r) == 8)) {
        read_int32(&r, generation);
        if (left(&r) == 0 || *generation != 0)
            return TAKEN;
        r = all; /* there is no generation 0: a list without topics, and a generation */
    }
    *generation = -1;
    size_t before[LIST_COLUMNS];
    note_sizes(list, LIST_COLUMNS, before);
    int outcome = read_partition_list(&r, whose, topics, list, &has_twice);
    PUT(outcome != FAILED);
    if (outcome == LEFT || (left(&r) != 0 && left(&r) != 4 && left(&r) != 8)) {
        /* kafka-python puts a version before it. */
        cut_columns(list, LIST_COLUMNS, before);
        int16_t version;
        r = all;
        NEED(read_int16(&r, &version) && version == 1);
        CHECK(read_partition_list(&r, whose, topics, list, &has_twice));
        NEED(left(&r) == 4);
    }
    NEED(!has_twice);
    read_int32(&r, generation);
    return TAKEN;
}

static bool append(PyObject *list, Py_ssize_t i, Reader part)
{
    PyObject *bytes = PyBytes_FromStringAndSize((const char *)part.at, left(&part));
    return bytes != NULL && PyList_SetItem(list, i, bytes) == 0;
}

PyObject *read_subscriptions(PyObject *module, PyObject *blobs)
{
    (void)module;
    /* What is owned; what the different lists of topics have, and where each of these ends; and of each subscription
     * its list (-1 if it cannot be read), its version, its generation, and whether what it owns cannot be read. */
    enum { TOPICS_BOUNDS = LIST_COLUMNS, ENTRIES, TOPICS_OF, VERSION, GENERATION, STRANGE, COLUMNS };
    static const char *const column_names[COLUMNS] = {"claimant", "topic",     "bounds",  "ids",        "topics_bounds",
                                                      "entries",  "topics_of", "version", "generation", "strange"};
    Py_ssize_t count = count_blobs(blobs);
    if (count < 0)
        return NULL;
    Names sections = {0}, names = {0}, owned_names = {0};
    Column column[COLUMNS] = {{0}};
    PyObject *result = NULL, *user_data = PyList_New(count), *racks = PyList_New(count);
    if (user_data == NULL || racks == NULL || !put32(&column[BOUNDS], 0) ||
        !put32(&column[TOPICS_BOUNDS], 0))
        goto done;
    Reader known = {NULL, NULL};
    for (Py_ssize_t i = 0; i < count; i++) {
        Reader r;
        Subscription s;
        if (!get_blob(blobs, i, &r))
            goto done;
        bool is_strange = false;
        int64_t section = -1;
        if (!read_subscription(r, known, &s)) {
            s = (Subscription){.user_data = {r.at, r.at}, .rack = {r.at, r.at}};
        } else {
            bool has_twice;
            int64_t seen = sections.count;
            known = s.topics;
            section = s.topics_are_known ? sections.last : number_of(&sections, s.topics, false);
            if (section < 0)
                goto done;
            if (section == seen) {
                Reader topics = {s.topics.at + 4, s.topics.end}, name;
                while (read_string(&topics, &name)) {
                    int64_t number = number_of(&names, name, true);
                    if (number < 0 || !put32(&column[ENTRIES], number))
                        goto done;
                }
                if (!put32(&column[TOPICS_BOUNDS], count32(&column[ENTRIES])))
                    goto done;
            }
            if (left(&s.owned) > 0) {
                int outcome = read_partition_list(&s.owned, i, &owned_names, column, &has_twice);
                if (outcome == FAILED)
                    goto done;
                is_strange = outcome == LEFT;
            }
        }
        if (!put32(&column[TOPICS_OF], section) || !put32(&column[VERSION], s.version) ||
            !put32(&column[GENERATION], s.generation) || !put32(&column[STRANGE], is_strange) ||
            !append(user_data, i, s.user_data) || !append(racks, i, s.rack))
            goto done;
    }
    result = PyDict_New();
    if (result != NULL &&
        !(add_texts(result, "names", &names) && add_texts(result, "owned_names", &owned_names) &&
          add_columns(result, column_names, column, COLUMNS) && add(result, "user_data", Py_NewRef(user_data)) &&
          add(result, "racks", Py_NewRef(racks))))
        Py_CLEAR(result);
done:
    Py_XDECREF(user_data);
    Py_XDECREF(racks);
    forget(&sections);
    forget(&names);
    forget(&owned_names);
    free_columns(column, COLUMNS);
    return result;
}
