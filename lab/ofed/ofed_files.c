// SPDX-License-Identifier: GPL-2.0
/*
 * The files sriov/N/{node,port,policy} below an InfiniBand PF's PCI device. MLNX_OFED and DOCA-OFED's mlx5_core
 * makes them (sriov_sysfs.c); the kernel's own does not, and no model of a card can: they are the driver's. This
 * module adds them to the kernel's driver, with the same firmware commands and in the same words. OFED makes the
 * files of a VF together with the VF. Here they are those of the VFs that exist when the module is loaded, and it has
 * to be removed before the VFs are.
 *
 * insmod ofed_files.ko pf=0000:02:00.0
 */
#include <linux/kobject.h>
#include <linux/mlx5/driver.h>
#include <linux/mlx5/vport.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/string.h>
#include <linux/sysfs.h>

static char *pf;
module_param(pf, charp, 0400);
MODULE_PARM_DESC(pf, "PCI address of the PF");

static struct pci_dev *device;
static struct kobject *directory;
static struct kobject **vfs;
static int vf_count;

static struct mlx5_core_dev *card(void)
{
	return pci_get_drvdata(device);
}

/* The directory's name is the VF's index. */
static int index_of(const struct kobject *vf)
{
	int index;

	return kstrtoint(kobject_name(vf), 10, &index) ? 0 : index;
}

static int query(struct kobject *vf, struct mlx5_hca_vport_context *context)
{
	return mlx5_query_hca_vport_context(card(), 1, 1, index_of(vf) + 1, context);
}

static int modify(struct kobject *vf, struct mlx5_hca_vport_context *context)
{
	return mlx5_core_modify_hca_vport_context(card(), 1, 1, index_of(vf) + 1, context);
}

static ssize_t emit_guid(char *text, u64 guid)
{
	__be64 bytes = cpu_to_be64(guid);

	return sysfs_emit(text, "%8phC\n", &bytes);
}

static int parse_guid(const char *text, u64 *guid)
{
	__be64 value;
	u8 *byte = (u8 *)&value;

	if (sscanf(text, "%2hhx:%2hhx:%2hhx:%2hhx:%2hhx:%2hhx:%2hhx:%2hhx", byte, byte + 1, byte + 2, byte + 3,
		   byte + 4, byte + 5, byte + 6, byte + 7) != sizeof(value))
		return -EINVAL;
	*guid = be64_to_cpu(value);
	return 0;
}

static ssize_t node_show(struct kobject *vf, struct kobj_attribute *unused, char *text)
{
	struct mlx5_hca_vport_context context = {};
	int err = query(vf, &context);

	return err ? err : emit_guid(text, context.node_guid);
}

static ssize_t port_show(struct kobject *vf, struct kobj_attribute *unused, char *text)
{
	struct mlx5_hca_vport_context context = {};
	int err = query(vf, &context);

	return err ? err : emit_guid(text, context.port_guid);
}

static ssize_t node_store(struct kobject *vf, struct kobj_attribute *unused, const char *text, size_t length)
{
	struct mlx5_hca_vport_context context = { .field_select = MLX5_HCA_VPORT_SEL_NODE_GUID };
	int err = parse_guid(text, &context.node_guid) ?: modify(vf, &context);

	return err ?: length;
}

static ssize_t port_store(struct kobject *vf, struct kobj_attribute *unused, const char *text, size_t length)
{
	struct mlx5_hca_vport_context context = { .field_select = MLX5_HCA_VPORT_SEL_PORT_GUID };
	int err = parse_guid(text, &context.port_guid) ?: modify(vf, &context);

	return err ?: length;
}

static const char *const policies[] = {
	[MLX5_POLICY_DOWN] = "Down",
	[MLX5_POLICY_UP] = "Up",
	[MLX5_POLICY_FOLLOW] = "Follow",
};

static ssize_t policy_show(struct kobject *vf, struct kobj_attribute *unused, char *text)
{
	struct mlx5_hca_vport_context context = {};
	int err = query(vf, &context);

	if (err)
		return err;
	if ((u32)context.policy >= ARRAY_SIZE(policies))
		return -EINVAL;
	return sysfs_emit(text, "%s\n", policies[context.policy]);
}

static ssize_t policy_store(struct kobject *vf, struct kobj_attribute *unused, const char *text, size_t length)
{
	struct mlx5_hca_vport_context context = { .field_select = MLX5_HCA_VPORT_SEL_STATE_POLICY };
	int policy = sysfs_match_string(policies, text);
	int err;

	if (policy < 0)
		return policy;
	context.policy = policy;
	err = modify(vf, &context);
	return err ?: length;
}

static struct kobj_attribute node_attribute = __ATTR(node, 0644, node_show, node_store);
static struct kobj_attribute port_attribute = __ATTR(port, 0644, port_show, port_store);
static struct kobj_attribute policy_attribute = __ATTR(policy, 0644, policy_show, policy_store);

static const struct attribute *const files[] = {
	&node_attribute.attr,
	&port_attribute.attr,
	&policy_attribute.attr,
	NULL
};

static struct pci_dev *find_pf(void)
{
	unsigned int domain, bus, slot, function;

	if (!pf || sscanf(pf, "%x:%x:%x.%x", &domain, &bus, &slot, &function) != 4)
		return NULL;
	return pci_get_domain_bus_and_slot(domain, bus, PCI_DEVFN(slot, function));
}

/* Removing a directory waits for the readers of its files. */
static void remove(void)
{
	while (vf_count)
		kobject_put(vfs[--vf_count]);
	kfree(vfs);
	kobject_put(directory);
	pci_dev_put(device);
}

static int __init add_vf(int index)
{
	char name[12];

	snprintf(name, sizeof(name), "%d", index);
	vfs[index] = kobject_create_and_add(name, directory);
	if (!vfs[index])
		return -ENOMEM;
	vf_count++;
	return sysfs_create_files(vfs[index], files);
}

static int __init add(void)
{
	int count, err = -ENOMEM;

	device = find_pf();
	if (!device || !device->dev.driver || strcmp(device->dev.driver->name, "mlx5_core")) {
		pci_dev_put(device);
		return -ENODEV;
	}
	count = pci_num_vf(device);
	vfs = kcalloc(count, sizeof(*vfs), GFP_KERNEL);
	directory = kobject_create_and_add("sriov", &device->dev.kobj);
	if (vfs && directory)
		err = 0;
	for (int index = 0; !err && index < count; index++)
		err = add_vf(index);
	if (err)
		remove();
	return err;
}

module_init(add);
module_exit(remove);
MODULE_DESCRIPTION("MLNX_OFED's files of an InfiniBand PF's VFs");
MODULE_LICENSE("GPL");
