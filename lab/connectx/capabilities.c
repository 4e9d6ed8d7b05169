/* SPDX-License-Identifier: GPL-2.0-or-later */
/* QUERY_HCA_CAP: what a function can do, by capability type (enum mlx5_cap_type in include/linux/mlx5/device.h). */
#include "connectx.h"

enum {
    CAP_GENERAL = 0x0, CAP_ETHERNET = 0x1, CAP_PAGE_FAULTS = 0x2, CAP_ATOMIC = 0x3, CAP_ROCE = 0x4, CAP_IPOIB = 0x5,
    CAP_IPOIB_ENHANCED = 0x6, CAP_FLOW_TABLE = 0x7, CAP_ESWITCH_FLOW_TABLE = 0x8, CAP_ESWITCH = 0x9, CAP_QOS = 0xc, CAP_GENERAL_2 = 0x20,
};

/*
 * Not offered: BlueField registers (bf), because mlx5_ib then tests write combining with a queue pair when it probes and fails.
 */
static void general_queues(uint8_t *caps)
{
    SET(caps, cmd_hca_cap__bf, 0);
    SET(caps, cmd_hca_cap__log_max_cq_sz, 22);
    SET(caps, cmd_hca_cap__log_max_cq, 16);
    SET(caps, cmd_hca_cap__log_max_eq_sz, 22);
    SET(caps, cmd_hca_cap__log_max_eq, 7);
    SET(caps, cmd_hca_cap__cqe_version, 1);
    SET(caps, cmd_hca_cap__cq_moderation, 1);
    SET(caps, cmd_hca_cap__cq_oi, 1);
    SET(caps, cmd_hca_cap__uar_sz, 5);
    SET(caps, cmd_hca_cap__log_pg_sz, 12);
    SET(caps, cmd_hca_cap__log_bf_reg_size, 9);
    SET(caps, cmd_hca_cap__max_wqe_sz_sq, 0x400);
    SET(caps, cmd_hca_cap__max_wqe_sz_rq, 0x200);
    SET(caps, cmd_hca_cap__max_wqe_sz_sq_dc, 0x400);
    SET(caps, cmd_hca_cap__log_max_transport_domain, 14);
    SET(caps, cmd_hca_cap__log_max_pd, 14);
    SET(caps, cmd_hca_cap__log_max_rq, 14);
    SET(caps, cmd_hca_cap__log_max_sq, 14);
    SET(caps, cmd_hca_cap__log_max_tir, 14);
    SET(caps, cmd_hca_cap__log_max_tis, 14);
    SET(caps, cmd_hca_cap__basic_cyclic_rcv_wqe, 1);
    SET(caps, cmd_hca_cap__log_max_rmp, 12);
    SET(caps, cmd_hca_cap__log_max_rqt, 14);
    SET(caps, cmd_hca_cap__log_max_rqt_size, 11);
    SET(caps, cmd_hca_cap__log_max_tis_per_sq, 0);
    SET(caps, cmd_hca_cap__log_max_stride_sz_rq, 9);
    SET(caps, cmd_hca_cap__log_min_stride_sz_rq, 4);
    SET(caps, cmd_hca_cap__log_max_stride_sz_sq, 9);
    SET(caps, cmd_hca_cap__log_min_stride_sz_sq, 6);
    SET(caps, cmd_hca_cap__log_max_wq_sz, 15);
    SET(caps, cmd_hca_cap__device_frequency_mhz, 156);
    SET(caps, cmd_hca_cap__device_frequency_khz, 156250);
    SET(caps, cmd_hca_cap__num_of_uars_per_page, 1);
}

static void general_ethernet(uint8_t *caps)
{
    SET(caps, cmd_hca_cap__max_indirection, 64);
    SET(caps, cmd_hca_cap__vport_counters, 1);
    SET(caps, cmd_hca_cap__eth_virt, 1);
    SET(caps, cmd_hca_cap__nic_flow_table, 1);
    SET(caps, cmd_hca_cap__num_ports, 1);
    SET(caps, cmd_hca_cap__block_lb_mc, 1);
    SET(caps, cmd_hca_cap__eth_net_offloads, 1);
    SET(caps, cmd_hca_cap__max_flow_counter_15_0, 0x1000);
    SET(caps, cmd_hca_cap__log_max_flow_counter_bulk, 0);
    SET(caps, cmd_hca_cap__nic_vport_change_event, 1);
    SET(caps, cmd_hca_cap__disable_local_lb_uc, 1);
    SET(caps, cmd_hca_cap__disable_local_lb_mc, 1);
    SET(caps, cmd_hca_cap__log_max_vlan_list, 9);
    SET(caps, cmd_hca_cap__log_max_current_mc_list, 7);
    SET(caps, cmd_hca_cap__log_max_current_uc_list, 7);
}

