// SPDX-License-Identifier: GPL-2.0
/*
 * In a guest: count what a card would have counted for each VF, and write it to
 * the second page of the mailbox. See mailbox.h.
 *
 *   mailbox_count
 *
 * Started by the init of a guest with SoftRoCE; runs until the guest ends.
 * SoftRoCE loops its packets internally, so only its own counters include them.
 * They count packets. Each is assumed to be full, which the last packet of a
 * message and acknowledgements are not, so the byte count is slightly too high.
 */
#include <dirent.h>
#include <endian.h>
#include <err.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "mailbox.h"

#define PCI_DEVICES		"/sys/bus/pci/devices"
#define RDMA_DEVICES		"/sys/class/infiniband"
#define PERIOD_NS		(150 * 1000 * 1000)
#define DIRECTORY_SIZE		300	/* ends with a name of at most 255 */
#define PATH_SIZE		400
#define RXE_HEADER_BYTES	80	/* RXE_MAX_HDR_LENGTH */
#define SMALLEST_PATH_MTU	256
#define LARGEST_PATH_MTU	4096

/* The last value of each entry's counter, which restarts at 0 with its device. */
static uint64_t last_packets[MAILBOX_MAX_ENTRIES];

/* Reads the first word of a file; returns false if the file cannot be read. */
static bool read_word(char *word, size_t size, const char *directory, const char *name)
{
	char path[PATH_SIZE];
	ssize_t length;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	length = read(fd, word, size - 1);
	close(fd);
	if (length <= 0)
		return false;
	word[length] = '\0';
	word[strcspn(word, " \t\n")] = '\0';
	return true;
}

static bool read_number(uint64_t *number, const char *directory, const char *name)
{
	char word[32];

	if (!read_word(word, sizeof(word), directory, name))
		return false;
	*number = strtoull(word, NULL, 0);
	return true;
}

static bool is_mailbox_device(const char *directory)
{
	uint64_t vendor, device;

	return read_number(&vendor, directory, "vendor") && vendor == MAILBOX_PCI_VENDOR &&
	       read_number(&device, directory, "device") && device == MAILBOX_PCI_DEVICE;
}

static void *map_bar(const char *directory)
{
	char path[PATH_SIZE];
	void *page;
	int fd;

	snprintf(path, sizeof(path), "%s/resource%d", directory, MAILBOX_BAR);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		err(1, "%s", path);
	page = mmap(NULL, 2 * MAILBOX_TRAFFIC_OFFSET, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		err(1, "%s", path);
	close(fd);
	return page;
}

/* The guest's first shared memory device is taken: the host may not have filled its page yet. */
static struct mailbox_traffic *find_page(void)
{
	DIR *devices = opendir(PCI_DEVICES);
	struct dirent *device;

	while (devices && (device = readdir(devices))) {
		char directory[DIRECTORY_SIZE];

		snprintf(directory, sizeof(directory), "%s/%s", PCI_DEVICES, device->d_name);
		if (is_mailbox_device(directory)) {
			closedir(devices);
			return (void *)((char *)map_bar(directory) + MAILBOX_TRAFFIC_OFFSET);
		}
	}
	errx(1, "no mailbox device");
}

/* As rxe derives it: the largest power of two that fits into the netdev's MTU. */
static uint64_t payload_of(uint64_t netdev_mtu)
{
	uint64_t payload = LARGEST_PATH_MTU;

	while (payload > SMALLEST_PATH_MTU && payload + RXE_HEADER_BYTES > netdev_mtu)
		payload /= 2;
	return payload;
}

/* The PCI address of a netdev's VF; returns false for a netdev without a PCI function. */
static bool pci_address(char *address, size_t size, const char *netdev)
{
	char link[PATH_SIZE], target[PATH_SIZE];
	ssize_t length;

	snprintf(link, sizeof(link), "/sys/class/net/%s/device", netdev);
	length = readlink(link, target, sizeof(target) - 1);
	if (length < 0)
		return false;
	target[length] = '\0';
	return (size_t)snprintf(address, size, "%s", basename(target)) < size;
}

/* The entry of this address, added if it is new; negative if all entries are in use. */
static int find_entry(struct mailbox_traffic *page, const char *address)
{
	uint32_t count = le32toh(page->count);
	uint32_t i;

	for (i = 0; i < count; i++)
		if (!strncmp(page->entries[i].address, address, sizeof(page->entries[i].address)))
			return i;
	if (count == MAILBOX_MAX_ENTRIES)
		return -1;
	memcpy(page->entries[count].address, address, strlen(address) + 1);
	page->count = htole32(count + 1);
	return count;
}

static void count_device(struct mailbox_traffic *page, const char *device)
{
	char directory[DIRECTORY_SIZE], netdev[64], netdev_directory[128];
	char address[sizeof(page->entries[0].address)];
	struct mailbox_traffic_entry *entry;
	uint64_t mtu, packets, added;
	int i;

	snprintf(directory, sizeof(directory), "%s/%s", RDMA_DEVICES, device);
	if (!read_word(netdev, sizeof(netdev), directory, "parent") ||
	    !pci_address(address, sizeof(address), netdev) ||
	    !read_number(&packets, directory, "ports/1/hw_counters/sent_pkts"))
		return;
	snprintf(netdev_directory, sizeof(netdev_directory), "/sys/class/net/%s", netdev);
	if (!read_number(&mtu, netdev_directory, "mtu"))
		return;
	i = find_entry(page, address);
	if (i < 0)
		return;
	added = packets >= last_packets[i] ? packets - last_packets[i] : packets;
	last_packets[i] = packets;
	entry = &page->entries[i];
	entry->packets = htole64(le64toh(entry->packets) + added);
	entry->bytes = htole64(le64toh(entry->bytes) + added * payload_of(mtu));
}

static void count_all(struct mailbox_traffic *page)
{
	DIR *devices = opendir(RDMA_DEVICES);
	struct dirent *device;

	while (devices && (device = readdir(devices)))
		if (device->d_name[0] != '.')
			count_device(page, device->d_name);
	if (devices)
		closedir(devices);
}

/* Sequence odd, content, sequence even. */
static void publish(struct mailbox_traffic *page, const struct mailbox_traffic *counts)
{
	uint32_t sequence = le32toh(page->sequence) | 1;

	page->sequence = htole32(sequence);
	atomic_thread_fence(memory_order_seq_cst);
	page->magic = htole64(MAILBOX_TRAFFIC_MAGIC);
	page->version = htole32(MAILBOX_VERSION);
	page->count = counts->count;
	memcpy(page->entries, counts->entries, sizeof(page->entries));
	atomic_thread_fence(memory_order_seq_cst);
	page->sequence = htole32(sequence + 1);
}

int main(void)
{
	const struct timespec period = { .tv_nsec = PERIOD_NS };
	struct mailbox_traffic *page = find_page();
	static struct mailbox_traffic counts;

	for (;;) {
		count_all(&counts);
		publish(page, &counts);
		nanosleep(&period, NULL);
	}
}
