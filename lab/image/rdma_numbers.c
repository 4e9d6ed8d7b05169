// SPDX-License-Identifier: GPL-2.0
/*
 * rdma_numbers answer DEVICE PORT
 * rdma_numbers ask DEVICE PORT ADDRESS
 *     exchange numbered messages over one reliable connection until "ask" gets SIGTERM. A
 *     round: "ask" writes a message into the memory of "answer" and sends the same message,
 *     "answer" does the same with another one, and "ask" reads back what it has written.
 * rdma_numbers hold DEVICE PORT
 * rdma_numbers write DEVICE PORT ADDRESS
 *     "write" writes into the memory of "hold" and reads it back. The processor of "hold"
 *     has no part in it, so while a guest is stopped requests arrive, or are lost.
 *
 * An end prints the number of each round in which all data was right, and ends with exit
 * status 1 at the first byte that is not.
 *
 * DEVICE needs a GID of RoCE v2 with an IPv4 address. The timeout is 34 s, and seven are
 * allowed: an end that is moved to another host is stopped for a minute.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SIZE 16384
#define TIMEOUT 23
#define RETRIES 7

/* Parts of the registered memory. */
enum { OUTGOING, RECEIVED, WRITTEN, READ_BACK, PARTS };

struct end {
	union ibv_gid gid;
	uint64_t address;
	uint32_t key, number;
};

struct connection {
	struct ibv_context *device;
	struct ibv_comp_channel *channel;
	struct ibv_cq *queue;
	struct ibv_qp *pair;
	struct ibv_mr *memory;
	struct ibv_gid_entry gid;
	struct end other;
	unsigned char *buffer;
	unsigned int received; /* completions of messages that take() has not seen */
};

static volatile sig_atomic_t ending;

static void end_soon(int number)
{
	(void)number;
	ending = 1;
}

static void die(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

static void *need(void *object, const char *what)
{
	if (!object)
		die(what);
	return object;
}

static struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = need(ibv_get_device_list(NULL), "devices");

	for (; *list; list++)
		if (strcmp(ibv_get_device_name(*list), name) == 0)
			return need(ibv_open_device(*list), name);
	errno = ENODEV;
	die(name);
	return NULL;
}

static struct ibv_gid_entry find_gid(struct ibv_context *device)
{
	static const unsigned char mapped[12] = { [10] = 0xff, [11] = 0xff };
	struct ibv_gid_entry entries[64];
	ssize_t count = ibv_query_gid_table(device, entries, 64, 0);

	for (ssize_t i = 0; i < count; i++)
		if (entries[i].gid_type == IBV_GID_TYPE_ROCE_V2 &&
		    memcmp(entries[i].gid.raw, mapped, sizeof(mapped)) == 0)
			return entries[i];
	errno = ENOENT;
	die("a GID of an IPv4 address");
	return entries[0];
}

static void modify(struct connection *to, struct ibv_qp_attr attributes, int mask)
{
	errno = ibv_modify_qp(to->pair, &attributes, mask | IBV_QP_STATE);
	if (errno)
		die("queue pair");
}

