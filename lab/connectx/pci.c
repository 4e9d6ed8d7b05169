/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The PCI functions: a PF with its properties, and its VFs. */
#include "connectx.h"

#define VENDOR 0x15b3
#define SEGMENT_SIZE 0x2000
#define MSIX_TABLE 0x2000
#define MSIX_PENDING 0x3000
/* QEMU's extended capabilities begin at 0x100; 0x400 is the window of window.c. */
enum { EXPRESS = 0x60, MSIX = 0x9c, ARI = 0x100, SERIAL_NUMBER = 0x110, SRIOV = 0x120 };
#define BAR_TYPE (PCI_BASE_ADDRESS_SPACE_MEMORY | PCI_BASE_ADDRESS_MEM_TYPE_64 | PCI_BASE_ADDRESS_MEM_PREFETCH)
#define CLASS_INFINIBAND 0x0207

bool memory_read(Function *function, uint64_t address, void *buffer, uint32_t length)
{
    return pci_dma_read(&function->device, address, buffer, length) == MEMTX_OK;
}

bool memory_write(Function *function, uint64_t address, const void *buffer, uint32_t length)
{
    return pci_dma_write(&function->device, address, buffer, length) == MEMTX_OK;
}

Function *function_of_vport(Port *port, uint16_t vport)
{
    PCIDevice *vf;

    if (vport == 0) {
        return &port->function;
    }
    vf = pcie_sriov_get_vf_at_index(PCI_DEVICE(port), vport - 1);
    return vf ? FUNCTION(vf) : NULL;
}

void function_clear(Function *function)
{
    g_hash_table_remove_all(function->resources);
    g_hash_table_remove_all(function->roots);
    memset(function->uar_used, 0, sizeof(function->uar_used));
    if (!function->vport) {
        function->port->acls_used = 0;
    }
    function->next_id = 0x40;
    function->initialized = false;
}

static void regions_init(Function *function, uint64_t size)
{
    Object *owner = OBJECT(function);

    memory_region_init(&function->bar, owner, "connectx-bar", size);
    memory_region_init_io(&function->segment, owner, &segment_ops, function, "connectx-segment", SEGMENT_SIZE);
    memory_region_add_subregion(&function->bar, 0, &function->segment);
    memory_region_init_io(&function->doorbells, owner, &doorbell_ops, function, "connectx-doorbells",
                          size - FIRST_UAR * PAGE);
    memory_region_add_subregion(&function->bar, FIRST_UAR * PAGE, &function->doorbells);
}

static bool msix_start(Function *function, unsigned vectors, Error **errp)
{
    PCIDevice *device = &function->device;

    if (msix_init(device, vectors, &function->bar, 0, MSIX_TABLE, &function->bar, 0, MSIX_PENDING, MSIX, errp)) {
        return false;
    }
    for (unsigned vector = 0; vector < vectors; vector++) {
        msix_vector_use(device, vector);
    }
    return true;
}

/* The table in the BAR has its full size; only as much of it as the configuration space shows is used. */
static void show_vectors(Function *function)
{
    uint8_t *flags = function->device.config + MSIX + PCI_MSIX_FLAGS;
    uint16_t size = function->port->vport[function->vport].vectors;

    pci_set_word(flags, (pci_get_word(flags) & ~PCI_MSIX_FLAGS_QSIZE) | (size - 1));
}

void function_set_vectors(Port *port, uint16_t number, uint16_t size)
{
    Function *function = function_of_vport(port, number);

    port->vport[number].vectors = size;
    if (function) {
        show_vectors(function);
    }
}