static void general_rdma(uint8_t *caps)
{
    SET(caps, cmd_hca_cap__log_max_srq_sz, 15);
    SET(caps, cmd_hca_cap__log_max_qp_sz, 15);
    SET(caps, cmd_hca_cap__log_max_qp, 17);
    SET(caps, cmd_hca_cap__log_max_srq, 16);
    SET(caps, cmd_hca_cap__log_max_mkey, 22);
    SET(caps, cmd_hca_cap__log_max_mrw_sz, 31);
    SET(caps, cmd_hca_cap__log_max_klm_list_size, 16);
    SET(caps, cmd_hca_cap__log_max_ra_req_qp, 4);
    SET(caps, cmd_hca_cap__log_max_ra_res_qp, 4);
    SET(caps, cmd_hca_cap__pkey_table_size, 0); /* 128 << n */
    SET(caps, cmd_hca_cap__ipoib_enhanced_offloads, 0);
    SET(caps, cmd_hca_cap__stat_rate_support, 0x1ff);
    SET(caps, cmd_hca_cap__apm, 1);
    SET(caps, cmd_hca_cap__cd, 1);
    SET(caps, cmd_hca_cap__pkv, 1);
    SET(caps, cmd_hca_cap__qkv, 1);
    SET(caps, cmd_hca_cap__imaicl, 1);
    SET(caps, cmd_hca_cap__sctr_data_cqe, 1);
    SET(caps, cmd_hca_cap__umr_ptr_rlky, 1);
    SET(caps, cmd_hca_cap__compact_address_vector, 1);
    SET(caps, cmd_hca_cap__log_max_msg, 30);
    SET(caps, cmd_hca_cap__xrc, 1);
    SET(caps, cmd_hca_cap__ud, 1);
    SET(caps, cmd_hca_cap__rc, 1);
    SET(caps, cmd_hca_cap__uc, 1);
    SET(caps, cmd_hca_cap__max_qp_mcg, 240);
    SET(caps, cmd_hca_cap__log_max_mcg, 12);
    SET(caps, cmd_hca_cap__log_max_xrcd, 10);
    SET(caps, cmd_hca_cap__max_qp_cnt, 64);
    SET(caps, cmd_hca_cap__out_of_seq_cnt, 1);
    SET(caps, cmd_hca_cap__retransmission_q_counters, 1);
    SET(caps, cmd_hca_cap__local_ca_ack_delay, 16);
    SET(caps, cmd_hca_cap__atomic, 1);
}

/*
 * Registration by requests (key_update.c), which DMA-BUFs need. mlx5_ib of a PF that has it fills its caches with 6125 CREATE_MKEYs at
 * each load (mlx5r_cache_create_ent in mr.c), so the PF has it only on demand. Without it each registration takes a CREATE_MKEY.
 */
static void general_registration(const Port *port, bool pf, uint8_t *caps)
{
    SET(caps, cmd_hca_cap__umr_modify_entity_size_disabled, pf && !port->umr);
    SET(caps, cmd_hca_cap__umr_extended_translation_offset, 1);
    /* mlx5_ib of newer kernels registers DMA-BUFs only with an event queue for page faults (mlx5r_odp_create_eq in odp.c). */
    SET(caps, cmd_hca_cap__pg, 1);
}

/* gid_table_size is 8 << n. */
static void general_link(const Port *port, uint8_t *caps)
{
    SET(caps, cmd_hca_cap__port_type, port->infiniband ? 0 : 1);
    SET(caps, cmd_hca_cap__gid_table_size, port->infiniband ? 0 : 4);
    SET(caps, cmd_hca_cap__roce, !port->infiniband && port->card->roce);
    SET(caps, cmd_hca_cap__ib_virt, port->infiniband);
}

/* As many as all VFs together have by default (mlx5_get_default_msix_vec_count in mlx5/core/pci_irq.c: half of the largest table). */
static unsigned vectors_of_all_vfs(const Port *port)
{
    return port->vfs * port->card->vf_vectors;
}

