/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The subnet administrator: the part of a subnet manager that ports ask by management datagrams. IPoIB joins its multicast groups here
 * and, like rdma_cm, asks for the path to a GID (sa_query.c and multicast.c in drivers/infiniband/core). The records are those of
 * include/rdma/ib_sa.h in the kernel. Answers of several packets (GetTable), which no part of the kernel asks for, are not known.
 */
#include "connectx.h"

#define SERVICES_KEY 0x80010000u /* the Q_Key of each general services queue pair */
#define SEND_ONLY 0x64
#define CLASS 3 /* IB_MGMT_CLASS_SUBN_ADM */
#define RESPONSE 0x80
#define DATA_AT (PACKET_HEADER + 8)
#define SOURCE_AT (PACKET_HEADER + 4)
#define MOST_GROUPS 256
/* The datagram: its header, which fields of the record are asked for, and the record. */
enum { MAD_CLASS = 1, METHOD = 3, STATUS = 4, ATTRIBUTE = 16, ASKED = 48, RECORD = 56, MAD = 256 };
enum { GET_RECORD = 0x1, SET_RECORD = 0x2, DELETE_RECORD = 0x15 };
enum { CLASS_PORT_INFO = 0x1, PATH_RECORD = 0x35, MEMBER_RECORD = 0x38 };
enum { DONE = 0, UNSUPPORTED = 0xc, NO_RESOURCES = 0x100, INVALID = 0x200, NO_RECORDS = 0x300, INVALID_GID = 0x500,
       INCOMPLETE = 0x600, DENIED = 0x700 };
/* Path record: places, and bits of the fields asked for. */
enum { PATH_TO = 8, PATH_FROM = 24, PATH_TO_LID = 40, PATH_FROM_LID = 42, PATH_FLOW = 44, PATH_COUNT = 49, PATH_KEY = 50,
       PATH_MTU = 54, PATH_RATE = 55, PATH_LIFE = 56 };
enum { ASKS_TO = 1 << 2, ASKS_FROM = 1 << 3, ASKS_KEY = 1 << 13 };
/* Record of a member of a multicast group. */
enum { MEMBER_PORT = 16, MEMBER_QUEUE_KEY = 32, MEMBER_LID = 36, MEMBER_MTU = 38, MEMBER_KEY = 40, MEMBER_RATE = 42,
       MEMBER_LIFE = 43, MEMBER_STATE = 48, MEMBER = 52 };
enum { HAS_QUEUE_KEY = 1 << 2, HAS_KEY = 1 << 7 };
enum { RECEIVES = 0x3 }; /* of the states in which a port joins: full member and non-member, but not those that only send */
/* Values of OpenSM: in groups 2048 bytes and 10 Gb/s, on paths what the ports can. */
enum { EXACTLY = 2 << 6, MTU_2048 = 4, MTU_4096 = 5, RATE_10 = 3, RATE_100 = 16, LIFE_TIME = 18, IPOIB_QUEUE_KEY = 0xb1b };

typedef struct Group {
    uint8_t record[MEMBER];
    uint8_t joined[MAX_VFS + 1]; /* by vport: in which states */
} Group;

GArray *subnet_groups_new(void)
{
    return g_array_new(false, true, sizeof(Group));
}

static bool is_used(const Group *group)
{
    for (unsigned i = 0; i < ARRAY_SIZE(group->joined); i++) {
        if (group->joined[i]) {
            return true;
        }
    }
    return false;
}

/* Whether datagrams to this LID go to the port. */
bool subnet_group_has(const Port *port, uint16_t lid, uint16_t number)
{
    guint index = lid - FIRST_MULTICAST_LID;

    return index < port->groups->len && g_array_index(port->groups, Group, index).joined[number] & RECEIVES;
}

