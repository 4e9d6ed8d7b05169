// SPDX-License-Identifier: GPL-2.0
/*
 * The files sriov/N/{node,port,policy} that MLNX_OFED and DOCA-OFED create below
 * the PF's PCI device. The kernel's own mlx5 has none. Unlike netlink, they use
 * the firmware's terms: link state "auto" is the policy "Follow".
 */
#include <linux/kobject.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "function.h"

struct ofed_vf {
	struct kobject kobj;
	struct eswitch *eswitch;
	int index;
};

struct ofed_files {
	struct kobject *directory;
	int num_vfs;
	struct ofed_vf *vfs[];
};

struct ofed_attribute {
	struct attribute attr;
	ssize_t (*show)(struct ofed_vf *vf, char *buf);
	int (*store)(struct ofed_vf *vf, const char *text);
};

static ssize_t emit_guid(char *buf, u64 guid)
{
	__be64 bytes = cpu_to_be64(guid);

	return sysfs_emit(buf, "%8phC\n", &bytes);
}

static int parse_guid(const char *text, u64 *guid)
{
	u8 bytes[sizeof(*guid)];
	__be64 value;

	if (sscanf(text, "%2hhx:%2hhx:%2hhx:%2hhx:%2hhx:%2hhx:%2hhx:%2hhx",
		   &bytes[0], &bytes[1], &bytes[2], &bytes[3],
		   &bytes[4], &bytes[5], &bytes[6], &bytes[7]) != sizeof(bytes))
		return -EINVAL;
	memcpy(&value, bytes, sizeof(value));
	*guid = be64_to_cpu(value);
	return 0;
}

static ssize_t node_show(struct ofed_vf *vf, char *buf)
{
	u64 node, port;
	int err = vport_get_guids(vf->eswitch, vf->index, &node, &port);

	return err ? err : emit_guid(buf, node);
}

static int node_store(struct ofed_vf *vf, const char *text)
{
	u64 guid;
	int err = parse_guid(text, &guid);

	return err ? err : vport_set_node_guid(vf->eswitch, vf->index, guid);
}

static ssize_t port_show(struct ofed_vf *vf, char *buf)
{
	u64 node, port;
	int err = vport_get_guids(vf->eswitch, vf->index, &node, &port);

	return err ? err : emit_guid(buf, port);
}

static int port_store(struct ofed_vf *vf, const char *text)
{
	u64 guid;
	int err = parse_guid(text, &guid);

	return err ? err : vport_set_port_guid(vf->eswitch, vf->index, guid);
}

static const char *const policies[] = {
	[IFLA_VF_LINK_STATE_AUTO] = "Follow",
	[IFLA_VF_LINK_STATE_ENABLE] = "Up",
	[IFLA_VF_LINK_STATE_DISABLE] = "Down",
};

static ssize_t policy_show(struct ofed_vf *vf, char *buf)
{
	struct ifla_vf_info info;
	int err = vport_get_config(vf->eswitch, vf->index, &info);

	return err ? err : sysfs_emit(buf, "%s\n", policies[info.linkstate]);
}

static int policy_store(struct ofed_vf *vf, const char *text)
{
	int state = sysfs_match_string(policies, text);

	if (state < 0)
		return state;
	return vport_set_link_state(vf->eswitch, vf->index, state);
}

#define OFED_ATTRIBUTE(file)							\
	static struct ofed_attribute file##_attribute = {			\
		.attr = { .name = #file, .mode = 0644 },			\
		.show = file##_show,						\
		.store = file##_store,						\
	}

OFED_ATTRIBUTE(node);
OFED_ATTRIBUTE(port);
OFED_ATTRIBUTE(policy);

static struct attribute *ofed_vf_attrs[] = {
	&node_attribute.attr,
	&port_attribute.attr,
	&policy_attribute.attr,
	NULL
};
ATTRIBUTE_GROUPS(ofed_vf);

static ssize_t ofed_show(struct kobject *kobj, struct attribute *attr, char *buf)
{
	struct ofed_attribute *attribute = container_of(attr, struct ofed_attribute, attr);

	return attribute->show(container_of(kobj, struct ofed_vf, kobj), buf);
}

static ssize_t ofed_store(struct kobject *kobj, struct attribute *attr,
			  const char *buf, size_t count)
{
	struct ofed_attribute *attribute = container_of(attr, struct ofed_attribute, attr);
	int err = attribute->store(container_of(kobj, struct ofed_vf, kobj), buf);

	return err ? err : count;
}

static const struct sysfs_ops ofed_sysfs_ops = {
	.show = ofed_show,
	.store = ofed_store,
};

static void ofed_vf_release(struct kobject *kobj)
{
	kfree(container_of(kobj, struct ofed_vf, kobj));
}

static const struct kobj_type ofed_vf_type = {
	.release = ofed_vf_release,
	.sysfs_ops = &ofed_sysfs_ops,
	.default_groups = ofed_vf_groups,
};

static int ofed_add_vf(struct ofed_files *ofed, struct eswitch *esw, int index)
{
	struct ofed_vf *vf = kzalloc(sizeof(*vf), GFP_KERNEL);
	int err;

	if (!vf)
		return -ENOMEM;
	vf->eswitch = esw;
	vf->index = index;
	err = kobject_init_and_add(&vf->kobj, &ofed_vf_type, ofed->directory, "%d", index);
	if (err) {
		kobject_put(&vf->kobj);
		return err;
	}
	ofed->vfs[ofed->num_vfs++] = vf;
	return 0;
}

struct ofed_files *ofed_create(struct pci_dev *pdev, struct eswitch *esw, int num_vfs)
{
	struct ofed_files *ofed;
	int i;

	ofed = kzalloc(struct_size(ofed, vfs, num_vfs), GFP_KERNEL);
	if (!ofed)
		return NULL;
	ofed->directory = kobject_create_and_add("sriov", &pdev->dev.kobj);
	if (!ofed->directory) {
		kfree(ofed);
		return NULL;
	}
	for (i = 0; i < num_vfs; i++) {
		if (ofed_add_vf(ofed, esw, i)) {
			ofed_destroy(ofed);
			return NULL;
		}
	}
	return ofed;
}

/* kobject_del() waits for readers, so the eswitch may be freed afterwards. */
void ofed_destroy(struct ofed_files *ofed)
{
	if (!ofed)
		return;
	while (ofed->num_vfs--) {
		kobject_del(&ofed->vfs[ofed->num_vfs]->kobj);
		kobject_put(&ofed->vfs[ofed->num_vfs]->kobj);
	}
	kobject_del(ofed->directory);
	kobject_put(ofed->directory);
	kfree(ofed);
}