static bool function_init(Function *function, uint64_t bar, unsigned vectors, Error **errp)
{
    PCIDevice *device = &function->device;

    function->resources = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, resource_free);
    function->roots = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
    function->retry = timer_new_ms(QEMU_CLOCK_VIRTUAL, queue_pair_retry, function);
    function_clear(function);
    regions_init(function, bar);
    if (function->vport) {
        version_register_vf_bar(device, BAR_TYPE, &function->bar);
    } else {
        pci_register_bar(device, 0, BAR_TYPE, &function->bar);
    }
    if (function->port->infiniband) {
        pci_config_set_class(device->config, CLASS_INFINIBAND);
    }
    pci_set_word(device->config + PCI_SUBSYSTEM_ID, function->port->card->subsystem);
    pcie_endpoint_cap_init(device, EXPRESS);
    if (!function->vport) {
        /* Relaxed Ordering is on after a reset and MaxReadReq 512 bytes (PCI Express Base Specification 5.0, 7.5.3.4), which QEMU
         * leaves at 128. Both are reserved in a VF. */
        pci_word_test_and_set_mask(device->config + EXPRESS + PCI_EXP_DEVCTL,
                                   PCI_EXP_DEVCTL_RELAX_EN | PCI_EXP_DEVCTL_READRQ_512B);
        pci_word_test_and_set_mask(device->wmask + EXPRESS + PCI_EXP_DEVCTL, PCI_EXP_DEVCTL_RELAX_EN | PCI_EXP_DEVCTL_READRQ);
    }
    pcie_cap_flr_init(device);
    version_ari_init(device, ARI);
    return msix_start(function, vectors, errp);
}

static void function_free(Function *function)
{
    command_queue_reset(function);
    msix_uninit(&function->device, &function->bar, &function->bar);
    pcie_cap_exit(&function->device);
    timer_free(function->retry);
    g_hash_table_destroy(function->resources);
    g_hash_table_destroy(function->roots);
}

/* A number of three parts, such as 22.41.1000. */
static bool firmware_read(Port *port, Error **errp)
{
    const char *version = port->firmware ? port->firmware : port->card->firmware;

    if (sscanf(version, "%u.%u.%u", &port->firmware_major, &port->firmware_minor, &port->firmware_patch) == 3) {
        return true;
    }
    error_setg(errp, "firmware=%s is no version: use a form such as 22.41.1000", version);
    return false;
}

static bool link_read(Port *port, Error **errp)
{
    const char *link = port->link_name ? port->link_name : "ethernet";

    port->infiniband = !strcmp(link, "infiniband");
    if (!port->infiniband && strcmp(link, "ethernet")) {
        error_setg(errp, "link=%s: use ethernet or infiniband", link);
        return false;
    }
    if (port->infiniband ? !port->card->infiniband : !port->card->ethernet) {
        error_setg(errp, "card %s has no %s", port->card->name, link);
        return false;
    }
    return true;
}

static bool card_read(Port *port, Error **errp)
{
    const char *name = port->card_name ? port->card_name : "connectx6dx";
    g_autofree char *names = card_names();

    port->card = card_find(name);
    if (!port->card) {
        error_setg(errp, "unknown card=%s: use one of %s", name, names);
        return false;
    }
    if (port->vfs > port->card->max_vfs) {
        error_setg(errp, "card %s has at most %u VFs", name, port->card->max_vfs);
        return false;
    }
    if (port->number < 1 || port->number > 2) {
        error_setg(errp, "port=%u: use 1 or 2", port->number);
        return false;
    }
    return firmware_read(port, errp) && link_read(port, errp);
}

/* GUIDs as cards have them: the first half of the MAC, 03 00, the second half. */
static uint64_t guid_of(const uint8_t *mac, uint32_t low)
{
    return (uint64_t)(mac[0] << 16 | mac[1] << 8 | mac[2]) << 40 | 0x03ULL << 32 | (low & 0xffffff);
}

/* Both ports of a card have its serial number and its system image GUID. */
static void identity_init(Port *port)
{
    const uint8_t *mac = port->conf.macaddr.a;
    uint64_t guid = guid_of(mac, mac[3] << 16 | mac[4] << 8 | mac[5]);

    if (!port->serial) {
        port->serial = g_strdup_printf("LAB%02X%02X%02X", mac[3], mac[4], mac[5]);
    }
    port->card_guid = guid_of(mac, g_str_hash(port->serial));
    memcpy(port->vport[0].mac, mac, 6);
    port->vport[0].node_guid = port->vport[0].port_guid = guid;
    port->vport[0].enabled = true;
    pcie_dev_ser_num_init(&port->function.device, SERIAL_NUMBER, guid);
}

