/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The parts of the model: a port (PF) with its embedded switch, functions, vports and the firmware's objects. */
#ifndef CONNECTX_H
#define CONNECTX_H

#include "qemu_version.h"

#include "bits.h"
#include "fields.h"

#define TYPE_CONNECTX "connectx"
#define TYPE_CONNECTX_VF "connectx-vf"

#define PAGE 4096
#define MAX_VFS 127
#define MAX_ADDRESSES 128
#define GIDS 64
#define MAX_FRAME 10240
#define FLOW_CRITERIA 512 /* bytes of a fte_match_param */
#define PF_BAR (4 * MiB)
#define VF_BAR (1 * MiB)
/* Pages before it: initialization segment (0x2010 bytes, of which the driver maps all), MSI-X table, pending bits. */
#define FIRST_UAR 4
#define VPORT_UPLINK 0xffff
/* Frames and octets of unicast, multicast, broadcast, and of RDMA: unicast, and multicast on InfiniBand. */
#define COUNTERS 10
#define LARGEST_MTU 4096 /* of RDMA */
#define DEFAULT_PARTITION 0xffff
#define PARTITION_KEYS 128 /* of a port on InfiniBand */
#define SUBNET_PREFIX 0xfe80000000000000ULL
#define MANAGER_LID 1 /* the PF's port */
#define FIRST_MULTICAST_LID 0xc000
#define GENERAL_SERVICES 1 /* the queue pair of management datagrams, by this number on each port */

/* Status of a command (mlx5_cmd_stat in include/linux/mlx5/device.h). */
enum {
    STATUS_OK = 0x0,
    STATUS_INTERNAL = 0x1,
    STATUS_BAD_OPCODE = 0x2,
    STATUS_BAD_PARAMETER = 0x3,
    STATUS_BAD_RESOURCE = 0x5,
    STATUS_LIMIT = 0x8,
    STATUS_BAD_RESOURCE_STATE = 0x9,
    STATUS_NO_RESOURCES = 0xf,
    STATUS_BAD_INPUT_LENGTH = 0x50,
};

/* Events (enum mlx5_event in include/linux/mlx5/device.h). */
enum { EVENT_COMPLETION = 0x0, EVENT_PORT = 0x9, EVENT_COMMAND = 0xa, EVENT_PAGES = 0xb, EVENT_VPORT = 0xd };

typedef struct Port Port;
typedef struct Function Function;

/* What a card is and can do: cards.c. */
typedef struct CardModel {
    const char *name, *description, *part_number, *psid, *firmware;
    uint16_t pf_device, vf_device, subsystem, max_vfs;
    uint16_t pf_vectors, vf_vectors;
    uint16_t acl_tables;
    bool infiniband, ethernet, qos, vst, acl, roce;
    uint32_t ethernet_speeds, best_speed; /* bits of PTYS: enum mlx5e_link_mode in include/linux/mlx5/port.h */
} CardModel;

/* The largest MSI-X table of a VF is twice the default. */
#define VF_TABLE(port) (2U * (port)->card->vf_vectors)
#define FEWEST_VECTORS 2

/* A virtual port of the embedded switch: 0 is the PF, N is VF N-1. */
typedef struct Vport {
    uint8_t mac[6];
    uint64_t node_guid, port_guid;
    uint16_t mtu;
    bool promiscuous_unicast, promiscuous_multicast, promiscuous_all;
    uint8_t min_inline, disabled_loopback;
    bool roce;
    uint8_t address[2][MAX_ADDRESSES][6]; /* allowed unicast and multicast addresses */
    unsigned addresses[2];
    bool change_event_armed;
    uint8_t change_events, unreported;
    uint8_t admin_state; /* enum mlx5_vport_state's: 0 down, 1 up, 2 as the uplink */
    uint8_t policy;      /* the same for InfiniBand: enum port_state_policy */
    bool enabled;        /* between ENABLE_HCA and DISABLE_HCA */
    bool has_cm;         /* InfiniBand: the driver has announced a communication manager */
    uint16_t vectors;    /* interrupt vectors of a VF: the size of its MSI-X table */
    uint8_t switch_context[LEN_query_esw_vport_context_out__esw_vport_context / 8];
    uint64_t received[COUNTERS], sent[COUNTERS];
    bool frozen; /* the counters stand still */
    bool migratable;
} Vport;

