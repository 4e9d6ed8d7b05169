/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The list of a subnet manager: which virtual ports it activates, and their partition keys. It reads rules of OpenSM's
 * partitions.conf (doc/partition-config.txt in its sources):
 *
 *     NAME=P_KEY [, FLAG...] : GUID[=full|limited|both] [, GUID...] ;
 */
#include "connectx.h"

#define FULL_MEMBER 0x8000
#define LOWEST_DEFAULT 0x7fff /* the default partition, as a limited member */

typedef struct Member {
    uint64_t guid;
    uint16_t key;
} Member;

GArray *subnet_list_new(void)
{
    return g_array_new(false, false, sizeof(Member));
}

static uint16_t number_of(const char *text, bool *valid)
{
    char *end;
    uint64_t value = g_ascii_strtoull(text, &end, 0);

    *valid = end != text && !*end && value <= 0xffff && (value & LOWEST_DEFAULT);
    return value & LOWEST_DEFAULT;
}

static void add(Port *port, uint64_t guid, uint16_t key, const char *membership)
{
    Member member = { guid, key | FULL_MEMBER };

    if (strcmp(membership, "limited")) {
        g_array_append_val(port->members, member);
    }
    if (strcmp(membership, "full")) {
        member.key = key;
        g_array_append_val(port->members, member);
    }
}

static bool is_membership(const char *text)
{
    return !strcmp(text, "full") || !strcmp(text, "limited") || !strcmp(text, "both");
}

/* Returns whether the ports behind the colon could be read. */
static bool add_ports(Port *port, char *text, uint16_t key, const char *usual)
{
    g_auto(GStrv) ports = g_strsplit(text, ",", -1);

    for (char **each = ports; *each; each++) {
        char *membership = strchr(*each, '='), *end;
        uint64_t guid;

        if (membership) {
            *membership++ = 0;
        }
        guid = g_ascii_strtoull(*each, &end, 0);
        if (!guid || *end || (membership && !is_membership(membership))) {
            return false;
        }
        add(port, guid, key, membership ? membership : usual);
    }
    return true;
}

static bool read_rule(Port *port, char *rule)
{
    char *ports = strchr(rule, ':'), *end = strchr(rule, ';'), *key = strchr(rule, '=');
    const char *usual = "limited";
    bool valid;
    uint16_t number;

    if (!ports || !end || end[1] || !key || key > ports) {
        return false;
    }
    *ports++ = *end = 0;
    for (char *flag = strchr(rule, ','), *next; flag; flag = next) {
        *flag++ = 0;
        next = strchr(flag, ',');
        usual = g_str_has_prefix(flag, "defmember=full") ? "full" : g_str_has_prefix(flag, "defmember=both") ? "both" : usual;
    }
    number = number_of(key + 1, &valid);
    return valid && add_ports(port, ports, number, usual);
}

/*
 * An order: a rule is added; `none` begins a list without any; `all` ends the list, so that every port is active and a full member
 * of the default partition. Comments and empty lines of the file are no rules.
 */
bool subnet_list_order(Port *port, char **words)
{
    g_autofree char *rule = g_strjoinv("", words);

    if (!strcmp(rule, "none") || !strcmp(rule, "all")) {
        g_array_set_size(port->members, 0);
        port->listed = !strcmp(rule, "none");
    } else if (*rule && *rule != '#') {
        guint kept = port->listed ? port->members->len : 0;

        g_array_set_size(port->members, kept);
        if (!read_rule(port, rule)) {
            g_array_set_size(port->members, kept);  /* a refused rule changes nothing */
            return false;
        }
        port->listed = true;
    }
    port_link_changed(port);
    return true;
}

bool subnet_list_has(const Port *port, uint16_t number)
{
    for (guint i = 0; port->listed && i < port->members->len; i++) {
        if (g_array_index(port->members, Member, i).guid == port->vport[number].port_guid) {
            return true;
        }
    }
    return !port->listed || number == 0;
}

/*
 * The entry of a port's table of partition keys; 0: none. With a list, a port is a limited member of the default partition unless
 * a rule says more, and the subnet manager's own port, which is that of the PF, a full one.
 */
uint16_t subnet_list_key(const Port *port, uint16_t number, unsigned index)
{
    uint16_t usual = !port->listed || number == 0 ? DEFAULT_PARTITION : LOWEST_DEFAULT;
    unsigned found = 0;

    for (guint i = 0; port->listed && i < port->members->len; i++) {
        const Member *member = &g_array_index(port->members, Member, i);

        if (member->guid != port->vport[number].port_guid) {
            continue;
        }
        if ((member->key & LOWEST_DEFAULT) == LOWEST_DEFAULT) {
            usual |= member->key;
        } else if (++found == index) {
            return member->key;
        }
    }
    return index == 0 ? usual : 0;
}

/* The port's own key in the partition of this key; 0: it is no member. */
uint16_t subnet_list_own(const Port *port, uint16_t number, uint16_t key)
{
    uint16_t found = 0, own;

    for (unsigned index = 0; index < PARTITION_KEYS && (own = subnet_list_key(port, number, index)); index++) {
        found |= (own ^ key) & LOWEST_DEFAULT ? 0 : own;
    }
    return found;
}

/* Members of a partition reach each other unless both are limited members. */
bool subnet_list_accepts(const Port *port, uint16_t number, uint16_t key)
{
    uint16_t own = subnet_list_own(port, number, key);

    return own && (own | key) & FULL_MEMBER;
}
