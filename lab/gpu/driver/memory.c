// SPDX-License-Identifier: GPL-2.0
/* The files: memory that a process allocates and maps. */
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "stand_in_gpu.h"

static void allocation_release(struct kref *references)
{
	struct allocation *allocation = container_of(references, struct allocation, references);
	struct gpu *gpu = allocation->gpu;

	gen_pool_free(gpu->pool, gpu->start + allocation->offset, allocation->bytes);
	gpu_put(gpu);
	kfree(allocation);
}

void allocation_put(struct allocation *allocation)
{
	kref_put(&allocation->references, allocation_release);
}

static int gpu_open(struct inode *inode, struct file *file)
{
	struct gpu *gpu = container_of(file->private_data, struct gpu, file);
	struct gpu_file *own = kzalloc(sizeof(*own), GFP_KERNEL);

	if (!own)
		return -ENOMEM;
	kref_get(&gpu->references);
	own->gpu = gpu;
	mutex_init(&own->lock);
	INIT_LIST_HEAD(&own->allocations);
	file->private_data = own;
	return 0;
}

/* Mappings hold the file, so none is left. */
static int gpu_close(struct inode *inode, struct file *file)
{
	struct gpu_file *own = file->private_data;
	struct allocation *allocation, *next;

	list_for_each_entry_safe(allocation, next, &own->allocations, entry)
		allocation_put(allocation);
	gpu_put(own->gpu);
	kfree(own);
	return 0;
}

/* The file's allocation with these bytes. */
static struct allocation *find(struct gpu_file *own, u64 offset, u64 bytes)
{
	struct allocation *allocation;

	lockdep_assert_held(&own->lock);
	list_for_each_entry(allocation, &own->allocations, entry)
		if (offset >= allocation->offset && bytes <= allocation->bytes &&
		    offset - allocation->offset <= allocation->bytes - bytes)
			return allocation;
	return NULL;
}

static long info(struct gpu *gpu, void __user *argument)
{
	struct stand_in_gpu_info info = {
		.bytes = gpu->bytes,
		.domain = pci_domain_nr(gpu->pci->bus),
		.bus = gpu->pci->bus->number,
		.device = PCI_SLOT(gpu->pci->devfn),
		.function = PCI_FUNC(gpu->pci->devfn),
	};

	memcpy(info.name, gpu->name, sizeof(info.name));
	return copy_to_user(argument, &info, sizeof(info)) ? -EFAULT : 0;
}

static struct allocation *allocate(struct gpu *gpu, u64 bytes)
{
	struct allocation *allocation;
	unsigned long at;

	if (!bytes || bytes > gpu->bytes)
		return ERR_PTR(bytes ? -ENOMEM : -EINVAL);
	allocation = kzalloc(sizeof(*allocation), GFP_KERNEL);
	bytes = round_up(bytes, STAND_IN_GPU_UNIT);
	at = allocation ? gen_pool_alloc(gpu->pool, bytes) : 0;
	if (!at) {
		kfree(allocation);
		return ERR_PTR(-ENOMEM);
	}
	kref_init(&allocation->references);
	kref_get(&gpu->references);
	allocation->gpu = gpu;
	allocation->offset = at - gpu->start;
	allocation->bytes = bytes;
	return allocation;
}

static long allocate_for(struct gpu_file *own, struct stand_in_gpu_memory __user *argument)
{
	struct stand_in_gpu_memory wanted;
	struct allocation *allocation;

	if (copy_from_user(&wanted, argument, sizeof(wanted)))
		return -EFAULT;
	allocation = allocate(own->gpu, wanted.bytes);
	if (IS_ERR(allocation))
		return PTR_ERR(allocation);
	wanted.bytes = allocation->bytes;
	wanted.offset = allocation->offset;
	if (copy_to_user(argument, &wanted, sizeof(wanted))) {
		allocation_put(allocation);
		return -EFAULT;
	}
	mutex_lock(&own->lock);
	list_add(&allocation->entry, &own->allocations);
	mutex_unlock(&own->lock);
	return 0;
}

/* The library removes its mapping before; one that is left would show what the next owner writes. */
static long free_memory(struct gpu_file *own, struct stand_in_gpu_memory __user *argument)
{
	struct stand_in_gpu_memory wanted;
	struct allocation *allocation;

	if (copy_from_user(&wanted, argument, sizeof(wanted)))
		return -EFAULT;
	mutex_lock(&own->lock);
	allocation = find(own, wanted.offset, 1);
	if (allocation && allocation->offset == wanted.offset)
		list_del(&allocation->entry);
	else
		allocation = NULL;
	mutex_unlock(&own->lock);
	if (!allocation)
		return -EINVAL;
	allocation_put(allocation);
	return 0;
}

static long export(struct gpu_file *own, struct stand_in_gpu_export __user *argument)
{
	struct stand_in_gpu_export wanted;
	struct allocation *allocation;

	if (copy_from_user(&wanted, argument, sizeof(wanted)))
		return -EFAULT;
	if (!wanted.bytes || !PAGE_ALIGNED(wanted.offset) || !PAGE_ALIGNED(wanted.bytes))
		return -EINVAL;
	mutex_lock(&own->lock);
	allocation = find(own, wanted.offset, wanted.bytes);
	wanted.fd = allocation ? export_memory(allocation, wanted.offset, wanted.bytes) : -EINVAL;
	mutex_unlock(&own->lock);
	if (wanted.fd < 0)
		return wanted.fd;
	return copy_to_user(argument, &wanted, sizeof(wanted)) ? -EFAULT : 0;
}

static long gpu_ioctl(struct file *file, unsigned int command, unsigned long argument)
{
	struct gpu_file *own = file->private_data;

	if (READ_ONCE(own->gpu->gone))
		return -ENODEV;
	switch (command) {
	case STAND_IN_GPU_INFO:
		return info(own->gpu, (void __user *)argument);
	case STAND_IN_GPU_ALLOCATE:
		return allocate_for(own, (void __user *)argument);
	case STAND_IN_GPU_FREE:
		return free_memory(own, (void __user *)argument);
	case STAND_IN_GPU_EXPORT:
		return export(own, (void __user *)argument);
	default:
		return -ENOTTY;
	}
}

static int gpu_mmap(struct file *file, struct vm_area_struct *area)
{
	struct gpu_file *own = file->private_data;
	u64 offset = (u64)area->vm_pgoff << PAGE_SHIFT, bytes = area->vm_end - area->vm_start;
	struct allocation *allocation;

	if (READ_ONCE(own->gpu->gone))
		return -ENODEV;
	mutex_lock(&own->lock);
	allocation = find(own, offset, bytes);
	mutex_unlock(&own->lock);
	if (!allocation || !(area->vm_flags & VM_SHARED))
		return -EINVAL;
	area->vm_page_prot = pgprot_writecombine(area->vm_page_prot);
	return io_remap_pfn_range(area, area->vm_start, (own->gpu->start + offset) >> PAGE_SHIFT, bytes, area->vm_page_prot);
}

const struct file_operations gpu_file_operations = {
	.owner = THIS_MODULE,
	.open = gpu_open,
	.release = gpu_close,
	.unlocked_ioctl = gpu_ioctl,
	.mmap = gpu_mmap,
};