/* The driver's command while it runs. */
typedef struct Command {
    uint16_t opcode, modifier;
    uint8_t *in, *out;
    uint32_t in_length, out_length;
    uint32_t syndrome;
} Command;

typedef uint8_t CommandHandler(Function *function, Command *command);
typedef struct CommandEntry {
    uint16_t opcode;
    CommandHandler *run;
} CommandEntry;

/* Anything that a command creates. The kind is the opcode that created it, in the command with its context. */
typedef struct Resource {
    uint32_t kind, id;
    uint8_t *in;
    uint32_t in_length;
    void (*destroy)(struct Resource *resource);
} Resource;

/* Memory that the driver has registered. */
typedef struct MemoryKey {
    Resource resource;
    GByteArray *translations; /* addresses of pages, as the driver wrote them */
} MemoryKey;

#define EVERY_DOMAIN UINT32_MAX

/* What a queue pair does with registered memory. */
typedef enum { READ_LOCAL, WRITE_LOCAL, READ_REMOTE, WRITE_REMOTE, READ_ATOMIC, WRITE_ATOMIC } Access;

/* Memory of the driver that holds a queue: entries of one size on pages of one size. */
typedef struct Ring {
    uint64_t *pages;
    uint32_t page_count, page_shift, start;
    uint32_t log_size, stride;
} Ring;

typedef struct EventQueue {
    Resource resource;
    Ring ring;
    uint32_t producer, consumer, vector;
    uint64_t events;
    bool armed;
} EventQueue;

typedef struct CompletionQueue {
    Resource resource;
    Ring ring;
    uint32_t producer, event_queue;
    bool armed;
} CompletionQueue;

/* A send or receive queue of Ethernet frames. */
typedef struct WorkQueue {
    Resource resource;
    Ring ring;
    uint16_t consumer;
    uint32_t completion_queue;
    uint64_t doorbell_record;
    uint8_t state; /* 0 reset, 1 ready, 3 error */
} WorkQueue;

/* Receive buffers of several queue pairs. */
typedef struct SharedQueue {
    Resource resource;
    Ring ring;
    uint16_t head, taken; /* head: the number of the next buffer; taken: how many were used */
    uint16_t limit;
    uint32_t domain;
    uint64_t doorbell_record;
} SharedQueue;

/* States of a queue pair (enum mlx5_qp_state in include/linux/mlx5/qp.h). */
enum { QP_RESET = 0, QP_INIT = 1, QP_RTR = 2, QP_RTS = 3, QP_ERROR = 6 };

/* Types of queue pairs (MLX5_QP_ST_* in the same file). */
enum { SERVICE_RELIABLE = 0x0, SERVICE_DATAGRAM = 0x2, SERVICE_GENERAL = 0x8, SERVICE_REGISTRATION = 0xc };

typedef enum {
    RDMA_DONE,
    RDMA_WAITING, /* for the other end */
    RDMA_UNREACHABLE,
    RDMA_LOCAL_ERROR,
    RDMA_KEY_REFUSED,      /* a change of a memory key */
    RDMA_RECEIVER_BUSY,    /* no receive buffer, too often */
    RDMA_REMOTE_ACCESS,    /* key or range of the remote address */
    RDMA_REMOTE_TOO_SHORT, /* the receiver's buffer */
    RDMA_REMOTE_FAILURE,   /* anything else at the receiver */
} RdmaResult;

/* The way of packets to another queue pair. */
typedef struct Path {
    uint8_t mac[6], gid[16], source; /* source: index of an own RoCE address */
    uint8_t traffic_class, hops;
    bool global; /* InfiniBand: packets have a network header */
    uint16_t udp_source, lid, key_index; /* key_index: in the table of partition keys */
} Path;

/* The base transport header and its fields. */
enum { PACKET_OPCODE = 0, PACKET_DESTINATION = 4, PACKET_NUMBER = 8, PACKET_HEADER = 12 };
/* The network header that a datagram came with (MLX5_CQE_ROCE_L3_HEADER_TYPE_* in include/linux/mlx5/device.h). */
enum { HEADER_GRH = 0, HEADER_IPV6 = 1, HEADER_IPV4 = 2 };