/* The active port with this GID; -1: none. */
static int port_of(Port *port, const uint8_t *gid)
{
    uint64_t guid = ldq_be_p(gid + 8);

    for (unsigned number = 0; guid && ldq_be_p(gid) == SUBNET_PREFIX && number <= port->vfs; number++) {
        if (port->vport[number].port_guid == guid && infiniband_state(port, number) == PORT_ACTIVE) {
            return number;
        }
    }
    return -1;
}

static uint16_t describe_class(uint8_t *record)
{
    memset(record, 0, MAD - RECORD);
    record[0] = 1; /* versions of the datagram and of the class */
    record[1] = 2;
    stl_be_p(record + 4, LIFE_TIME);
    return DONE;
}

static uint16_t find_path(Port *port, uint64_t asked, uint8_t *record)
{
    int from = port_of(port, record + PATH_FROM), to = port_of(port, record + PATH_TO);
    uint16_t key = asked & ASKS_KEY ? lduw_be_p(record + PATH_KEY) : DEFAULT_PARTITION, own;

    if (!(asked & ASKS_FROM) || !(asked & ASKS_TO)) {
        return INCOMPLETE;
    }
    own = from < 0 ? 0 : subnet_list_own(port, from, key);
    if (to < 0 || !own || !subnet_list_accepts(port, to, own)) {
        return NO_RECORDS;
    }
    stw_be_p(record + PATH_TO_LID, 1 + to);
    stw_be_p(record + PATH_FROM_LID, 1 + from);
    stl_be_p(record + PATH_FLOW, 0); /* no hops: packets need no global header */
    record[PATH_COUNT] = 0x80 | 1;   /* reversible */
    stw_be_p(record + PATH_KEY, key);
    record[PATH_MTU] = EXACTLY | MTU_4096;
    record[PATH_RATE] = EXACTLY | RATE_100;
    record[PATH_LIFE] = EXACTLY | LIFE_TIME;
    return DONE;
}

static Group *group_of(const Port *port, const uint8_t *gid)
{
    for (guint i = 0; i < port->groups->len; i++) {
        Group *group = &g_array_index(port->groups, Group, i);

        if (is_used(group) && !memcmp(group->record, gid, 16)) {
            return group;
        }
    }
    return NULL;
}

/* IPoIB's broadcast group (RFC 4391), which exists in advance on OpenSM. Whoever makes another one must say how. */
static bool is_broadcast(const uint8_t *gid)
{
    return lduw_be_p(gid + 2) == 0x401b && (uint32_t)ldl_be_p(gid + 12) == UINT32_MAX;
}

static Group *group_new(Port *port, uint64_t asked, const uint8_t *record)
{
    guint index = 0;
    Group *group;

    while (index < port->groups->len && is_used(&g_array_index(port->groups, Group, index))) {
        index++;
    }
    if (index == MOST_GROUPS) {
        return NULL;
    }
    g_array_set_size(port->groups, MAX(port->groups->len, index + 1));
    group = &g_array_index(port->groups, Group, index);
    memcpy(group->record, record, MEMBER);
    if (!(asked & HAS_QUEUE_KEY)) {
        stl_be_p(group->record + MEMBER_QUEUE_KEY, IPOIB_QUEUE_KEY);
    }
    stw_be_p(group->record + MEMBER_LID, FIRST_MULTICAST_LID + index);
    group->record[MEMBER_MTU] = EXACTLY | MTU_2048;
    group->record[MEMBER_RATE] = EXACTLY | RATE_10;
    group->record[MEMBER_LIFE] = EXACTLY | LIFE_TIME;
    return group;
}

/* The group's record, with the port that asks and its states. */
static void describe_member(const Group *group, uint16_t number, uint8_t *record)
{
    uint8_t gid[16], scope = record[MEMBER_STATE] & 0xf0;

    memcpy(gid, record + MEMBER_PORT, sizeof(gid));
    memcpy(record, group->record, MEMBER);
    memcpy(record + MEMBER_PORT, gid, sizeof(gid));
    record[MEMBER_STATE] = scope | group->joined[number];
}