/* A PF that is no eswitch manager is one of a BlueField in DPU mode: its Arm cores manage the switch. */
static void general_function(const Port *port, uint16_t number, uint8_t *caps)
{
    bool pf = number == 0;

    SET(caps, cmd_hca_cap__max_num_eqs, pf ? port->card->pf_vectors : port->vport[number].vectors);
    SET(caps, cmd_hca_cap__vport_group_manager, pf && port->manager);
    SET(caps, cmd_hca_cap__eswitch_manager, pf && !port->infiniband && port->manager);
    SET(caps, cmd_hca_cap__qos, pf && port->qos);
    SET(caps, cmd_hca_cap__log_max_l2_table, pf ? 10 : 0);
    SET(caps, cmd_hca_cap__vhca_id, number + 1);
    SET(caps, cmd_hca_cap__migration, pf && port->migration);
    SET(caps, cmd_hca_cap__vhca_resource_manager, pf && port->migration && port->manager);
    SET(caps, cmd_hca_cap__hca_cap_2, pf && port->migration);
    if (pf && port->manager) {
        SET(caps, cmd_hca_cap__num_total_dynamic_vf_msix, vectors_of_all_vfs(port));
        SET(caps, cmd_hca_cap__min_dynamic_vf_msix_table_size, FEWEST_VECTORS);
        SET(caps, cmd_hca_cap__max_dynamic_vf_msix_table_size, VF_TABLE(port));
    } else if (!pf) {
        SET(caps, cmd_hca_cap__dynamic_msix_table_size, port->vport[number].vectors);
    }
}

static void ethernet_offloads(uint8_t *caps)
{
    SET(caps, per_protocol_networking_offload_caps__csum_cap, 1);
    SET(caps, per_protocol_networking_offload_caps__vlan_cap, 1);
    SET(caps, per_protocol_networking_offload_caps__self_lb_en_modifiable, 1);
    SET(caps, per_protocol_networking_offload_caps__max_lso_cap, 18);
    SET(caps, per_protocol_networking_offload_caps__wqe_inline_mode, 2);
    SET(caps, per_protocol_networking_offload_caps__rss_ind_tbl_cap, 11);
}

/* l3_type 6 is IPv4 and IPv6: without it the registration of mlx5_ib warns. */
static void roce(uint8_t *caps)
{
    SET(caps, roce_cap__l3_type, 6);
    SET(caps, roce_cap__roce_version, 5);
    SET(caps, roce_cap__r_roce_dest_udp_port, 4791);
    SET(caps, roce_cap__r_roce_max_src_udp_port, 0xffff);
    SET(caps, roce_cap__r_roce_min_src_udp_port, 0xc000);
    SET(caps, roce_cap__roce_address_table_size, GIDS);
}

/* Compare and swap, fetch and add, of 8 bytes, in the host's order (enum mlx5_atomic_ops in include/linux/mlx5/driver.h). */
static void atomics(uint8_t *caps)
{
    SET(caps, atomic_caps__atomic_req_8B_endianness_mode, 1);
    SET(caps, atomic_caps__supported_atomic_req_8B_endianness_mode_1, 1);
    SET(caps, atomic_caps__atomic_operations, 0x3);
    SET(caps, atomic_caps__atomic_size_qp, 0x8);
}

static void flow_tables(uint8_t *caps)
{
    SET(caps, flow_table_prop_layout__ft_support, 1);
    SET(caps, flow_table_prop_layout__flow_modify_en, 1);
    SET(caps, flow_table_prop_layout__modify_root, 1);
    SET(caps, flow_table_prop_layout__identified_miss_table_mode, 1);
    SET(caps, flow_table_prop_layout__flow_table_modify, 1);
    SET(caps, flow_table_prop_layout__flow_counter, 1);
    SET(caps, flow_table_prop_layout__log_max_ft_size, 20);
    SET(caps, flow_table_prop_layout__max_ft_level, 64);
    SET(caps, flow_table_prop_layout__log_max_ft_num, 12);
    SET(caps, flow_table_prop_layout__log_max_flow_counter, 12);
    SET(caps, flow_table_prop_layout__log_max_destination, 8);
    SET(caps, flow_table_prop_layout__log_max_flow, 16);
    memset(AT(caps, flow_table_prop_layout__ft_field_support), 0xff, 8);
    memset(AT(caps, flow_table_prop_layout__ft_field_bitmask_support), 0xff, 8);
}

/* The tables of received RDMA traffic are used by mlx5_ib in switchdev mode, which fails without them. */
static void nic_flow_tables(uint8_t *caps)
{
    uint8_t *rdma = AT(caps, flow_table_nic_cap__flow_table_properties_nic_receive_rdma);

    flow_tables(AT(caps, flow_table_nic_cap__flow_table_properties_nic_receive));
    flow_tables(rdma);
    SET(rdma, flow_table_prop_layout__table_miss_action_domain, 1);
}

static void eswitch_flow_tables(const Port *port, uint8_t *caps)
{
    flow_tables(AT(caps, flow_table_eswitch_cap__flow_table_properties_nic_esw_fdb));
    if (port->acl) {
        flow_tables(AT(caps, flow_table_eswitch_cap__flow_table_properties_esw_acl_ingress));
        flow_tables(AT(caps, flow_table_eswitch_cap__flow_table_properties_esw_acl_egress));
    }
}