typedef struct RdmaPacket {
    uint32_t length;
    /* Of a received packet: */
    uint8_t source[16], header[40], header_kind;
    uint16_t source_lid;
    uint8_t bytes[LARGEST_MTU + 64]; /* from the base transport header on */
} RdmaPacket;

typedef struct Message {
    uint8_t *bytes;
    uint32_t length;
} Message;

/* What a queue pair is sending. */
typedef struct Request {
    bool active, receiver_busy;
    uint8_t wqe[1024];
    uint32_t size;
    Message message;
    uint32_t first, packets, sent, acknowledged; /* first: a packet's number; the others count packets */
    unsigned attempts, refusals; /* without an answer, without a receive buffer */
    uint8_t busy_code;           /* how long the receiver asks to wait */
    int64_t deadline; /* of the answer; 0: none */
    RdmaResult result;
} Request;

/* What a reliable connection is receiving. */
typedef struct Response {
    uint32_t expected, messages;
    GByteArray *message;
    uint64_t address;
    uint32_t key, offset, immediate_at;
    bool complained;
    uint64_t value; /* before the last atomic request */
} Response;

typedef struct QueuePair {
    Resource resource;
    Ring ring; /* the receive queue, then the send queue */
    uint32_t receive_log, receive_stride, send_offset, shared; /* shared: number of a shared receive queue, or 0 */
    bool receives, sends, running;
    uint16_t send_consumer, receive_consumer;
    uint32_t send_cq, receive_cq, user_index, domain; /* domain: of protection */
    uint64_t doorbell_record;
    uint8_t state, service, retries, timeout, busy_retries, busy_code;
    bool remote_read, remote_write, remote_atomic; /* what the other end may ask for */
    uint32_t remote, key, mtu, next_psn;
    Path path;
    Request request;
    Response response;
} QueuePair;

typedef struct FlowTable {
    Resource resource;
    GHashTable *groups; /* ID to match criteria */
    GTree *entries;     /* index to flow context */
} FlowTable;

typedef struct Frame {
    uint8_t bytes[MAX_FRAME + 8];
    uint32_t length;
    uint16_t source;    /* vport */
    uint32_t queue;     /* the send queue; 0: none of the driver's, as for RDMA */
    bool rdma;          /* sent by a queue pair of this port */
    uint8_t match[512]; /* a fte_match_param of this frame */
} Frame;

/* What a walk through the flow tables has decided about a frame. */
typedef struct Verdict {
    bool dropped, matched, push, pop;
    uint16_t tag;
    uint16_t vports[MAX_VFS + 3];
    unsigned vport_count;
    uint32_t tirs[64];
    unsigned tir_count;
} Verdict;

/* RDMA packets that are lost: loss.c. */
typedef struct Loss {
    uint64_t every, left, lost, random; /* left: how many are still to be lost */
} Loss;

/* What the ends of reliable connections count: gaps, repeated packets, gaps at the other end, answers that did not come. */
enum { OUT_OF_SEQUENCE, DUPLICATE_REQUEST, PACKET_SEQUENCE_ERROR, ACKNOWLEDGEMENT_TIMEOUT, COUNTED };

/* One rule of misbehaviour: faults.c. */
typedef struct Fault {
    int opcode;   /* -1: every command */
    int function; /* -1: every function */
    int status;   /* -1: as the command itself answers */
    uint32_t syndrome;
    uint32_t late_ms;
    bool never;
    int64_t count; /* answers left, -1 without end */
} Fault;

typedef struct Pending {
    Function *function;
    unsigned slot;
    Fault fault;
    QEMUTimer *timer;
} Pending;