static void state_init(Port *port)
{
    for (unsigned number = 0; number <= MAX_VFS; number++) {
        port->vport[number].mtu = 1500;
        port->vport[number].admin_state = 2;
        port->vport[number].vectors = port->card->vf_vectors;
    }
    port->admin_state = 1;
    port->cable = port->subnet_manager = true;
    port->faults = g_array_new(false, false, sizeof(Fault));
    port->qos &= port->card->qos;
    port->vst &= port->card->vst;
    port->acl &= port->card->acl;
    port->acl_tables = MIN(port->acl_tables, port->card->acl_tables);
}

/* A card with one port has its VFs behind the PF; with two ports, the VFs of port 1 follow both PFs, and those of port 2 follow. */
static uint16_t first_vf_offset(Port *port)
{
    PCIDevice *device = &port->function.device;
    bool alone = PCI_FUNC(device->devfn) == 0 && !(device->cap_present & QEMU_PCI_CAP_MULTIFUNCTION);

    return alone ? 1 : port->number == 1 ? 2 : 1 + port->vfs;
}

/* With ARI, Linux finds the second PF by the first one's next function number and not by the header type. */
static void next_function(Port *port)
{
    PCIDevice *device = &port->function.device;

    if (PCI_FUNC(device->devfn) == 0 && (device->cap_present & QEMU_PCI_CAP_MULTIFUNCTION)) {
        pci_set_byte(device->config + ARI + PCI_ARI_CAP + 1, 1);
    }
}

static bool sriov_init(Port *port, Error **errp)
{
    PCIDevice *device = &port->function.device;

    if (!port->vfs) {
        return true;
    }
    if (!version_sriov_init(device, SRIOV, TYPE_CONNECTX_VF, port->card->vf_device, port->vfs, first_vf_offset(port), errp)) {
        return false;
    }
    pcie_sriov_pf_init_vf_bar(device, 0, BAR_TYPE, VF_BAR);
    return true;
}

static NetClientInfo wire = {
    .type = NET_CLIENT_DRIVER_NIC,
    .size = sizeof(NICState),
    .receive = eswitch_receive,
};

static void pf_realize(PCIDevice *device, Error **errp)
{
    Port *port = PORT(device);

    port->function.port = port;
    qemu_macaddr_default_if_unset(&port->conf.macaddr);
    if (!card_read(port, errp)) {
        return;
    }
    log_open(port);
    state_init(port);
    pci_config_set_device_id(device->config, port->card->pf_device);
    pci_config_set_interrupt_pin(device->config, 1);
    if (!function_init(&port->function, PF_BAR, port->card->pf_vectors, errp)) {
        return;
    }
    identity_init(port);
    next_function(port);
    vpd_init(port);
    control_init(port);
    if (port->conf.peers.ncs[0]) { /* QEMU warns of a NIC without a netdev */
        port->nic = qemu_new_nic(&wire, &port->conf, TYPE_CONNECTX, DEVICE(device)->id,
                                 &DEVICE(device)->mem_reentrancy_guard, port);
    }
    sriov_init(port, errp);
}

static void pf_exit(PCIDevice *device)
{
    Port *port = PORT(device);

    if (port->vfs) {
        pcie_sriov_pf_exit(device);
    }
    if (port->nic) {
        qemu_del_nic(port->nic);
    }
    if (port->control_timer) {
        timer_free(port->control_timer);
    }
    function_free(&port->function);
    g_array_free(port->faults, true);
}

static void vf_realize(PCIDevice *device, Error **errp)
{
    Function *function = FUNCTION(device);

    function->port = PORT(pcie_sriov_get_pf(device));
    function->vport = pcie_sriov_vf_number(device) + 1;
    if (function_init(function, VF_BAR, VF_TABLE(function->port), errp)) {
        show_vectors(function);
    }
}

