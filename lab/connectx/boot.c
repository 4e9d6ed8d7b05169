/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Starting and stopping a function: mlx5_function_setup in main.c, mlx5_device_enable_sriov in sriov.c. */
#include "connectx.h"

static uint8_t query_adapter(Function *function, Command *command)
{
    SET(command->out, query_adapter_out__query_adapter_struct__ieee_vendor_id, 0x2c9);
    memcpy(AT(command->out, query_adapter_out__query_adapter_struct__vsd_contd_psid), function->port->card->psid, 13);
    return STATUS_OK;
}

static uint8_t init_hca(Function *function, Command *command)
{
    (void)command;
    function->initialized = true;
    return STATUS_OK;
}

static uint8_t teardown_hca(Function *function, Command *command)
{
    (void)command;
    function_clear(function);
    return STATUS_OK;
}

/* The PF's driver enables each VF before it probes; the firmware then asks for the VF's pages, and gives them back later. */
static uint8_t enable_hca(Function *function, Command *command)
{
    Port *port = function->port;
    uint16_t number = GET(command->in, enable_hca_in__function_id);
    bool enable = command->opcode == OP_ENABLE_HCA;

    if (number == 0) {
        return STATUS_OK;
    }
    if (function->vport || number > port->vfs) {
        return STATUS_BAD_PARAMETER;
    }
    if (enable && !port->vport[number].enabled) {
        pages_request(function, number, 16);
    } else if (!enable && port->vport[number].enabled) {
        pages_reclaim_later(port, number);
    }
    port->vport[number].enabled = enable;
    return STATUS_OK;
}

/* Versions 0 and 1 of the interface. */
static uint8_t query_issi(Function *function, Command *command)
{
    (void)function;
    SET(command->out, query_issi_out__supported_issi_dw0, 3);
    return STATUS_OK;
}

static uint8_t alloc_uar(Function *function, Command *command)
{
    for (unsigned id = FIRST_UAR; id < (function->vport ? VF_BAR : PF_BAR) / PAGE; id++) {
        if (!function->uar_used[id]) {
            function->uar_used[id] = true;
            SET(command->out, alloc_uar_out__uar, id);
            return STATUS_OK;
        }
    }
    return STATUS_NO_RESOURCES;
}

static uint8_t dealloc_uar(Function *function, Command *command)
{
    uint32_t id = command_id(command);

    if (id >= ARRAY_SIZE(function->uar_used)) {
        return STATUS_BAD_RESOURCE;
    }
    function->uar_used[id] = false;
    return STATUS_OK;
}

static uint8_t query_special_contexts(Function *function, Command *command)
{
    (void)function;
    SET(command->out, query_special_contexts_out__resd_lkey, 0x1000);
    SET(command->out, query_special_contexts_out__null_mkey, 0x2000);
    return STATUS_OK;
}

const CommandEntry boot_commands[] = {
    { OP_QUERY_ADAPTER, query_adapter },
    { OP_INIT_HCA, init_hca },
    { OP_TEARDOWN_HCA, teardown_hca },
    { OP_ENABLE_HCA, enable_hca },
    { OP_DISABLE_HCA, enable_hca },
    { OP_QUERY_ISSI, query_issi },
    { OP_SET_ISSI, command_accept },
    { OP_SET_DRIVER_VERSION, command_accept },
    { OP_ALLOC_UAR, alloc_uar },
    { OP_DEALLOC_UAR, dealloc_uar },
    { OP_QUERY_SPECIAL_CONTEXTS, query_special_contexts },
    { 0, NULL },
};