static void eswitch(const Port *port, uint8_t *caps)
{
    SET(caps, e_switch_cap__vport_cvlan_strip, port->vst);
    SET(caps, e_switch_cap__vport_cvlan_insert_if_not_exist, 1);
    SET(caps, e_switch_cap__vport_cvlan_insert_overwrite, 1);
    SET(caps, e_switch_cap__nic_vport_node_guid_modify, 1);
    SET(caps, e_switch_cap__nic_vport_port_guid_modify, 1);
}

static void scheduling(uint8_t *caps)
{
    SET(caps, qos_cap__esw_scheduling, 1);
    SET(caps, qos_cap__esw_bw_share, 1);
    SET(caps, qos_cap__esw_rate_limit, 1);
    SET(caps, qos_cap__max_tsar_bw_share, 100);
    SET(caps, qos_cap__esw_element_type, 0x3);
    SET(caps, qos_cap__esw_tsar_type, 0x7);
}

static void general(const Port *port, uint16_t number, uint8_t *caps)
{
    general_queues(caps);
    general_ethernet(caps);
    general_rdma(caps);
    general_registration(port, number == 0, caps);
    general_link(port, caps);
    general_function(port, number, caps);
}

static uint8_t of_eswitch(const Port *port, unsigned type, uint8_t *caps)
{
    switch (type) {
    case CAP_ESWITCH_FLOW_TABLE:
        eswitch_flow_tables(port, caps);
        return STATUS_OK;
    case CAP_ESWITCH:
        eswitch(port, caps);
        return STATUS_OK;
    default:
        return STATUS_BAD_PARAMETER;
    }
}

/* The PF's driver asks for the capabilities of its VFs, too. */
static uint8_t query_hca_cap(Function *function, Command *command)
{
    uint8_t *caps = AT(command->out, query_hca_cap_out__capability);
    bool other = GET(command->in, query_hca_cap_in__other_function);
    uint16_t number = other ? GET(command->in, query_hca_cap_in__function_id) : function->vport;
    unsigned type = command->modifier >> 1;

    switch (type) {
    case CAP_GENERAL:
        general(function->port, number, caps);
        return STATUS_OK;
    case CAP_ETHERNET:
        ethernet_offloads(caps);
        return STATUS_OK;
    case CAP_ATOMIC:
        atomics(caps);
        return STATUS_OK;
    case CAP_ROCE:
        roce(caps);
        return STATUS_OK;
    case CAP_PAGE_FAULTS: /* of no transport */
    case CAP_IPOIB:
    case CAP_IPOIB_ENHANCED:
        return STATUS_OK;
    case CAP_FLOW_TABLE:
        nic_flow_tables(caps);
        return STATUS_OK;
    case CAP_QOS:
        scheduling(caps);
        return STATUS_OK;
    case CAP_GENERAL_2:
        if (!function->port->migration || number > function->port->vfs) {
            return STATUS_BAD_PARAMETER;
        }
        migration_capabilities(function->port, number, caps);
        return STATUS_OK;
    default:
        return number == 0 ? of_eswitch(function->port, type, caps) : STATUS_BAD_PARAMETER;
    }
}

static unsigned vectors_in_use(const Port *port, uint16_t except)
{
    unsigned used = 0;

    for (uint16_t number = 1; number <= port->vfs; number++) {
        used += number != except && port->vport[number].enabled ? port->vport[number].vectors : 0;
    }
    return used;
}

/* Of another function, the PF's driver sets the size of its MSI-X table (mlx5_set_msix_vec_count). */
static uint8_t set_hca_cap(Function *function, Command *command)
{
    Port *port = function->port;
    uint16_t number = GET(command->in, set_hca_cap_in__function_id);
    uint8_t *caps = AT(command->in, set_hca_cap_in__capability);
    unsigned size = GET(caps, cmd_hca_cap__dynamic_msix_table_size);

    if (GET(command->in, set_hca_cap_in__other_function) && command->modifier >> 1 == CAP_GENERAL_2 && !function->vport) {
        return migration_set_capabilities(port, number, caps);
    }
    if (!GET(command->in, set_hca_cap_in__other_function) || command->modifier >> 1 != CAP_GENERAL) {
        return STATUS_OK;
    }
    if (function->vport || !port->manager || number < 1 || number > port->vfs || size < FEWEST_VECTORS ||
        size > VF_TABLE(port)) {
        return STATUS_BAD_PARAMETER;
    }
    if (vectors_in_use(port, number) + size > vectors_of_all_vfs(port)) {
        return STATUS_LIMIT;
    }
    function_set_vectors(port, number, size);
    return STATUS_OK;
}

const CommandEntry capability_commands[] = {
    { OP_SET_HCA_CAP, set_hca_cap },
    { OP_QUERY_HCA_CAP, query_hca_cap },
    { 0, NULL },
};