static void vf_exit(PCIDevice *device)
{
    function_free(FUNCTION(device));
}

static void function_reset(DeviceState *state)
{
    Function *function = FUNCTION(state);

    if (!function->resources) {
        return;
    }
    function_clear(function);
    command_queue_reset(function);
    migration_reset(function);
    if (!function->vport && function->port->vfs) {
        version_sriov_reset(PCI_DEVICE(state));
    }
}

static void config_write(PCIDevice *device, uint32_t address, uint32_t value, int length)
{
    Function *function = FUNCTION(device);

    pci_default_write_config(device, address, value, length);
    pcie_cap_flr_write_config(device, address, value, length);
    if (function->vport) {
        return;
    }
    if (function->port->vfs) {
        version_sriov_config_write(device, address, value, length);
    }
    vpd_config_write(function->port, address, length);
    control_config_write(function->port, address, length);
}

static VERSION_PROPERTY properties[] = {
    DEFINE_PROP_STRING("card", Port, card_name),
    DEFINE_PROP_UINT16("vfs", Port, vfs, 8),
    DEFINE_PROP_STRING("link", Port, link_name),
    DEFINE_PROP_UINT8("port", Port, number, 1),
    DEFINE_PROP_STRING("serial", Port, serial),
    DEFINE_PROP_STRING("firmware", Port, firmware),
    DEFINE_PROP_STRING("log", Port, log_path),
    DEFINE_PROP_STRING("control", Port, control_path),
    DEFINE_PROP_BOOL("manager", Port, manager, true),
    DEFINE_PROP_BOOL("qos", Port, qos, true),
    DEFINE_PROP_BOOL("vst", Port, vst, true),
    DEFINE_PROP_BOOL("acl", Port, acl, true),
    DEFINE_PROP_BOOL("umr", Port, umr, false),
    DEFINE_PROP_BOOL("migration", Port, migration, false),
    DEFINE_PROP_UINT16("acl-tables", Port, acl_tables, 0xffff),
    DEFINE_NIC_PROPERTIES(Port, conf),
    VERSION_PROPERTIES_END
};

static void common_class(DeviceClass *class, PCIDeviceClass *pci)
{
    pci->vendor_id = VENDOR;
    pci->subsystem_vendor_id = VENDOR;
    pci->class_id = PCI_CLASS_NETWORK_ETHERNET;
    pci->config_write = config_write;
    version_set_reset(class, function_reset);
    set_bit(DEVICE_CATEGORY_NETWORK, class->categories);
}

static void pf_class(ObjectClass *object, void *data)
{
    PCIDeviceClass *pci = PCI_DEVICE_CLASS(object);

    (void)data;
    common_class(DEVICE_CLASS(object), pci);
    pci->device_id = 0x101d;
    pci->realize = pf_realize;
    pci->exit = pf_exit;
    device_class_set_props(DEVICE_CLASS(object), properties);
}

static void vf_class(ObjectClass *object, void *data)
{
    PCIDeviceClass *pci = PCI_DEVICE_CLASS(object);

    (void)data;
    common_class(DEVICE_CLASS(object), pci);
    pci->device_id = 0x101e;
    pci->realize = vf_realize;
    pci->exit = vf_exit;
    DEVICE_CLASS(object)->user_creatable = false;
}

static InterfaceInfo interfaces[] = { { INTERFACE_PCIE_DEVICE }, { 0 } };
static const TypeInfo types[] = {
    {
        .name = TYPE_CONNECTX,
        .parent = TYPE_PCI_DEVICE,
        .instance_size = sizeof(Port),
        .class_init = pf_class,
        .interfaces = interfaces,
    },
    {
        .name = TYPE_CONNECTX_VF,
        .parent = TYPE_PCI_DEVICE,
        .instance_size = sizeof(Function),
        .class_init = vf_class,
        .interfaces = interfaces,
    },
};
DEFINE_TYPES(types)
