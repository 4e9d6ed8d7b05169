// SPDX-License-Identifier: GPL-2.0
/*
 * Fill or show the mailbox that gives a guest's VFs their MACs and GUIDs.
 *
 *   mailbox_write FILE ADDRESS MAC NODE_GUID PORT_GUID FLAVOUR [ADDRESS ...]
 *   mailbox_write --show FILE
 *
 * FILE backs an ivshmem-plain device. The given entries replace all earlier
 * ones; without entries the mailbox is emptied.
 */
#include <endian.h>
#include <err.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mailbox.h"

#define ARGUMENTS_PER_ENTRY	5
#define MAX_VLAN		4095

static void usage(void)
{
	fputs("usage: mailbox_write FILE [ADDRESS MAC NODE_GUID PORT_GUID FLAVOUR]...\n"
	      "       mailbox_write --show FILE\n"
	      "ADDRESS is the VF's PCI address in the guest, such as 0000:02:00.0.\n"
	      "MAC and GUIDs are bytes in hexadecimal with colons, or - for zero.\n"
	      "FLAVOUR is ethernet or infiniband, and may be followed by ,vlan=ID and ,link=down.\n",
	      stderr);
	exit(2);
}

/* Parses exactly `size` bytes as "00:11:22", or "-" for zeros. */
static void parse_bytes(__u8 *bytes, size_t size, const char *text, const char *what)
{
	const char *at = text;
	size_t i;
	int used;

	memset(bytes, 0, size);
	if (!strcmp(text, "-"))
		return;
	for (i = 0; i < size; i++) {
		if (sscanf(at, "%2hhx%n", &bytes[i], &used) != 1 || used != 2 ||
		    at[2] != (i + 1 < size ? ':' : '\0'))
			errx(2, "%s: not a %s of %zu bytes", text, what, size);
		at += 3;
	}
}

/* Normalized, because the module compares it with the kernel's spelling. */
static void parse_address(struct mailbox_entry *entry, const char *text)
{
	unsigned int domain, bus, device, function;
	char address[32];
	int end = 0;

	if (sscanf(text, "%4x:%2x:%2x.%1x%n", &domain, &bus, &device, &function, &end) != 4 ||
	    text[end] || device > 31 || function > 7)
		errx(2, "%s: not a PCI address (0000:02:00.0)", text);
	snprintf(address, sizeof(address), "%04x:%02x:%02x.%x", domain, bus, device, function);
	memcpy(entry->address, address, strlen(address));
}

static void parse_option(struct mailbox_entry *entry, const char *option)
{
	char *end;
	long vlan;

	if (!strcmp(option, "link=down")) {
		entry->link_down = 1;
	} else if (!strncmp(option, "vlan=", 5)) {
		vlan = strtol(option + 5, &end, 10);
		if (!option[5] || *end || vlan < 0 || vlan > MAX_VLAN)
			errx(2, "%s: not a VLAN (0 to %d)", option, MAX_VLAN);
		entry->vlan = htole16(vlan);
	} else {
		errx(2, "%s: unknown option (vlan=ID, link=down)", option);
	}
}

static void parse_flavour(struct mailbox_entry *entry, char *text)
{
	char *flavour = strtok(text, ",");
	char *option;

	if (flavour && !strcmp(flavour, "infiniband"))
		entry->flavour = MAILBOX_INFINIBAND;
	else if (!flavour || strcmp(flavour, "ethernet"))
		errx(2, "%s: not a flavour (ethernet, infiniband)", text);
	while ((option = strtok(NULL, ",")))
		parse_option(entry, option);
}

static struct mailbox *map_file(const char *path, bool write)
{
	int flags = write ? O_RDWR | O_CREAT : O_RDONLY;
	int fd = open(path, flags | O_CLOEXEC, 0644);
	struct mailbox *mailbox;
	struct stat status;

