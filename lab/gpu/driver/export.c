// SPDX-License-Identifier: GPL-2.0
/*
 * Memory as a DMA-BUF. It never moves: pinning does nothing, and importers that can follow moves (ib_umem_dmabuf_get in
 * drivers/infiniband/core/umem_dmabuf.c) are never told of one. There are no struct pages, so importers get addresses only,
 * as from NVIDIA's driver.
 */
#include <linux/dma-buf.h>
#include <linux/dma-mapping.h>
#include <linux/module.h>
#include <linux/scatterlist.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/version.h>

#include "stand_in_gpu.h"

struct exported {
	struct allocation *allocation;
	phys_addr_t start;
	u64 bytes;
};

/* Memory behind a BAR is for importers that can reach other devices. */
static int attach(struct dma_buf *buffer, struct dma_buf_attachment *attachment)
{
	return attachment->peer2peer ? 0 : -EOPNOTSUPP;
}

static int pin(struct dma_buf_attachment *attachment)
{
	return 0;
}

static void unpin(struct dma_buf_attachment *attachment)
{
}

static void fill_table(struct sg_table *table, dma_addr_t address, u64 bytes)
{
	struct scatterlist *entry;
	int i;

	for_each_sgtable_dma_sg(table, entry, i) {
		u64 length = min_t(u64, bytes, SZ_1G);

		sg_set_page(entry, NULL, length, 0);
		sg_dma_address(entry) = address;
		sg_dma_len(entry) = length;
		address += length;
		bytes -= length;
	}
}

static struct sg_table *map(struct dma_buf_attachment *attachment, enum dma_data_direction direction)
{
	struct exported *exported = attachment->dmabuf->priv;
	struct sg_table *table = kzalloc(sizeof(*table), GFP_KERNEL);
	dma_addr_t address;

	if (!table)
		return ERR_PTR(-ENOMEM);
	if (sg_alloc_table(table, DIV_ROUND_UP(exported->bytes, SZ_1G), GFP_KERNEL)) {
		kfree(table);
		return ERR_PTR(-ENOMEM);
	}
	address = dma_map_resource(attachment->dev, exported->start, exported->bytes, direction, DMA_ATTR_SKIP_CPU_SYNC);
	if (dma_mapping_error(attachment->dev, address)) {
		sg_free_table(table);
		kfree(table);
		return ERR_PTR(-EIO);
	}
	fill_table(table, address, exported->bytes);
	return table;
}

static void unmap(struct dma_buf_attachment *attachment, struct sg_table *table, enum dma_data_direction direction)
{
	struct exported *exported = attachment->dmabuf->priv;

	dma_unmap_resource(attachment->dev, sg_dma_address(table->sgl), exported->bytes, direction, DMA_ATTR_SKIP_CPU_SYNC);
	sg_free_table(table);
	kfree(table);
}

static void release(struct dma_buf *buffer)
{
	struct exported *exported = buffer->priv;

	allocation_put(exported->allocation);
	kfree(exported);
}

static const struct dma_buf_ops operations = {
	.attach = attach,
	.pin = pin,
	.unpin = unpin,
	.map_dma_buf = map,
	.unmap_dma_buf = unmap,
	.release = release,
};

int export_memory(struct allocation *allocation, u64 offset, u64 bytes)
{
	DEFINE_DMA_BUF_EXPORT_INFO(wanted);
	struct exported *exported = kzalloc(sizeof(*exported), GFP_KERNEL);
	struct dma_buf *buffer;
	int fd;

	if (!exported)
		return -ENOMEM;
	kref_get(&allocation->references);
	exported->allocation = allocation;
	exported->start = allocation->gpu->start + offset;
	exported->bytes = bytes;
	wanted.ops = &operations;
	wanted.size = bytes;
	wanted.flags = O_RDWR | O_CLOEXEC;
	wanted.priv = exported;
	buffer = dma_buf_export(&wanted);
	if (IS_ERR(buffer)) {
		allocation_put(allocation);
		kfree(exported);
		return PTR_ERR(buffer);
	}
	fd = dma_buf_fd(buffer, O_CLOEXEC);
	if (fd < 0)
		dma_buf_put(buffer);
	return fd;
}

/* A string since Linux 6.13. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
MODULE_IMPORT_NS(DMA_BUF);
#else
MODULE_IMPORT_NS("DMA_BUF");
#endif