struct Function {
    PCIDevice device;
    MemoryRegion bar, segment, doorbells;
    Port *port;
    uint16_t vport;
    uint64_t command_queue;
    uint32_t interface_state; /* enum in mlx5_core.h: 0 full, 1 disabled, 7 software reset */
    bool initialized;         /* between INIT_HCA and TEARDOWN_HCA */
    GHashTable *resources;
    GHashTable *roots; /* (type, vport) to the first flow table */
    uint32_t next_id, forced_id; /* forced_id: what the next object gets, or 0 */
    uint8_t suspended;           /* for a migration: migration.c */
    bool uar_used[PF_BAR / PAGE];
    uint8_t gid[GIDS][32]; /* RoCE addresses */
    uint32_t counted[COUNTED];
    QEMUTimer *retry;      /* queue pairs that wait for a receive buffer, or are flushed */
    Pending *pending[32];  /* commands without an answer yet */
};

struct Port {
    Function function; /* the PF */
    const CardModel *card;
    NICConf conf;
    NICState *nic;
    char *card_name, *link_name, *serial, *firmware, *log_path, *control_path;
    uint16_t vfs, first_vf, acl_tables, acls_used;
    uint8_t number; /* 1 or 2 */
    bool infiniband, qos, vst, acl, manager, umr, migration;
    unsigned firmware_major, firmware_minor, firmware_patch;
    uint64_t card_guid;
    Vport vport[MAX_VFS + 1];
    uint8_t admin_state; /* 1 up, 2 down */
    bool cable;          /* false: the link is down whatever the driver asks for */
    uint8_t flow_control[16]; /* PFCC, as the driver wrote it */
    bool subnet_manager; /* InfiniBand: it has activated the ports that are up */
    bool listed;         /* it activates only those VFs that are in its list */
    GArray *members;     /* of partitions: the list */
    GArray *groups;      /* multicast groups */
    GArray *pages[MAX_VFS + 1]; /* pages that the driver gave to each function's firmware */
    uint32_t reclaim_ms;
    GPtrArray *reclaims;
    bool dead;
    uint8_t death_syndrome;
    uint32_t frozen_health;
    GArray *faults;
    Loss loss;
    uint32_t commands[0x1000]; /* how often each was answered or left unanswered */
    FILE *log;
    QEMUTimer *control_timer;
    long control_offset;
    uint8_t vpd[256];
    unsigned vpd_length;
};

#define FUNCTION(device) ((Function *)(device))
DECLARE_INSTANCE_CHECKER(Port, PORT, TYPE_CONNECTX)

/* pci.c */
Function *function_of_vport(Port *port, uint16_t vport);
void function_set_vectors(Port *port, uint16_t number, uint16_t size);
void function_clear(Function *function);
bool memory_read(Function *function, uint64_t address, void *buffer, uint32_t length);
bool memory_write(Function *function, uint64_t address, const void *buffer, uint32_t length);

/* cards.c */
const CardModel *card_find(const char *name);
char *card_names(void);

/* vpd.c */
void vpd_init(Port *port);
void vpd_config_write(Port *port, uint32_t address, int length);

/* resources.c */
void *resource_new(Function *function, Command *command, uint32_t id, size_t size, void (*destroy)(Resource *));
void *resource_find(Function *function, uint32_t kind, uint32_t id);
void resource_delete(Function *function, uint32_t kind, uint32_t id);
void resource_free(void *resource);
uint32_t command_id(const Command *command);
extern const CommandEntry resource_commands[];

/* ring.c */
void ring_init(Ring *ring, const Resource *resource, const uint8_t *addresses, uint32_t bytes, uint32_t page_shift,
               uint32_t page_offset);
void ring_free(Ring *ring);
bool ring_read(Function *function, const Ring *ring, uint32_t offset, void *buffer, uint32_t length);
bool ring_write(Function *function, const Ring *ring, uint32_t offset, const void *buffer, uint32_t length);
bool ring_read_wrapped(Function *function, const Ring *ring, uint32_t base, uint32_t size, uint32_t at, uint8_t *buffer,
                       uint32_t length);