static uint16_t join(Port *port, uint16_t number, uint64_t asked, uint8_t *record)
{
    Group *group = group_of(port, record);
    uint8_t states = record[MEMBER_STATE] & 0xf;

    if (port_of(port, record + MEMBER_PORT) != number) {
        return INVALID_GID;
    }
    if (!group && (!(asked & HAS_KEY) || (!(asked & HAS_QUEUE_KEY) && !is_broadcast(record)))) {
        return INCOMPLETE;
    }
    if (!subnet_list_own(port, number, lduw_be_p((group ? group->record : record) + MEMBER_KEY))) {
        return DENIED;
    }
    group = group || !states ? group : group_new(port, asked, record);
    if (!group || !states) {
        return states ? NO_RESOURCES : INVALID;
    }
    group->joined[number] |= states;
    describe_member(group, number, record);
    return DONE;
}

static uint16_t leave(Port *port, uint16_t number, uint8_t *record)
{
    Group *group = group_of(port, record);
    uint8_t states = record[MEMBER_STATE] & 0xf;

    if (!group || !(group->joined[number] & states)) {
        return INVALID;
    }
    group->joined[number] &= ~states;
    describe_member(group, number, record);
    return DONE;
}

static uint16_t find_member(Port *port, uint16_t number, uint8_t *record)
{
    Group *group = group_of(port, record);

    if (!group) {
        return NO_RECORDS;
    }
    describe_member(group, number, record);
    return DONE;
}

static uint16_t run(Port *port, uint16_t number, uint8_t *mad)
{
    uint64_t asked = ldq_be_p(mad + ASKED);
    uint8_t *record = mad + RECORD;

    switch (lduw_be_p(mad + ATTRIBUTE) << 8 | mad[METHOD]) {
    case CLASS_PORT_INFO << 8 | GET_RECORD:
        return describe_class(record);
    case PATH_RECORD << 8 | GET_RECORD:
        return find_path(port, asked, record);
    case MEMBER_RECORD << 8 | GET_RECORD:
        return find_member(port, number, record);
    case MEMBER_RECORD << 8 | SET_RECORD:
        return join(port, number, asked, record);
    case MEMBER_RECORD << 8 | DELETE_RECORD:
        return leave(port, number, record);
    default:
        return UNSUPPORTED;
    }
}

static void reply(Function *function, uint32_t pair, const uint8_t *mad)
{
    g_autofree RdmaPacket *packet = g_new(RdmaPacket, 1);

    packet_begin(packet, SEND_ONLY, pair, 0, false);
    packet->source_lid = MANAGER_LID;
    stl_be_p(packet->bytes + PACKET_HEADER, SERVICES_KEY);
    stl_be_p(packet->bytes + SOURCE_AT, GENERAL_SERVICES);
    packet->length = DATA_AT;
    packet_append_data(packet, mad, MAD);
    rdma_receive(function, packet);
}

/* Answers a request to the subnet manager's port. Returns false for any other packet. */
bool subnet_administrator_receive(Function *sender, const RdmaPacket *packet)
{
    uint8_t mad[MAD];

    if ((ldl_be_p(packet->bytes + PACKET_DESTINATION) & 0xffffff) != GENERAL_SERVICES || packet->bytes[PACKET_OPCODE] != SEND_ONLY ||
        packet_data_length(packet, DATA_AT) != MAD) {
        return false;
    }
    memcpy(mad, packet->bytes + DATA_AT, MAD);
    if (mad[MAD_CLASS] != CLASS || mad[METHOD] & RESPONSE) {
        return false;
    }
    stw_be_p(mad + STATUS, run(sender->port, sender->vport, mad));
    mad[METHOD] = mad[METHOD] == SET_RECORD ? RESPONSE | GET_RECORD : RESPONSE | mad[METHOD];
    reply(sender, ldl_be_p(packet->bytes + SOURCE_AT) & 0xffffff, mad);
    return true;
}