	if (fd < 0 || flock(fd, write ? LOCK_EX : LOCK_SH) || fstat(fd, &status))
		err(1, "%s", path);
	if (write && status.st_size < MAILBOX_FILE_SIZE && ftruncate(fd, MAILBOX_FILE_SIZE))
		err(1, "%s", path);
	if (!write && status.st_size < (off_t)sizeof(*mailbox))
		errx(1, "%s: too short for a mailbox", path);
	mailbox = mmap(NULL, sizeof(*mailbox), write ? PROT_READ | PROT_WRITE : PROT_READ,
		       MAP_SHARED, fd, 0);
	if (mailbox == MAP_FAILED)
		err(1, "%s", path);
	return mailbox;	/* the lock is released when the process exits */
}

/* Sequence odd, content, sequence even. The magic comes last, so that an
 * incomplete file is not mistaken for a mailbox.
 */
static void publish(struct mailbox *mailbox, const struct mailbox_entry *entries, __u32 count)
{
	__u32 sequence = le32toh(mailbox->sequence) | 1;

	mailbox->sequence = htole32(sequence);
	atomic_thread_fence(memory_order_seq_cst);
	mailbox->version = htole32(MAILBOX_VERSION);
	mailbox->count = htole32(count);
	memcpy(mailbox->entries, entries, sizeof(mailbox->entries));
	atomic_thread_fence(memory_order_seq_cst);
	mailbox->sequence = htole32(sequence + 1);
	atomic_thread_fence(memory_order_seq_cst);
	mailbox->magic = htole64(MAILBOX_MAGIC);
}

static void write_mailbox(char **argv, int argc)
{
	static struct mailbox_entry entries[MAILBOX_MAX_ENTRIES];
	int count = (argc - 2) / ARGUMENTS_PER_ENTRY;
	int i;

	if ((argc - 2) % ARGUMENTS_PER_ENTRY)
		usage();
	if (count > MAILBOX_MAX_ENTRIES)
		errx(2, "at most %d entries", MAILBOX_MAX_ENTRIES);
	for (i = 0; i < count; i++) {
		char **fields = argv + 2 + i * ARGUMENTS_PER_ENTRY;
		struct mailbox_entry *entry = &entries[i];

		parse_address(entry, fields[0]);
		parse_bytes(entry->mac, sizeof(entry->mac), fields[1], "MAC address");
		parse_bytes(entry->node_guid, sizeof(entry->node_guid), fields[2], "GUID");
		parse_bytes(entry->port_guid, sizeof(entry->port_guid), fields[3], "GUID");
		parse_flavour(entry, fields[4]);
	}
	publish(map_file(argv[1], true), entries, count);
}

static void print_bytes(const __u8 *bytes, size_t size)
{
	size_t i;

	for (i = 0; i < size; i++)
		printf("%c%02x", i ? ':' : ' ', bytes[i]);
}

static void show_entry(const struct mailbox_entry *entry)
{
	printf("%.*s", (int)sizeof(entry->address), entry->address);
	print_bytes(entry->mac, sizeof(entry->mac));
	print_bytes(entry->node_guid, sizeof(entry->node_guid));
	print_bytes(entry->port_guid, sizeof(entry->port_guid));
	printf(" %s,vlan=%u%s\n",
	       entry->flavour == MAILBOX_INFINIBAND ? "infiniband" : "ethernet",
	       le16toh(entry->vlan), entry->link_down ? ",link=down" : "");
}

/* Prints each entry in the form of the command line's arguments. */
static void show_mailbox(const char *path)
{
	const struct mailbox *mailbox = map_file(path, false);
	__u32 i;

	if (le64toh(mailbox->magic) != MAILBOX_MAGIC)
		errx(1, "%s: wrong magic", path);
	if (le32toh(mailbox->version) != MAILBOX_VERSION)
		errx(1, "%s: unknown version %" PRIu32, path, le32toh(mailbox->version));
	for (i = 0; i < le32toh(mailbox->count) && i < MAILBOX_MAX_ENTRIES; i++)
		show_entry(&mailbox->entries[i]);
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "--show"))
		show_mailbox(argv[2]);
	else if (argc >= 2 && argv[1][0] != '-')
		write_mailbox(argv, argc);
	else
		usage();
	return 0;
}
