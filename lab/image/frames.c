// SPDX-License-Identifier: GPL-2.0
/*
 * frames send NETDEV SOURCE DESTINATION COUNT [VLAN]
 *     sends COUNT frames with SOURCE as their MAC, which may differ from the netdev's,
 *     and with the tag of this VLAN.
 * frames receive NETDEV LAST SECONDS
 *     prints "listening", then the source MAC of each frame of `frames send` that
 *     arrives. Ends after the first frame from LAST; exit status 1 if none arrives
 *     within SECONDS.
 *
 * A single receive queue keeps frames in order: once a frame from LAST has arrived,
 * frames sent before it that did not arrive were dropped.
 */
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

/* IEEE 802 Local Experimental EtherType 1. */
#define TYPE 0x88b5

struct frame {
	struct ethhdr header;
	char payload[46];
};

static int parse_mac(const char *text, unsigned char *mac)
{
	return sscanf(text, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", mac, mac + 1, mac + 2, mac + 3,
		      mac + 4, mac + 5) == 6;
}

static int die(const char *what)
{
	perror(what);
	return 2;
}

static int open_netdev(const char *name)
{
	struct sockaddr_ll address = { .sll_family = AF_PACKET, .sll_protocol = htons(TYPE) };
	int file = socket(AF_PACKET, SOCK_RAW, htons(TYPE));

	address.sll_ifindex = (int)if_nametoindex(name);
	if (file < 0 || address.sll_ifindex == 0 ||
	    bind(file, (struct sockaddr *)&address, sizeof(address)) != 0)
		return -1;
	return file;
}

static int send_frames(int file, char **argument)
{
	struct frame frame = { .header.h_proto = htons(TYPE) };
	int count = atoi(argument[2]);

	if (argument[3]) {
		frame.header.h_proto = htons(ETH_P_8021Q);
		frame.payload[0] = (char)(atoi(argument[3]) >> 8);
		frame.payload[1] = (char)atoi(argument[3]);
		frame.payload[2] = (char)(TYPE >> 8);
		frame.payload[3] = (char)(TYPE & 0xff);
	}
	if (!parse_mac(argument[0], frame.header.h_source) ||
	    !parse_mac(argument[1], frame.header.h_dest))
		return 2;
	for (int i = 0; i < count; i++)
		if (send(file, &frame, sizeof(frame), 0) != sizeof(frame))
			return die("send");
	return 0;
}

static void print_mac(const unsigned char *mac)
{
	printf("%02x:%02x:%02x:%02x:%02x:%02x\n", mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
	fflush(stdout);
}

static int receive_frames(int file, char **argument)
{
	time_t end = time(NULL) + atoi(argument[1]);
	struct pollfd poll_for = { .fd = file, .events = POLLIN };
	unsigned char last[ETH_ALEN];
	struct frame frame;

	if (!parse_mac(argument[0], last))
		return 2;
	puts("listening");
	fflush(stdout);
	while (time(NULL) < end) {
		if (poll(&poll_for, 1, 1000) < 1 ||
		    recv(file, &frame, sizeof(frame), 0) < (ssize_t)sizeof(frame.header))
			continue;
		print_mac(frame.header.h_source);
		if (memcmp(frame.header.h_source, last, ETH_ALEN) == 0)
			return 0;
	}
	return 1;
}

int main(int argc, char **argv)
{
	int sends = (argc == 6 || argc == 7) && strcmp(argv[1], "send") == 0;
	int file;

	if (!sends && !(argc == 5 && strcmp(argv[1], "receive") == 0)) {
		fprintf(stderr, "usage: frames send NETDEV SOURCE DESTINATION COUNT [VLAN]\n"
				"       frames receive NETDEV LAST SECONDS\n");
		return 2;
	}
	file = open_netdev(argv[2]);
	if (file < 0)
		return die(argv[2]);
	return sends ? send_frames(file, argv + 3) : receive_frames(file, argv + 3);
}