/* command_queue.c, commands.c, log.c, faults.c, control.c, health.c */
void command_queue_ring(Function *function, uint32_t slots);
void command_queue_release(Function *function);
void command_queue_forget(Function *function);
void command_queue_reset(Function *function);
CommandHandler command_accept;
uint8_t command_run(Function *function, Command *command);
const char *opcode_name(uint16_t opcode);
int opcode_number(const char *name);
void log_open(Port *port);
void log_command(Function *function, const Command *command, int status, const char *remark);
void log_line(Port *port, const char *text);
bool fault_take(Function *function, uint16_t opcode, Fault *taken);
bool fault_add(Port *port, char **words, GString *reply);
bool fault_function(const char *text, int *function);
char *control_run(Port *port, const char *line);
void control_init(Port *port);
void control_config_write(Port *port, uint32_t address, int length);
uint32_t health_read(Port *port, hwaddr offset);
uint32_t health_counter(Port *port);
void health_die(Port *port, uint8_t syndrome);
void health_recover(Port *port);

/* registers.c */
extern const MemoryRegionOps segment_ops, doorbell_ops;

/* boot.c, capabilities.c, pages.c, access_registers.c */
extern const CommandEntry boot_commands[], capability_commands[], page_commands[], access_register_commands[];
void pages_request(Function *function, uint16_t vport, int32_t count);
void pages_reclaim_later(Port *port, uint16_t vport);

/* event_queue.c, completion_queue.c */
extern const CommandEntry event_queue_commands[], completion_queue_commands[];
EventQueue *event_queue_for(Function *function, uint8_t type);
void event_push(Function *function, EventQueue *queue, uint8_t type, uint8_t subtype, const uint8_t data[28]);
void event_send(Function *function, uint8_t type, uint8_t subtype, const uint8_t data[28]);
void event_queue_doorbell(Function *function, uint32_t value, bool arm);
void event_queue_look_again(Function *function, EventQueue *queue);
void completion_push(Function *function, CompletionQueue *queue, uint8_t entry[64]);
void completion_queue_arm(Function *function, uint32_t number, uint32_t consumer);

/* vport.c, vport_context.c, infiniband.c, port.c, scheduling.c */
extern const CommandEntry vport_commands[], vport_context_commands[], infiniband_commands[];
enum { PORT_DOWN = 1, PORT_INIT = 2, PORT_ACTIVE = 4 };
unsigned infiniband_state(Port *port, uint16_t number);
int vport_of(Function *function, const Command *command);
bool vport_is_up(Port *port, uint16_t number);
bool uplink_is_up(Port *port);
void vport_link_event(Port *port, uint16_t number);
void port_link_changed(Port *port);
void vport_context_changed(Port *port, uint16_t number);
void vport_count(Port *port, uint16_t number, bool sent, const uint8_t *destination, uint32_t length);
void vport_count_infiniband(Port *port, uint16_t number, bool sent, uint16_t lid, uint32_t length);

/* subnet_manager.c */
GArray *subnet_list_new(void);
bool subnet_list_order(Port *port, char **words);
bool subnet_list_has(const Port *port, uint16_t number);
uint16_t subnet_list_key(const Port *port, uint16_t number, unsigned index);
uint16_t subnet_list_own(const Port *port, uint16_t number, uint16_t key);
bool subnet_list_accepts(const Port *port, uint16_t number, uint16_t key);

/* subnet_administrator.c, multicast.c */
GArray *subnet_groups_new(void);
bool subnet_group_has(const Port *port, uint16_t lid, uint16_t number);
bool subnet_administrator_receive(Function *sender, const RdmaPacket *packet);
extern const CommandEntry multicast_commands[];
void multicast_receive(Function *function, const Function *sender, const RdmaPacket *packet);

/* frame.c, checksum.c, flow_table.c, flow_walk.c, eswitch.c */
bool frame_is_tagged(const Frame *frame);
void frame_tag(Frame *frame, uint16_t tag);
void frame_untag(Frame *frame);
void frame_dissect(Frame *frame);
uint32_t checksum_add(const uint8_t *bytes, uint32_t length, uint32_t sum);
uint16_t checksum_fold(uint32_t sum);
void checksum_fill(Frame *frame);
bool frame_headers(const Frame *frame, uint32_t *network, uint32_t *transport, uint8_t *protocol);
extern const CommandEntry flow_table_commands[];
enum { TABLE_NIC_RECEIVE = 0, TABLE_EGRESS = 2, TABLE_INGRESS = 3, TABLE_FDB = 4 };
FlowTable *flow_root(Function *function, uint8_t type, uint16_t vport);
void flow_walk(Function *function, FlowTable *table, const Frame *frame, Verdict *verdict);
void eswitch_transmit(Function *function, Frame *frame);
ssize_t eswitch_receive(NetClientState *client, const uint8_t *bytes, size_t length);