static void create(struct connection *to, const char *device)
{
	struct ibv_qp_init_attr wanted = { .qp_type = IBV_QPT_RC, .sq_sig_all = 1 };
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
	struct ibv_pd *domain;

	to->device = open_device(device);
	to->gid = find_gid(to->device);
	domain = need(ibv_alloc_pd(to->device), "protection domain");
	to->buffer = need(aligned_alloc(4096, PARTS * SIZE), "memory");
	memset(to->buffer, 0, PARTS * SIZE);
	to->memory = need(ibv_reg_mr(domain, to->buffer, PARTS * SIZE, access), "memory region");
	to->channel = need(ibv_create_comp_channel(to->device), "completion channel");
	to->queue = need(ibv_create_cq(to->device, 16, NULL, to->channel, 0), "completion queue");
	wanted.send_cq = wanted.recv_cq = to->queue;
	wanted.cap = (struct ibv_qp_cap){ 4, 4, 1, 1, 0 };
	to->pair = need(ibv_create_qp(domain, &wanted), "queue pair");
	modify(to, (struct ibv_qp_attr){ .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = access },
	       IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	errno = ibv_req_notify_cq(to->queue, 0);
	if (errno)
		die("completion queue");
}

static void connect_pair(struct connection *to)
{
	struct ibv_ah_attr path = { .is_global = 1, .port_num = 1 };

	path.grh.dgid = to->other.gid;
	path.grh.sgid_index = to->gid.gid_index;
	path.grh.hop_limit = 64;
	modify(to, (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024,
	       .dest_qp_num = to->other.number, .max_dest_rd_atomic = 1, .min_rnr_timer = 12, .ah_attr = path },
	       IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
	       IBV_QP_MIN_RNR_TIMER);
	modify(to, (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS, .timeout = TIMEOUT, .retry_cnt = RETRIES,
	       .rnr_retry = 7, .max_rd_atomic = 1 },
	       IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

static struct ibv_sge part_of(const struct connection *to, int part)
{
	return (struct ibv_sge){ (uintptr_t)(to->buffer + part * SIZE), SIZE, to->memory->lkey };
}

static void post_receive(struct connection *to)
{
	struct ibv_sge where = part_of(to, RECEIVED);
	struct ibv_recv_wr request = { .sg_list = &where, .num_sge = 1 }, *bad;

	errno = ibv_post_recv(to->pair, &request, &bad);
	if (errno)
		die("receive");
}

/* Sleeps until a completion is there: the event queue and the armed state move, too. */
static struct ibv_wc next_completion(struct connection *to)
{
	struct ibv_wc completion;
	struct ibv_cq *queue;
	void *context;

	while (ibv_poll_cq(to->queue, 1, &completion) == 0) {
		if (ibv_get_cq_event(to->channel, &queue, &context) != 0)
			die("event");
		ibv_ack_cq_events(queue, 1);
		errno = ibv_req_notify_cq(queue, 0);
		if (errno)
			die("completion queue");
		if (ibv_poll_cq(to->queue, 1, &completion) != 0)
			break;
	}
	if (completion.status != IBV_WC_SUCCESS) {
		fprintf(stderr, "request failed: %s\n", ibv_wc_status_str(completion.status));
		exit(1);
	}
	return completion;
}

static void request(struct connection *to, enum ibv_wr_opcode opcode, int part)
{
	struct ibv_sge where = part_of(to, part);
	struct ibv_send_wr wanted = { .sg_list = &where, .num_sge = 1, .opcode = opcode }, *bad;

	wanted.wr.rdma.remote_addr = to->other.address + WRITTEN * SIZE;
	wanted.wr.rdma.rkey = to->other.key;
	errno = ibv_post_send(to->pair, &wanted, &bad);
	if (errno)
		die("send");
	while (next_completion(to).opcode == IBV_WC_RECV)
		to->received++;
}

/* Every byte depends on its place, the round and the end that wrote it. */
static unsigned char expected(unsigned int round, int answer, unsigned int at)
{
	return (unsigned char)((at * 7 + (at >> 8) + round * 31 + answer * 101) ^ round >> 8);
}

static void check(const struct connection *to, int part, unsigned int round, int answer, const char *what)
{
	for (unsigned int at = 0; at < SIZE; at++) {
		if (to->buffer[part * SIZE + at] == expected(round, answer, at))
			continue;
		fprintf(stderr, "round %u, %s: byte %u is wrong\n", round, what, at);
		exit(1);
	}
}

static void fill(struct connection *to, unsigned int round, int answer)
{
	for (unsigned int at = 0; at < SIZE; at++)
		to->buffer[OUTGOING * SIZE + at] = expected(round, answer, at);
}

static void take(struct connection *to, unsigned int round, int answer)
{
	while (!to->received)
		to->received += next_completion(to).opcode == IBV_WC_RECV;
	to->received--;
	check(to, RECEIVED, round, answer, "sent");
	check(to, WRITTEN, round, answer, "written");
	post_receive(to);
}

static int meet(const char *port, const char *address)
{
	struct sockaddr_in where = { .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port)) };
	int file = socket(AF_INET, SOCK_STREAM, 0), yes = 1;

	if (address) {
		inet_pton(AF_INET, address, &where.sin_addr);
		if (connect(file, (struct sockaddr *)&where, sizeof(where)) != 0)
			die(address);
		return file;
	}
	setsockopt(file, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (bind(file, (struct sockaddr *)&where, sizeof(where)) != 0 || listen(file, 1) != 0)
		die(port);
	return accept(file, NULL, NULL);
}

/* Each end tells the other one when it can receive. */
static void exchange(struct connection *to, int file)
{
	struct end own = { to->gid.gid, (uintptr_t)to->buffer, to->memory->rkey, to->pair->qp_num };
	char ready = 1;

	if (write(file, &own, sizeof(own)) != sizeof(own) ||
	    recv(file, &to->other, sizeof(to->other), MSG_WAITALL) != sizeof(to->other))
		die("the other end");
	connect_pair(to);
	post_receive(to);
	if (write(file, &ready, 1) != 1 || recv(file, &ready, 1, MSG_WAITALL) != 1)
		die("the other end");
	close(file);
}

static void read_back(struct connection *to, unsigned int round)
{
	request(to, IBV_WR_RDMA_READ, READ_BACK);
	check(to, READ_BACK, round, 0, "read back");
}

static void ask_round(struct connection *to, unsigned int round)
{
	fill(to, round, 0);
	request(to, IBV_WR_RDMA_WRITE, OUTGOING);
	request(to, IBV_WR_SEND, OUTGOING);
	take(to, round, 1);
	read_back(to, round);
}

static void answer_round(struct connection *to, unsigned int round)
{
	take(to, round, 0);
	fill(to, round, 1);
	request(to, IBV_WR_RDMA_WRITE, OUTGOING);
	request(to, IBV_WR_SEND, OUTGOING);
}

/* With a pause: the host has one core, which also receives the guest. */
static void write_round(struct connection *to, unsigned int round)
{
	fill(to, round, 0);
	request(to, IBV_WR_RDMA_WRITE, OUTGOING);
	read_back(to, round);
	usleep(10000);
}

static void hold_round(struct connection *to, unsigned int round)
{
	(void)to;
	(void)round;
	pause();
}

static const struct {
	const char *name;
	int arguments;
	void (*round)(struct connection *to, unsigned int round);
} roles[] = {
	{ "answer", 4, answer_round },
	{ "ask", 5, ask_round },
	{ "hold", 4, hold_round },
	{ "write", 5, write_round },
};

int main(int argc, char **argv)
{
	struct connection connection = { 0 };
	unsigned int role = 0;

	while (role < 4 && !(argc == roles[role].arguments && strcmp(argv[1], roles[role].name) == 0))
		role++;
	if (role == 4) {
		fprintf(stderr, "usage: rdma_numbers answer|hold DEVICE PORT\n"
				"       rdma_numbers ask|write DEVICE PORT ADDRESS\n");
		return 2;
	}
	signal(SIGTERM, end_soon);
	create(&connection, argv[2]);
	exchange(&connection, meet(argv[3], argc == 5 ? argv[4] : NULL));
	for (unsigned int round = 1; !ending; round++) {
		roles[role].round(&connection, round);
		printf("%u\n", round);
		fflush(stdout);
	}
	return 0;
}
