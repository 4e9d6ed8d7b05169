// SPDX-License-Identifier: GPL-2.0
/* Finds the devices and makes their files /dev/stand-in-gpuN. */
#include <linux/idr.h>
#include <linux/io.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "registers.h"
#include "stand_in_gpu.h"

#define MEMORY_BAR 2

static DEFINE_IDA(numbers);

static void gpu_release(struct kref *references)
{
	struct gpu *gpu = container_of(references, struct gpu, references);

	if (gpu->pool)
		gen_pool_destroy(gpu->pool);
	pci_dev_put(gpu->pci);
	kfree(gpu);
}

void gpu_put(struct gpu *gpu)
{
	kref_put(&gpu->references, gpu_release);
}

/* The IDs are those of a real GPU. A register tells the stand-in from it. */
static int read_identity(struct gpu *gpu)
{
	void __iomem *registers = pci_iomap(gpu->pci, 0, PAGE_SIZE);
	int err = 0;

	if (!registers)
		return -ENOMEM;
	if (ioread32(registers + STAND_IN_GPU_MAGIC) == STAND_IN_GPU_MAGIC_VALUE)
		for (int at = 0; at < STAND_IN_GPU_NAME_BYTES; at += 4)
			*(u32 *)(gpu->name + at) = ioread32(registers + STAND_IN_GPU_NAME_AT + at);
	else
		err = -ENODEV;
	gpu->name[sizeof(gpu->name) - 1] = 0;
	pci_iounmap(gpu->pci, registers);
	return err;
}

static int claim_memory(struct gpu *gpu)
{
	gpu->start = pci_resource_start(gpu->pci, MEMORY_BAR);
	gpu->bytes = pci_resource_len(gpu->pci, MEMORY_BAR);
	if (!gpu->start || gpu->bytes < STAND_IN_GPU_UNIT)
		return -ENOSPC;
	gpu->pool = gen_pool_create(ilog2(STAND_IN_GPU_UNIT), -1);
	if (!gpu->pool)
		return -ENOMEM;
	return gen_pool_add(gpu->pool, gpu->start, gpu->bytes, -1);
}

static int add_file(struct gpu *gpu)
{
	int number = ida_alloc(&numbers, GFP_KERNEL), err;

	if (number < 0)
		return number;
	snprintf(gpu->file_name, sizeof(gpu->file_name), "stand-in-gpu%d", number);
	gpu->file = (struct miscdevice){ .minor = MISC_DYNAMIC_MINOR, .name = gpu->file_name, .mode = 0666,
					 .fops = &gpu_file_operations, .parent = &gpu->pci->dev };
	err = misc_register(&gpu->file);
	if (err)
		ida_free(&numbers, number);
	return err;
}

static int start(struct gpu *gpu)
{
	int err = pcim_enable_device(gpu->pci);

	err = err ?: read_identity(gpu);
	err = err ?: claim_memory(gpu);
	if (err)
		return err;
	pci_set_master(gpu->pci);
	return add_file(gpu);
}

static int probe(struct pci_dev *pci, const struct pci_device_id *id)
{
	struct gpu *gpu = kzalloc(sizeof(*gpu), GFP_KERNEL);
	int err;

	if (!gpu)
		return -ENOMEM;
	kref_init(&gpu->references);
	gpu->pci = pci_dev_get(pci);
	err = start(gpu);
	if (err) {
		gpu_put(gpu);
		return err;
	}
	pci_set_drvdata(pci, gpu);
	pci_info(pci, "%s: %llu MiB\n", gpu->name, gpu->bytes >> 20);
	return 0;
}

/* Open files keep their mappings, which read as ones once the device is unplugged; all else fails. */
static void unplug(struct pci_dev *pci)
{
	struct gpu *gpu = pci_get_drvdata(pci);
	int number;

	WRITE_ONCE(gpu->gone, true);
	misc_deregister(&gpu->file);
	if (sscanf(gpu->file_name, "stand-in-gpu%d", &number) == 1)
		ida_free(&numbers, number);
	gpu_put(gpu);
}

static const struct pci_device_id ids[] = { { PCI_DEVICE(PCI_VENDOR_ID_NVIDIA, 0x2330) }, {} };
MODULE_DEVICE_TABLE(pci, ids);

static struct pci_driver gpu_driver = { .name = "stand-in-gpu", .id_table = ids, .probe = probe, .remove = unplug };
module_pci_driver(gpu_driver);
MODULE_DESCRIPTION("Driver of the lab's stand-in GPU, no NVIDIA hardware");
MODULE_LICENSE("GPL");