/* work_queue.c, send_queue.c, segmentation.c, receive_queue.c */
extern const CommandEntry work_queue_commands[];
void send_queue_ring(Function *function, uint32_t number);
void segmentation_send(Function *function, uint32_t queue, const uint8_t *packet, uint32_t length, uint32_t header, uint32_t size);
void receive_queue_deliver(Port *port, uint16_t vport, Frame *frame);

/* memory_key.c, key_update.c, queue_pair.c */
extern const CommandEntry memory_key_commands[];
uint8_t *memory_key_context(const MemoryKey *key);
bool memory_key_access(Function *function, uint32_t key, uint32_t domain, Access access, uint64_t address, uint8_t *buffer,
                       uint32_t length);
RdmaResult key_update(Function *function, uint32_t domain, const uint8_t *wqe, uint32_t size);
extern const CommandEntry queue_pair_commands[];
void queue_pair_ring(Function *function, QueuePair *pair);
void queue_pair_look_again(Function *function, int64_t after_ms);
void queue_pair_retry(void *function);
void queue_pair_fail(Function *function, QueuePair *pair, uint8_t event);

/* loss.c */
extern const CommandEntry loss_commands[];
bool loss_order(Port *port, char **words);
void loss_clear(Port *port);
bool loss_takes(Port *port);

/* shared_queue.c */
extern const CommandEntry shared_queue_commands[];
bool shared_queue_is_ready(Function *function, const SharedQueue *queue);
bool shared_queue_read(Function *function, const SharedQueue *queue, uint8_t *buffer, uint32_t length);
uint16_t shared_queue_take(Function *function, SharedQueue *queue);

/* rdma.c, reliable.c, responder.c, datagram.c, network.c */
bool message_prepare(Message *message, const uint8_t *segments, const uint8_t *end);
bool message_gather(Function *function, uint32_t domain, const uint8_t *segments, const uint8_t *end, Message *message);
int64_t message_scatter(Function *function, uint32_t domain, const uint8_t *segments, const uint8_t *end,
                        const Message *message);
bool receive_is_ready(Function *function, const QueuePair *pair);
RdmaResult receive_fill(Function *function, const QueuePair *pair, const Message *message);
void receive_complete(Function *function, QueuePair *pair, uint8_t opcode, uint32_t length, uint8_t entry[64]);
void receive_failed(Function *function, QueuePair *pair, uint8_t syndrome);
void rdma_receive(Function *function, const RdmaPacket *packet);
void packet_begin(RdmaPacket *packet, uint8_t opcode, uint32_t destination, uint32_t psn, bool acknowledge);
void packet_append_data(RdmaPacket *packet, const uint8_t *bytes, uint32_t length);
uint32_t packet_data_length(const RdmaPacket *packet, uint32_t at);
void request_end(QueuePair *pair);
void reliable_begin(Function *function, QueuePair *pair);
RdmaResult reliable_advance(Function *function, QueuePair *pair);
void reliable_receive(Function *function, QueuePair *pair, const RdmaPacket *packet);
RdmaResult datagram_send(Function *function, QueuePair *pair, const uint8_t *wqe, uint32_t size);
void datagram_receive(Function *function, QueuePair *pair, const RdmaPacket *packet);
bool frame_is_rdma(const Port *port, uint16_t vport, const Frame *frame);
void network_send(Function *function, const Path *path, const RdmaPacket *packet);
void network_receive(Function *function, const Frame *frame);

/* migration.c, migration_image.c */
extern const CommandEntry migration_commands[];
bool migration_sends(const Function *function);
bool migration_receives(const Function *function);
void migration_reset(Function *function);
void migration_capabilities(const Port *port, uint16_t number, uint8_t *caps);
uint8_t migration_set_capabilities(Port *port, uint16_t number, const uint8_t *caps);
GByteArray *migration_image_save(Function *function);
bool migration_image_load(Function *function, const uint8_t *image, uint32_t length);

#endif
